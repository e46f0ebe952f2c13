package broker

import (
	"testing"
	"time"

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
