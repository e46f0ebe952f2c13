package inspect_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mqx/internal/testkit"
	"mqx/internal/vfs"
	"mqx/store/inspect"
	"mqx/store/timer"
)

// waitingBytes are the bytes of wheel and timer log that what waits depends on, some of them: of every slot tick, first and
// last unit, of every unit all but the reserved ones.
func waitingBytes(t *testing.T, root string) map[string][]int64 {
	t.Helper()
	v, err := timer.OpenView(vfs.OS, root)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]int64{}
	for _, w := range v.Wheels {
		err := v.Slots(w, func(index int, s timer.Slot) bool {
			if s.Num > 0 && s.Tick*v.PrecisionMs >= v.Checkpoint.ReadTime {
				for _, at := range []int64{4, 7, 15, 23} {
					out[w.Name] = append(out[w.Name], int64(index)*timer.SlotSize+at)
				}
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err = v.Units(0, func(pos int64, u timer.Unit) bool {
		if u.Time() >= v.Checkpoint.ReadTime {
			for _, at := range []int64{3, 11, 14, 22, 26, 33, 38, 43} {
				out["timerlog/"+inspect.FileName(pos-pos%v.FileBytes)] = append(out["timerlog/"+inspect.FileName(pos-pos%v.FileBytes)], pos%v.FileBytes+at)
			}
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func isTimerFinding(f *inspect.Finding) bool {
	return slices.Contains([]inspect.FindingKind{inspect.FindTimerWheel, inspect.FindTimerLog, inspect.FindTimerCheckpoint}, f.Kind)
}

// mendTimer asks for a finding of the timer, repairs, and asks for none.
func mendTimer(t *testing.T, root, what string) {
	t.Helper()
	found := false
	for _, f := range verify(t, root).Findings {
		found = found || isTimerFinding(f) && !f.Note
	}
	if !found {
		t.Errorf("%s: missed", what)
		return
	}
	repair(t, root)
	for _, f := range verify(t, root).Findings {
		if !f.Note {
			t.Errorf("%s: after the repair: %s %s@%d %s", what, f.Kind, f.File, f.Offset, f.What)
		}
	}
}

// A change in what the timer needs for messages that wait is found; after the repair what waited is in the timer log, or in
// the timer topic behind the offset where the broker goes on.
func TestTimerDamage(t *testing.T) {
	places := waitingBytes(t, testkit.GoldenStore(t, "delay_timer"))
	if len(places["timerwheel"]) == 0 || len(places["timerlog/00000000000000000000"]) == 0 {
		t.Fatalf("nothing waits: %v", places)
	}
	for name, list := range places {
		for i, at := range list {
			if i%5 != 2 && os.Getenv("MQX_DAMAGE_SEEDS") == "" {
				continue // the long form tries all
			}
			t.Run(fmt.Sprintf("%s-%d", filepath.Base(name), at), func(t *testing.T) {
				root := testkit.GoldenStore(t, "delay_timer")
				flip(t, filepath.Join(root, name), at)
				mendTimer(t, root, fmt.Sprintf("%s byte %d", name, at))
				stillWaits(t, root)
			})
		}
	}
	for what, do := range map[string]func(root string) error{
		"wheel cut":        func(root string) error { return os.Truncate(filepath.Join(root, "timerwheel"), 1<<20) },
		"wheel missing":    func(root string) error { return os.Remove(filepath.Join(root, "timerwheel")) },
		"timer log cut":    func(root string) error { return os.Truncate(filepath.Join(root, "timerlog/00000000000000000000"), 100) },
		"timer log gone":   func(root string) error { return os.Remove(filepath.Join(root, "timerlog/00000000000000000000")) },
		"checkpoint short": func(root string) error { return os.Truncate(filepath.Join(root, "config/timercheck"), 10) },
	} {
		t.Run(what, func(t *testing.T) {
			root := testkit.GoldenStore(t, "delay_timer")
			if err := do(root); err != nil {
				t.Fatal(err)
			}
			mendTimer(t, root, what)
			if what != "checkpoint short" {
				stillWaits(t, root)
			}
		})
	}
}

func flip(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x15
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}

// stillWaits opens the timer as a broker does and compares what waits with what waited.
func stillWaits(t *testing.T, root string) {
	t.Helper()
	want, got := waits(t, testkit.GoldenStore(t, "delay_timer")), waits(t, root)
	for phys := range want {
		if !got[phys] {
			t.Errorf("the message at %d waits no more", phys)
		}
	}
}

// waits are the messages, by position, that a broker that starts on a directory has in its wheel or will take up.
func waits(t *testing.T, root string) map[int64]bool {
	t.Helper()
	v, err := timer.OpenView(vfs.OS, root)
	if err != nil {
		t.Fatal(err)
	}
	out := map[int64]bool{}
	if _, err := v.Units(0, func(_ int64, u timer.Unit) bool {
		if u.Time() >= v.Checkpoint.ReadTime {
			out[u.Phys] = true
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	d, err := inspect.Open(root, inspect.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	q, err := d.Queue(inspect.QueueKey{Topic: "rmq_sys_wheel_timer"})
	if err != nil {
		t.Fatal(err)
	}
	err = q.Units(t.Context(), v.Checkpoint.QueueOffset, 1<<40, func(u inspect.Unit) error {
		if u.Written() {
			out[u.Phys] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
