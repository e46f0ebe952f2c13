package broker

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mqx/broker/pop"
	"mqx/message"
	"mqx/remoting"
)

// N031: a retry queue without messages is reset to its end, and nothing is behind.
func TestResetOfAnEmptyQueue(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	beat, err := marshal(consumerBeat("c", "G", remoting.Clustering, "T"))
	if err != nil {
		t.Fatal(err)
	}
	r.ok(remoting.ReqHeartBeat, nil, beat)
	retry := message.RetryTopic("G")
	for _, at := range []int64{-1, time.Now().UnixMilli(), 1} {
		h := remoting.ResetOffsetHeader{Group: "G", Topic: retry, QueueID: -1, Offset: remoting.Some(int64(-1)), Timestamp: at, IsForce: true}
		var body remoting.ResetOffsetBody
		decode(t, r.ok(remoting.ReqInvokeBrokerToResetOffset, &h, nil), &body)
		for q, off := range body.OffsetTable {
			if off != r.store.MaxOffset(retry, q.QueueID) {
				t.Errorf("reset to %d: queue %d goes to %d", at, q.QueueID, off)
			}
		}
	}
	var cs remoting.ConsumeStats
	decode(t, r.ok(remoting.ReqGetConsumeStats, &remoting.GetConsumeStatsHeader{ConsumerGroup: "G", Topic: retry}, nil), &cs)
	for q, w := range cs.OffsetTable {
		if w.BrokerOffset != w.ConsumerOffset {
			t.Errorf("queue %d is %d behind", q.QueueID, w.BrokerOffset-w.ConsumerOffset)
		}
	}
}

// N033: a lite pull consumer is told of a reset, once, as others are.
func TestResetOfALitePullConsumer(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	for i := range 4 {
		r.send("T", 0, "", fmt.Sprint("m", i))
	}
	lite := func(offset int64) *remoting.Command {
		h := pullHeaderOf("G", "T", 0, offset)
		h.SysFlag |= 1 << 4
		return r.call(remoting.ReqLitePullMessage, h, nil)
	}
	lite(4)
	h := remoting.ResetOffsetHeader{Group: "G", Topic: "T", QueueID: 0, Offset: remoting.Some(int64(1)), IsForce: true}
	r.ok(remoting.ReqInvokeBrokerToResetOffset, &h, nil)
	resp := lite(4)
	if resp.Code != remoting.RespPullOffsetMoved || resp.Remark != "OFFSET_RESET" || resp.Fields.String("nextBeginOffset") != "1" {
		t.Errorf("%s %s %v", remoting.ResponseName(resp.Code), resp.Remark, resp.Fields)
	}
	if got := recordBodies(t, lite(1).Body); !slices.Equal(got, []string{"m1", "m2", "m3"}) {
		t.Errorf("then it gets %v", got)
	}
	if resp := lite(4); resp.Remark == "OFFSET_RESET" {
		t.Error("it is told twice")
	}
}

// N032: after a reset pops begin at the new offset, backward and forward.
func TestResetOfAPoppedQueue(t *testing.T) {
	for _, merge := range []bool{false, true} {
		t.Run(fmt.Sprint("merge=", merge), func(t *testing.T) {
			p := startPop(t, func(c *Config) { c.PopMerge = merge })
			p.createTopic("T", 1)
			for i := range 6 {
				p.send("T", 0, "", fmt.Sprint("m", i))
			}
			for _, m := range p.collect("G", "T", 6, 60_000) {
				p.ack("G", m)
			}
			for _, target := range []int64{0, 4, 2} {
				h := remoting.ResetOffsetHeader{Group: "G", Topic: "T", QueueID: 0, Offset: remoting.Some(target), IsForce: true}
				p.ok(remoting.ReqInvokeBrokerToResetOffset, &h, nil)
				var want []string
				for i := target; i < 6; i++ {
					want = append(want, fmt.Sprint("m", i))
				}
				got := p.collect("G", "T", len(want), 60_000)
				if !slices.Equal(bodies(got), want) {
					t.Errorf("after a reset to %d: %v", target, bodies(got))
				}
				for _, m := range got {
					p.ack("G", m)
				}
			}
		})
	}
}

// N039: whatever offset a consumer brings, the one it is told can be read from: it does not come back with the same
// answer again.
func TestCorrectionsCanBeAdopted(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	for i := range 3 {
		r.send("T", 0, "", fmt.Sprint("m", i))
	}
	for _, off := range []int64{-5, 4, 1 << 40, 1<<63 - 1} {
		resp := r.call(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, off), nil)
		if resp.Code != remoting.RespPullOffsetMoved {
			t.Errorf("a pull at %d: %s %s", off, remoting.ResponseName(resp.Code), resp.Remark)
			continue
		}
		next, _, _ := resp.Fields.Int64("nextBeginOffset")
		if again := r.call(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, next), nil); again.Code == remoting.RespPullOffsetMoved {
			t.Errorf("a pull at %d is told %d, and there it is told %s", off, next, again.Fields.String("nextBeginOffset"))
		}
	}
}

// popLight pops from a light queue. Its messages know their place in their own topic's queue only; those in the light one
// stand in the answer, in their order.
func (p popping) popLight(h *remoting.PopMessageHeader) []popped {
	p.t.Helper()
	resp := p.call(remoting.ReqPopMessage, h, nil)
	if resp.Code != remoting.RespSuccess {
		return nil
	}
	f := resp.Fields
	popTime, _, _ := f.Int64("popTime")
	invisible, _, _ := f.Int64("invisibleTime")
	rq, _, _ := f.Int32("reviveQid")
	start, err := strconv.ParseInt(strings.Fields(f.String("startOffsetInfo"))[2], 10, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	offsets := strings.Split(strings.Fields(f.String("msgOffsetInfo"))[2], ",")
	var out []popped
	for i, rec := range records(p.t, resp.Body) {
		off, err := strconv.ParseInt(offsets[i], 10, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		rc := pop.Receipt{Start: start, PopTime: popTime, Invisible: invisible, ReviveQueue: rq, Kind: "0", Broker: "b", Queue: 0, Offset: off}
		out = append(out, popped{body: string(rec.Body), real: h.Topic, queue: 0, offset: off, receipt: string(rc.Append(nil))})
	}
	return out
}

// N075: what is popped from a light queue comes once, and comes back only when it is not acknowledged.
func TestPopOfALightQueue(t *testing.T) {
	for _, merge := range []bool{false, true} {
		t.Run(fmt.Sprint("merge=", merge), func(t *testing.T) {
			p := startPop(t, func(c *Config) {
				c.Store.EnableLMQ, c.Store.EnableMultiDispatch, c.PopMerge = true, true, merge
			})
			p.createTopic("T", 2)
			var want []string
			for i := range 20 {
				names := "%LMQ%a"
				if i%2 == 0 {
					names = "%LMQ%b,%LMQ%a"
				}
				p.send("T", int32(i%2), prop("INNER_MULTI_DISPATCH", names), fmt.Sprintf("m%02d", i))
				want = append(want, fmt.Sprintf("m%02d", i))
			}
			var got []popped
			waitFor(t, "the messages of the light queue", func() bool {
				h := popHeader("G", "%LMQ%a", 0)
				h.MaxMsgNums = 3
				more := p.popLight(h)
				got = append(got, more...)
				for _, m := range more {
					p.ack("G", m)
				}
				return len(got) >= len(want)
			})
			if !slices.Equal(bodies(got), want) {
				t.Errorf("popped %v", bodies(got))
			}
			if more := p.popLight(popHeader("G", "%LMQ%a", 0)); len(more) > 0 {
				t.Errorf("and again %v", bodies(more))
			}
		})
	}
}
