package index

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"mqx/internal/clock"
	"mqx/internal/testkit"
	"mqx/internal/vfs"
	"mqx/message"
)

func open(tb testing.TB, fsys vfs.FS, dir string, now time.Time) *Index {
	tb.Helper()
	x, found, err := Open(Config{FS: fsys, Dir: dir, Slots: 1000, Entries: 4000, Location: time.UTC, Clock: clock.NewManual(now)})
	if err != nil || len(found) > 0 {
		tb.Fatalf("open: %v, findings %v", err, found)
	}
	tb.Cleanup(func() {
		if err := x.Close(); err != nil {
			tb.Error(err)
		}
	})
	return x
}

func query(tb testing.TB, x *Index, hash int32) []int64 {
	tb.Helper()
	var got []int64
	err := x.Query(hash, 0, 1<<62, func(phys int64) bool {
		got = append(got, phys)
		return true
	})
	if err != nil {
		tb.Fatal(err)
	}
	return got
}

// Every index that Apache left behind: heads, and the answers to queries.
func TestGoldenQueries(t *testing.T) {
	for _, variant := range testkit.GoldenStores() {
		m := testkit.GoldenManifest(t, variant)
		if m.StoreView == nil || m.StoreView.AbortFilePresentBeforeLoad {
			continue
		}
		t.Run(variant, func(t *testing.T) {
			x := open(t, vfs.OS, filepath.Join(testkit.GoldenStore(t, variant), "index"), time.Now())
			names, heads := x.Headers()
			want := m.StoreView.Index
			for i, f := range want.Files {
				w := Header{f.BeginTimestamp, f.EndTimestamp, f.BeginPhyOffset, f.EndPhyOffset, f.HashSlotCount, f.IndexCount}
				if i >= len(names) || names[i] != f.File || heads[i] != w {
					t.Fatalf("file %d: %v %v, want %v %v", i, names, heads, f.File, w)
				}
			}
			for _, q := range want.Queries {
				if diff := gocmp.Diff(q.PhyOffsets, query(t, x, Hash([]byte(q.Topic), []byte(q.Key)))); diff != "" {
					t.Errorf("%s %q:\n%s", q.Topic, q.Key, diff)
				}
				if at, phys := x.LastUpdate(); at != q.IndexLastUpdateTimestamp || phys != q.IndexLastUpdatePhyOffset {
					t.Errorf("last update %d %d, want %d %d", at, phys, q.IndexLastUpdateTimestamp, q.IndexLastUpdatePhyOffset)
				}
			}
		})
	}
}

// putRecord adds the keys of a record as the store's dispatch does.
func putRecord(t *testing.T, x *Index, r testkit.LogRecord) {
	t.Helper()
	if message.Transaction(r.SysFlag) == message.TransactionRollback {
		return
	}
	h := NewHasher([]byte(r.Topic))
	put := func(hash int32) {
		if err := x.Put(hash, r.PhysicalOffset, r.StoreTimestamp); err != nil {
			t.Fatal(err)
		}
	}
	if r.UniqKey != "" {
		put(h.Key([]byte(r.UniqKey)))
	}
	if r.Keys != nil {
		for _, word := range strings.Split(*r.Keys, " ") {
			if word != "" {
				put(h.Key([]byte(word)))
			}
		}
	}
	if r.Tags != nil {
		put(h.Tags([]byte(*r.Tags)))
	}
}

// An index built from the records of a log is the file that Apache wrote, byte for byte.
func TestGoldenFilesWrittenAgain(t *testing.T) {
	for _, variant := range []string{"basic", "batch", "batchcq", "compress", "cqext", "lmq", "ipv6", "v2", "trans", "delay_timer", "retry_dlq", "pop"} {
		t.Run(variant, func(t *testing.T) {
			m := testkit.GoldenManifest(t, variant)
			want := m.StoreView.Index.Files
			if len(want) != 1 {
				t.Fatalf("%d index files", len(want))
			}
			now, err := time.Parse("20060102150405.000", want[0].File[:14]+"."+want[0].File[14:])
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(t.TempDir(), "index")
			x := open(t, vfs.OS, dir, now)
			records := slices.Clone(m.StoreView.CommitLogRecords)
			slices.SortFunc(records, func(a, b testkit.LogRecord) int { return cmp.Compare(a.Offset(), b.Offset()) })
			for _, r := range records {
				if !r.IsBlank() {
					putRecord(t, x, r)
				}
			}
			if err := x.Sync(); err != nil {
				t.Fatal(err)
			}
			a, err := os.ReadFile(filepath.Join(testkit.GoldenStore(t, variant), "index", want[0].File))
			if err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(filepath.Join(dir, want[0].File))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(a, b) {
				at := 0
				for at < min(len(a), len(b)) && a[at] == b[at] {
					at++
				}
				t.Errorf("differs at byte %d (of %d and %d)", at, len(a), len(b))
			}
		})
	}
}
