package inspect_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"mqx/internal/testkit"
	"mqx/internal/vfs"
	"mqx/store/inspect"
)

// fullFS is a disk with little space left.
type fullFS struct {
	vfs.FS
	free int64
}

func (f fullFS) Usage(string) (vfs.Usage, error) { return vfs.Usage{Total: 1 << 30, Free: f.free}, nil }

// A repair that does not fit is refused before anything is done, and so is a copy.
func TestRepairChecksSpace(t *testing.T) {
	root := testkit.GoldenStore(t, "clean_cq_missing")
	full := inspect.Options{FS: fullFS{vfs.OS, 1<<30/100 + 1000}}
	_, err := inspect.Repair(t.Context(), root, inspect.RepairOptions{Open: full})
	if x, ok := errors.AsType[*inspect.NoSpaceError](err); !ok || x.Free != 1000 && x.Free != 999 || x.Need <= 1000 {
		t.Errorf("repair: %v", err)
	}
	for _, name := range []string{"consumequeue", "mqx"} {
		if _, err := os.Stat(filepath.Join(root, name)); !os.IsNotExist(err) {
			t.Errorf("%s is there: %v", name, err)
		}
	}
	target := filepath.Join(t.TempDir(), "copy")
	_, err = inspect.Copy(t.Context(), root, target, inspect.CopyOptions{FS: full.FS})
	if _, ok := errors.AsType[*inspect.NoSpaceError](err); !ok {
		t.Errorf("copy: %v", err)
	}
	if entries, _ := os.ReadDir(target); len(entries) > 0 {
		t.Errorf("something was copied: %v", entries)
	}
	repair(t, root)
	if r := verify(t, root); r.Damaged() {
		t.Errorf("with space: %s", findingsText(r))
	}
}
