package inspect_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"mqx/internal/testkit"
	"mqx/internal/vfs"
	"mqx/store"
	"mqx/store/inspect"
)

// Who holds the lock is not what a note of another process says.
func TestLockHolder(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("nothing can be asked")
	}
	for _, abort := range []string{"", "0", "1", "999999999", "x"} {
		root := testkit.GoldenStore(t, "basic")
		try(t, os.WriteFile(filepath.Join(root, "abort"), []byte(abort), 0o600))
		lock, err := store.LockDir(vfs.OS, root)
		try(t, err)
		d, err := inspect.Open(root, inspect.Options{})
		try(t, err)
		if u := d.InUse(); !u.Locked || u.PID != os.Getpid() || u.Who() != "process "+strconv.Itoa(os.Getpid()) {
			t.Errorf("abort %q: %+v, %s", abort, u, u.Who())
		}
		r, err := inspect.Verify(t.Context(), d, inspect.VerifyOptions{})
		try(t, err)
		for _, f := range r.Findings {
			if f.Kind == inspect.FindInUse && !strings.Contains(f.What, strconv.Itoa(os.Getpid())) {
				t.Errorf("abort %q: %s", abort, f.What)
			}
		}
		try(t, d.Close())
		_, err = store.LockDir(vfs.OS, root)
		if locked, ok := errors.AsType[*store.LockedError](err); !ok || locked.PID != os.Getpid() {
			t.Errorf("abort %q: %v", abort, err)
		}
		try(t, lock.Close())
		if d, err = inspect.Open(root, inspect.Options{}); err != nil || d.InUse().Locked {
			t.Errorf("abort %q: after the lock: %+v, %v", abort, d.InUse(), err)
		}
		try(t, d.Close())
	}
	if who := (inspect.InUse{Locked: true}).Who(); who != "a process" {
		t.Errorf("nobody known: %s", who)
	}
}
