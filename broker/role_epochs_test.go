package broker

import (
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

// The log of a master that a slave has followed has copies, whatever its level: a gap in it is not stepped over after that.
func TestFollowedLogIsGapless(t *testing.T) {
	cfg := testConfig(t.TempDir())
	m := start(t, cfg)
	if m.ha.copied.Load() || cfg.gapless(false) {
		t.Error("copies without a slave")
	}
	m.createTopic("T", 1)
	m.send("T", 0, "", "x")
	s := startSlave(t, m, 1, nil)
	s.until("the slave has not got the log", func() bool { return s.store.LogEnd() == m.store.LogEnd() })
	m.until("it is not noted", func() bool { return m.ha.copied.Load() })
	s.stop()
	m.stop()
	m = start(t, cfg)
	if !m.ha.copied.Load() || !cfg.gapless(m.ha.copied.Load()) {
		t.Error("forgotten with the restart")
	}
}
