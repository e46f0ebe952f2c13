package store

import (
	"fmt"
	"path/filepath"
	"testing"

	"mqx/internal/vfs"
)

func largeFiles(m *vfs.Mem) Config {
	cfg := memConfig(m)
	cfg.CommitLogFileBytes = 1 << 20
	return cfg
}

// N017: after a kill the log is read from the record of the last checkpoint on, however long the file before it is; from
// the start of that file when another program has written a checkpoint since, or when the note is gone or damaged.
func TestDirtyStartBeginsAtTheCheckpoint(t *testing.T) {
	const little = 4 << 10
	note := filepath.Join(testRoot, "mqx", "durable")
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, m *vfs.Mem) *vfs.Mem
		little bool
	}{
		{name: "as the kill left it", change: func(_ *testing.T, m *vfs.Mem) *vfs.Mem { return m }, little: true},
		{name: "killed again at once", change: func(t *testing.T, m *vfs.Mem) *vfs.Mem {
			t.Helper()
			mustOpen(t, largeFiles(m))
			return m.Kill()
		}, little: true},
		{name: "no note", change: func(t *testing.T, m *vfs.Mem) *vfs.Mem {
			t.Helper()
			if err := m.Remove(note); err != nil {
				t.Fatal(err)
			}
			return m
		}},
		{name: "note damaged", change: func(_ *testing.T, m *vfs.Mem) *vfs.Mem {
			m.Corrupt(note, 20, []byte("9"))
			return m
		}},
		{name: "checkpoint of another program", change: func(_ *testing.T, m *vfs.Mem) *vfs.Mem {
			m.Corrupt(filepath.Join(testRoot, "checkpoint"), 7, []byte{1})
			return m
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := vfs.NewMem()
			s := mustOpen(t, largeFiles(m))
			fill(t, s, 400)
			durable := s.ckpt.last.LogicsPhysOffset
			for i := 400; i < 410; i++ {
				for id := range int32(3) {
					mustPut(t, s, newRecord("T", id, fmt.Sprintf("%d/%d ", id, i), ""))
				}
			}
			m = tt.change(t, m.Kill())
			read := int64(0)
			m.Inject(func(op vfs.Op) error {
				if op.Kind == vfs.OpRead && op.Off < durable && filepath.Base(filepath.Dir(op.Path)) == "commitlog" {
					read += op.Len
				}
				return nil
			})
			s = mustOpen(t, largeFiles(m))
			m.Inject(nil)
			if (read < little) != tt.little {
				t.Errorf("%d bytes of the log before the checkpoint read, want little: %v", read, tt.little)
			}
			expectAll(t, s, 410)
			mustClose(t, s)
		})
	}
}
