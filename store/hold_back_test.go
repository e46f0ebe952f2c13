package store

import (
	"path/filepath"
	"slices"
	"testing"

	"mqx/internal/vfs"
	"mqx/message"
)

// The process is killed, or the power fails, at any moment of a stop with messages that are held back, and of the start after
// it: nobody is shown a message that has no copies.
func TestHeldBackWhereverItDies(t *testing.T) {
	config := func(m *vfs.Mem) Config {
		cfg := memConfig(m)
		cfg.Held = true
		return cfg
	}
	service := func(t *testing.T) (*Store, *vfs.Mem) {
		m := vfs.NewMem()
		s := mustOpen(t, config(m))
		for range 3 {
			mustPut(t, s, newRecord("T", 0, "shown", ""))
		}
		s.Confirm(s.LogEnd())
		for range 3 {
			mustPut(t, s, newRecord("T", 0, "held", ""))
		}
		catchUp(t, s)
		if err := s.checkpoint(false); err != nil {
			t.Fatal(err)
		}
		return s, m
	}
	// dies returns what is left where work dies before its n-th operation on the disk, nil where it has not so many.
	dies := func(m *vfs.Mem, n int, power bool, work func()) (left *vfs.Mem) {
		m.Inject(func(vfs.Op) error {
			if n--; n != 0 {
				return nil
			}
			if left = m.Kill(); power {
				left = m.PowerLoss(7)
			}
			return nil
		})
		work()
		m.Inject(nil)
		return left
	}
	check := func(t *testing.T, m *vfs.Mem, what string, n int) {
		t.Helper()
		s, err := Open(config(m))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		catchUp(t, s)
		if shown, end := s.MaxOffset("T", 0), s.EndOffset("T", 0); shown != 3 || end != 6 {
			t.Errorf("%s %d: %d messages are shown, the queue ends at %d, want 3 and 6", what, n, shown, end)
		}
	}
	for _, power := range []bool{false, true} {
		for n := 1; ; n++ {
			s, m := service(t)
			left := dies(m, n, power, func() { _ = s.Close() })
			if left == nil {
				break
			}
			check(t, left, "stop", n)
		}
		for n := 1; ; n++ {
			s, m := service(t)
			mustClose(t, s)
			left := dies(m, n, power, func() { s = mustOpen(t, config(m)) })
			if left == nil {
				break
			}
			check(t, left, "start", n)
		}
		for n := 1; ; n++ {
			_, m := service(t)
			m = m.Kill()
			left := dies(m, n, power, func() { mustOpen(t, config(m)) })
			if left == nil {
				break
			}
			check(t, left, "start after a kill", n)
		}
	}
}

// Past bug r#6609: what had no copies when a master stopped is in no queue after its restart, be it an orderly one, a kill or a
// loss of power, until it has them; its queue offsets are taken (r#7689), and who has read on before is not sent back.
func TestHeldBackOverARestart(t *testing.T) {
	for _, how := range []string{"stopped", "killed", "killed twice", "stopped and killed"} {
		t.Run(how, func(t *testing.T) {
			m := vfs.NewMem()
			reopen := func() *Store {
				cfg := memConfig(m)
				cfg.Held = true
				return mustOpen(t, cfg)
			}
			kill := func() { m = m.Kill() }
			s := reopen()
			for range 3 {
				mustPut(t, s, newRecord("T", 0, "shown", "KEYS\x01shown\x02"))
			}
			s.Confirm(s.LogEnd())
			catchUp(t, s)
			if err := s.cqs.WriteOut(); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				mustPut(t, s, newRecord("T", 0, "held", "KEYS\x01held\x02"))
			}
			mustPut(t, s, newRecord("New", 0, "held", ""))
			catchUp(t, s)
			switch how {
			case "stopped":
				mustClose(t, s)
			case "killed":
				kill()
			case "killed twice":
				kill()
				_ = reopen()
				kill()
			case "stopped and killed":
				mustClose(t, s)
				_ = reopen()
				kill()
			}
			s = reopen()
			catchUp(t, s)
			if n, end := s.MaxOffset("T", 0), s.EndOffset("T", 0); n != 3 || end != 5 {
				t.Errorf("max offset %d, end %d, want 3 and 5", n, end)
			}
			if n := s.MaxOffset("New", 0); n != 0 {
				t.Errorf("a topic without copies shows %d messages", n)
			}
			for off, want := range map[int64]GetStatus{3: OffsetOverflowOne, 5: OffsetOverflowOne, 6: OffsetOverflowBadly} {
				if res := s.Get(GetRequest{Topic: "T", Offset: off, MaxMsgs: 1}); res.Status != want {
					t.Errorf("a read at %d: %v, want %v", off, res.Status, want)
				}
			}
			if res := s.Get(GetRequest{Topic: "New", Offset: 1, MaxMsgs: 1}); res.Status != OffsetOverflowOne || res.NextOffset != 1 {
				t.Errorf("who has read all of a young queue is sent to %d, %v", res.NextOffset, res.Status)
			}
			var held []int64
			if err := s.EachHeld("T", 0, func(v message.View) error { held = append(held, v.QueueOffset()); return nil }); err != nil || !slices.Equal(held, []int64{3, 4}) {
				t.Errorf("held back: %v, %v", held, err)
			}
			if at, err := s.heldAt("T", 0, 4); err != nil || at <= s.LogShown() || at >= s.LogEnd() {
				t.Errorf("message 4 lies at %d, %v", at, err)
			}
			if res, err := s.Query(t.Context(), QueryRequest{Topic: "T", Key: "held", End: 1 << 60}); err != nil || len(res.Parts) != 0 {
				t.Errorf("a query finds %d messages without copies, %v", len(res.Parts), err)
			}
			if p := mustPut(t, s, newRecord("T", 0, "next", "")); p.QueueOffset != 5 {
				t.Errorf("the next message has the queue offset %d, want 5", p.QueueOffset)
			}
			s.Confirm(s.LogEnd())
			catchUp(t, s)
			recs := readAll(t, s, "T", 0, nil)
			if len(recs) != 6 {
				t.Fatalf("%d messages once all has copies, want 6", len(recs))
			}
			for i, v := range recs {
				if v.QueueOffset() != int64(i) {
					t.Errorf("message %d has the queue offset %d", i, v.QueueOffset())
				}
			}
			if n := s.MaxOffset("New", 0); n != 1 {
				t.Errorf("the new topic has %d messages, want 1", n)
			}
			mustClose(t, s)
			if s = reopen(); s.MaxOffset("T", 0) != 6 || s.LogShown() != s.LogEnd() {
				t.Errorf("after a stop with all shown: max offset %d, shown %d of %d", s.MaxOffset("T", 0), s.LogShown(), s.LogEnd())
			}
		})
	}
}

// Past bug r#6703: what consumers had seen lies behind what is left of the log after a loss of power with ASYNC_FLUSH, by the queues
// and by the note too. It is taken back to the end that was recovered, and what is appended there next is not shown by it.
func TestShownBehindTheEnd(t *testing.T) {
	for _, noted := range []bool{false, true} {
		m := vfs.NewMem()
		cfg := memConfig(m)
		cfg.Held = true
		s := mustOpen(t, cfg)
		for range 3 {
			mustPut(t, s, newRecord("T", 0, "durable", ""))
		}
		end := s.LogEnd()
		for range 3 {
			mustPut(t, s, newRecord("T", 0, "lost", ""))
		}
		seen := s.LogEnd()
		s.Confirm(seen)
		catchUp(t, s)
		if err := s.cqs.WriteOut(); err != nil {
			t.Fatal(err)
		}
		if noted {
			if err := s.noteHeld(seen); err != nil {
				t.Fatal(err)
			}
		}
		m = m.Kill()
		m.Corrupt(filepath.Join(testRoot, "commitlog", "00000000000000000000"), end, make([]byte, seen-end))
		cfg.FS = m
		s = mustOpen(t, cfg)
		if s.LogEnd() != end || s.LogShown() != end {
			t.Errorf("noted %v: the log ends at %d and is shown up to %d, want %d", noted, s.LogEnd(), s.LogShown(), end)
		}
		if p := mustPut(t, s, newRecord("T", 0, "next", "")); p.QueueOffset != 3 {
			t.Errorf("noted %v: the next message has the queue offset %d, want 3", noted, p.QueueOffset)
		}
		catchUp(t, s)
		if n := s.MaxOffset("T", 0); n != 3 || s.LogShown() != end {
			t.Errorf("noted %v: %d messages are shown, the log up to %d, and nothing new has copies", noted, n, s.LogShown())
		}
		s.Confirm(s.LogEnd())
		catchUp(t, s)
		if recs := readAll(t, s, "T", 0, nil); len(recs) != 4 || string(recs[3].Body()) != "next" {
			t.Errorf("noted %v: %d messages once all has copies, want 4", noted, len(recs))
		}
	}
}
