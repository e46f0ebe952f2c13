package store

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mqx/internal/clock"
	"mqx/internal/testkit"
	"mqx/internal/vfs"
)

// N007: a log file of no bytes, left by a crash between its creation and its sizing, does not stop the start.
func TestEmptyLastLogFile(t *testing.T) {
	s, m := openMem(t)
	fill(t, s, 20)
	files, err := s.log.Files()
	if err != nil {
		t.Fatal(err)
	}
	last := files[len(files)-1]
	m = m.Kill()
	path := filepath.Join(testRoot, "commitlog", fmt.Sprintf("%020d", last.Start+last.Size))
	f, err := m.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, memConfig(m))
	expectAll(t, s, 20)
}

// N103, N104: a thousand queues need no mapping and no descriptor each.
func TestManyQueuesFewDescriptors(t *testing.T) {
	cfg := DefaultConfig()
	cfg.RootDir, cfg.Logger, cfg.MaxOpenFiles = t.TempDir(), slog.New(slog.DiscardHandler), 8
	s := mustOpen(t, cfg)
	const topics = 250
	for i := range topics {
		for id := range int32(4) {
			mustPut(t, s, newRecord(fmt.Sprintf("topic%d", i), id, fmt.Sprintf("%d/%d", i, id), ""))
		}
	}
	catchUp(t, s)
	if err := s.checkpoint(false); err != nil {
		t.Fatal(err)
	}
	check := func(s *Store) {
		t.Helper()
		for i := range topics {
			got := readAll(t, s, fmt.Sprintf("topic%d", i), 3, nil)
			if len(got) != 1 || string(got[0].Body()) != fmt.Sprintf("%d/3", i) {
				t.Fatalf("topic %d: %d messages", i, len(got))
			}
		}
		if st := s.Stats(); st.OpenFiles > 8 || st.Queues != 4*topics {
			t.Errorf("%d files open for %d queues", st.OpenFiles, st.Queues)
		}
		if maps, err := os.ReadFile("/proc/self/maps"); err == nil && bytes.Contains(maps, []byte("/consumequeue/")) {
			t.Error("a queue file is mapped")
		}
	}
	check(s)
	mustClose(t, s)
	s = mustOpen(t, cfg)
	if len(s.Findings()) > 0 {
		t.Error(s.Findings())
	}
	check(s)
}

// N129: keys and topics of equal hash do not find each other's messages.
func TestQueryComparesTopicAndKey(t *testing.T) {
	s, _ := openMem(t)
	for _, c := range [][3]string{
		{"AaTopic", "Aa", "AaTag"},
		{"BBTopic", "BB", "BBTag"},
		{"AaTopic", "BB", "BBTag"},
		{"BBTopic", "Aa", "AaTag"},
	} {
		mustPut(t, s, newRecord(c[0], 0, strings.Join(c[:], " "), fmt.Sprintf("UNIQ_KEY\x01u%s\x02KEYS\x01one %s\x02TAGS\x01%s\x02", c[1], c[1], c[2])))
	}
	catchUp(t, s)
	for _, c := range []struct {
		topic, key string
		kind       KeyKind
		want       string
	}{
		{"AaTopic", "Aa", KeyPlain, "AaTopic Aa AaTag"},
		{"BBTopic", "BB", KeyPlain, "BBTopic BB BBTag"},
		{"AaTopic", "uBB", KeyUnique, "AaTopic BB BBTag"},
		{"AaTopic", "BB", KeyUnique, ""},
		{"BBTopic", "AaTag", KeyTag, "BBTopic Aa AaTag"},
		{"BBTopic", "AaTag", KeyPlain, ""},
		{"CCTopic", "Aa", KeyPlain, ""},
	} {
		res, err := s.Query(t.Context(), QueryRequest{Topic: c.topic, Key: c.key, Kind: c.kind, End: math.MaxInt64})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, part := range res.Parts {
			got = append(got, string(viewOf(t, part).Body()))
		}
		if !slices.Equal(got, strings.FieldsFunc(c.want, func(r rune) bool { return r == '\n' })) {
			t.Errorf("%s %s: %q, want %q", c.topic, c.key, got, c.want)
		}
	}
	res, err := s.Query(t.Context(), QueryRequest{Topic: "AaTopic", Key: "one", Max: 1, End: math.MaxInt64})
	if err != nil || len(res.Parts) != 1 || string(viewOf(t, res.Parts[0]).Body()) != "AaTopic BB BBTag" {
		t.Errorf("the newest one comes first: %v, %v", res, err)
	}
	off := memConfig(vfs.NewMem())
	off.MessageIndexEnable = false
	s = mustOpen(t, off)
	if _, err := s.Query(t.Context(), QueryRequest{Topic: "T", Key: "k"}); err == nil {
		t.Error("a query without an index is an error")
	}
}

// N131, N133: while an append hangs, others are refused with what is slow and for how long, and are not stored.
func TestBusyWhileAnAppendHangs(t *testing.T) {
	m := vfs.NewMem()
	cfg := memConfig(m)
	now := clock.NewManual(time.UnixMilli(1_700_000_000_000))
	cfg.Clock = now
	s := mustOpen(t, cfg)
	hang, hanging := make(chan struct{}), make(chan struct{})
	var stuck atomic.Bool
	m.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite && strings.Contains(op.Path, "commitlog/") && stuck.CompareAndSwap(false, true) {
			close(hanging)
			<-hang
		}
		return nil
	})
	first := make(chan *Put, 1)
	go s.PutBatch([]*Put{{Record: newRecord("T", 0, "slow", ""), Done: func(p *Put) { first <- p }}})
	<-hanging
	now.Advance(1500 * time.Millisecond)
	p := put(t, s, newRecord("T", 0, "refused", ""))
	if p.Status != OSPageCacheBusy || !strings.Contains(p.Err.Error(), "1.5s") || !strings.Contains(p.Err.Error(), "1000 ms") {
		t.Errorf("%v %v", p.Status, p.Err)
	}
	close(hang)
	if p := <-first; p.Status != PutOK {
		t.Errorf("the slow one: %v %v", p.Status, p.Err)
	}
	catchUp(t, s)
	if got := readAll(t, s, "T", 0, nil); len(got) != 1 || string(got[0].Body()) != "slow" {
		t.Errorf("%d messages", len(got))
	}
}

// N024: a reader that does not let go of an expired file does not keep its space for ever.
func TestHeldFileGivesItsSpaceBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := vfs.NewMem()
		m.SetClock(time.Now)
		cfg := memConfig(m)
		cfg.Clock, cfg.FileReservedHours = clock.System, 0
		s, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		stop := start(t, s)
		fillFiles(t, s, 4)
		synctest.Wait()
		res := s.Get(GetRequest{Topic: "T", MaxMsgs: 1})
		if res.Count != 1 || res.FromDisk {
			t.Fatalf("%d messages, from disk %v", res.Count, res.FromDisk)
		}
		s.DeleteExpiredNow()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(s.log.Hanging()); n != 1 {
			t.Errorf("%d files held, want 1", n)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if n := len(s.log.Hanging()); n != 0 {
			t.Errorf("%d files held after all that time", n)
		}
		res.Release()
		stop()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// Reading changes nothing on disk: a store that was only asked is the same afterwards but for what a start and a stop
// write (N020).
func TestReadsCreateNothing(t *testing.T) {
	root := testkit.GoldenStore(t, "basic")
	s := mustOpen(t, goldenConfig(t, "basic", root))
	before := tree(t, root)
	_ = s.MaxOffset("Nobody", 3)
	_ = s.MinOffset("Nobody", 3)
	_ = s.Get(GetRequest{Topic: "Nobody", QueueID: 3, MaxMsgs: 1}).Status
	if _, err := s.OffsetByTime("Nobody", 3, 1, Lower); err != nil {
		t.Error(err)
	}
	if _, err := s.StoreTime("Nobody", 3, 0); err != nil {
		t.Error(err)
	}
	if _, err := s.Query(t.Context(), QueryRequest{Topic: "Nobody", Key: "k", End: math.MaxInt64}); err != nil {
		t.Error(err)
	}
	if err := s.CleanExpiredQueues(); err != nil {
		t.Error(err)
	}
	if after := tree(t, root); !slices.Equal(before, after) {
		t.Errorf("before %v\nafter %v", before, after)
	}
	for q := range s.Queues() {
		if q.Topic == "Nobody" {
			t.Error("a read made a queue")
		}
	}
}

func tree(t *testing.T, root string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		names = append(names, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// A log file that is cut under the running store: what is left is served, the rest is an error that names the file, and
// the process lives.
func TestLogFileCutUnderTheStore(t *testing.T) {
	cfg := DefaultConfig()
	cfg.RootDir, cfg.Logger = t.TempDir(), slog.New(slog.DiscardHandler)
	cfg.CommitLogFileBytes = 1 << 20
	s := mustOpen(t, cfg)
	for i := range 300 {
		mustPut(t, s, newRecord("T", 0, fmt.Sprintf("%d %s", i, strings.Repeat("x", 2000)), ""))
	}
	catchUp(t, s)
	units, err := s.Units("T", 0, 200, 1)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(cfg.RootDir, "commitlog", "00000000000000000000")
	if err := os.Truncate(path, units[0].PhysicalOffset); err != nil {
		t.Fatal(err)
	}
	for _, off := range []int64{200, 250, 299} {
		res := s.Get(GetRequest{Topic: "T", Offset: off, MaxMsgs: 32})
		if res.Status != GetFailed || res.Err == nil || !strings.Contains(res.Err.Error(), path) || res.NextOffset != off {
			t.Errorf("at %d: %v, next %d, %v", off, res.Status, res.NextOffset, res.Err)
		}
		res.Release()
	}
	for off := int64(0); off < 200; {
		res := s.Get(GetRequest{Topic: "T", Offset: off, MaxMsgs: 32})
		if res.Status != Found || !res.FromDisk {
			t.Fatalf("at %d: %v, from disk %v, %v", off, res.Status, res.FromDisk, res.Err)
		}
		off = res.NextOffset
		res.Release()
	}
	expectFinding(t, s, FindCut)
	if _, err := s.RecordAt(units[0].PhysicalOffset); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("record: %v", err)
	}
}
