package timer

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"mqx/internal/testkit"
	"mqx/internal/vfs"
)

var goldenTimers = []string{"delay_timer", "delay_timer_running", "pop", "pop_running", "pop_buffermerge"}

func goldenConfig(root string) Config {
	return Config{FS: vfs.OS, Root: root, FileBytes: 1 << 20, Rules: NewRules(1000, 172800), Logger: slog.New(slog.DiscardHandler)}
}

// What Apache's own reader says of slots, units and checkpoint is what is decoded here, and encodes to the same bytes.
func TestGoldenDecode(t *testing.T) {
	for _, variant := range goldenTimers {
		t.Run(variant, func(t *testing.T) {
			root := testkit.GoldenStore(t, variant)
			want := testkit.GoldenManifest(t, variant).StoreView.Timer
			v, err := OpenView(vfs.OS, root)
			if err != nil {
				t.Fatal(err)
			}
			c := v.Checkpoint
			if c.ReadTime != want.LastReadTimeMs || c.LogFlushed != want.LastTimerLogFlushPos ||
				c.QueueOffset != want.LastTimerQueueOffset || c.MasterQueueOffset != want.MasterTimerQueueOffset {
				t.Errorf("checkpoint %+v, wanted %+v", c, want)
			}
			raw, err := os.ReadFile(checkpointPath(root))
			if err != nil || !bytes.Equal(c.Append(nil), raw[:CheckpointSize]) {
				t.Errorf("the checkpoint encodes to other bytes (%v)", err)
			}
			if want.TimerWheelFileSize != WheelBytes || want.TimerLogUnitSize != UnitSize || want.SlotSize != SlotSize || 2*want.SlotsTotal != Slots {
				t.Errorf("sizes differ: %+v", want)
			}
			if v.PrecisionMs != 1000 && len(want.Slots) > 0 {
				t.Errorf("precision %d", v.PrecisionMs)
			}
			wheel, err := os.ReadFile(wheelPath(root))
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			err = v.Slots(v.Wheels[0], func(i int, s Slot) bool {
				w := want.Slots[n]
				if i != w.SlotIndex || s.Tick*1000 != w.TimeMs || s.First != w.FirstPos || s.Last != w.LastPos || int(s.Num) != w.Num || int(s.Magic) != w.Magic {
					t.Errorf("slot %d: %+v, wanted %+v", i, s, w)
				}
				var b [SlotSize]byte
				s.encode(b[:])
				if !bytes.Equal(b[:], wheel[i*SlotSize:(i+1)*SlotSize]) {
					t.Errorf("slot %d encodes to other bytes", i)
				}
				checkChain(t, v, s, w)
				n++
				return true
			})
			if err != nil || n != len(want.Slots) {
				t.Errorf("%d slots, wanted %d: %v", n, len(want.Slots), err)
			}
		})
	}
}

func checkChain(t *testing.T, v *View, s Slot, w testkit.TimerSlot) {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(logDir(v.root), "00000000000000000000"))
	if err != nil {
		t.Fatal(err)
	}
	k := 0
	err = v.Chain(s, func(pos int64, u Unit) bool {
		g := w.Units[k]
		if pos != g.TimerLogPos || u.Prev != g.PrevPos || int(u.Magic) != g.Magic || u.WriteTime != g.EnqueueTime ||
			int64(u.Delay) != g.DelayedTime || u.Time() != g.DeliverTime || u.Phys != g.OffsetPy || u.Size != g.SizePy || u.TopicHash != g.HashCodeOfRealTopic {
			t.Errorf("unit at %d: %+v, wanted %+v", pos, u, g)
		}
		if !bytes.Equal(u.Append(nil), log[pos:pos+UnitSize]) {
			t.Errorf("unit at %d encodes to other bytes", pos)
		}
		k++
		return true
	})
	if err != nil || k != len(w.Units) {
		t.Errorf("slot %d: %d units, wanted %d: %v", w.SlotIndex, k, len(w.Units), err)
	}
}

// A timer opened on what Apache left has exactly the slots that wait, and writes them back as they were.
func TestGoldenOpen(t *testing.T) {
	for _, variant := range goldenTimers {
		t.Run(variant, func(t *testing.T) {
			root := testkit.GoldenStore(t, variant)
			want := testkit.GoldenManifest(t, variant).StoreView.Timer
			wheel, err := os.ReadFile(wheelPath(root))
			if err != nil {
				t.Fatal(err)
			}
			tm, err := Open(goldenConfig(root), Origin{NowMs: want.LastReadTimeMs + 500, LogEnd: 1 << 40, QueueMax: 1 << 40})
			if err != nil {
				t.Fatal(err)
			}
			if f := tm.Findings(); len(f) > 0 {
				t.Errorf("findings: %v", f)
			}
			waiting := 0
			for _, w := range want.Slots {
				if w.TimeMs < want.LastReadTimeMs {
					continue
				}
				waiting++
				s, ok := tm.wheel.Slot(w.TimeMs / 1000)
				if !ok || s.Last != w.LastPos || int(s.Num) != w.Num {
					t.Errorf("slot of %d: %+v %v, wanted %+v", w.TimeMs, s, ok, w)
				}
				d, err := tm.OpenSlot(w.TimeMs)
				if err != nil || d.Count != len(w.Units) || d.Lost != 0 {
					t.Errorf("slot of %d: %+v %v", w.TimeMs, d, err)
				}
			}
			if n := tm.wheel.NumIn(tm.read/1000, tm.read/1000+Slots); n != tm.Num() {
				t.Errorf("%d messages counted, %d kept", n, tm.Num())
			}
			if err := tm.Flush(want.LastReadTimeMs, true, func(int64) error { return nil }); err != nil {
				t.Fatal(err)
			}
			if err := tm.Close(); err != nil {
				t.Fatal(err)
			}
			after, err := os.ReadFile(wheelPath(root))
			if err != nil || !bytes.Equal(wheel, after) {
				t.Errorf("the wheel has changed (%v)", err)
			}
		})
	}
}

func TestGoldenMetrics(t *testing.T) {
	for _, variant := range goldenTimers {
		b := testkit.GoldenStore(t, variant)
		raw, err := os.ReadFile(metricsPath(b))
		if err != nil {
			t.Fatal(err)
		}
		m, err := ParseMetrics(raw)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := m.Text(); err != nil || !bytes.Equal(text, raw) {
			t.Errorf("%s: %s, wanted %s (%v)", variant, text, raw, err)
		}
	}
}
