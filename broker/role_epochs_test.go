package broker

import (
	"math"
	"testing"

	"mqx/remoting"
	"mqx/store/ha"
)

// A slave keeps the epochs of its master once its log is known to be a beginning of that, so that it is known later who has
// what the newest epoch acknowledged (r#2178).
func TestSlaveKeepsEpochs(t *testing.T) {
	m := start(t, testConfig(t.TempDir()))
	if err := m.role.Change(func(s *roleState) error {
		s.Epoch, s.Epochs = 3, []ha.RoleEpoch{{Epoch: 3, Start: 0}}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	m.createTopic("T", 1)
	m.send("T", 0, "", "x")
	s := startSlave(t, m, 1, nil)
	s.until("the slave has not got the log", func() bool { return s.store.LogEnd() == m.store.LogEnd() })
	var st remoting.HAState
	s.askHA(remoting.HAActStatus, nil, &st)
	if st.LastEpoch == nil || *st.LastEpoch != 3 || st.Epoch != 3 {
		t.Errorf("%+v", st)
	}
	m.askHA(remoting.HAActStatus, nil, &st)
	if st.LastEpoch == nil || *st.LastEpoch != 3 {
		t.Errorf("%+v", st)
	}
}

// The log of a master that slaves have followed has copies, whatever its level, as far as it had come when the last one left: a gap
// before that is not stepped over. What comes behind has none, so that a broker that was alone since keeps it.
func TestFollowedLogIsGapless(t *testing.T) {
	cfg := testConfig(t.TempDir())
	m := start(t, cfg)
	copies := func() int64 {
		m.ha.saving.Lock()
		defer m.ha.saving.Unlock()
		return cfg.gapless(m.ha.state.gapless())
	}
	if copies() != 0 {
		t.Error("copies without a slave")
	}
	m.createTopic("T", 1)
	m.send("T", 0, "", "x")
	one, two := startSlave(t, m, 1, nil), startSlave(t, m, 2, nil)
	for _, s := range []*running{one, two} {
		s.until("the slave has not got the log", func() bool { return s.store.LogEnd() == m.store.LogEnd() })
	}
	m.until("it is not noted", func() bool { return copies() == math.MaxInt64 })
	// What is noted of copies keeps what was noted of degraded times, and the other way round.
	list := []ha.Interval{{From: 1, To: 2}}
	if err := m.ha.record(list); err != nil {
		t.Fatal(err)
	}
	one.stop()
	if copies() != math.MaxInt64 {
		t.Error("one has left, one follows")
	}
	two.stop()
	end := m.store.LogEnd()
	m.until("that none follows is not noted", func() bool { return copies() == end })
	m.send("T", 0, "", "y")
	m.stop()
	m = start(t, cfg)
	if at := copies(); at != end || len(m.ha.state.Degraded) != 1 {
		t.Errorf("copies to %d, want %d; degraded %v", at, end, m.ha.state.Degraded)
	}
	// One that died while a slave followed: all that it has may have a copy.
	end = m.store.LogEnd()
	m.stop()
	m.ha.state.Copied = true
	if err := m.ha.record(list); err != nil {
		t.Fatal(err)
	}
	m = start(t, cfg)
	if at := copies(); at != end {
		t.Errorf("after a crash: copies to %d, want %d", at, end)
	}
}
