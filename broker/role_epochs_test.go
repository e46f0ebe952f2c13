package broker

import (
	"slices"
	"testing"

	"mqx/remoting"
)

// The epoch of the last bytes is that of the newest promotion that has written some.
func TestLastEpoch(t *testing.T) {
	epochs := []remoting.HAEpoch{{Epoch: 1, Start: 0}, {Epoch: 2, Start: 500}, {Epoch: 5, Start: 900}, {Epoch: 6, Start: epochUnknown}}
	for end, want := range map[int64]int64{0: 0, 1: 1, 500: 1, 501: 2, 900: 2, 901: 5, 5000: 5} {
		if got := lastEpoch(epochs, end); got != want {
			t.Errorf("a log up to %d ends in epoch %d, want %d", end, got, want)
		}
	}
	if got := cutEpochs(epochs[:3], 900); !slices.Equal(got, epochs[:2]) {
		t.Errorf("after a cut: %v", got)
	}
}

// A slave keeps the epochs of its master once its log is known to be a beginning of that, so that it is known later who has
// what the newest epoch acknowledged (r#2178).
func TestSlaveKeepsEpochs(t *testing.T) {
	m := start(t, testConfig(t.TempDir()))
	if err := m.role.change(func(s *roleState) error {
		s.Epoch, s.Epochs = 3, []remoting.HAEpoch{{Epoch: 3, Start: 0}}
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
	if st.LastEpoch != 3 || st.Epoch != 3 {
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
