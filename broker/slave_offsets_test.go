package broker

import (
	"sync/atomic"
	"testing"

	"mqx/internal/vfs"
)

// The first look of a slave at a master sets back what was lost with the one before, in one step: never below what the master
// tells, so that nobody reads a lower offset meanwhile, and not what consumers committed here while that master was away.
func TestFirstLookSetsOffsetsBack(t *testing.T) {
	m := start(t, testConfig(t.TempDir()))
	m.createTopic("T", 3)
	m.heartbeat("G", "CLUSTERING")
	for q := range int32(3) {
		m.send("T", q, "", "x")
	}
	m.offsets.Commit([]byte("T"), []byte("G"), 0, 7) // this slave is only behind
	m.offsets.Commit([]byte("T"), []byte("G"), 1, 1)
	m.offsets.Commit([]byte("T"), []byte("G"), 2, 1)
	for _, replaced := range []bool{false, true} {
		s := startSlave(t, m, 1, nil)
		at := func(q int32) int64 { off, _ := s.offsets.Committed("T", "G", q); return off }
		s.until("the slave does not get the log", func() bool { return s.tablesSeen() && s.store.MaxOffset("T", 2) == 1 })
		for q := range int32(3) {
			s.offsets.Commit([]byte("T"), []byte("G"), q, 9)
		}
		s.offsets.noteOwn("T", "G", 2, 0)
		var lower atomic.Int64
		lower.Store(9)
		done, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				select {
				case <-done:
					return
				default:
					lower.Store(min(lower.Load(), at(0)))
				}
			}
		}()
		look := tables{b: s.Broker, master: m.addr, replaced: replaced}
		if err := look.syncOffsets(t.Context()); err != nil {
			t.Fatal(err)
		}
		close(done)
		<-stopped
		want := []int64{7, 1, 9}
		if replaced {
			want[2] = 1
		}
		for q, w := range want {
			if got := at(int32(q)); got != w {
				t.Errorf("queue %d, another master before: %v: %d, want %d", q, replaced, got, w)
			}
		}
		if lower.Load() < 7 {
			t.Errorf("%d was seen meanwhile", lower.Load())
		}
		s.stop()
	}
}

// A consumer that commits to a slave while that takes over the table of its master is not set back by it, at the first look nor
// later, and what it committed is the slave's own until the master has it.
func TestCommitWithinALook(t *testing.T) {
	for _, first := range []bool{true, false} {
		for step := range 3 {
			b := &Broker{log: quiet, offsets: newOffsetTable(vfs.NewMem(), "/config/consumerOffset.json", fixedNow, 1, quiet)}
			b.offsets.Commit([]byte("T"), []byte("G"), 0, 3)
			look := tables{b: b}
			if !first {
				look.offsets = map[string]map[int32]int64{"T@G": {0: 3}}
			}
			look.between = func() {
				if step--; step == -1 {
					b.offsets.Commit([]byte("T"), []byte("G"), 0, 7)
					b.offsets.noteOwn("T", "G", 0, 0)
				}
			}
			look.mergeTable(map[string]map[int32]int64{"T@G": {0: 5}}, func(string, int32) int64 { return 9 })
			if at, _ := b.offsets.Committed("T", "G", 0); at != 7 {
				t.Errorf("first look: %v: the offset is %d, want 7", first, at)
			}
			if own := b.offsets.own.copy(); len(own) != 1 {
				t.Errorf("first look: %v: its own are %v", first, own)
			}
		}
	}
}
