package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mqx/broker/pop"
	"mqx/message"
	"mqx/remoting"
	remoteclient "mqx/remoting/client"
)

// rawPeer is one connection to a broker: requests by name, and what the broker asks in return.
type rawPeer struct {
	*remoteclient.Client
	t    *testing.T
	addr string

	mu    sync.Mutex
	asked []*remoting.Command
}

// rawNames are a topic and a group that no other test has, nor another run of the same.
func rawNames(what string) (topic, group string) {
	what = fmt.Sprintf("raw_%s_%d", what, time.Now().UnixNano())
	return "e2e_" + what, "GID_e2e_" + what
}

func newRawPeer(t *testing.T, addr string) *rawPeer {
	t.Helper()
	p := &rawPeer{t: t, addr: addr}
	p.Client = remoteclient.New(remoteclient.Config{
		RequestTimeout: time.Minute, Logger: slog.New(slog.DiscardHandler),
		OnRequest: func(_ string, req *remoting.Command) *remoting.Command {
			kept := &remoting.Command{Code: req.Code, Body: slices.Clone(req.Body)}
			for _, f := range req.Fields {
				kept.Fields.Set(string(f.Key), string(f.Value))
			}
			p.mu.Lock()
			p.asked = append(p.asked, kept)
			p.mu.Unlock()
			return nil
		},
	})
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// requests are those of a code that the broker has sent so far.
func (p *rawPeer) requests(code int32) []*remoting.Command {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.asked), func(c *remoting.Command) bool { return c.Code != code })
}

func (p *rawPeer) call(code int32, head any, body []byte) *remoting.Command {
	p.t.Helper()
	req := remoting.NewRequest(code, head)
	req.Body = body
	resp, err := p.Call(context.Background(), p.addr, req)
	if err != nil {
		p.t.Fatalf("%s: %v", remoting.RequestName(code), err)
	}
	return resp
}

func (p *rawPeer) ok(code int32, head any, body []byte) *remoting.Command {
	p.t.Helper()
	resp := p.call(code, head, body)
	if resp.Code != remoting.RespSuccess {
		p.t.Fatalf("%s: %s: %s", remoting.RequestName(code), remoting.ResponseName(resp.Code), resp.Remark)
	}
	return resp
}

func (p *rawPeer) createTopic(topic string, queues int32) {
	p.t.Helper()
	p.ok(remoting.ReqUpdateAndCreateTopic, &remoting.CreateTopicHeader{
		Topic: topic, DefaultTopic: "TBW102", ReadQueueNums: queues, WriteQueueNums: queues, Perm: 6, TopicFilterType: "SINGLE_TAG",
	}, nil)
}

func (p *rawPeer) createGroup(group string) {
	p.t.Helper()
	p.ok(remoting.ReqUpdateAndCreateSubscriptionGroup, nil, []byte(fmt.Sprintf(`{"groupName":%q,"consumeEnable":true,"consumeFromMinEnable":true,`+
		`"consumeBroadcastEnable":true,"retryQueueNums":1,"retryMaxTimes":16,"brokerId":0,"whichBrokerWhenConsumeSlowly":1}`, group)))
}

// send sends messages and waits until they can be read.
func (p *rawPeer) send(topic string, queue int32, bodies ...string) {
	p.t.Helper()
	var end int64
	for _, body := range bodies {
		resp := p.ok(remoting.ReqSendMessageV2, &remoting.SendMessageHeader{
			ProducerGroup: "PG_raw", Topic: topic, DefaultTopic: "TBW102", DefaultTopicQueueNums: 4, QueueID: queue, BornTimestamp: time.Now().UnixMilli(),
		}, []byte(body))
		end = p.int(resp, "queueOffset") + 1
	}
	waitFor(p.t, arrival, "the messages of "+topic, func() (bool, string) {
		n := p.int(p.ok(remoting.ReqGetMaxOffset, &remoting.GetMaxOffsetHeader{Topic: topic, QueueID: queue, Committed: true}, nil), "offset")
		return n >= end, fmt.Sprint(n)
	})
}

func (p *rawPeer) int(resp *remoting.Command, field string) int64 {
	p.t.Helper()
	n, ok, err := resp.Fields.Int64(field)
	if !ok || err != nil {
		p.t.Fatalf("%s: %v in %v", field, err, resp.Fields)
	}
	return n
}

func (p *rawPeer) records(resp *remoting.Command) []message.Record {
	p.t.Helper()
	var out []message.Record
	for body := resp.Body; len(body) > 0; {
		rec, err := message.DecodeRecord(body, message.DecodeOptions{VerifyBodyCRC: true})
		if err != nil {
			p.t.Fatal(err)
		}
		out = append(out, rec)
		body = body[rec.Size:]
	}
	return out
}

// rawPopped is a popped message with what it is acknowledged by.
type rawPopped struct {
	message.Record
	topic   string // where it lies
	receipt string
}

func popOf(group, topic string, queue int32, invisible time.Duration) *remoting.PopMessageHeader {
	return &remoting.PopMessageHeader{
		ConsumerGroup: group, Topic: topic, QueueID: queue, MaxMsgNums: 32, InvisibleTime: invisible.Milliseconds(), BornTime: time.Now().UnixMilli(),
	}
}

// pop pops and reads the receipts out of the answer, as clients do.
func (p *rawPeer) pop(h *remoting.PopMessageHeader) []rawPopped {
	p.t.Helper()
	h.BornTime = time.Now().UnixMilli()
	resp := p.call(remoting.ReqPopMessage, h, nil)
	if resp.Code != remoting.RespSuccess {
		if resp.Code != remoting.RespPollingTimeout && resp.Code != remoting.RespPullNotFound {
			p.t.Fatalf("pop: %s: %s", remoting.ResponseName(resp.Code), resp.Remark)
		}
		return nil
	}
	starts := map[string]int64{}
	for entry := range strings.SplitSeq(resp.Fields.String("startOffsetInfo"), ";") {
		if part := strings.Split(entry, " "); len(part) == 3 {
			starts[part[0]+" "+part[1]], _ = strconv.ParseInt(part[2], 10, 64)
		}
	}
	var out []rawPopped
	for _, rec := range p.records(resp) {
		m := rawPopped{Record: rec, topic: h.Topic}
		if ck, ok := message.Property(rec.Properties, message.PropPopCK); ok {
			m.receipt = string(ck)
			rc, err := pop.ParseReceipt(m.receipt)
			if err != nil {
				p.t.Fatal(err)
			}
			if m.topic, err = pop.RealTopic(h.Topic, h.ConsumerGroup, rc.Kind); err != nil {
				p.t.Fatal(err)
			}
		} else {
			start, ok := starts[fmt.Sprintf("%s %d", pop.Kind(string(rec.Topic)), rec.QueueID)]
			if !ok {
				p.t.Fatalf("no start of queue %d in %v", rec.QueueID, resp.Fields)
			}
			rc := pop.Receipt{
				Start: start, PopTime: p.int(resp, "popTime"), Invisible: p.int(resp, "invisibleTime"), ReviveQueue: int32(p.int(resp, "reviveQid")),
				Kind: pop.KindNormal, Broker: brokerName, Queue: rec.QueueID, Offset: rec.QueueOffset,
			}
			m.receipt = string(rc.Append(nil))
		}
		out = append(out, m)
	}
	return out
}

// popUntil pops until something comes.
func (p *rawPeer) popUntil(what string, h *remoting.PopMessageHeader) (got []rawPopped) {
	p.t.Helper()
	waitFor(p.t, arrival+popArrival, what, func() (bool, string) {
		got = p.pop(h)
		return len(got) > 0, "nothing"
	})
	return got
}

func (p *rawPeer) ack(group string, m rawPopped) {
	p.t.Helper()
	p.ok(remoting.ReqAckMessage, &remoting.AckMessageHeader{
		ConsumerGroup: group, Topic: m.topic, QueueID: m.QueueID, ExtraInfo: m.receipt, Offset: m.QueueOffset,
	}, nil)
}

func (p *rawPeer) committed(group, topic string, queue int32) int64 {
	p.t.Helper()
	return p.int(p.ok(remoting.ReqQueryConsumerOffset, &remoting.QueryConsumerOffsetHeader{ConsumerGroup: group, Topic: topic, QueueID: queue}, nil), "offset")
}

func rawBodies(ms []rawPopped) []string {
	var out []string
	for _, m := range ms {
		out = append(out, string(m.Body))
	}
	return out
}

// An ordered pop closes its queue: the next one gets nothing until all that was popped is acknowledged or its time is over. What was
// not acknowledged comes first then, and a time that is changed counts.
func TestOrderedPop(t *testing.T) {
	t.Parallel()
	p := newRawPeer(t, sharedCluster(t).broker)
	topic, group := rawNames("fifo")
	p.createTopic(topic, 1)
	p.createGroup(group)
	p.send(topic, 0, "m0", "m1", "m2", "m3", "m4", "m5")
	ask := func(attempt string, invisible time.Duration) *remoting.PopMessageHeader {
		h := popOf(group, topic, 0, invisible)
		h.Order, h.AttemptID, h.MaxMsgNums = true, attempt, 3
		return h
	}
	expect := func(got []rawPopped, want ...string) {
		t.Helper()
		if !slices.Equal(rawBodies(got), want) {
			t.Fatalf("popped %v, want %v", rawBodies(got), want)
		}
	}
	first := p.popUntil("the first messages", ask("a1", time.Minute))
	expect(first, "m0", "m1", "m2")
	expect(p.pop(ask("a2", time.Minute)))
	expect(p.pop(ask("a1", time.Minute)), "m0", "m1", "m2") // an attempt that is made again
	again := p.pop(ask("a1", time.Minute))
	expect(again, "m0", "m1", "m2")
	for _, m := range again[:2] {
		p.ack(group, m)
		expect(p.pop(ask("a2", time.Minute)))
	}
	p.ack(group, again[2])
	if got := p.committed(group, topic, 0); got != 3 {
		t.Errorf("committed %d, want 3", got)
	}
	// The time of these ends without an acknowledgement, but for that of m4.
	second := p.pop(ask("b1", 1500*time.Millisecond))
	expect(second, "m3", "m4", "m5")
	p.ack(group, second[1])
	expect(p.pop(ask("b2", time.Minute)))
	third := p.popUntil("m3 again", ask("b3", time.Minute))
	if got := string(third[0].Body); got != "m3" {
		t.Fatalf("popped %v: the oldest is not the first", rawBodies(third))
	}
	for _, m := range third[1:] {
		p.ack(group, m)
	}
	p.ok(remoting.ReqChangeMessageInvisibleTime, &remoting.ChangeMessageInvisibleTimeHeader{
		ConsumerGroup: group, Topic: topic, ExtraInfo: third[0].receipt, Offset: third[0].QueueOffset, InvisibleTime: 1000,
	}, nil)
	fourth := p.popUntil("m3 after its changed time", ask("b4", time.Minute)) // long before the minute is over
	if got := string(fourth[0].Body); got != "m3" {
		t.Fatalf("popped %v: the oldest is not the first", rawBodies(fourth))
	}
	for _, m := range fourth {
		p.ack(group, m)
	}
	if got := p.committed(group, topic, 0); got != 6 {
		t.Errorf("committed %d, want 6", got)
	}
	expect(p.pop(ask("b5", time.Minute)))
}

// PEEK shows what a pop would give and takes nothing, NOTIFICATION says that there is something or waits for it, POLLING_INFO
// counts the pops that wait.
func TestPeekNotificationPollingInfo(t *testing.T) {
	t.Parallel()
	p := newRawPeer(t, sharedCluster(t).broker)
	topic, group := rawNames("peek")
	p.createTopic(topic, 1)
	p.createGroup(group)
	peek := func() *remoting.Command {
		return p.call(remoting.ReqPeekMessage, &remoting.PeekMessageHeader{ConsumerGroup: group, Topic: topic, QueueID: 0, MaxMsgNums: 8}, nil)
	}
	notice := func(poll time.Duration) *remoting.NotificationHeader {
		return &remoting.NotificationHeader{ConsumerGroup: group, Topic: topic, QueueID: 0, PollTime: poll.Milliseconds(), BornTime: time.Now().UnixMilli()}
	}
	waiting := func() int64 {
		return p.int(p.ok(remoting.ReqPollingInfo, &remoting.PollingInfoHeader{ConsumerGroup: group, Topic: topic, QueueID: 0}, nil), "pollingNum")
	}
	if resp := peek(); resp.Code != remoting.RespPullNotFound {
		t.Errorf("peek of nothing: %s %s", remoting.ResponseName(resp.Code), resp.Remark)
	}
	if resp := p.ok(remoting.ReqNotification, notice(0), nil); resp.Fields.String("hasMsg") != "false" {
		t.Errorf("notification of nothing: %v", resp.Fields)
	}
	if n := waiting(); n != 0 {
		t.Errorf("%d pops wait, want none", n)
	}
	type answer struct {
		resp *remoting.Command
		err  error
	}
	later := func(code int32, head any) chan answer {
		ch := make(chan answer, 1)
		go func() {
			resp, err := p.Call(context.Background(), p.addr, remoting.NewRequest(code, head))
			ch <- answer{resp, err}
		}()
		return ch
	}
	h := popOf(group, topic, 0, time.Minute)
	h.PollTime = 30_000
	popped := later(remoting.ReqPopMessage, h)
	waitFor(t, arrival, "a pop that waits", func() (bool, string) { n := waiting(); return n == 1, fmt.Sprint(n) })
	p.send(topic, 0, "one")
	a := <-popped
	if a.err != nil || a.resp.Code != remoting.RespSuccess || len(p.records(a.resp)) != 1 {
		t.Fatalf("the pop that waited: %+v %v", a.resp, a.err)
	}
	waitFor(t, arrival, "no pop that waits", func() (bool, string) { n := waiting(); return n == 0, fmt.Sprint(n) })

	told := later(remoting.ReqNotification, notice(30*time.Second))
	p.send(topic, 0, "two")
	a = <-told
	if a.err != nil || a.resp.Code != remoting.RespSuccess || a.resp.Fields.String("hasMsg") != "true" {
		t.Fatalf("the notification that waited: %+v %v", a.resp, a.err)
	}
	for range 2 {
		resp := peek()
		if recs := p.records(resp); resp.Code != remoting.RespSuccess || len(recs) != 1 || string(recs[0].Body) != "two" || resp.Fields.String("restNum") != "1" {
			t.Errorf("peek: %s, %d messages, %v", remoting.ResponseName(resp.Code), len(recs), resp.Fields)
		}
	}
	if got := rawBodies(p.popUntil("what was peeked at", popOf(group, topic, 0, time.Minute))); !slices.Equal(got, []string{"two"}) {
		t.Errorf("popped %v", got)
	}
	if resp := peek(); resp.Code != remoting.RespPullNotFound {
		t.Errorf("peek after the pop: %s, %d messages", remoting.ResponseName(resp.Code), len(p.records(resp)))
	}
}

// With enableRetryTopicV2 what is not acknowledged comes back through a retry topic with a plus sign, once, and the receipt says so.
func TestPopRetryTopicV2(t *testing.T) {
	t.Parallel()
	p := newRawPeer(t, startCluster(t, "enableRetryTopicV2=true").broker)
	topic, group := rawNames("v2")
	p.createTopic(topic, 1)
	p.createGroup(group)
	p.send(topic, 0, "kept", "lost")
	first := p.popUntil("both messages", popOf(group, topic, 0, 2*time.Second))
	if !slices.Equal(rawBodies(first), []string{"kept", "lost"}) {
		t.Fatalf("popped %v", rawBodies(first))
	}
	p.ack(group, first[0])
	again := p.popUntil("the message that was not acknowledged", popOf(group, topic, -1, time.Minute))
	if len(again) != 1 || string(again[0].Body) != "lost" || again[0].topic != "%RETRY%"+group+"+"+topic || string(again[0].Topic) != topic ||
		again[0].ReconsumeTimes != 1 {
		t.Fatalf("came back: %v from %s as of %s, %d times", rawBodies(again), again[0].topic, again[0].Topic, again[0].ReconsumeTimes)
	}
	p.ack(group, again[0])
	for name, want := range map[string]int32{"%RETRY%" + group + "+" + topic: remoting.RespSuccess, "%RETRY%" + group + "_" + topic: remoting.RespTopicNotExist} {
		if resp := p.call(remoting.ReqGetTopicConfig, &remoting.GetTopicConfigHeader{Topic: name}, nil); resp.Code != want {
			t.Errorf("%s: %s", name, remoting.ResponseName(resp.Code))
		}
	}
	if got := p.pop(popOf(group, topic, -1, time.Minute)); len(got) != 0 {
		t.Errorf("came once more: %v", rawBodies(got))
	}
}
