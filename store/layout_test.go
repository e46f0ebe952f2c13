package store

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mqx/internal/testkit"
	"mqx/internal/vfs"
)

func writeFile(tb testing.TB, fsys vfs.FS, path, text string) {
	tb.Helper()
	if err := fsys.MkdirAll(filepath.Dir(path)); err != nil {
		tb.Fatal(err)
	}
	if err := vfs.WriteFileDurable(fsys, path, []byte(text)); err != nil {
		tb.Fatal(err)
	}
}

func readFile(tb testing.TB, fsys vfs.FS, path string) string {
	tb.Helper()
	b, err := vfs.ReadFile(fsys, path)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

func exists(fsys vfs.FS, path string) bool {
	_, err := fsys.Stat(path)
	return err == nil
}

func TestFilesOfAStoreInUse(t *testing.T) {
	s, m := openMem(t)
	if got := readFile(t, m, testRoot+"/abort"); got != strconv.Itoa(os.Getpid()) {
		t.Errorf("abort holds %q", got)
	}
	if got := readFile(t, m, testRoot+"/abort.bak"); got != "" {
		t.Errorf("abort.bak holds %q", got)
	}
	if got := readFile(t, m, testRoot+"/lock"); got != "lock" {
		t.Errorf("lock holds %q", got)
	}
	if got := readFile(t, m, testRoot+"/checkpoint"); len(got) != 4096 {
		t.Errorf("checkpoint of %d bytes", len(got))
	}
	mustPut(t, s, newRecord("T", 0, "b", ""))
	mustClose(t, s)
	if exists(m, testRoot+"/abort") || !exists(m, testRoot+"/abort.bak") {
		t.Error("after a clean stop abort has to be gone and abort.bak to stay")
	}
	files, err := m.ReadDir(testRoot + "/commitlog")
	if err != nil || len(files) != 1 {
		t.Errorf("commit log files after a clean stop: %v, %v; the next one has to be gone", files, err)
	}
}

func TestStoreInUseIsRefusedWithThePid(t *testing.T) {
	s, m := openMem(t)
	_, err := Open(memConfig(m))
	var locked *LockedError
	if !errors.As(err, &locked) || locked.PID != os.Getpid() || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Fatalf("open: %v", err)
	}
	mustPut(t, s, newRecord("T", 0, "b", "")) // the one who has it is not disturbed
	mustClose(t, s)
	s = mustOpen(t, memConfig(m))
	if len(s.Findings()) > 0 {
		t.Error(s.Findings())
	}
}

func TestForeignStoresAreRefusedByName(t *testing.T) {
	for path, want := range map[string]string{
		"consumequeue_rocksdb/CURRENT":         "storeType=defaultRocksDB",
		"compaction/compactionLog/T/0/0":       "compaction topics",
		"config/topics/CURRENT":                "configManagerVersion",
		"dledger-n0/data/00000000000000000000": "DLedger",
	} {
		t.Run(path, func(t *testing.T) {
			m := vfs.NewMem()
			writeFile(t, m, filepath.Join(testRoot, path), "x")
			_, err := Open(memConfig(m))
			var layout *LayoutError
			if !errors.As(err, &layout) || !strings.Contains(err.Error(), want) {
				t.Fatalf("open: %v", err)
			}
			if exists(m, testRoot+"/abort") || exists(m, testRoot+"/checkpoint") {
				t.Error("a refused store was changed")
			}
		})
	}
	cfg := memConfig(vfs.NewMem())
	cfg.CommitLogDir = "/a,/b"
	if _, err := Open(cfg); err == nil || !strings.Contains(err.Error(), "several commit log directories") {
		t.Errorf("several directories: %v", err)
	}
	// What every Apache broker of this version leaves behind is none of these.
	mustOpen(t, goldenConfig(t, "basic", testkit.GoldenStore(t, "basic")))
}

// N009: a commit log that was moved away from its queues is not taken for an empty store.
func TestMovedCommitLogIsRefused(t *testing.T) {
	s, m := openMem(t)
	for range 100 {
		mustPut(t, s, newRecord("T", 0, strings.Repeat("x", 400), ""))
	}
	catchUp(t, s)
	mustClose(t, s)
	cfg := memConfig(m)
	cfg.CommitLogDir = "/elsewhere/commitlog"
	_, err := Open(cfg)
	var layout *LayoutError
	if !errors.As(err, &layout) || !strings.Contains(err.Error(), cfg.CommitLogDir) || !strings.Contains(err.Error(), "consumequeue") {
		t.Fatalf("open: %v", err)
	}
	if exists(m, testRoot+"/abort") {
		t.Error("a refused store was changed")
	}
	s = mustOpen(t, memConfig(m))
	if got := readAll(t, s, "T", 0, nil); len(got) != 100 {
		t.Errorf("%d messages", len(got))
	}
}

// N019: a store that cannot be opened says which file it is about.
func TestUnreadableLogIsNamed(t *testing.T) {
	s, m := openMem(t)
	mustPut(t, s, newRecord("T", 0, "b", ""))
	catchUp(t, s)
	mustClose(t, s)
	m.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpRead && strings.Contains(op.Path, "commitlog/") {
			return os.ErrPermission
		}
		return nil
	})
	_, err := Open(memConfig(m))
	if err == nil || !strings.Contains(err.Error(), "commitlog/00000000000000000000") {
		t.Errorf("open: %v", err)
	}
}

func TestConfigIsValidated(t *testing.T) {
	cfg := DefaultConfig()
	cfg.RootDir = "/x"
	if err := cfg.Validate(); err != nil {
		t.Errorf("defaults: %v", err)
	}
	cfg.FlushDiskType, cfg.DeleteWhen, cfg.MessageDelayLevel, cfg.MaxIndexNum = "SOMETIMES", "25", "1s 5x", 0
	err := cfg.Validate()
	for _, key := range []string{"flushDiskType", "deleteWhen", "messageDelayLevel", "maxIndexNum"} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%v does not name %s", err, key)
		}
	}
	cfg = DefaultConfig()
	cfg.DiskMaxUsedRatio, cfg.DiskCleanForciblyRatio, cfg.DiskWarningRatio = 97, 99, 10
	if a, b, c := cfg.watermarks(); a != 95 || b != 85 || c != 35 {
		t.Errorf("watermarks %d %d %d", a, b, c)
	}
}
