package broker

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mqx/broker/pop"
	"mqx/internal/clock"
	"mqx/message"
	"mqx/remoting"
)

// Pop of a topic whose queues are batch queues: a batch is handed out as a whole, is acknowledged by its first offset, comes back
// once, whole, when it was not, and offsets go on behind it.
func TestPopOfABatchQueue(t *testing.T) {
	t.Parallel()
	for _, merge := range []bool{false, true} {
		t.Run(fmt.Sprintf("merge=%v", merge), func(t *testing.T) {
			t.Parallel()
			p := startPop(t, func(c *Config) { c.PopMerge = merge })
			p.createTyped("T", 1, "+queue.type=BatchCQ")
			batch := func(from, n int) {
				var body []byte
				for i := range n {
					body = message.AppendBatchItem(body, 0, []byte(fmt.Sprint("m", from+i)), []byte(prop("KEYS", fmt.Sprint("k", i))))
				}
				h := sendHeaderOf("T", 0, prop("UNIQ_KEY", fmt.Sprint("BATCH", from), "WAIT", "true"))
				h.Batch = true
				p.ok(remoting.ReqSendBatchMessage, h, body)
			}
			batch(0, 3)
			p.send("T", 0, "", "m3")
			batch(4, 2)
			h := popHeader("G", "T", 0)
			h.InvisibleTime = 1500
			first := p.pop(h)
			var offsets []int64
			for _, m := range first {
				offsets = append(offsets, m.offset)
			}
			if !slices.Equal(offsets, []int64{0, 3, 4}) {
				t.Fatalf("popped %v", offsets)
			}
			if got := inner(t, first); !slices.Equal(got, []string{"m0", "m1", "m2", "m3", "m4", "m5"}) {
				t.Errorf("popped %v", got)
			}
			p.ack("G", first[1])
			p.ack("G", first[2])
			if got := p.pop(h); len(got) != 0 {
				t.Errorf("popped twice: %v", inner(t, got))
			}
			again := p.collect("G", "T", 1, 60_000)
			if got := inner(t, again); !slices.Equal(got, []string{"m0", "m1", "m2"}) {
				t.Errorf("came again: %v", got)
			}
			p.ack("G", again[0])
			batch(6, 2)
			if got := inner(t, p.collect("G", "T", 1, 60_000)); !slices.Equal(got, []string{"m6", "m7"}) {
				t.Errorf("went on with %v", got)
			}
		})
	}
}

// What was popped comes again although there is always something in the log that waits for its copies.
func TestPopRevivesBehindTheCopies(t *testing.T) {
	t.Parallel()
	p := startPop(t, nil)
	p.createTopic("T", 1)
	p.createTopic("U", 1)
	p.send("T", 0, "", "m")
	h := popHeader("G", "T", -1)
	h.InvisibleTime = 1000
	if got := p.pop(h); len(got) != 1 {
		t.Fatalf("popped %d", len(got))
	}
	p.store.Gate()
	defer p.store.Ungate()
	var again []popped
	p.until("what was popped does not come again", func() bool {
		end := p.store.LogEnd()
		p.sendFor("U", "") // before what is shown comes to the end
		p.store.Confirm(end)
		h := popHeader("G", "T", -1)
		resp, err := p.c.Call(t.Context(), p.addr, remoting.NewRequest(remoting.ReqPopMessage, h))
		if err != nil {
			t.Fatal(err)
		}
		if resp.Code == remoting.RespSuccess {
			again = p.receipts(h, resp)
		}
		return len(again) > 0
	})
	if again[0].body != "m" {
		t.Errorf("came again: %v", bodies(again))
	}
}

// Batches that nobody acknowledged come again, each of them: in the retry topic each is one message.
func TestPoppedBatchesComeAgain(t *testing.T) {
	t.Parallel()
	p := startPop(t, func(*Config) {})
	p.createTyped("T", 1, "+queue.type=BatchCQ")
	for b := range 3 {
		var body []byte
		for i := range 3 {
			body = message.AppendBatchItem(body, 0, []byte(fmt.Sprint("m", 3*b+i)), []byte(prop("KEYS", "k")))
		}
		h := sendHeaderOf("T", 0, prop("UNIQ_KEY", fmt.Sprint("BATCH", b), "WAIT", "true"))
		h.Batch = true
		p.ok(remoting.ReqSendBatchMessage, h, body)
	}
	h := popHeader("G", "T", 0)
	h.InvisibleTime = 1500
	if got := p.pop(h); len(got) != 3 {
		t.Fatalf("popped %v", inner(t, got))
	}
	want := []string{"m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8"}
	if got := inner(t, p.collect("G", "T", 3, 60_000)); !slices.Equal(got, want) {
		t.Errorf("came again: %v", got)
	}
}

// inner are the bodies of messages, those in batches too.
func inner(t *testing.T, ms []popped) []string {
	t.Helper()
	var out []string
	for _, m := range ms {
		rec := m.rec
		if rec.SysFlag&message.FlagInnerBatch == 0 {
			out = append(out, string(rec.Body))
			continue
		}
		for it, err := range message.SplitBatch(rec.Body) {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(it.Body))
		}
	}
	slices.Sort(out)
	return out
}

// A topic is made anew, and the clock is set back: what is popped of the new one and not acknowledged comes back, whatever the times
// say (once for the old topic's pop as well, which cannot be told from it), and what was popped of the old one does not.
func TestPopOfARecreatedTopicWhileTheClockIsBehind(t *testing.T) {
	t.Parallel()
	ck := clock.NewManual(time.Now())
	p := startPop(t, func(c *Config) { c.Clock = ck })
	p.createTopic("T", 1)
	for i := range 3 {
		p.send("T", 0, "", fmt.Sprint("old", i))
	}
	pop := func(invisible int64) []popped {
		h := popHeader("G", "T", 0)
		h.BornTime, h.InvisibleTime = ck.Now().UnixMilli(), invisible
		return p.pop(h)
	}
	if got := pop(5000); len(got) != 3 {
		t.Fatal(bodies(got))
	}
	ck.Advance(10 * time.Millisecond)
	p.ok(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicHeader{Topic: "T"}, nil)
	p.createTopic("T", 1)
	ck.Advance(-time.Hour)
	for i := range 3 {
		p.send("T", 0, "", fmt.Sprint("new", i))
	}
	if got := bodies(pop(3000)); !slices.Equal(got, []string{"new0", "new1", "new2"}) {
		t.Fatal(got)
	}
	ck.Advance(2 * time.Hour)
	var got []string
	waitFor(t, "the messages of the new topic", func() bool {
		ck.Advance(100 * time.Millisecond)
		p.poke()
		h := popHeader("G", "T", -1)
		h.BornTime, h.InvisibleTime = ck.Now().UnixMilli(), 24*3600_000
		got = append(got, bodies(p.pop(h))...)
		slices.Sort(got)
		return len(slices.Compact(slices.Clone(got))) >= 3
	})
	if got = slices.Compact(got); !slices.Equal(got, []string{"new0", "new1", "new2"}) {
		t.Errorf("came again: %v", got)
	}
}

// Where the next pop begins never goes back while what was popped before is committed: it would hand that out again.
func TestPopOffsetWhileCommitting(t *testing.T) {
	p := startPop(t, func(c *Config) { c.PopMerge, c.PopStay = true, time.Hour })
	s, base := p.pops, time.Now().UnixMilli()
	q := pop.QueueKey{Topic: "T", Group: "G", Queue: 0}
	const rounds = 20_000
	var wg sync.WaitGroup
	var over atomic.Bool
	wg.Go(func() {
		defer over.Store(true)
		for i := range int64(rounds) {
			ck := &pop.Checkpoint{Topic: "T", Group: "G", Num: 1, Start: i, Diffs: []int32{0}, PopTime: base + i, Invisible: 1 << 40}
			s.mu.Lock()
			s.mu.buffer.Add(ck, 0, i+1, base+i)
			s.mu.Unlock()
			s.mu.Lock()
			s.mu.buffer.Ack(pop.KeyOf(ck), func(yield func(int64) bool) { yield(i) }, base+i)
			s.commit()
			s.mu.Unlock()
		}
	})
	last := int64(0)
	for !over.Load() {
		at := s.offset(q, initMin)
		if at < last {
			t.Errorf("%d after %d", at, last)
			break
		}
		last = at
	}
	wg.Wait()
	if at := s.offset(q, initMin); at != rounds {
		t.Errorf("it begins at %d in the end, not at %d", at, rounds)
	}
}

// A topic or group that is deleted and made anew begins at its start, also when checkpoints are kept in memory.
func TestPopOfWhatWasDeleted(t *testing.T) {
	t.Parallel()
	for _, merge := range []bool{false, true} {
		p := startPop(t, func(c *Config) { c.PopMerge, c.PopStay = merge, time.Hour })
		p.createTopic("T", 1)
		for i := range 5 {
			p.send("T", 0, "", fmt.Sprint("old", i))
		}
		old := p.pop(popHeader("G", "T", 0))
		if len(old) != 5 {
			t.Fatal(len(old))
		}
		p.ok(remoting.ReqDeleteSubscriptionGroup, &remoting.DeleteSubscriptionGroupHeader{GroupName: "G", CleanOffset: true}, nil)
		p.ack("G", old[0]) // late
		if got := bodies(p.pop(popHeader("G", "T", 0))); len(got) != 5 {
			t.Errorf("merging %v: of a group made anew: %v", merge, got)
		}
		p.ok(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicHeader{Topic: "T"}, nil)
		p.createTopic("T", 1)
		for i := range 3 {
			p.send("T", 0, "", fmt.Sprint("new", i))
		}
		if got := bodies(p.pop(popHeader("G", "T", 0))); !slices.Equal(got, []string{"new0", "new1", "new2"}) {
			t.Errorf("merging %v: of a topic made anew: %v", merge, got)
		}
		p.stop()
	}
}

// Without the state of an ordered pop nothing is committed but over the message at the committed offset, and a group
// that does not exist has nothing to acknowledge.
func TestOrderedAckWithoutState(t *testing.T) {
	t.Parallel()
	p := startPop(t, nil)
	p.createTopic("T", 1)
	for i := range 4 {
		p.send("T", 0, "", fmt.Sprint("m", i))
	}
	h := popHeader("G", "T", 0)
	h.Order = true
	got := p.pop(h)
	if len(got) != 4 {
		t.Fatal(len(got))
	}
	p.pops.mu.Lock()
	p.pops.mu.orders.Clear(pop.QueueKey{Topic: "T", Group: "G"})
	p.pops.mu.Unlock()
	for _, step := range []struct{ ack, committed int64 }{{2, 0}, {0, 1}, {0, 1}, {3, 1}, {1, 2}} {
		p.ack("G", got[step.ack])
		if off, ok := p.offsets.Committed("T", "G", 0); !ok || off != step.committed {
			t.Errorf("ack of %d: committed %d, want %d", step.ack, off, step.committed)
		}
	}
	resp := p.call(remoting.ReqAckMessage, &remoting.AckMessageHeader{ConsumerGroup: "NEVER", Topic: "T", ExtraInfo: got[0].receipt}, nil)
	if _, ok := p.offsets.Committed("T", "NEVER", 0); resp.Code != remoting.RespSubscriptionGroupNotExist || ok {
		t.Errorf("a group that does not exist: %d %q, committed %v", resp.Code, resp.Remark, ok)
	}
}

// A pop that has enough leaves the offset that was set for the next queue to the pop that reads it.
func TestPopLeavesAResetOfAQueueThatItDoesNotRead(t *testing.T) {
	t.Parallel()
	p := startPop(t, nil)
	p.createTopic("T", 2)
	for q := range int32(2) {
		for i := range 3 {
			p.send("T", q, "", fmt.Sprint("m", q, i))
		}
	}
	h := popHeader("G", "T", -1)
	if got := p.pop(h); len(got) != 6 {
		t.Fatal(len(got))
	}
	for q := range int32(2) {
		p.ok(remoting.ReqInvokeBrokerToResetOffset, &remoting.ResetOffsetHeader{Topic: "T", Group: "G", QueueID: q, Offset: remoting.Opt[int64]{OK: true, Value: 0}}, nil)
	}
	h = popHeader("G", "T", -1)
	h.MaxMsgNums = 1
	if got := p.pop(h); len(got) != 1 {
		t.Fatal(bodies(got))
	}
	pending := 0
	for q := range int32(2) {
		if _, ok := p.offsets.TakeReset([]byte("T"), []byte("G"), q); ok {
			pending++
		}
	}
	if pending != 1 {
		t.Errorf("%d of the offsets that were set wait, want that of the queue that was not read", pending)
	}
}

// A checkpoint that no pop can have written, far in the future, holds up none of those behind it.
func TestReviveBehindAnImpossibleCheckpoint(t *testing.T) {
	t.Parallel()
	p := startPop(t, func(c *Config) { c.ReviveQueueNum = 1 })
	p.createTopic("T", 1)
	p.send("T", 0, "", "m0")
	ck := &pop.Checkpoint{Broker: "b", Group: "G", Topic: "T", Start: 7, Num: 1, Diffs: []int32{0}, PopTime: time.Now().UnixMilli(), Invisible: 400 * 24 * 3600_000}
	h := sendHeaderOf(p.pops.reviveTopic, 0, prop("TAGS", pop.TagCheckpoint, "UNIQ_KEY", "x"))
	p.ok(remoting.ReqSendMessageV2, h, ck.AppendBody(nil))
	ph := popHeader("G", "T", 0)
	ph.InvisibleTime = 1000
	if got := p.pop(ph); len(got) != 1 {
		t.Fatal(bodies(got))
	}
	waitFor(t, "the message to come again", func() bool { return len(p.pop(popHeader("G", "T", -1))) == 1 })
}
