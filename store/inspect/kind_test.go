package inspect_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"mqx/internal/testkit"
	"mqx/store/inspect"
)

func put(t *testing.T, root, name string, size int) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, make([]byte, size), 0o644); err != nil {
		t.Fatal(err)
	}
}

// What mqx neither serves nor repairs is recognised, counted, said by verify, and refused by repair and rebuild by name, and
// then nothing is changed.
func TestForeignKinds(t *testing.T) {
	for _, x := range []struct {
		kind  inspect.KindName
		path  string
		files int
		bytes int64
		make  func(t *testing.T, root string)
	}{
		{inspect.KindCompaction, "compaction/compactionLog", 2, 300, func(t *testing.T, root string) {
			put(t, root, "compaction/compactionLog/T/0/00000000000000000000", 100)
			put(t, root, "compaction/compactionLog/T/1/00000000000000000000", 200)
		}},
		{inspect.KindDLedger, "dledger-n0", 2, 30, func(t *testing.T, root string) {
			put(t, root, "dledger-n0/data/00000000000000000000", 10)
			put(t, root, "dledger-n0/index/00000000000000000000", 20)
		}},
		{inspect.KindRocksDBQueues, "consumequeue_rocksdb", 2, 12, func(t *testing.T, root string) {
			put(t, root, "consumequeue_rocksdb/CURRENT", 5)
			put(t, root, "consumequeue_rocksdb/000012.sst", 7)
		}},
		{inspect.KindRocksDBConfig, "config/topics", 1, 5, func(t *testing.T, root string) { put(t, root, "config/topics/CURRENT", 5) }},
		{inspect.KindLogElsewhere, "commitlog", 0, 0, func(t *testing.T, root string) {
			if err := os.Rename(filepath.Join(root, "commitlog"), root+"-log"); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(string(x.kind), func(t *testing.T) {
			root := testkit.GoldenStore(t, "basic")
			x.make(t, root)
			d, err := inspect.Open(root, inspect.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = d.Close() }()
			found := false
			for _, k := range d.Foreign() {
				if k.Name == x.kind {
					found = true
					if k.Path != x.path || k.Files != x.files || k.Bytes != x.bytes {
						t.Errorf("%+v, want %s with %d files of %d bytes", k, x.path, x.files, x.bytes)
					}
				}
			}
			if !found {
				t.Errorf("foreign: %+v", d.Foreign())
			}
			said := false
			for _, f := range verify(t, root).Findings {
				said = said || f.Kind == inspect.FindKind && f.File == x.path
			}
			if !said {
				t.Error("verify does not say it")
			}
			before := tree(t, root)
			_, err = inspect.Repair(t.Context(), root, inspect.RepairOptions{})
			refused(t, err, x.kind)
			for _, part := range []inspect.RebuildPart{inspect.RebuildQueue, inspect.RebuildIndex, inspect.RebuildTopics, inspect.RebuildOffsets} {
				refused(t, inspect.Rebuild(t.Context(), root, part, nil, inspect.RepairOptions{}), x.kind)
			}
			if after := tree(t, root); after != before {
				t.Errorf("changed:\n%s\n%s", before, after)
			}
		})
	}
}

func refused(t *testing.T, err error, kind inspect.KindName) {
	t.Helper()
	if u, ok := errors.AsType[*inspect.UnsupportedError](err); !ok || u.Kind.Name != kind {
		t.Errorf("%v, want a refusal because of %s", err, kind)
	}
}

// tree is the names of all files below a directory.
func tree(t *testing.T, root string) string {
	t.Helper()
	out := ""
	err := filepath.Walk(root, func(path string, _ os.FileInfo, err error) error {
		out += path + "\n"
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A log in several directories is read when they are named.
func TestMultiPath(t *testing.T) {
	root := testkit.GoldenStore(t, "roll")
	one, two := filepath.Join(root, "commitlog"), root+"-two"
	if err := os.MkdirAll(two, 0o755); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(one)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range entries {
		if i%2 == 1 {
			if err := os.Rename(filepath.Join(one, e.Name()), filepath.Join(two, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	d, err := inspect.Open(root, inspect.Options{CommitLogDirs: []string{one, two}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	r, err := inspect.Verify(t.Context(), d, inspect.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		if !f.Note {
			t.Errorf("%s %s %s", f.Kind, f.File, f.What)
		}
	}
	want := testkit.GoldenManifest(t, "roll").StoreView.CommitLogRecordCount
	if r.Records != int64(want) || !d.Has(inspect.KindMultiPath) {
		t.Errorf("%d records, want %d; foreign %+v", r.Records, want, d.Foreign())
	}
	if _, err := inspect.PlanRepair(r, inspect.PlanOptions{}); err == nil {
		t.Error("a plan for a log in several directories")
	} else {
		refused(t, err, inspect.KindMultiPath)
	}
}

// A directory as RocketMQ 4 leaves it, without timer, RocksDB and newer configuration files: read, sound, and repaired.
func TestOldStore(t *testing.T) {
	for _, variant := range []string{"basic", "clean_cq_missing", "crash_torn_tail"} {
		t.Run(variant, func(t *testing.T) {
			root := testkit.GoldenStore(t, variant)
			for _, name := range []string{"timerwheel", "timerlog", "rocksdbstore", "compaction", "abort.bak"} {
				if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
					t.Fatal(err)
				}
			}
			for _, pattern := range []string{"timer*", "transactionMetrics*", "consumerOrderInfo*", "topicQueueMapping*", "messageRequestMode*"} {
				names, err := filepath.Glob(filepath.Join(root, "config", pattern))
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range names {
					if err := os.Remove(name); err != nil {
						t.Fatal(err)
					}
				}
			}
			d, err := inspect.Open(root, inspect.Options{})
			if err != nil {
				t.Fatal(err)
			}
			i, err := d.Info(t.Context())
			if err != nil || i.Writer != "Apache RocketMQ 4, or a copy" || len(d.Foreign()) > 0 {
				t.Errorf("%+v, %v, %v", i, d.Foreign(), err)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			if r := verify(t, root); r.Damaged() != (variant != "basic") {
				t.Errorf("damaged: %v", r.Damaged())
			}
			if r := repair(t, root); r.Damaged() {
				t.Errorf("after the repair: %+v", r.Findings)
			}
		})
	}
}
