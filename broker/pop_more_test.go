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
