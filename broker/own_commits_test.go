package broker

import (
	"maps"
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
		if got := b.mergeBackTo("slave", told, nothing, none); !maps.EqualFunc(got, c.want, maps.Equal) {
			t.Errorf("light queues in %q: the master answers %v, want %v", c.light, got, c.want)
		}
		if at, _ := b.offsets.Committed("%LMQ%x", "lite", 0); at != c.at {
			t.Errorf("light queues in %q: the offset is %d, want %d", c.light, at, c.at)
		}
	}
}
