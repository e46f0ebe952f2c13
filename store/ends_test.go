package store

import (
	"errors"
	"fmt"
	"testing"

	"mqx/internal/vfs"
)

// fillDisk leaves no page free.
func fillDisk(t *testing.T, m *vfs.Mem) {
	t.Helper()
	u, err := m.Usage(testRoot)
	if err != nil {
		t.Fatal(err)
	}
	m.SetCapacity(u.Total - u.Free)
}

// fullStore has two log files, of which the first is full of messages, and a disk without a free page. The units of
// its queues are in memory. "Ended" has messages only in the first file.
func fullStore(t *testing.T, change func(*Config)) (*Store, *vfs.Mem) {
	t.Helper()
	m := vfs.NewMem()
	cfg := memConfig(m)
	change(&cfg)
	s := mustOpen(t, cfg)
	for i := range 30 {
		mustPut(t, s, newRecord("Ended", 1, fmt.Sprint("ended ", i), ""))
	}
	fillFiles(t, s, 2)
	catchUp(t, s)
	if err := s.log.Flush(); err != nil {
		t.Fatal(err)
	}
	fillDisk(t, m)
	return s, m
}

// powerCut is what is left after the power failed.
func powerCut(t *testing.T, m *vfs.Mem, chance uint64) *vfs.Mem {
	t.Helper()
	after := m.PowerLoss(chance)
	after.SetCapacity(0)
	return after
}

// wantNext checks that the next message of a queue gets an offset.
func wantNext(t *testing.T, s *Store, topic string, queueID int32, want int64) {
	t.Helper()
	if got := s.MaxOffset(topic, queueID); got != want {
		t.Errorf("queue %s/%d ends at %d, want %d", topic, queueID, got, want)
	}
	if p := mustPut(t, s, newRecord(topic, queueID, "next", "")); p.QueueOffset != want {
		t.Errorf("the next message of %s/%d got offset %d, want %d", topic, queueID, p.QueueOffset, want)
	}
}

// A log file goes by force while the queues have no room. Then they have it, and are durable before anything else goes
// on, also when one log file is left.
func TestForcedDeletionMakesQueuesDurable(t *testing.T) {
	for chance := range uint64(20) {
		s, m := fullStore(t, func(*Config) {})
		ends := s.MaxOffset("Ended", 1)
		if err := s.checkpoint(false); err == nil {
			t.Fatal("the queues have room")
		}
		removed, err := s.cleaner.expireFile(s.cfg.Clock.Now(), true)
		if !removed || err != nil || logFiles(t, s) != 1 {
			t.Fatalf("removed %v: %v", removed, err)
		}
		if at := s.checkpointed.Load(); at < s.log.Min() {
			t.Errorf("the checkpoint stands at %d, the log begins at %d", at, s.log.Min())
		}
		after := powerCut(t, m, chance)
		_ = s.Close()
		again := mustOpen(t, memConfig(after))
		wantNext(t, again, "Ended", 1, ends)
		mustClose(t, again)
	}
}

// The power fails at any moment while a log file goes whose messages are in no durable queue, and with others after it: the
// start is not refused, and no offset is given out again, also of a queue that has no message left.
func TestPowerLossInForcedDeletion(t *testing.T) {
	for name, failed := range map[string]bool{"no room": false, "a sync of the queues failed": true} {
		t.Run(name, func(t *testing.T) {
			for at, died := 1, true; died; at++ {
				for chance := range uint64(8) {
					died = powerLossInDeletion(t, at, chance, failed)
				}
			}
		})
	}
}

// powerLossInDeletion lets the power fail before an operation on the disk, and reports whether there were so many.
func powerLossInDeletion(t *testing.T, at int, chance uint64, failed bool) bool {
	s, m := fullStore(t, func(*Config) {})
	ends, others := s.MaxOffset("Ended", 1), s.MaxOffset("T", 0)
	s.queuesFailed.Store(failed)
	left, after := at, (*vfs.Mem)(nil)
	m.Inject(func(vfs.Op) error {
		if left--; left == 0 {
			after = powerCut(t, m, chance)
		}
		return nil
	})
	if removed, err := s.cleaner.expireFile(s.cfg.Clock.Now(), true); !removed || err != nil {
		t.Fatal(removed, err)
	}
	m.Inject(nil)
	died := after != nil
	if !died {
		after = powerCut(t, m, chance)
	}
	_ = s.Close()
	// Before the queues are durable the power fails once more.
	again := mustOpen(t, memConfig(after))
	after = powerCut(t, after, chance+1)
	_ = again.Close()
	again = mustOpen(t, memConfig(after))
	wantNext(t, again, "Ended", 1, ends)
	wantNext(t, again, "T", 0, others)
	mustClose(t, again)
	again = mustOpen(t, memConfig(after))
	if again.ends.note != nil {
		t.Error("the note outlives what it is for")
	}
	wantNext(t, again, "Ended", 1, ends+1)
	mustClose(t, again)
	return died
}

// Messages go by force that are in no queue yet, as the queues take nothing: their offsets stay used after a loss of power.
func TestForcedDeletionOfWhatIsInNoQueue(t *testing.T) {
	m := vfs.NewMem()
	s := mustOpen(t, memConfig(m))
	for range 30 {
		mustPut(t, s, newRecord("Ended", 1, "ended", ""))
	}
	fillFiles(t, s, 2)
	others := s.queues.get("T", 0).counter.Next()
	s.alarms.raise(alarmQueues, errors.New("no room"))
	fillDisk(t, m)
	if removed, err := s.cleaner.expireFile(s.cfg.Clock.Now(), true); !removed || err != nil {
		t.Fatal(removed, err)
	}
	m = powerCut(t, m, 1)
	_ = s.Close()
	s = mustOpen(t, memConfig(m))
	wantNext(t, s, "Ended", 1, 30)
	wantNext(t, s, "T", 0, others)
	catchUp(t, s)
	mustClose(t, s)
}

// The offsets of messages that went by force stay used when nothing notes them any more: over a kill, which has the log searched
// from the checkpoint, and the next one.
func TestKilledAfterForcedDeletion(t *testing.T) {
	s, m := fullStore(t, func(*Config) {})
	ends := s.MaxOffset("Ended", 1)
	s.queuesFailed.Store(true)
	if removed, err := s.cleaner.expireFile(s.cfg.Clock.Now(), true); !removed || err != nil {
		t.Fatal(removed, err)
	}
	m = powerCut(t, m, 1)
	for range 3 {
		s = mustOpen(t, memConfig(m))
		if got := s.MaxOffset("Ended", 1); got != ends {
			t.Fatalf("the queue ends at %d, want %d", got, ends)
		}
		mustPut(t, s, newRecord("T", 0, "more", ""))
		catchUp(t, s)
		if err := s.checkpoint(false); err != nil {
			t.Fatal(err)
		}
		if s.ends.note != nil {
			t.Fatal("the note outlives what it is for")
		}
		m = m.Kill()
	}
	s = mustOpen(t, memConfig(m))
	wantNext(t, s, "Ended", 1, ends)
	// The first message behind them is cut again.
	catchUp(t, s)
	u, err := s.queues.get("Ended", 1).cq.Load().At(ends)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Truncate(u.Phys); err != nil {
		t.Fatal(err)
	}
	wantNext(t, s, "Ended", 1, ends)
	mustClose(t, s)
}

// A log that is cut while the ends of its queues are noted gives the offsets behind the cut again.
func TestCutWithNotedEnds(t *testing.T) {
	s, m := fullStore(t, func(*Config) {})
	s.queuesFailed.Store(true)
	if removed, err := s.cleaner.expireFile(s.cfg.Clock.Now(), true); !removed || err != nil {
		t.Fatal(removed, err)
	}
	m.SetCapacity(0)
	end := s.LogEnd()
	ends := s.MaxOffset("T", 0)
	for range 3 {
		mustPut(t, s, newRecord("T", 0, "cut", ""))
	}
	catchUp(t, s)
	if err := s.noteEnds(s.log.Min()); err != nil {
		t.Fatal(err)
	}
	if err := s.Truncate(end); err != nil {
		t.Fatal(err)
	}
	after := powerCut(t, m, 1)
	_ = s.Close()
	again := mustOpen(t, memConfig(after))
	wantNext(t, again, "T", 0, ends)
	wantNext(t, again, "Ended", 1, 30)
	mustClose(t, again)
}

// A note of more queues than there was room for is written all the same while the disk has some.
func TestRoomForEnds(t *testing.T) {
	s, _ := openMem(t)
	for i := range 200 {
		mustPut(t, s, newRecord(fmt.Sprintf("A-topic-with-a-long-name-%0100d", i), 0, "x", ""))
	}
	catchUp(t, s)
	room := s.ends.room
	if err := s.noteEnds(0); err != nil {
		t.Fatal(err)
	}
	if s.ends.room <= room || len(s.ends.note.queues) != 200 {
		t.Errorf("room for %d bytes, then %d", room, s.ends.room)
	}
	mustClose(t, s)
}
