package pop_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"mqx/broker/pop"
)

// world is a queue of messages, one group that pops it through a buffer, the
// log that the buffer is written to, and what the group has acknowledged.
type world struct {
	t      *rapid.T
	now    int64
	buffer *pop.Buffer
	limits pop.Limits
	q      pop.QueueKey

	committed int64
	position  int64 // behind the newest message popped
	acked     map[int64]bool
	open      map[pop.Key]*pop.Checkpoint // popped, as the client knows them
	log       []pop.Record                // written, in order
	logged    map[pop.Key]bool
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, now: 1_000_000, q: pop.QueueKey{Topic: "T", Group: "G"}, acked: map[int64]bool{}, open: map[pop.Key]*pop.Checkpoint{}, logged: map[pop.Key]bool{}}
	w.limits = pop.Limits{
		Merge: true, Stay: 10_000, Early: 3000, AckMargin: 1500,
		Points: rapid.IntRange(1, 8).Draw(t, "points"), PerQueue: rapid.IntRange(1, 8).Draw(t, "perQueue"),
	}
	w.buffer = pop.NewBuffer(w.limits)
	return w
}

func (w *world) write(c *pop.Checkpoint) {
	w.log = append(w.log, pop.Record{Checkpoint: c})
	w.logged[pop.KeyOf(c)] = true
}

func (w *world) pop() {
	start := w.position
	if latest, ok := w.buffer.Latest(w.q); ok {
		if latest != w.position {
			w.t.Fatalf("the next pop would begin at %d, %d were popped", latest, w.position)
		}
	} else if w.committed != w.position {
		w.t.Fatalf("the next pop would begin at %d, %d were popped", w.committed, w.position)
	}
	c := &pop.Checkpoint{Broker: "b", Group: "G", Topic: "T", Start: start, PopTime: w.now, Invisible: rapid.SampledFrom([]int64{2000, 5000, 20_000, 60_000}).Draw(w.t, "invisible")}
	end := start
	for range rapid.IntRange(1, 6).Draw(w.t, "messages") {
		end += int64(rapid.IntRange(0, 2).Draw(w.t, "gap"))
		c.Diffs = append(c.Diffs, int32(end-start))
		c.Num++
		end++
	}
	w.position = end
	w.open[pop.KeyOf(c)] = c
	if !w.buffer.Add(c, 0, end, w.now) {
		w.write(c)
		w.buffer.Done(w.q, end)
	}
	w.commit()
}

// empty is a pop that looked at messages and found none that match.
func (w *world) empty() {
	w.position += int64(rapid.IntRange(1, 5).Draw(w.t, "passed"))
	w.buffer.Done(w.q, w.position)
	w.commit()
}

func (w *world) ack() {
	keys := make([]pop.Key, 0, len(w.open))
	for k := range w.open {
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return
	}
	slices.SortFunc(keys, func(a, b pop.Key) int { return int(a.Start - b.Start) })
	k := rapid.SampledFrom(keys).Draw(w.t, "checkpoint")
	c := w.open[k]
	off := c.OffsetAt(rapid.IntRange(0, c.Count()-1).Draw(w.t, "message"))
	w.acked[off] = true
	a := &pop.Ack{Offset: off, Broker: "b", Group: "G", Topic: "T", Start: k.Start, PopTime: k.PopTime}
	if !w.buffer.Ack(k, a.All(), w.now) {
		w.log = append(w.log, pop.Record{Ack: a})
	}
	w.commit()
}

// flush writes what is due; writes may fail, and acks come while they run.
func (w *world) flush() {
	points := w.buffer.Due(w.now, rapid.IntRange(1, 4).Draw(w.t, "batch"))
	for _, p := range points {
		if p.NeedsCheckpoint() && rapid.IntRange(0, 4).Draw(w.t, "fails") > 0 {
			w.write(p.Checkpoint)
			w.buffer.CheckpointStored(p)
		}
	}
	if rapid.Bool().Draw(w.t, "ackMeanwhile") {
		w.ack()
	}
	batch := rapid.Bool().Draw(w.t, "batchAck")
	for _, p := range points {
		if !p.NeedsCheckpoint() {
			for _, a := range p.Acks(batch) {
				if rapid.IntRange(0, 4).Draw(w.t, "fails") > 0 {
					w.log = append(w.log, pop.Record{Ack: a})
					w.buffer.AckStored(p, a)
				}
			}
		}
		w.buffer.Written(p, w.now+1000)
	}
	w.commit()
}

func (w *world) commit() {
	for _, c := range w.buffer.Commits() {
		if c.Next < w.committed {
			w.t.Fatalf("the offset goes back from %d to %d", w.committed, c.Next)
		}
		w.committed = c.Next
	}
	if w.buffer.Points() > w.limits.Points {
		w.t.Fatalf("%d checkpoints in memory, the limit is %d", w.buffer.Points(), w.limits.Points)
	}
	// Whatever was popped below the committed offset is acknowledged or in the
	// log: a crash now loses nothing.
	for k, c := range w.open {
		if k.Start >= w.committed || w.logged[k] {
			continue
		}
		for i := range c.Count() {
			if off := c.OffsetAt(i); !w.acked[off] {
				w.t.Fatalf("message %d is below the committed offset %d, not acknowledged, and in no checkpoint of the log", off, w.committed)
			}
		}
	}
}

// N070: after any history, what the log says comes back is what was popped and
// not acknowledged, each once.
func TestBufferAgainstTheLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"pop":   func(*rapid.T) { w.pop() },
			"empty": func(*rapid.T) { w.empty() },
			"ack":   func(*rapid.T) { w.ack() },
			"flush": func(*rapid.T) { w.flush() },
			"wait":  func(t *rapid.T) { w.now += int64(rapid.IntRange(1, 4000).Draw(t, "ms")) },
			"":      func(*rapid.T) {},
		})
		w.buffer.Close()
		for range 1000 {
			if w.buffer.Points() == 0 {
				break
			}
			w.flush()
		}
		if w.buffer.Points() != 0 || w.buffer.Offsets() != 0 || w.committed != w.position {
			t.Fatalf("%d checkpoints and %d offsets are left at the end, committed %d of %d", w.buffer.Points(), w.buffer.Offsets(), w.committed, w.position)
		}
		w.checkRevival()
	})
}

// checkRevival gives the log to a reviver as the timer would and compares.
func (w *world) checkRevival() {
	got := revive(w.t, w.log, rapid.IntRange(1, 6).Draw(w.t, "room"), "b")
	var want []int64
	for _, c := range w.open {
		for i := range c.Count() {
			if off := c.OffsetAt(i); !w.acked[off] {
				want = append(want, off)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		w.t.Fatalf("came back %v, not acknowledged %v", got, want)
	}
}

// timed is a record with its deliver time.
type timed struct {
	rec pop.Record
	at  int64
}

// revive delivers records in the order of a timer and returns the offsets of
// the messages that come back.
func revive(t *rapid.T, log []pop.Record, room int, self string) []int64 {
	revives := map[pop.Key]int64{}
	var queue []timed
	for _, rec := range log {
		if c := rec.Checkpoint; c != nil {
			revives[pop.KeyOf(c)] = c.ReviveTime()
		}
	}
	last := int64(0)
	for _, rec := range log {
		var at int64
		if c := rec.Checkpoint; c != nil {
			at = c.DeliverTime()
		} else {
			a := rec.Ack
			at = revives[pop.Key{Topic: a.Topic, Group: a.Group, Queue: a.Queue, Start: a.Start, PopTime: a.PopTime}]
		}
		last = max(last, at)
		queue = append(queue, timed{rec, at / 1000 * 1000})
	}
	slices.SortStableFunc(queue, func(a, b timed) int { return int(a.at - b.at) })
	r := pop.NewReviver(room)
	var got []int64
	next := 0
	for rounds := 0; ; rounds++ {
		if rounds > 10_000 {
			t.Fatal("revival does not come to its end")
		}
		for n := rapid.IntRange(1, 8).Draw(t, "records"); n > 0 && next < len(queue); n-- {
			r.Add(queue[next].rec, int64(next), queue[next].at, self)
			next++
		}
		if next == len(queue) {
			r.Quiet(last+100_000, true)
		}
		for e := r.Next(); e != nil; e = r.Next() {
			for _, i := range e.Unacked() {
				got = append(got, e.OffsetAt(i))
			}
		}
		if at, ok := r.Skipped(); ok {
			next = int(at)
			continue
		}
		if next == len(queue) && r.Waiting() == 0 {
			return got
		}
	}
}

// N073: a checkpoint without a broker name, and one that was written again, are
// revived like any other.
func TestReviverNames(t *testing.T) {
	r := pop.NewReviver(10)
	c := &pop.Checkpoint{Group: "G", Topic: "T", Num: 2, Diffs: []int32{0, 1}, PopTime: 1000, Invisible: 1000}
	r.Add(pop.Record{Checkpoint: c}, 0, 1000, "b")
	r.Add(pop.Record{Ack: &pop.Ack{Offset: 1, Broker: "b", Group: "G", Topic: "T", PopTime: 1000}}, 1, 2000, "b")
	if r.Next() != nil {
		t.Error("too early")
	}
	r.Quiet(10_000, false)
	if r.Next() != nil {
		t.Error("while the timer is behind")
	}
	r.Quiet(10_000, true)
	e := r.Next()
	if e == nil || !slices.Equal(e.Unacked(), []int{0}) {
		t.Fatalf("%+v", e)
	}
	again := pop.RePut(e.Checkpoint, e.OffsetAt(0), 10_000, false)
	if again.RePuts() != 1 || again.Invisible != 11_000 || again.Start != 0 || again.Num != 1 {
		t.Errorf("%+v", again)
	}
	r.Add(pop.Record{Checkpoint: again}, 2, again.DeliverTime(), "b")
	r.Quiet(100_000, true)
	if e = r.Next(); e == nil || len(e.Unacked()) != 1 {
		t.Fatalf("%+v", e)
	}
	for range 40 {
		if again = pop.RePut(again, 0, 1<<40, true); again == nil {
			return
		}
	}
	t.Error("it is tried for ever")
}

// A change of the invisible time in the millisecond of the pop gives two
// checkpoints one key: neither is lost, whatever order the acks come in.
func TestReviverEqualKeys(t *testing.T) {
	r := pop.NewReviver(10)
	pop1 := &pop.Checkpoint{Broker: "b", Group: "G", Topic: "T", Num: 2, Diffs: []int32{0, 1}, PopTime: 1000, Invisible: 5000}
	changed := &pop.Checkpoint{Broker: "b", Group: "G", Topic: "T", Num: 1, Diffs: []int32{0}, PopTime: 1000, Invisible: 1000}
	ack := pop.Record{Ack: &pop.Ack{Offset: 0, Broker: "b", Group: "G", Topic: "T", PopTime: 1000}}
	r.Add(pop.Record{Checkpoint: pop1}, 0, 1, "b")
	r.Add(pop.Record{Checkpoint: changed}, 1, 2, "b")
	r.Add(ack, 2, 3, "b")
	r.Quiet(100_000, true)
	var got []int64
	for e := r.Next(); e != nil; e = r.Next() {
		for _, i := range e.Unacked() {
			got = append(got, e.OffsetAt(i))
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, []int64{0, 1}) {
		t.Errorf("%v", got)
	}
}

// A record that the timer delivered twice is revived once.
func TestReviverRepeatedDelivery(t *testing.T) {
	r := pop.NewReviver(10)
	for i := range 2 {
		c := &pop.Checkpoint{Broker: "b", Group: "G", Topic: "T", Num: 1, Diffs: []int32{0}, PopTime: 1000, Invisible: 1000}
		r.Add(pop.Record{Checkpoint: c}, int64(i), 1, "b")
	}
	r.Quiet(100_000, true)
	if r.Next() == nil || r.Next() != nil {
		t.Error("not once")
	}
}

// An ordered queue: what is handed out, and to whom, follows a simple model.
func TestOrdersAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, q := pop.NewOrders(), pop.QueueKey{Topic: "T", Group: "G", Queue: 1}
		now, committed := int64(1000), int64(0)
		type held struct {
			offsets []int64
			visible map[int64]int64
			acked   map[int64]bool
			popTime int64
			attempt string
		}
		var h *held
		closed := func(attempt string) bool {
			if h == nil || h.attempt != "" && h.attempt == attempt {
				return false
			}
			return slices.ContainsFunc(h.offsets, func(off int64) bool { return !h.acked[off] && now < h.visible[off] })
		}
		t.Repeat(map[string]func(*rapid.T){
			"pop": func(t *rapid.T) {
				attempt := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "attempt")
				invisible := int64(rapid.IntRange(1, 500).Draw(t, "invisible"))
				if got := o.Blocked(q, attempt, invisible, now); got != closed(attempt) {
					t.Fatalf("closed %v, want %v", got, closed(attempt))
				}
				if closed(attempt) {
					return
				}
				h = &held{visible: map[int64]int64{}, acked: map[int64]bool{}, popTime: now, attempt: attempt}
				for i := range rapid.IntRange(1, 5).Draw(t, "n") {
					off := committed + int64(i)
					h.offsets = append(h.offsets, off)
					h.visible[off] = now + invisible
				}
				o.Update(q, attempt, now, invisible, h.offsets, now, nil)
			},
			"ack": func(t *rapid.T) {
				if h == nil {
					return
				}
				off := rapid.SampledFrom(h.offsets).Draw(t, "offset")
				popTime := h.popTime + int64(rapid.IntRange(0, 1).Draw(t, "old"))
				next, res := o.Ack(q, off, popTime, committed)
				if popTime != h.popTime {
					if res != pop.AckOld {
						t.Fatalf("an ack of another pop: %v", res)
					}
					return
				}
				h.acked[off] = true
				want := h.offsets[0]
				for slices.Contains(h.offsets, want) && h.acked[want] {
					want++
				}
				if res != pop.AckCommit || next != want {
					t.Fatalf("commit %d (%v), want %d", next, res, want)
				}
				committed = next
			},
			"change": func(t *rapid.T) {
				if h == nil {
					return
				}
				off, at := rapid.SampledFrom(h.offsets).Draw(t, "offset"), now+int64(rapid.IntRange(1, 900).Draw(t, "ms"))
				o.ChangeVisible(q, off, h.popTime, at)
				h.visible[off] = at
			},
			"save": func(t *rapid.T) {
				data, err := o.Encode()
				if err != nil {
					t.Fatal(err)
				}
				o = pop.NewOrders()
				if err := o.Decode(data); err != nil {
					t.Fatal(err)
				}
			},
			"wait": func(t *rapid.T) { now += int64(rapid.IntRange(1, 400).Draw(t, "ms")) },
			"": func(t *rapid.T) {
				if at, ok := o.FreeAt(q, now); ok && at > now && !closed("none") {
					t.Fatalf("said to be closed until %d", at)
				}
			},
		})
	})
}

// Every queue has an owner and, without sharing, one; shares differ by one.
func TestAssignCovers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "queues")
		clients := make([]string, rapid.IntRange(1, 12).Draw(t, "clients"))
		for i := range clients {
			clients[i] = string(rune('a' + i))
		}
		strategy := rapid.SampledFrom([]string{pop.StrategyAverage, pop.StrategyCircle}).Draw(t, "strategy")
		share := rapid.IntRange(-1, 12).Draw(t, "share")
		owners := make([]int, n)
		popped := make([]int, n)
		for _, c := range clients {
			got, err := pop.Assign(strategy, c, n, clients)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) < n/len(clients) || len(got) > n/len(clients)+1 {
				t.Fatalf("%s has %d of %d queues", c, len(got), n)
			}
			for _, i := range got {
				owners[i]++
			}
			places, all, err := pop.AssignPop(strategy, c, n, clients, share)
			if err != nil {
				t.Fatal(err)
			}
			for i := range n {
				if all || slices.Contains(places, i) {
					popped[i]++
				}
			}
		}
		for i := range n {
			if owners[i] != 1 || popped[i] == 0 {
				t.Fatalf("queue %d has %d owners and %d that pop", i, owners[i], popped[i])
			}
		}
	})
}

// What is forgotten is neither written nor committed, in the buffer or out for writing; the others stay.
func TestBufferForget(t *testing.T) {
	b := pop.NewBuffer(pop.Limits{Merge: true, Stay: 10_000, Early: 10, Points: 100, PerQueue: 100})
	point := func(group string, start, popTime int64) *pop.Checkpoint {
		return &pop.Checkpoint{Broker: "b", Group: group, Topic: "T", Start: start, Num: 1, Diffs: []int32{0}, PopTime: popTime, Invisible: 60_000}
	}
	add := func(group string, start, popTime int64) {
		t.Helper()
		if !b.Add(point(group, start, popTime), 0, start+1, 1000) {
			t.Fatal("not taken")
		}
	}
	add("G", 0, 1000)
	out := b.Due(20_000, 10)
	add("G", 1, 1001)
	add("H", 5, 1001)
	b.Forget(func(q pop.QueueKey) bool { return q.Group == "G" })
	if _, ok := b.Latest(pop.QueueKey{Topic: "T", Group: "G"}); ok || b.Points() != 1 || b.Offsets() != 1 {
		t.Errorf("%d points and %d offsets are left", b.Points(), b.Offsets())
	}
	add("G", 0, 1000) // of the new group, by the same name as the one that is out
	b.Written(out[0], 30_000)
	if b.Points() != 2 || len(b.Commits()) != 0 {
		t.Errorf("%d points", b.Points())
	}
	if due := b.Due(40_000, 10); len(due) != 2 {
		t.Errorf("%d are due", len(due))
	}
}
