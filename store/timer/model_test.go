package timer

import (
	"fmt"
	"log/slog"
	"testing"

	"pgregory.net/rapid"

	"mqx/internal/vfs"
	"mqx/message"
)

// sent is a record of the model's timer topic, or a copy that was delivered.
type sent struct {
	phys, end int64
	out       int64
	key       string // of the message, the same in the records it rolls through and in its copies
	cancels   string // the key of the message that this one cancels
	rolled    bool   // not sent, but put into the topic again
	copied    bool   // delivered
}

// world is a commit log, a topic and a broker around a Timer, all as simple as can be.
type world struct {
	t        *rapid.T
	fs       *vfs.Mem
	rules    Rules
	snaps    bool
	recalled map[string]bool // keys of messages that a cancellation was sent for, whatever became of it
	tm       *Timer
	now      int64
	log      []sent // all that lies in the commit log, by position
	end      int64
	flushed  int64
	needed   int64
	stored   int // copies and rolled records stored since the last flush
	again    int // of them, those before a power failure: they may come again
}

func (w *world) topic() []int {
	var ids []int
	for i, m := range w.log {
		if !m.copied {
			ids = append(ids, i)
		}
	}
	return ids
}

func (w *world) append(m sent) int64 {
	m.phys, m.end = w.end, w.end+100
	w.end = m.end
	w.log = append(w.log, m)
	return m.end
}

func (w *world) open() {
	ids := w.topic()
	tm, err := Open(Config{
		FS: w.fs, Root: "/s", FileBytes: 20 * UnitSize, Rules: w.rules, Snapshots: w.snaps, SnapshotEveryMs: 2000,
		Logger: slog.New(slog.DiscardHandler),
	}, Origin{
		NowMs: w.now, LogEnd: w.end, QueueMin: 0, QueueMax: int64(len(ids)),
		PhysAt: func(off int64) (int64, error) {
			if off >= int64(len(ids)) {
				return w.end, nil
			}
			return w.log[ids[off]].phys, nil
		},
		OffsetOf: func(phys int64) (int64, bool) {
			for off, i := range ids {
				if w.log[i].phys == phys {
					return int64(off), true
				}
			}
			return 0, false
		},
		TopicOf: func(int32) (string, bool) { return "T", true },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.tm = tm
}

func (w *world) at(phys int64) (int, bool) {
	for i, m := range w.log {
		if m.phys == phys {
			return i, true
		}
	}
	return 0, false
}

// deliver stores a copy of a message that is due.
func (w *world) deliver(i int) {
	m := w.log[i]
	if w.now < m.out+w.rules.PrecisionMs {
		w.t.Fatalf("message %d of slot %d was delivered at %d", i, m.out, w.now)
	}
	w.stored++
	w.needed = w.append(sent{copied: true, out: m.out, key: m.key})
}

// roll puts a record into the topic again.
func (w *world) roll(i int) {
	m := w.log[i]
	m.rolled = true
	w.stored++
	w.needed = w.append(m)
}

// takeUp is what the broker does with the topic.
func (w *world) takeUp() {
	ids := w.topic()
	from := w.tm.Offset()
	if from > int64(len(ids)) {
		w.t.Fatalf("the timer is at %d of %d", from, len(ids))
	}
	var items []Item
	for _, i := range ids[from:] {
		m := w.log[i]
		items = append(items, Item{Phys: m.phys, Size: 100, Out: m.out, Topic: "T", TopicHash: message.JavaHash([]byte("T")), Delete: m.cancels != ""})
	}
	w.tm.Judge(items, w.now)
	late := map[string]bool{}
	for k, it := range items {
		if it.Due && it.Delete {
			late[w.log[ids[from:][k]].cancels] = true
		}
	}
	for k, it := range items {
		if it.Due && !it.Delete && !late[w.log[ids[from:][k]].key] {
			w.deliver(ids[from:][k])
		}
	}
	if err := w.tm.Add(items, w.now, int64(len(ids)), w.needed); err != nil {
		w.t.Fatal(err)
	}
	w.note()
}

func (w *world) note() {
	if err := w.tm.Note(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) flushLog(int64) error {
	w.flushed = w.end
	return nil
}

func (w *world) turnBack() {
	turned, err := w.tm.TurnBack(w.now, w.flushLog)
	if err != nil {
		w.t.Fatal(err)
	}
	if turned {
		w.stored = 0
	}
}

// work is a round of the broker's service; stop ends it in the middle of a slot.
func (w *world) work(stop int) {
	w.turnBack()
	w.takeUp()
	for {
		slot, ok := w.tm.NextDue(w.now)
		if !ok {
			return
		}
		d, err := w.tm.OpenSlot(slot)
		if err != nil || d.Lost > 0 {
			w.t.Fatalf("%+v %v", d, err)
		}
		if w.slot(d, &stop) {
			return
		}
		for range d.Cancels { // a cancellation counts one less while it waits
			w.tm.Count("T", 1, w.now)
		}
		w.tm.Passed(slot, w.needed)
		w.note()
		w.takeUp() // what rolled
	}
}

// slot delivers the messages of a slot; it reports whether it was stopped before the end.
func (w *world) slot(d *DueSlot, stop *int) bool {
	gone := map[string]bool{}
	for _, e := range d.Cancels {
		if i, ok := w.at(e.Phys); ok {
			gone[w.log[i].cancels] = true
		}
	}
	for {
		chunk, err := d.Next()
		if err != nil {
			w.t.Fatal(err)
		}
		if chunk == nil {
			return false
		}
		for _, e := range chunk {
			i, ok := w.at(e.Phys)
			switch {
			case !ok:
				w.t.Fatalf("no message at %d", e.Phys)
			case e.Rolls():
				w.roll(i)
				w.tm.Count("T", -int64(e.Weight()), w.now) // it is counted when it is taken up again
			case !gone[w.log[i].key]:
				w.deliver(i)
				w.tm.Count("T", -1, w.now)
			default:
				w.tm.Count("T", -1, w.now)
			}
			w.tm.Delivered(d.Time, e.Pos, w.needed)
			w.note()
			if *stop--; *stop == 0 {
				return true
			}
		}
	}
}

func (w *world) flush(orderly bool) {
	if err := w.tm.Flush(w.now, orderly, w.flushLog); err != nil {
		w.t.Fatal(err)
	}
	w.stored = 0
}

// cut ends the log at a position that was not durable.
func (w *world) cut(at int64) {
	for len(w.log) > 0 && w.log[len(w.log)-1].end > at {
		w.log = w.log[:len(w.log)-1]
	}
	w.end = 0
	if n := len(w.log); n > 0 {
		w.end = w.log[n-1].end
	}
	w.needed = min(w.needed, w.end)
}

// check judges what lies in the log in the end.
func (w *world) check() {
	count, cancelled := map[string]int{}, map[string]bool{}
	var keys []string
	repeats := 0
	for i, m := range w.log {
		switch {
		case m.cancels != "":
			cancelled[m.cancels] = true
		case m.copied:
			if count[m.key]++; count[m.key] > 1 {
				repeats++
			}
			if cancelled[m.key] && count[m.key] == 1 {
				w.t.Fatalf("record %d: message %s was cancelled and delivered after that", i, m.key)
			}
		case !m.rolled:
			keys = append(keys, m.key)
		}
	}
	for _, key := range keys {
		if count[key] == 0 && !w.recalled[key] {
			w.t.Fatalf("message %s was never delivered", key)
		}
	}
	if repeats > w.again {
		w.t.Fatalf("%d copies too many; %d had been stored between a flush and a power failure: %v", repeats, w.again, count)
	}
}

// The timer against a list: whatever is sent, cancelled, stopped, killed, cut by a power failure, and whatever the clock
// does, in any combination: no message comes early, none is lost, none comes that was cancelled before it was delivered,
// and none comes twice but what was stored between the last flush and a power failure. In the end none is counted.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := &world{
			t: rt, fs: vfs.NewMem(), now: 1_800_000_000_000 + rapid.Int64Range(0, 3000).Draw(rt, "start"),
			rules:    NewRules(rapid.SampledFrom([]int{100, 200, 500, 1000}).Draw(rt, "precision"), rapid.SampledFrom([]int{6, 30, 1 << 30}).Draw(rt, "window")),
			recalled: map[string]bool{},
			snaps:    rapid.Bool().Draw(rt, "snapshots"),
		}
		if err := w.fs.MkdirAll("/s"); err != nil {
			rt.Fatal(err)
		}
		w.open()
		n := 0
		send := func(cancels string, out int64) {
			n++
			w.append(sent{out: out, key: fmt.Sprint("K", n), cancels: cancels})
		}
		actions := map[string]func(*rapid.T){
			"send": func(rt *rapid.T) {
				for range rapid.IntRange(1, 8).Draw(rt, "n") {
					send("", w.rules.OutTime(w.now+rapid.Int64Range(1, 40*w.rules.PrecisionMs).Draw(rt, "delay")))
				}
			},
			"cancel": func(rt *rapid.T) {
				ids := w.topic()
				if len(ids) == 0 {
					return
				}
				m := w.log[ids[rapid.IntRange(0, len(ids)-1).Draw(rt, "which")]]
				if m.cancels == "" && m.out+1 > w.now {
					w.recalled[m.key] = true
					send(m.key, m.out)
				}
			},
			"work":    func(*rapid.T) { w.work(0) },
			"partly":  func(rt *rapid.T) { w.work(rapid.IntRange(1, 5).Draw(rt, "n")); w.reopen(rt) },
			"flush":   func(*rapid.T) { w.flush(false) },
			"advance": func(rt *rapid.T) { w.now += rapid.Int64Range(1, 12*w.rules.PrecisionMs).Draw(rt, "ms") },
			"restart": func(rt *rapid.T) { w.reopen(rt) },
			"set back": func(rt *rapid.T) {
				w.now -= rapid.Int64Range(1, 60*w.rules.PrecisionMs).Draw(rt, "ms")
			},
			"power": func(rt *rapid.T) {
				at := w.flushed
				if w.end > at {
					at = rapid.Int64Range(at, w.end).Draw(rt, "cut")
				}
				w.again += w.stored
				w.stored = 0
				w.fs = w.fs.PowerLoss(rapid.Uint64().Draw(rt, "seed"))
				w.cut(at)
				w.flushed = min(w.flushed, w.end)
				w.open()
			},
		}
		rt.Repeat(actions)
		for range 5000 {
			if _, waits := w.tm.NextWake(); !waits && w.tm.Offset() == int64(len(w.topic())) {
				break
			}
			w.now += 3 * w.rules.PrecisionMs
			w.work(0)
		}
		if n := w.tm.Num(); n != 0 {
			rt.Fatalf("%d messages are left", n)
		}
		if n := w.tm.metrics.m.Topics["T"].Count; n != 0 {
			rt.Fatalf("%d messages are counted, none waits", n)
		}
		w.check()
		if err := w.tm.Close(); err != nil {
			rt.Fatal(err)
		}
	})
}

// reopen stops in order, or is killed.
func (w *world) reopen(rt *rapid.T) {
	if rapid.Bool().Draw(rt, "orderly") {
		w.flush(true)
		if err := w.tm.Close(); err != nil {
			rt.Fatal(err)
		}
	} else {
		w.fs = w.fs.KillUnsynced()
	}
	w.open()
}
