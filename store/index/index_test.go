package index

import (
	"errors"
	"math"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mqx/internal/clock"
	"mqx/internal/vfs"
	"mqx/message"
)

const dir = "/store/index"

func newMem(tb testing.TB) *vfs.Mem {
	tb.Helper()
	m := vfs.NewMem()
	if err := errors.Join(m.MkdirAll("/store"), m.SyncDir("/")); err != nil {
		tb.Fatal(err)
	}
	return m
}

func small(tb testing.TB, m vfs.FS, slots, entries int32) (*Index, []Finding) {
	tb.Helper()
	x, found, err := Open(Config{FS: m, Dir: dir, Slots: slots, Entries: entries, Location: time.UTC, Clock: clock.NewManual(time.UnixMilli(1_000))})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = x.Close() })
	return x, found
}

func put(tb testing.TB, x *Index, hash int32, phys, at int64) {
	tb.Helper()
	if err := x.Put(hash, phys, at); err != nil {
		tb.Fatal(err)
	}
}

func TestHashes(t *testing.T) {
	for _, c := range []struct {
		topic, key string
		tags       bool
	}{{"T", "k", false}, {"T", "", false}, {"TopicA", "ключ0", false}, {"主题", "k", false}, {"TopicA", "标签", true}, {"T", "a", true}} {
		text := c.topic + "#" + c.key
		got := Hash([]byte(c.topic), []byte(c.key))
		if c.tags {
			text = c.topic + "#T#" + c.key
			got = NewHasher([]byte(c.topic)).Tags([]byte(c.key))
		}
		want := message.JavaHash([]byte(text))
		if want < 0 {
			want = -want
		}
		if got != want {
			t.Errorf("hash of %q: %d, want %d", text, got, want)
		}
	}
	if absolute(math.MinInt32) != 0 {
		t.Error("the least hash has no absolute value and counts as 0")
	}
}

func TestFilesRollWhenFull(t *testing.T) {
	m := newMem(t)
	x, _ := small(t, m, 4, 5) // 4 entries a file
	for i := range int64(10) {
		put(t, x, int32(i%3), i*100, 5_000+i)
	}
	names, heads := x.Headers()
	if want := []string{"19700101000001000", "19700101000001001", "19700101000001002"}; !slices.Equal(names, want) {
		t.Errorf("names %v", names)
	}
	if heads[0].Count != 5 || heads[2].Count != 3 || x.DurableTime() != 5_007 {
		t.Errorf("heads %v, durable %d", heads, x.DurableTime())
	}
	if got := query(t, x, 0); !slices.Equal(got, []int64{900, 600, 300, 0}) {
		t.Errorf("query: %v", got)
	}
	if phys, again, ok := x.End(); phys != 900 || again || !ok {
		t.Errorf("end %d %v %v", phys, again, ok)
	}
	if err := x.Sync(); err != nil {
		t.Fatal(err)
	}
	y, found := small(t, m.PowerLoss(1), 4, 99) // the layout on disk is found, and kept for new files
	if len(found) > 0 {
		t.Fatal(found)
	}
	for i := int64(10); i < 13; i++ {
		put(t, y, int32(i%3), i*100, 5_000+i)
	}
	if got := query(t, y, 0); !slices.Equal(got, []int64{1200, 900, 600, 300, 0}) {
		t.Errorf("query after reopen: %v", got)
	}
	if names, _ := y.Headers(); len(names) != 4 {
		t.Errorf("names %v", names)
	}
	if n, err := y.Expire(801); err != nil || n != 2 {
		t.Errorf("expired %d, %v", n, err)
	}
	if n, err := y.DropBehind(1_200); err != nil || n != 1 {
		t.Errorf("dropped %d, %v", n, err)
	}
	if n, err := y.DropNewer(5_010); err != nil || n != 1 {
		t.Errorf("dropped %d, %v", n, err)
	}
	if got := query(t, y, 0); len(got) > 0 {
		t.Errorf("after dropping all: %v", got)
	}
}

// Of files that end in the same ms only the first is known to be durable up to it.
func TestDropNewerKeepsTheFirstOfEqualTimes(t *testing.T) {
	x, _ := small(t, newMem(t), 4, 5)
	for i := range int64(14) {
		put(t, x, 1, i, 5_000)
	}
	if got := x.FullTime(); got != 5_000 {
		t.Errorf("full up to %d", got)
	}
	if n, err := x.DropNewer(5_000); err != nil || n != 3 {
		t.Errorf("dropped %d, %v", n, err)
	}
	if phys, again, ok := x.End(); phys != 3 || !again || !ok {
		t.Errorf("end %d %v %v", phys, again, ok)
	}
	if n, err := x.DropNewer(4_999); err != nil || n != 1 {
		t.Errorf("dropped %d, %v", n, err)
	}
}

func TestQueryWindowIsToTheSecond(t *testing.T) {
	x, _ := small(t, newMem(t), 8, 100)
	for _, at := range []int64{10_000, 11_500, 13_000} {
		put(t, x, 7, at, at)
	}
	for _, c := range []struct {
		begin, end int64
		want       []int64
	}{{0, 20_000, []int64{13_000, 11_500, 10_000}}, {11_500, 12_000, []int64{11_500}}, {13_001, 20_000, nil}, {0, 9_999, nil}} {
		var got []int64
		if err := x.Query(7, c.begin, c.end, func(p int64) bool { got = append(got, p); return true }); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("[%d, %d]: %v, want %v", c.begin, c.end, got, c.want)
		}
	}
	var first []int64
	_ = x.Query(7, 0, 20_000, func(p int64) bool { first = append(first, p); return false })
	if len(first) != 1 {
		t.Errorf("query went on: %v", first)
	}
}

func TestDamagedFilesAreTakenOut(t *testing.T) {
	ff := make([]byte, headerSize)
	for i := range ff {
		ff[i] = 0xFF
	}
	for name, damage := range map[string]func(m *vfs.Mem, path string){
		"head of FF":     func(m *vfs.Mem, path string) { m.Corrupt(path, 0, ff) },
		"count too big":  func(m *vfs.Mem, path string) { m.Corrupt(path, 36, []byte{0, 1, 0, 0}) },
		"last slot gone": func(m *vfs.Mem, path string) { m.Corrupt(path, headerSize, make([]byte, 400)) },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMem(t)
			x, _ := small(t, m, 100, 400)
			for i := range int64(50) {
				put(t, x, int32(i), i*100, 5_000+i)
			}
			if err := x.Sync(); err != nil {
				t.Fatal(err)
			}
			names, _ := x.Headers()
			m = m.Kill()
			damage(m, filepath.Join(dir, names[0]))
			y, found := small(t, m, 100, 400)
			if len(found) != 1 {
				t.Fatalf("findings %v", found)
			}
			if _, _, ok := y.End(); ok {
				t.Error("the damaged file is still in use")
			}
			put(t, y, 1, 0, 5_000)
		})
	}
}

func TestDamagedChainEnds(t *testing.T) {
	m := newMem(t)
	x, _ := small(t, m, 2, 100)
	for i := range int64(9) {
		put(t, x, 0, i, 5_000)
	}
	if err := x.Sync(); err != nil {
		t.Fatal(err)
	}
	names, _ := x.Headers()
	l := layout{2, 100}
	m.Corrupt(filepath.Join(dir, names[0]), l.entryAt(4)+16, []byte{0, 0, 0, 7}) // points forward
	x.DropCache()
	if got := query(t, x, 0); !slices.Equal(got, []int64{8, 7, 6, 5, 4, 3}) {
		t.Errorf("query: %v", got)
	}
}

func TestFullDiskKeepsEntriesAndRetries(t *testing.T) {
	m := newMem(t)
	x, _ := small(t, m, 10, 50)
	put(t, x, 1, 100, 5_000)
	m.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite || op.Kind == vfs.OpSync {
			return syscall.ENOSPC
		}
		return nil
	})
	for i := int64(2); i < 50; i++ {
		put(t, x, 1, i*100, 5_000)
	}
	if err := x.WriteBack(); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("write back: %v", err)
	}
	if err := x.Put(1, 5_000, 5_000); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("put that has to roll: %v", err)
	}
	m.Inject(nil)
	put(t, x, 1, 5_000, 5_000)
	if err := x.Sync(); err != nil {
		t.Fatal(err)
	}
	y, _ := small(t, m.Kill(), 10, 50)
	if got := query(t, y, 1); len(got) != 50 {
		t.Errorf("%d entries, want 50", len(got))
	}
}

// An index under puts, write-backs, reopening and cuts answers like a list.
func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := vfs.NewMem()
		_ = errors.Join(m.MkdirAll("/store"), m.SyncDir("/"))
		cfg := Config{FS: m, Dir: dir, Slots: 5, Entries: 20, Location: time.UTC, Clock: clock.NewManual(time.UnixMilli(1_000))}
		x, _, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		type put struct {
			hash int32
			phys int64
		}
		var model []put
		next := int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				for range rapid.IntRange(1, 15).Draw(t, "n") {
					p := put{int32(rapid.IntRange(0, 6).Draw(t, "hash")), next}
					if err := x.Put(p.hash, p.phys, 1_000+next); err != nil {
						t.Fatal(err)
					}
					model = append(model, p)
					next += int64(rapid.IntRange(0, 1).Draw(t, "same record"))
				}
			},
			"writeBack": func(t *rapid.T) {
				if err := x.WriteBack(); err != nil {
					t.Fatal(err)
				}
				x.DropCache()
			},
			"reopen": func(t *rapid.T) {
				if err := x.Sync(); err != nil {
					t.Fatal(err)
				}
				m = m.PowerLoss(1)
				cfg.FS = m
				var found []Finding
				if x, found, err = Open(cfg); err != nil || len(found) > 0 {
					t.Fatal(err, found)
				}
			},
			"": func(t *rapid.T) {
				for hash := range int32(7) {
					var got, want []int64
					_ = x.Query(hash, 0, math.MaxInt64, func(p int64) bool { got = append(got, p); return true })
					for _, p := range slices.Backward(model) {
						if p.hash == hash {
							want = append(want, p.phys)
						}
					}
					if diff := gocmp.Diff(want, got); diff != "" {
						t.Fatalf("hash %d:\n%s", hash, diff)
					}
				}
			},
		})
	})
}

func FuzzOpen(f *testing.F) {
	head := Header{1_000, 2_000, 0, 500, 3, 5}
	f.Add(head.append(nil), []byte{0, 0, 0, 4, 0, 0, 0, 3})
	f.Fuzz(func(t *testing.T, head, slots []byte) {
		m := vfs.NewMem()
		_ = m.MkdirAll(dir)
		file, err := createFile(m, dir+"/20260101000000000", "20260101000000000", layout{10, 40})
		if err != nil || file.close() != nil {
			t.Fatal(err)
		}
		m.Corrupt(file.path, 0, head[:min(len(head), headerSize)])
		m.Corrupt(file.path, headerSize, slots[:min(len(slots), int(file.size())-headerSize)])
		x, _ := small(t, m, 10, 40)
		for hash := range int32(10) {
			_ = query(t, x, hash)
		}
		put(t, x, 3, 1_000, 3_000)
	})
}

func BenchmarkPut(b *testing.B) {
	x, _, err := Open(Config{FS: vfs.OS, Dir: b.TempDir(), Slots: 5_000_000, Entries: 20_000_000, Location: time.UTC, Clock: clock.System})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		put(b, x, int32(uint32(i)*2654435761)&math.MaxInt32, i, 1_000+i)
		if err := x.Spill(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkHash(b *testing.B) {
	topic, key := []byte("BenchmarkTopic"), []byte("C000020272F74E0E2F2A9518AA780000")
	b.ReportAllocs()
	for b.Loop() {
		_ = Hash(topic, key)
	}
}
