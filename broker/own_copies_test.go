package broker

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mqx/broker/pop"
	"mqx/internal/clock"
	"mqx/message"
	"mqx/remoting"
	"mqx/store"
)

// ownWrites is a master with one slave that its level asks for, by whose absence the broker's own writers are tried.
type ownWrites struct {
	popping
	man   *clock.Manual
	level string
	slave *running
	// refused counts what services were not let append, tried what they have appended.
	refused, tried atomic.Int64
}

// The levels, and what becomes of a put without a slave: quorum FLUSH_SLAVE_TIMEOUT, sync refused before the append, semi-sync
// degraded.
var ownLevels = []string{"quorum", "sync", "semi-sync"}

func startOwnWrites(t *testing.T, level string) *ownWrites {
	t.Helper()
	o := &ownWrites{level: level, man: clock.NewManual(time.UnixMilli(1_800_000_000_400))}
	cfg := delayConfigOf(t, "1s")
	cfg.Clock, cfg.RecallMessage, cfg.ReviveEvery, cfg.TimerLogFileBytes = o.man, true, 20*time.Millisecond, 1<<20
	cfg.BrokerRole, cfg.ReplicationLevel, cfg.TotalReplicas, cfg.SlaveTimeout = "SYNC_MASTER", level, 2, 150*time.Millisecond
	cfg.SemiSyncDegradeAlone, cfg.TransactionCheckInterval = 20*time.Millisecond, 20*time.Millisecond
	if level == "sync" {
		cfg.MinInSyncReplicas = 2
	}
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	count := func(settle func(context.Context, func([]*store.Put), []*store.Put)) func(context.Context, func([]*store.Put), []*store.Put) {
		return func(ctx context.Context, put func([]*store.Put), ps []*store.Put) {
			settle(ctx, func(ps []*store.Put) { o.tried.Add(int64(len(ps))); put(ps) }, ps)
			for _, p := range ps {
				if p.Status == store.InSyncReplicasNotEnough {
					o.refused.Add(1)
				}
			}
		}
	}
	b.delays.settle, b.timers.settle = count(b.delays.settle), count(b.timers.settle)
	o.popping = popping{run(t, b)}
	o.come()
	o.createTopic("T", 2)
	return o
}

// come starts the slave anew and waits until it counts.
func (o *ownWrites) come() {
	o.t.Helper()
	o.slave = startSlave(o.t, o.running, 1, nil)
	o.until("the slave does not come", func() bool { st := o.ha.master.Status(); return st.InSync == 1 && !st.Degraded })
	o.until("what it has is not shown", func() bool { return o.store.Dispatched() == o.store.LogEnd() })
}

// leave stops the slave; the master knows it then.
func (o *ownWrites) leave() {
	o.t.Helper()
	o.until("what it has is not shown", func() bool { return o.store.Dispatched() == o.store.LogEnd() })
	o.slave.stop()
	o.until("the master does not see that its slave has gone", func() bool {
		st := o.ha.master.Status()
		return st.InSync == 0 && len(o.ha.master.Replicas()) == 0 && (o.level != "semi-sync" || st.Degraded)
	})
}

// ask sends a request without waiting for what is hidden.
func (o *ownWrites) ask(code int32, header any) *remoting.Command {
	o.t.Helper()
	resp, err := o.c.Call(o.t.Context(), o.addr, remoting.NewRequest(code, header))
	if err != nil {
		o.t.Fatal(err)
	}
	return resp
}

// stuck waits until a service has tried to store without its slave, and looks whether anything was settled; then the slave comes
// back. Where the level has degraded it looks at once.
func (o *ownWrites) stuck(end int64, attempts func() int64, settled func() bool) {
	o.t.Helper()
	switch o.level {
	case "quorum":
		o.until("nothing is stored", func() bool { return o.store.LogEnd() > end })
	case "sync":
		o.until("nothing is tried", func() bool { return attempts() >= 2 })
		if at := o.store.LogEnd(); at != end {
			o.t.Errorf("%d bytes were appended with too few slaves in sync", at-end)
		}
	default:
		o.until("a degraded broker does not go on", settled)
		if o.ha.master.Status().InSync != 0 {
			o.t.Error("there is a slave")
		}
		return
	}
	if settled() {
		o.t.Error("it was settled without its copy")
	}
	o.come()
	o.until("it does not go on with a slave", settled)
	o.until("what is settled is not at the slave", func() bool { return o.slave.store.LogEnd() == o.store.LogEnd() })
}

// once asks for one message in a queue.
func (o *ownWrites) once(topic string, queue int32, body string) {
	o.t.Helper()
	o.until("the message does not come", func() bool { return o.store.MaxOffset(topic, queue) > 0 })
	if got := bodyText(o.all(topic, queue)); got != body {
		o.t.Errorf("%s/%d holds %q, want %q", topic, queue, got, body)
	}
}

func eachOwnLevel(t *testing.T, test func(t *testing.T, o *ownWrites)) {
	for _, level := range ownLevels {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			o := startOwnWrites(t, level)
			test(t, o)
			o.slave.stop()
			o.stop()
		})
	}
}

// The progress of delayed messages goes over a message once it has its copy, and it is stored once.
func TestDelayWaitsForCopies(t *testing.T) {
	t.Parallel()
	eachOwnLevel(t, func(t *testing.T, o *ownWrites) {
		o.send("T", 0, prop("DELAY", "1"), "delayed")
		o.leave()
		end := o.store.LogEnd()
		o.man.Advance(2 * time.Second)
		o.stuck(end, o.refused.Load, func() bool { return o.delays.table().OffsetTable[1] == 1 })
		o.once("T", 0, "delayed")
		if n := o.tried.Load(); n != 1 {
			t.Errorf("it was stored %d times", n)
		}
	})
}

// A timer message leaves its slot once it has its copy.
func TestTimerWaitsForCopies(t *testing.T) {
	t.Parallel()
	eachOwnLevel(t, func(t *testing.T, o *ownWrites) {
		o.send("T", 1, prop("TIMER_DELAY_SEC", "3"), "timer")
		o.takenUp()
		o.leave()
		end := o.store.LogEnd()
		pass := func(done func() bool) func() bool {
			return func() bool {
				if tm := o.timers.t; tm.ReadTime() >= tm.Rules().Floor(o.man.Now().UnixMilli()) {
					o.man.Advance(time.Second)
				}
				o.poke()
				return done()
			}
		}
		if o.level != "semi-sync" {
			o.until("the timer does not try", pass(func() bool { return o.store.LogEnd() > end || o.refused.Load() > 0 }))
		}
		o.stuck(end, o.refused.Load, pass(func() bool { return o.timers.t.Num() == 0 }))
		o.once("T", 1, "timer")
		if n := o.tried.Load(); n != 1 {
			t.Errorf("it was stored %d times", n)
		}
	})
}

// What was not acknowledged is revived, and the revival goes on, once the message in its retry topic has its copy.
func TestReviveWaitsForCopies(t *testing.T) {
	t.Parallel()
	eachOwnLevel(t, func(t *testing.T, o *ownWrites) {
		o.send("T", 0, prop("WAIT", "false"), "popped")
		o.until("it is not shown", func() bool { return o.store.Dispatched() == o.store.LogEnd() })
		h := popHeader("G", "T", 0)
		h.BornTime, h.InvisibleTime = o.man.Now().UnixMilli(), 20_000
		if got := o.pop(h); len(got) != 1 {
			t.Fatalf("popped %d", len(got))
		}
		reviveQueue := func() int32 {
			for q := range int32(o.pops.reviveQueues()) {
				if o.store.MaxOffset(o.pops.reviveTopic, q) > 0 {
					return q
				}
			}
			return -1
		}
		o.takenUp()
		revive := o.man.Now().Add(20 * time.Second)
		o.until("the checkpoint does not come", func() bool {
			if o.man.Now().Before(revive) && o.timers.t.ReadTime() >= o.timers.t.Rules().Floor(o.man.Now().UnixMilli()) {
				o.man.Advance(500 * time.Millisecond)
			}
			o.poke()
			return reviveQueue() >= 0
		})
		o.leave()
		end, queue, failed := o.store.LogEnd(), reviveQueue(), o.store.Stats().PutFailed
		settled := func() bool {
			if o.man.Now().Before(revive.Add(5 * time.Second)) {
				o.man.Advance(500 * time.Millisecond)
			}
			o.poke()
			signal(o.pops.records)
			_, ok := o.offsets.Committed(o.pops.reviveTopic, pop.ReviveGroup, queue)
			return ok
		}
		if o.level == "quorum" {
			o.until("it is not revived", func() bool { settled(); return o.store.LogEnd() > end })
		}
		o.stuck(end, func() int64 { settled(); return o.store.Stats().PutFailed - failed }, settled)
		if o.level != "sync" { // there it became a checkpoint of its own before
			o.once(message.PopRetryTopic("G", "T", o.cfg().PopRetryV2), 0, "popped")
		}
	})
}

// What a client waits for is answered with an error when it has no copy, and with success once the level has degraded: a message
// that is sent back, an ack, a changed time, a pop, a recall, a commit.
func TestRequestsCountFullSuccess(t *testing.T) {
	t.Parallel()
	eachOwnLevel(t, func(t *testing.T, o *ownWrites) {
		for _, body := range []string{"a", "b", "c"} {
			o.send("T", 0, "", body)
		}
		timer := o.send("T", 0, prop("TIMER_DELAY_SEC", "300", "UNIQ_KEY", "K"), "timer")
		half := o.half("half")
		o.until("they are not shown", func() bool { return o.store.Dispatched() == o.store.LogEnd() })
		h := popHeader("G", "T", 0)
		h.BornTime, h.MaxMsgNums = o.man.Now().UnixMilli(), 2
		got := o.pop(h)
		if len(got) != 2 {
			t.Fatalf("popped %d", len(got))
		}
		phys := got[0].rec.PhysicalOffset
		o.until("the checkpoint has no copy", func() bool { return o.slave.store.LogEnd() == o.store.LogEnd() })
		o.leave()
		end := o.store.LogEnd()
		ack := func(m popped) *remoting.AckMessageHeader {
			return &remoting.AckMessageHeader{ConsumerGroup: "G", Topic: m.real, QueueID: m.queue, ExtraInfo: m.receipt, Offset: m.offset}
		}
		h.MaxMsgNums = 1
		half.CommitOrRollback = message.TransactionCommit
		half.ProducerGroup = "PG"
		for _, tt := range []struct {
			name   string
			code   int32
			header any
		}{
			{"a message sent back", remoting.ReqConsumerSendMsgBack, &remoting.ConsumerSendMsgBackHeader{Offset: phys, Group: "G2", DelayLevel: 1}},
			{"an ack", remoting.ReqAckMessage, ack(got[0])},
			{"a changed time", remoting.ReqChangeMessageInvisibleTime, &remoting.ChangeMessageInvisibleTimeHeader{
				ConsumerGroup: "G", Topic: "T", ExtraInfo: got[1].receipt, Offset: got[1].offset, InvisibleTime: 90_000,
			}},
			{"a pop", remoting.ReqPopMessage, h},
			{"a recall", remoting.ReqRecallMessage, &remoting.RecallMessageHeader{Topic: "T", RecallHandle: timer.Fields.String("recallHandle")}},
			{"a commit", remoting.ReqEndTransaction, &half},
		} {
			resp := o.ask(tt.code, tt.header)
			if ok := resp.Code == remoting.RespSuccess; ok != (o.level == "semi-sync") {
				t.Errorf("%s: %s %q", tt.name, remoting.ResponseName(resp.Code), resp.Remark)
			}
		}
		if at := o.store.LogEnd(); o.level == "sync" && at != end {
			t.Errorf("%d bytes were appended with too few slaves in sync", at-end)
		}
		if o.level == "semi-sync" {
			return
		}
		o.come()
		// The pop that was refused has handed out nothing, so that its message is popped now.
		if got := o.pop(h); len(got) != 1 || got[0].body != "c" {
			t.Errorf("popped %v, want c", bodies(got))
		}
		if o.level == "sync" { // it was refused whole: the half message is open, and its commit is taken now
			if resp := o.end(half, message.TransactionCommit); resp.Code != remoting.RespSuccess {
				t.Errorf("the commit, again: %s %q", remoting.ResponseName(resp.Code), resp.Remark)
			}
		}
		o.once("T", 1, "half") // once
		o.ok(remoting.ReqAckMessage, ack(got[0]), nil)
	})
}

// The offsets of the transactions, of which slaves are told at once, pass over a half message when its commit has its copy: who
// has the offset has the message. Where its copy is refused, nothing moves.
func TestTransactionOffsetsWaitForCopies(t *testing.T) {
	t.Parallel()
	eachOwnLevel(t, func(t *testing.T, o *ownWrites) {
		half := o.half("half")
		o.leave()
		half.CommitOrRollback = message.TransactionCommit
		end := o.store.LogEnd()
		committed := func() bool {
			off, _ := o.offsets.Committed(message.TopicHalf, message.GroupTransaction, 0)
			return off > 0
		}
		if resp := o.ask(remoting.ReqEndTransaction, &half); o.level == "sync" {
			if resp.Code != remoting.RespSystemError || !strings.Contains(resp.Remark, "in-sync replicas not enough") || o.store.LogEnd() != end {
				t.Errorf("a commit with too few slaves: %s %q", remoting.ResponseName(resp.Code), resp.Remark)
			}
			o.come()
			if resp := o.end(half, message.TransactionCommit); resp.Code != remoting.RespSuccess {
				t.Fatalf("the commit with a slave: %s %q", remoting.ResponseName(resp.Code), resp.Remark)
			}
			o.until("the offsets do not move", committed)
			o.once("T", 1, "half")
			return
		}
		o.stuck(end, nil, func() bool { signal(o.transactions.round); return committed() })
		o.once("T", 1, "half")
	})
}
