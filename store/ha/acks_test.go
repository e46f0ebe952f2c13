package ha

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A replica counts once, whatever connections it has; a waiter is released with the k-th replica and not before.
func TestAcks(t *testing.T) {
	now := time.Unix(100, 0)
	a := newAcks()
	var got []int
	add := func(id int, end int64, copies int) bool {
		return a.wait(&waiter{end: end, copies: copies, deadline: now.Add(time.Second), done: func(ok bool) {
			if !ok {
				id = -id
			}
			got = append(got, id)
		}})
	}
	tell := func(conn, end int64) []int {
		t.Helper()
		got = nil
		ws, err := a.report(conn, end, 1000, now)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range ws {
			w.done(true)
		}
		slices.Sort(got)
		return got
	}
	if !add(1, 10, 0) {
		t.Fatal("no copies wanted, and it waits")
	}
	a.join(1, "b", 0, now)
	a.join(2, "b", 0, now) // the same slave once more
	for id, end := range []int64{10, 20, 30} {
		if add(id+1, end, 2) {
			t.Fatal("done without a copy")
		}
	}
	add(4, 15, 1)
	if got := tell(1, 30); !slices.Equal(got, []int{4}) {
		t.Fatalf("one slave with 30 released %v", got)
	}
	if got := tell(2, 30); len(got) != 0 {
		t.Fatalf("the second connection of that slave released %v", got)
	}
	a.join(3, "c", 0, now)
	if got := tell(3, 20); !slices.Equal(got, []int{1, 2}) {
		t.Fatalf("another slave with 20 released %v", got)
	}
	if _, err := a.report(3, 19, 1000, now); err == nil {
		t.Error("a report behind the last one was taken (r#1155)")
	}
	if _, err := a.report(3, 1001, 1000, now); err == nil {
		t.Error("a report beyond the end of the master was taken (N078)")
	}
	if ws := a.release(); len(ws) != 0 {
		t.Errorf("%d released by refused reports", len(ws))
	}
	a.leave(3)
	if _, next := a.expire(now); !next.Equal(now.Add(time.Second)) {
		t.Errorf("the next deadline is %v", next)
	}
	late, next := a.expire(now.Add(time.Second))
	if len(late) != 1 || late[0].end != 30 || !next.IsZero() {
		t.Errorf("late: %d, next %v", len(late), next)
	}
	if len(a.due) != 0 {
		t.Errorf("%d are kept", len(a.due))
	}
}

// Against a model that looks at everybody each time.
func TestAcksModel(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		a, now := newAcks(), time.Unix(0, 0)
		conns, ends := map[int64]string{}, map[int64]int64{}
		type want struct {
			w    *waiter
			done bool
		}
		var all []*want
		masterEnd := int64(0)
		reached := func(w *waiter) bool {
			best := map[string]int64{}
			for c, id := range conns {
				best[id] = max(best[id], ends[c])
			}
			n := 0
			for _, e := range best {
				if e >= w.end {
					n++
				}
			}
			return n >= w.copies
		}
		finish := func(ws []*waiter) {
			for _, w := range ws {
				w.done(true)
			}
		}
		for range 300 {
			now = now.Add(time.Duration(r.IntN(20)) * time.Millisecond)
			switch r.IntN(6) {
			case 0:
				c := r.Int64N(6)
				if conns[c] == "" {
					conns[c], ends[c] = string(rune('a'+r.IntN(3))), r.Int64N(masterEnd+1)
					a.join(c, conns[c], ends[c], now)
					finish(a.release())
				}
			case 1:
				c := r.Int64N(6)
				delete(conns, c)
				delete(ends, c)
				a.leave(c)
			case 2, 3:
				masterEnd += 1 + r.Int64N(50)
				x := &want{}
				x.w = &waiter{end: masterEnd, copies: r.IntN(4), deadline: now.Add(100 * time.Millisecond), done: func(bool) { x.done = true }}
				all = append(all, x)
				if a.wait(x.w) {
					x.done = true
				}
			default:
				for c := range conns {
					if end := ends[c] + r.Int64N(60); end <= masterEnd {
						ends[c] = end
						ws, err := a.report(c, end, masterEnd, now)
						if err != nil {
							t.Fatal(err)
						}
						finish(ws)
					}
				}
			}
			late, _ := a.expire(now)
			for _, w := range late {
				w.done(false)
			}
			for _, x := range all {
				due := !x.w.deadline.After(now)
				if x.done != (x.done || due) || !x.done && reached(x.w) {
					t.Fatalf("seed %d: a waiter for %d with %d copies: done %v, due %v, reached %v", seed, x.w.end, x.w.copies, x.done, due, reached(x.w))
				}
			}
			all = slices.DeleteFunc(all, func(x *want) bool { return x.done })
		}
	}
}

func TestStart(t *testing.T) {
	s := Span{Min: 1024, End: 5000, FileSize: 1024}
	for _, c := range []struct {
		report   int64
		lastFile bool
		want     int64
		refused  bool
	}{
		{0, false, 1024, false},
		{0, true, 4096, false},
		{2000, false, 2000, false},
		{5000, true, 5000, false},
		{5001, false, 0, true},
		{1023, false, 0, true},
	} {
		got, err := s.start(c.report, c.lastFile)
		if got != c.want || (err != nil) != c.refused {
			t.Errorf("start(%d, %v) = %d, %v", c.report, c.lastFile, got, err)
		}
	}
}
