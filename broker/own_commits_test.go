package broker

import (
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mqx/internal/vfs"
	"mqx/remoting"
)

// A consumer that stands still at a slave repeats what it has committed. That is no commit since a reset at the master, whether
// the slave had the offset from its master or as its own.
func TestRepeatedCommitsAreNoNews(t *testing.T) {
	mc, sc := testConfig(t.TempDir()), testConfig(t.TempDir())
	m := start(t, mc)
	m.createTopic("T", 3)
	m.heartbeat("G", "CLUSTERING")
	for i := range 30 {
		m.send("T", int32(i%3), "", "x")
	}
	for q, off := range []int64{9, 1, 1} {
		m.commit("G", "T", int32(q), off)
	}
	sc.BrokerRole, sc.BrokerID = "SLAVE", 1
	s := start(t, sc)
	s.slave.learn(m.at().haAddr, m.addr)
	at := func(r *running, q int32) int64 { off, _ := r.offsets.Committed("T", "G", q); return off }
	s.until("the tables do not come", func() bool { return at(s, 0) == 9 && at(s, 2) == 1 && s.store.Dispatched() == m.store.LogEnd() })
	m.stop()
	s.commit("G", "T", 1, 9)
	s.commit("G", "T", 2, 8)
	m = start(t, mc)
	time.Sleep(2 * time.Millisecond) // times are of milliseconds
	for q := range int32(3) {
		m.offsets.Commit([]byte("T"), []byte("G"), q, 0)
	}
	time.Sleep(2 * time.Millisecond)
	for q, off := range []int64{9, 9} {
		s.commit("G", "T", int32(q), off)
		if resp := s.pullCommit("T", "G", int32(q), off, off); resp.Code != remoting.RespSuccess {
			t.Fatal(resp)
		}
	}
	s.commit("G", "T", 2, 9)
	if _, err := m.takeBackFrom(t.Context(), s.addr); err != nil {
		t.Fatal(err)
	}
	if at(m, 0) != 0 || at(m, 1) != 0 {
		t.Errorf("offsets that were reset are %d and %d", at(m, 0), at(m, 1))
	}
	if at(m, 2) != 9 {
		t.Errorf("an offset that was committed after a reset is %d, want 9", at(m, 2))
	}
}

// A master whose light queues are off keeps what was committed to one at a slave that has them, and does not call it removed.
func TestLightQueuesThatAreOffAreNotRemoved(t *testing.T) {
	told := &remoting.HAOffsets{
		OffsetTable: map[string]map[int32]int64{"%LMQ%x@lite": {0: 7}, "%LMQ%x@reset": {0: 7}, "GONE@lite": {0: 7}},
		CommittedAt: map[string]map[int32]int64{"%LMQ%x@lite": {0: 1}, "%LMQ%x@reset": {0: 1}, "GONE@lite": {0: 1}},
	}
	nothing := func(string) bool { return false }
	none := func(string, int32) int64 { return 0 }
	for _, c := range []struct {
		light string
		want  map[string]map[int32]int64
		at    int64
	}{
		{"", map[string]map[int32]int64{"GONE@lite": {0: removedAtMaster}, "%LMQ%x@reset": {0: 2}}, 7},
		{"/config/lmqConsumerOffset.json", map[string]map[int32]int64{"GONE@lite": {0: removedAtMaster}, "%LMQ%x@lite": {0: removedAtMaster}, "%LMQ%x@reset": {0: removedAtMaster}}, 4},
	} {
		b := &Broker{log: quiet, offsets: newOffsetTable(vfs.NewMem(), "/config/consumerOffset.json", time.Now, 1, quiet)}
		b.offsets.light = c.light
		for _, off := range []int64{4, 2} {
			b.offsets.Commit([]byte("%LMQ%x"), []byte("reset"), 0, off)
		}
		b.offsets.Commit([]byte("%LMQ%x"), []byte("lite"), 0, 4)
		if got := b.mergeBackTo("slave", told, nothing, none); !maps.EqualFunc(got.OffsetTable, c.want, maps.Equal) {
			t.Errorf("light queues in %q: the master answers %v, want %v", c.light, got.OffsetTable, c.want)
		}
		if at, _ := b.offsets.Committed("%LMQ%x", "lite", 0); at != c.at {
			t.Errorf("light queues in %q: the offset is %d, want %d", c.light, at, c.at)
		}
	}
}

// A save that comes between a reset and its note does not write the one without the other: after a kill, nothing would keep what was
// committed to a slave before from undoing the reset.
func TestResetAndNoteAreSavedTogether(t *testing.T) {
	for name, set := range map[string]func(*offsetTable){
		"a commit": func(o *offsetTable) { o.Commit([]byte("T"), []byte("G"), 0, 2) },
		"a reset":  func(o *offsetTable) { o.Reset("T", "G", 0, 2) },
		"a clone":  func(o *offsetTable) { o.Clone("H", "G", "T") },
		"removed":  func(o *offsetTable) { o.RemoveQueue("T", "G", 0) },
	} {
		t.Run(name, func(t *testing.T) {
			var hook func()
			now := func() time.Time { // is asked for the note
				if h := hook; h != nil {
					hook = nil
					h()
				}
				return fixedNow()
			}
			fsys := vfs.NewMem()
			o := newOffsetTable(fsys, "/config/consumerOffset.json", now, 1000, quiet)
			o.Commit([]byte("T"), []byte("H"), 0, 2)
			o.Commit([]byte("T"), []byte("G"), 0, 9)
			saved := make(chan error, 1)
			hook = func() {
				done := make(chan struct{})
				go func() { saved <- o.Save(); close(done) }()
				select {
				case <-done:
				case <-time.After(20 * time.Millisecond): // it waits for the note, which is right
				}
			}
			set(o)
			if err := <-saved; err != nil {
				t.Fatal(err)
			}
			n := newOffsetTable(fsys, "/config/consumerOffset.json", fixedNow, 1000, quiet)
			if err := n.Load(); err != nil {
				t.Fatal(err)
			}
			k := ownCommit{offsetKey{"T", "G"}, 0}
			if at, _ := n.Committed("T", "G", 0); at != 9 && n.setBack.last(k) < fixedNow().UnixMilli() {
				t.Errorf("the file has the offset %d and no note that it was set back", at)
			}
		})
	}
}

// Where there are too many queues that were set back, the time of the newest stands for all, also where two find that at a time and
// the one that looked at the clock first comes last.
func TestSetBacksThatAreTooMany(t *testing.T) {
	at := int64(20)
	o := newOffsetTable(vfs.NewMem(), "/config/consumerOffset.json", func() time.Time { return time.UnixMilli(at) }, 1, quiet)
	fill := func() {
		o.setBack.of = map[ownCommit]int64{}
		for q := range int32(setBackMost) {
			o.setBack.of[ownCommit{offsetKey{"T", "many"}, q}] = 1
		}
	}
	set := ownCommit{offsetKey{"T", "G"}, 0}
	fill()
	o.noteSetBack(set.offsetKey, set.queue, 0)
	fill()
	o.setBack.of[ownCommit{offsetKey{"T", "many"}, 0}] = 30
	at = 10
	o.noteSetBack(offsetKey{"T", "G2"}, 0, 0)
	for k, when := range map[ownCommit]int64{set: 19, {offsetKey{"T", "many"}, 0}: 29, {offsetKey{"T", "G2"}, 0}: 9} {
		if o.setBack.last(k) <= when {
			t.Errorf("%v is not known as set back since %d", k, when)
		}
	}
	if o.setBack.last(set) > 30 {
		t.Error("all are set back in the future")
	}
	var wg sync.WaitGroup
	clock := atomic.Int64{}
	clock.Store(100)
	for g := range 4 {
		wg.Go(func() {
			for q := range int32(setBackMost) {
				k, when := ownCommit{offsetKey{"T", "G" + strconv.Itoa(g)}, q}, clock.Add(1)
				o.setBack.add(k, when)
				if o.setBack.last(k) < when {
					t.Errorf("%v is not known as set back at %d", k, when)
					return
				}
			}
		})
	}
	wg.Wait()
}

// A reset that comes while the master takes over what was committed to a slave is not undone, nor is a commit that comes then.
func TestResetsWhileOffsetsAreTakenOver(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(o *offsetTable)
		want      int64
	}{
		"reset":  {func(o *offsetTable) { o.Reset("T", "G", 0, 2) }, 2},
		"back":   {func(o *offsetTable) { o.Commit([]byte("T"), []byte("G"), 0, 2) }, 2},
		"commit": {func(o *offsetTable) { o.Commit([]byte("T"), []byte("G"), 0, 12) }, 12},
	} {
		b := &Broker{log: quiet, offsets: newOffsetTable(vfs.NewMem(), "/config/consumerOffset.json", fixedNow, 1, quiet)}
		b.offsets.Commit([]byte("T"), []byte("G"), 0, 5)
		told := &remoting.HAOffsets{
			OffsetTable: map[string]map[int32]int64{"T@G": {0: 9}},
			CommittedAt: map[string]map[int32]int64{"T@G": {0: fixedNow().UnixMilli() - 1}},
		}
		b.mergeBackTo("slave", told, func(string) bool { return true }, func(string, int32) int64 {
			c.meanwhile(b.offsets)
			return 20
		})
		if at, _ := b.offsets.Committed("T", "G", 0); at != c.want {
			t.Errorf("%s: the offset is %d, want %d", name, at, c.want)
		}
	}
}
