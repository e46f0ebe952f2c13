package broker

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"mqx/broker/pop"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/remoting"
	"mqx/store"
)

// What the newest deletions say stays known when there are too many to remember.
func TestNewestDeletionsAreRemembered(t *testing.T) {
	t.Parallel()
	p := startPop(t, nil)
	p.createTopic("T", 1)
	p.groups.FindOrCreate("G")
	names := make([]string, maxDeleted-1)
	for i := range names {
		names[i] = fmt.Sprint("other", i)
	}
	p.pops.Deleted(names)
	time.Sleep(2 * time.Millisecond) // times are of milliseconds
	p.pops.Deleted([]string{"T"})
	p.pops.Deleted([]string{"one-more"})
	if p.pops.wanted(&pop.Checkpoint{Topic: "T", Group: "G", Num: 1, PopTime: 1}) {
		t.Error("what was popped before the deletion would be revived")
	}
}

// The names of version 1 do not tell group a, topic b_c from group a_b, topic c:
// a message of such a retry topic wakes both.
func TestRetryTopicOfTwoGroupsWakesBoth(t *testing.T) {
	limits := DefaultConfig().Pop
	h := newPopHold(time.Now, func() *Pop { return &limits }, false)
	defer h.Close()
	woken := map[string]int{}
	park := func(group, topic string) *parkedPop {
		p := &parkedPop{topic: topic, group: group, queue: -1, conn: 1, until: time.Now().Add(time.Hour), wake: func() { woken[group]++ }, drop: func() {}}
		if res := h.Park(p); res != parkDone {
			t.Fatalf("parked: %d", res)
		}
		return p
	}
	park("a", "b_c")
	park("a_b", "c")
	h.Arrived([]byte(message.PopRetryTopic("a", "b_c", false)), 0, 0, 0, nil)
	if woken["a"] != 1 || woken["a_b"] != 1 {
		t.Errorf("woken: %v", woken)
	}
	first := park("a", "b_c")
	park("a_b", "c")
	h.Recheck(first) // it goes; the other one is still to be found
	clear(woken)
	h.Arrived([]byte(message.PopRetryTopic("a_b", "c", false)), 0, 0, 0, nil)
	if woken["a_b"] != 1 || woken["a"] != 0 {
		t.Errorf("woken: %v", woken)
	}
}

// An invisible time that ends after the last representable moment is further
// away than the timer goes; it has not passed.
func TestPopInvisibleForEver(t *testing.T) {
	t.Parallel()
	for _, merge := range []bool{false, true} {
		t.Run(fmt.Sprintf("merge=%v", merge), func(t *testing.T) {
			t.Parallel()
			p := startPop(t, func(c *Config) { c.PopMerge = merge })
			p.createTopic("T", 1)
			p.send("T", 0, "", "a")
			h := popHeader("G", "T", 0)
			h.InvisibleTime = math.MaxInt64 - 1
			if resp := p.call(remoting.ReqPopMessage, h, nil); resp.Code != remoting.RespMessageIllegal {
				t.Errorf("pop: %s: %s", remoting.ResponseName(resp.Code), resp.Remark)
			}
			h.InvisibleTime = 60_000
			got := p.pop(h)
			if len(got) != 1 {
				t.Fatalf("the message was handed out by the refused pop: %v", bodies(got))
			}
			resp := p.call(remoting.ReqChangeMessageInvisibleTime, &remoting.ChangeMessageInvisibleTimeHeader{
				ConsumerGroup: "G", Topic: "T", ExtraInfo: got[0].receipt, InvisibleTime: math.MaxInt64 - 1,
			}, nil)
			if resp.Code != remoting.RespMessageIllegal {
				t.Errorf("change: %s: %s", remoting.ResponseName(resp.Code), resp.Remark)
			}
			p.ack("G", got[0])
		})
	}
}

// An ordered queue whose time never ends stays closed.
func TestOrderedPopInvisibleForEver(t *testing.T) {
	t.Parallel()
	p := startPop(t, nil)
	p.createTopic("T", 1)
	p.send("T", 0, "", "a")
	h := popHeader("G", "T", 0)
	h.Order, h.InvisibleTime = true, math.MaxInt64-1
	if got := p.pop(h); len(got) != 1 {
		t.Fatal(bodies(got))
	}
	if got := p.pop(h); len(got) != 0 {
		t.Errorf("popped again: %v", bodies(got))
	}
}

// While changes of invisible times wait for a flush, the worker goes on.
func TestChangeInvisibleDoesNotHoldAWorker(t *testing.T) {
	cfg, disk := onMem()
	cfg.AckThreads = 1
	cfg.Store.FlushDiskType = store.SyncFlush
	p := popping{start(t, cfg)}
	p.createTopic("T", 1)
	p.send("T", 0, "", "a")
	h := popHeader("G", "T", 0)
	h.Order = true // it writes nothing
	ordered := p.pop(h)
	p.createTopic("U", 1)
	p.send("U", 0, "", "b")
	got := p.pop(popHeader("G", "U", 0))
	if len(got) != 1 || len(ordered) != 1 {
		t.Fatal(len(got), len(ordered))
	}
	gate, syncing := make(chan struct{}), make(chan struct{}, 100)
	disk.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpSync && strings.Contains(op.Path, "commitlog") {
			syncing <- struct{}{}
			<-gate
		}
		return nil
	})
	answer := make(chan *remoting.Command, 1)
	go func() {
		resp, err := p.c.Call(t.Context(), p.addr, remoting.NewRequest(remoting.ReqChangeMessageInvisibleTime, &remoting.ChangeMessageInvisibleTimeHeader{
			ConsumerGroup: "G", Topic: "U", ExtraInfo: got[0].receipt, InvisibleTime: 90_000,
		}))
		if err != nil {
			t.Error(err)
		}
		answer <- resp
	}()
	<-syncing
	p.ack("G", ordered[0]) // by the only worker
	select {
	case <-answer:
		t.Error("answered before the checkpoint was durable")
	default:
	}
	close(gate)
	if resp := <-answer; resp == nil || resp.Code != remoting.RespSuccess || resp.Fields.String("invisibleTime") != "90000" {
		t.Errorf("%+v", resp)
	}
	disk.Inject(nil)
}

// A recall that the timer does not take says why.
func TestRecallSaysWhatTheTimerSays(t *testing.T) {
	cfg, ck := timerBroker(t)
	cfg.TimerCongest = 1
	r := start(t, cfg)
	r.createTopic("T", 1)
	deliver := strconv.FormatInt(ck.Now().UnixMilli()+5000, 10)
	for i := range 2 {
		r.send("T", 0, prop("TIMER_DELIVER_MS", deliver, "UNIQ_KEY", fmt.Sprint("K", i)), "m")
		r.takenUp()
	}
	handle := base64.URLEncoding.EncodeToString([]byte("v1 T " + cfg.BrokerName + " " + deliver + " K0"))
	resp := r.call(remoting.ReqRecallMessage, &remoting.RecallMessageHeader{Topic: "T", RecallHandle: handle}, nil)
	if resp.Code != remoting.RespSystemError || !strings.Contains(resp.Remark, "recall failed, execute error") || !strings.Contains(resp.Remark, "flow control") {
		t.Errorf("%d %q", resp.Code, resp.Remark)
	}
}
