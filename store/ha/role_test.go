package ha

import (
	"errors"
	"slices"
	"testing"

	"mqx/internal/vfs"
)

// The epoch of the last bytes is that of the newest promotion that has written some (r#2178, PR 9942).
func TestLastEpoch(t *testing.T) {
	epochs := []RoleEpoch{{Epoch: 1, Start: 0}, {Epoch: 2, Start: 500}, {Epoch: 5, Start: 900}, {Epoch: 6, Start: epochUnknown}}
	for end, want := range map[int64]int64{0: 0, 1: 1, 500: 1, 501: 2, 900: 2, 901: 5, 5000: 5} {
		if got := LastEpoch(epochs, end); got != want {
			t.Errorf("a log up to %d ends in epoch %d, want %d", end, got, want)
		}
	}
	s := RoleState{Epochs: epochs[:3], Pending: &RolePending{To: 900}}
	if s.Cut(); !slices.Equal(s.Epochs, epochs[:2]) || s.Pending != nil {
		t.Errorf("after a cut: %+v", s)
	}
}

// A promotion needs a new epoch and a whole log; who has been replaced is who has the lower epoch (r#6316).
func TestRoleRules(t *testing.T) {
	s := RoleState{Epoch: 3}
	if err := s.Promote(3); !errors.Is(err, ErrOldEpoch) {
		t.Errorf("an old epoch: %v", err)
	}
	s.Pending = &RolePending{To: 5}
	if err := s.Promote(4); !errors.Is(err, ErrCutPending) {
		t.Errorf("with a cut pending: %v", err)
	}
	s.Pending = nil
	if err := s.Promote(4); err != nil || s.Epoch != 4 || !s.BeginEpoch(70) || s.BeginEpoch(80) || s.Epochs[0] != (RoleEpoch{4, 70}) {
		t.Errorf("%+v, %v", s, err)
	}
	if r := s.Replaced([]*RoleRival{nil, {Epoch: 4, Addr: "a"}, {Epoch: 5, Addr: "b"}, {Epoch: 7, Addr: "c"}, {Epoch: 6, Addr: "d"}}); r == nil || r.Addr != "c" {
		t.Errorf("replaced by %+v", r)
	}
	if r := s.Replaced([]*RoleRival{nil, {Epoch: 4, Addr: "a"}}); r != nil {
		t.Errorf("replaced by %+v, whose epoch is its own", r)
	}
	if _, err := s.Learn("m", 3, 0, ""); err == nil {
		t.Error("a master of an older epoch is followed")
	}
	if _, err := s.Learn("m", 4, 5, "replaced"); err == nil {
		t.Error("a master that has been replaced is followed")
	}
	if news, err := s.Learn("m", 6, 0, ""); err != nil || !news || s.Epoch != 6 {
		t.Errorf("%+v, %v", s, err)
	}
	s.GiveUp(RoleRival{Epoch: 5, Addr: "x"})
	if s.Epoch != 6 || s.Fenced == nil {
		t.Errorf("%+v", s)
	}
}

// The power fails before any operation of a change: the role is the old one or the new one, and never none.
func TestRoleFileSurvivesPowerLoss(t *testing.T) {
	for at, died := 1, true; died; at++ {
		for chance := range uint64(20) {
			m := vfs.NewMem()
			var f RoleFile
			if err := f.Load(m, "/store/mqx/role.json"); err != nil {
				t.Fatal(err)
			}
			if err := f.Change(func(s *RoleState) error { s.Epoch = 1; return nil }); err != nil {
				t.Fatal(err)
			}
			left, after := at, (*vfs.Mem)(nil)
			m.Inject(func(vfs.Op) error {
				if left--; left == 0 {
					after = m.PowerLoss(chance)
				}
				return nil
			})
			if err := f.Change(func(s *RoleState) error { return s.Promote(2) }); err != nil {
				t.Fatal(err)
			}
			m.Inject(nil)
			least := int64(1)
			if died = after != nil; !died {
				after, least = m.PowerLoss(chance), 2
			}
			var again RoleFile
			if err := again.Load(after, "/store/mqx/role.json"); err != nil {
				t.Fatal(err)
			}
			if got := again.Epoch(); got < least || got > 2 {
				t.Errorf("epoch %d after the loss before operation %d", got, at)
			}
		}
	}
}
