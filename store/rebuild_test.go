package store

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mqx/internal/clock"
	"mqx/internal/testkit"
)

// From nothing but the log, mqx builds the queues and the index that Apache built, byte for byte.
func TestGoldenLogDispatchedAgain(t *testing.T) {
	for _, variant := range []string{
		"basic", "batch", "batchcq", "compress", "delay_timer", "ipv6", "lmq", "master_mixed_j1", "pop", "pop_buffermerge", "pop_kv",
		"propcrc", "retry_dlq", "retry_pending", "trans", "v2", "clean_reference",
	} {
		t.Run(variant, func(t *testing.T) {
			want, root := testkit.GoldenStore(t, variant), testkit.GoldenStore(t, variant)
			for _, name := range []string{"consumequeue", "batchconsumequeue", "index", "checkpoint"} {
				if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
					t.Fatal(err)
				}
			}
			cfg := goldenConfig(t, variant, root)
			names, err := os.ReadDir(filepath.Join(want, "index"))
			if err != nil || len(names) != 1 {
				t.Fatalf("index files: %v, %v", names, err)
			}
			created, err := time.Parse("20060102150405.000", names[0].Name()[:14]+"."+names[0].Name()[14:])
			if err != nil {
				t.Fatal(err)
			}
			cfg.Clock = clock.NewManual(created)
			s := mustOpen(t, cfg)
			catchUp(t, s)
			mustClose(t, s)
			for _, name := range []string{"consumequeue", "batchconsumequeue", "index", "commitlog"} {
				compareTrees(t, filepath.Join(want, name), filepath.Join(root, name))
			}
		})
	}
}

// compareTrees compares the files below two directories, of which either may be missing if the other is. A commit log
// file that mqx preallocates is gone after Close.
func compareTrees(t *testing.T, want, got string) {
	t.Helper()
	names := map[string]bool{}
	for _, dir := range []string{want, got} {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				rel, _ := filepath.Rel(dir, path)
				names[rel] = true
			}
			return nil
		})
	}
	for name := range names {
		a, errA := os.ReadFile(filepath.Join(want, name))
		b, errB := os.ReadFile(filepath.Join(got, name))
		if errA != nil || errB != nil {
			t.Errorf("%s: %v, %v", name, errA, errB)
			continue
		}
		if !bytes.Equal(a, b) {
			at := 0
			for at < min(len(a), len(b)) && a[at] == b[at] {
				at++
			}
			t.Errorf("%s: differs at byte %d (%d and %d bytes)", name, at, len(a), len(b))
		}
	}
}
