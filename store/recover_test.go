package store

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"mqx/internal/vfs"
	"mqx/message"
)

// fill puts n messages into each of three queues, dispatches them and makes everything durable.
func fill(tb testing.TB, s *Store, n int) {
	tb.Helper()
	for i := range n {
		for id := range int32(3) {
			mustPut(tb, s, newRecord("T", id, fmt.Sprintf("%d/%d %s", id, i, strings.Repeat("x", 300)), fmt.Sprintf("KEYS\x01k%d-%d\x02", id, i)))
		}
	}
	catchUp(tb, s)
	if err := s.checkpoint(false); err != nil {
		tb.Fatal(err)
	}
}

func expectAll(tb testing.TB, s *Store, n int) {
	tb.Helper()
	for id := range int32(3) {
		got := readAll(tb, s, "T", id, nil)
		if len(got) != n {
			tb.Errorf("queue %d: %d messages, want %d", id, len(got), n)
			continue
		}
		for i, v := range got {
			if !strings.HasPrefix(string(v.Body()), fmt.Sprintf("%d/%d ", id, i)) || v.QueueOffset() != int64(i) {
				tb.Errorf("queue %d offset %d: %.20q", id, v.QueueOffset(), v.Body())
			}
		}
	}
}

func expectKeys(tb testing.TB, s *Store, n int) {
	tb.Helper()
	catchUp(tb, s)
	for i := range n {
		res, err := s.Query(tb.Context(), QueryRequest{Topic: "T", Key: fmt.Sprintf("k1-%d", i), End: math.MaxInt64})
		if err != nil || len(res.Parts) != 1 {
			tb.Errorf("key %d: %d found, %v", i, len(res.Parts), err)
		}
	}
}

func expectFinding(tb testing.TB, s *Store, kind FindingKind) {
	tb.Helper()
	if !slices.ContainsFunc(s.Findings(), func(f Finding) bool { return f.Kind == kind }) {
		tb.Errorf("no finding %s in %v", kind, s.Findings())
	}
}

// N001: messages in the log but not yet in the queues are there after a crash, once.
func TestCrashBeforeDispatch(t *testing.T) {
	s, m := openMem(t)
	fill(t, s, 20)
	for i := 20; i < 40; i++ {
		for id := range int32(3) {
			mustPut(t, s, newRecord("T", id, fmt.Sprintf("%d/%d ", id, i), fmt.Sprintf("KEYS\x01k%d-%d\x02", id, i)))
		}
	}
	s = mustOpen(t, memConfig(m.Kill()))
	expectFinding(t, s, FindDirtyStop)
	expectAll(t, s, 40)
	expectKeys(t, s, 40)
}

// N017: after a clean stop the log is not searched, however long it is; after a crash only from the checkpoint file on.
func TestStartReadsLittle(t *testing.T) {
	s, m := openMem(t)
	fill(t, s, 200) // a dozen log files
	mustClose(t, s)
	read := map[string]int64{}
	count := func(m *vfs.Mem) {
		clear(read)
		m.Inject(func(op vfs.Op) error {
			if op.Kind == vfs.OpRead && filepath.Base(filepath.Dir(op.Path)) == "commitlog" {
				read[filepath.Base(op.Path)] += op.Len
			}
			return nil
		})
	}
	count(m)
	s = mustOpen(t, memConfig(m))
	m.Inject(nil)
	if len(s.Findings()) > 0 {
		t.Error(s.Findings())
	}
	if files, err := s.log.Files(); err != nil || len(files) < 10 || len(read) != 1 {
		t.Errorf("%d files, read from %v, %v", len(files), read, err)
	}
	expectAll(t, s, 200)

	m = m.Kill()
	count(m)
	s = mustOpen(t, memConfig(m))
	m.Inject(nil)
	if len(read) > 2 {
		t.Errorf("a dirty start with a fresh checkpoint read from %v", read)
	}
	expectAll(t, s, 200)
}

// N005, N016: a queue that lost files or units, behind the back of a clean stop too, is built again, and it alone.
func TestQueueRepairedAlone(t *testing.T) {
	dir := filepath.Join(testRoot, "consumequeue", "T", "1")
	for name, damage := range map[string]func(t *testing.T, m *vfs.Mem){
		"newest file removed": func(t *testing.T, m *vfs.Mem) {
			t.Helper()
			files, err := m.ReadDir(dir)
			if err != nil || m.Remove(filepath.Join(dir, files[len(files)-1].Name())) != nil {
				t.Fatal(err)
			}
		},
		"middle file removed": func(t *testing.T, m *vfs.Mem) {
			t.Helper()
			files, err := m.ReadDir(dir)
			if err != nil || m.Remove(filepath.Join(dir, files[len(files)/2].Name())) != nil {
				t.Fatal(err)
			}
		},
		"directory removed": func(t *testing.T, m *vfs.Mem) {
			t.Helper()
			if err := m.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		},
		"tail zeroed": func(t *testing.T, m *vfs.Mem) {
			t.Helper()
			m.Corrupt(filepath.Join(dir, "00000000000000001000"), 40, make([]byte, 160))
		},
		"units are text": func(t *testing.T, m *vfs.Mem) {
			t.Helper()
			overwrite(t, m, dir, func(_ string, old []byte) []byte { return bytes.Repeat([]byte(`{"a":`), len(old))[:len(old)] })
		},
		"units of another queue": func(t *testing.T, m *vfs.Mem) {
			t.Helper()
			overwrite(t, m, dir, func(name string, old []byte) []byte {
				b, err := vfs.ReadFile(m, filepath.Join(testRoot, "consumequeue", "T", "2", name))
				if err != nil {
					return old
				}
				return b
			})
		},
		"newest units far behind the log": func(t *testing.T, m *vfs.Mem) {
			t.Helper()
			overwrite(t, m, dir, func(name string, old []byte) []byte {
				if name == "00000000000000001000" {
					copy(old[40:], bytes.Repeat([]byte(`{"a":`), len(old)))
				}
				return old
			})
		},
		"first units far behind the log": func(t *testing.T, m *vfs.Mem) {
			t.Helper()
			overwrite(t, m, dir, func(name string, old []byte) []byte {
				if name != "00000000000000001000" {
					copy(old, bytes.Repeat([]byte(`{"a":`), len(old)))
				}
				return old
			})
		},
		"empty next file": func(t *testing.T, m *vfs.Mem) {
			t.Helper()
			f, err := m.OpenFile(filepath.Join(dir, "00000000000000001200"), os.O_RDWR|os.O_CREATE)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, stop := range []string{"clean", "clean, no note", "crash"} {
			if stop != "clean" && name == "units of another queue" {
				continue // without the note only mqx store verify tells
			}
			t.Run(name+", "+stop, func(t *testing.T) {
				s, m := openMem(t)
				fill(t, s, 60)
				if stop == "crash" {
					m = m.Kill()
				} else {
					mustClose(t, s)
				}
				if stop == "clean, no note" {
					if err := m.Remove(filepath.Join(testRoot, "mqx", "stopped")); err != nil {
						t.Fatal(err)
					}
				}
				damage(t, m)
				s = mustOpen(t, memConfig(m))
				expectAll(t, s, 60)
				if p := mustPut(t, s, newRecord("T", 1, "1/60 ", "")); p.QueueOffset != 60 {
					t.Errorf("next queue offset %d", p.QueueOffset)
				}
				catchUp(t, s)
				mustClose(t, s)
				s = mustOpen(t, memConfig(m))
				if len(s.Findings()) > 0 {
					t.Error("after repair:", s.Findings())
				}
				if got := readAll(t, s, "T", 1, nil); len(got) != 61 {
					t.Errorf("%d messages", len(got))
				}
			})
		}
	}
}

// overwrite changes all files of a directory.
func overwrite(t *testing.T, m *vfs.Mem, dir string, change func(name string, old []byte) []byte) {
	t.Helper()
	files, err := m.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		old, err := vfs.ReadFile(m, filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		m.Corrupt(filepath.Join(dir, f.Name()), 0, change(f.Name(), old))
	}
}

// N006: rot in the middle is stepped over; the offsets around it stay, the offset itself is not used again.
func TestRotKeepsOffsets(t *testing.T) {
	for _, last := range []bool{false, true} {
		t.Run(fmt.Sprint("last of its queue ", last), func(t *testing.T) {
			s, m := openMem(t)
			fill(t, s, 30)
			off := int64(17)
			if last {
				off = 29
				mustPut(t, s, newRecord("T", 2, "2/30 ", "")) // something whole behind it
				catchUp(t, s)
			}
			units, err := s.Units("T", 0, off, 1)
			if err != nil || len(units) != 1 {
				t.Fatal(err)
			}
			phys, size := units[0].PhysicalOffset, int64(s.cfg.CommitLogFileBytes)
			m = m.Kill()
			m.Corrupt(filepath.Join(testRoot, "commitlog", fmt.Sprintf("%020d", phys-phys%size)), phys%size+100, []byte("ROT"))
			if err := m.Remove(filepath.Join(testRoot, "checkpoint")); err != nil {
				t.Fatal(err)
			}
			s = mustOpen(t, memConfig(m))
			expectFinding(t, s, FindRot)
			got := readAll(t, s, "T", 0, nil)
			if len(got) != 29 {
				t.Fatalf("%d messages", len(got))
			}
			for _, v := range got {
				if v.QueueOffset() == off || !strings.HasPrefix(string(v.Body()), fmt.Sprintf("0/%d ", v.QueueOffset())) {
					t.Errorf("offset %d: %.10q", v.QueueOffset(), v.Body())
				}
			}
			if p := mustPut(t, s, newRecord("T", 0, "next", "")); p.QueueOffset != 30 {
				t.Errorf("next queue offset %d, want 30", p.QueueOffset)
			}
		})
	}
}

// N004: two crashes in a row leave no unit behind the end of the log.
func TestCrashCutWriteCrash(t *testing.T) {
	s, m := openMem(t)
	fill(t, s, 20)
	end := s.LogEnd()
	m = m.Kill()
	size := int64(s.cfg.CommitLogFileBytes)
	m.Corrupt(filepath.Join(testRoot, "commitlog", fmt.Sprintf("%020d", (end-1)-(end-1)%size)), (end-1)%size-100, make([]byte, 100))
	s = mustOpen(t, memConfig(m))
	expectFinding(t, s, FindTornTail)
	if s.MaxOffset("T", 2) != 19 {
		t.Fatalf("max offset %d", s.MaxOffset("T", 2))
	}
	mustPut(t, s, newRecord("T", 0, "0/20 ", ""))
	m = m.Kill()
	s = mustOpen(t, memConfig(m))
	for id, want := range []int64{21, 20, 19} {
		units, err := s.Units("T", int32(id), 0, 100)
		if err != nil || int64(len(units)) != want || s.MaxOffset("T", int32(id)) != want {
			t.Errorf("queue %d: %d units, max %d, want %d, %v", id, len(units), s.MaxOffset("T", int32(id)), want, err)
		}
		for _, u := range units {
			rec, err := s.RecordAt(u.PhysicalOffset)
			if err != nil || message.QueueOffsetOf(rec) != u.QueueOffset || message.View(rec).QueueID() != int32(id) {
				t.Errorf("unit %v points to something else: %v", u, err)
			}
		}
	}
}

// N003: the checkpoint is not ahead of the queues, whatever was flushed.
func TestCheckpointIsNotAheadOfTheQueues(t *testing.T) {
	s, m := openMem(t)
	fill(t, s, 20)
	before, _, err := ReadCheckpoint(m, testRoot)
	if err != nil {
		t.Fatal(err)
	}
	for i := 20; i < 40; i++ {
		for id := range int32(3) {
			mustPut(t, s, newRecord("T", id, fmt.Sprintf("%d/%d ", id, i), ""))
		}
	}
	catchUp(t, s)
	m.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpSync && strings.Contains(op.Path, "consumequeue") {
			return os.ErrPermission
		}
		return nil
	})
	if err := s.log.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := s.index.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := s.checkpoint(false); err == nil {
		t.Fatal("a checkpoint although the queues are not durable")
	}
	m.Inject(nil)
	if err := s.checkpoint(false); err == nil {
		t.Fatal("a checkpoint after a failed sync")
	}
	after, _, err := ReadCheckpoint(m, testRoot)
	if err != nil || after != before {
		t.Errorf("checkpoint %v, was %v, %v", after, before, err)
	}
	for seed := range uint64(10) {
		s := mustOpen(t, memConfig(m.PowerLoss(seed)))
		expectAll(t, s, 40)
		_ = s.Close()
	}
}

// N018: the index covers after recovery what the queues cover.
func TestIndexIsRebuilt(t *testing.T) {
	for name, damage := range map[string]func(m *vfs.Mem) error{
		"removed": func(m *vfs.Mem) error { return m.RemoveAll(filepath.Join(testRoot, "index")) },
		"newest removed": func(m *vfs.Mem) error {
			files, err := m.ReadDir(filepath.Join(testRoot, "index"))
			if err != nil {
				return err
			}
			return m.Remove(filepath.Join(testRoot, "index", files[len(files)-1].Name()))
		},
		"nothing": func(*vfs.Mem) error { return nil },
	} {
		for _, clean := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, clean %v", name, clean), func(t *testing.T) {
				s, m := openMem(t)
				fill(t, s, 80) // 240 keys, 99 a file
				if clean {
					mustClose(t, s)
				} else {
					m = m.Kill()
				}
				if err := damage(m); err != nil {
					t.Fatal(err)
				}
				s = mustOpen(t, memConfig(m))
				expectKeys(t, s, 80)
			})
		}
	}
}

func TestDeletedTopicStaysDeleted(t *testing.T) {
	s, m := openMem(t)
	fill(t, s, 20)
	mustPut(t, s, newRecord("Other", 0, "b", ""))
	if err := s.DeleteTopic("T"); err != nil {
		t.Fatal(err)
	}
	if s.MaxOffset("T", 0) != 0 || exists(m, filepath.Join(testRoot, "consumequeue", "T")) {
		t.Error("the queues are still there")
	}
	if p := mustPut(t, s, newRecord("T", 0, "0/0 ", "")); p.QueueOffset != 0 {
		t.Errorf("a topic made anew begins at %d", p.QueueOffset)
	}
	catchUp(t, s)
	for _, m := range []*vfs.Mem{m.Kill(), m.PowerLoss(7)} {
		if err := m.Remove(filepath.Join(testRoot, "checkpoint")); err != nil {
			t.Fatal(err)
		}
		s := mustOpen(t, memConfig(m))
		if n := len(readAll(t, s, "T", 0, nil)); n > 1 || s.MaxOffset("T", 1) != 0 {
			t.Errorf("after a crash the topic has %d messages, and max offset %d in another queue", n, s.MaxOffset("T", 1))
		}
	}
	if names, err := s.CleanUnusedTopics(func(topic string) bool { return topic == "T" }); err != nil || !slices.Equal(names, []string{"Other"}) {
		t.Errorf("unused topics: %v, %v", names, err)
	}
}

func TestTruncate(t *testing.T) {
	s, m := openMem(t)
	fill(t, s, 60)
	units, err := s.Units("T", 0, 40, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Truncate(units[0].PhysicalOffset); err != nil {
		t.Fatal(err)
	}
	check := func(s *Store) {
		t.Helper()
		expectAll(t, s, 40)
		expectKeys(t, s, 40)
		res, err := s.Query(t.Context(), QueryRequest{Topic: "T", Key: "k0-41", End: math.MaxInt64})
		if err != nil || len(res.Parts) > 0 {
			t.Errorf("a key of what was cut: %v, %v", res, err)
		}
	}
	check(s)
	for seed := range uint64(5) {
		s := mustOpen(t, memConfig(m.PowerLoss(seed)))
		check(s)
		_ = s.Close()
	}
	mustClose(t, s)
	s = mustOpen(t, memConfig(m))
	check(s)
	if p := mustPut(t, s, newRecord("T", 0, "0/40 ", "")); p.QueueOffset != 40 {
		t.Errorf("next queue offset %d", p.QueueOffset)
	}
}

// A topic that is deleted and made anew while the dispatcher is at work on it: the queue begins again at 0, and what is
// in it can be read.
func TestTopicMadeAnewUnderTheDispatcher(t *testing.T) {
	cfg := memConfig(vfs.NewMem())
	var s *Store
	done := make(chan struct{})
	var once sync.Once
	cfg.OnArrive = func([]byte, int32, int64, int64, int64, []byte) {
		once.Do(func() {
			go func() {
				defer close(done)
				if err := s.DeleteTopic("T"); err != nil {
					t.Error(err)
				}
				mustPut(t, s, newRecord("T", 0, "anew", ""))
			}()
			for range 10_000 { // the other goroutine gets as far as it can
				runtime.Gosched()
			}
		})
	}
	s = mustOpen(t, cfg)
	for range 50 {
		mustPut(t, s, newRecord("T", 0, "old", ""))
	}
	catchUp(t, s)
	<-done
	catchUp(t, s)
	got := readAll(t, s, "T", 0, nil)
	if len(got) != 1 || string(got[0].Body()) != "anew" || s.MinOffset("T", 0) != 0 {
		t.Errorf("%d messages in %d..%d", len(got), s.MinOffset("T", 0), s.MaxOffset("T", 0))
	}
}
