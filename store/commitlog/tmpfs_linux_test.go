package commitlog_test

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mqx/internal/testkit"
	"mqx/internal/vfs"
	"mqx/store/commitlog"
)

// The real kernel, once: a tmpfs of 8 MiB gets full, gets space again, and goes read-only.
func TestRealFullDisk(t *testing.T) { testkit.OnTmpfs(t, "8m", tmpfsScenario) }

func tmpfsScenario(t *testing.T, dir string) {
	t.Helper()
	cfg := commitlog.Config{FS: vfs.OS, Dir: filepath.Join(dir, "commitlog"), FileSize: 2 << 20}
	l, err := commitlog.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var c commitlog.Counter
	fill := func() (n int) {
		for {
			a := one(t, 50_000, &c)
			if l.AppendBatch([]*commitlog.Append{a}); a.Err != nil {
				if !errors.Is(a.Err, commitlog.ErrFull) || !errors.Is(a.Err, syscall.ENOSPC) || !strings.Contains(a.Err.Error(), dir) {
					t.Fatal(a.Err)
				}
				return n
			}
			n++
		}
	}
	if n := fill(); n < 120 || c.Next() != int64(n) || countRecords(t, l) != int64(n) {
		t.Fatalf("%d records fit into 8 MiB, next %d", n, c.Next())
	}
	if n := fill(); n != 0 {
		t.Fatalf("%d more fit", n)
	}
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	before := c.Next()
	if _, err := l.Expire(commitlog.ExpireRules{Force: true, MaxFiles: 1}); err != nil {
		t.Fatal(err)
	}
	if n := fill(); n < 35 || c.Next() != before+int64(n) {
		t.Fatalf("%d records fit after a file of 2 MiB went", n)
	}
	records := countRecords(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatalf("cannot mount read-only: %v", err)
	}
	if l, err = commitlog.Open(cfg); err == nil {
		var end commitlog.WalkEnd
		if end, err = l.Walk(l.Min(), commitlog.WalkOptions{}, touch); err == nil {
			err = l.SetEnd(end.Offset)
		}
	}
	if !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), dir) {
		t.Fatalf("recovery on a read-only volume: %v", err)
	}
	cfg.ReadOnly = true
	if l, err = commitlog.Open(cfg); err != nil || countRecords(t, l) != records {
		t.Fatalf("reading from a read-only volume: %v", err)
	}
}

// countRecords reads every byte of the log through the mapping.
func countRecords(t *testing.T, l *commitlog.Log) int64 {
	t.Helper()
	end, err := l.Walk(l.Min(), commitlog.WalkOptions{VerifyBody: true, Hot: true}, touch)
	if err != nil {
		t.Fatal(err)
	}
	return end.Records
}
