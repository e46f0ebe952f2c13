package store

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"mqx/internal/clock"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/store/commitlog"
)

const testRoot = "/data/store"

var testHost = netip.MustParseAddrPort("127.0.0.1:10911")

// memConfig is a small store on a file system in memory: log files of 16 KiB, queue files of 10 units, index files of 99
// entries.
func memConfig(m vfs.FS) Config {
	cfg := DefaultConfig()
	cfg.FS, cfg.RootDir, cfg.Location = m, testRoot, time.UTC
	cfg.Clock = clock.NewManual(time.UnixMilli(1_700_000_000_000))
	cfg.Logger = slog.New(slog.DiscardHandler)
	cfg.CommitLogFileBytes, cfg.ConsumeQueueFileBytes, cfg.BatchConsumeQueueFileBytes = 16<<10, 200, 460
	cfg.MaxHashSlotNum, cfg.MaxIndexNum = 20, 100
	cfg.MaxMessageBytes = 4 << 10
	return cfg
}

func openMem(tb testing.TB) (*Store, *vfs.Mem) {
	tb.Helper()
	m := vfs.NewMem()
	return mustOpen(tb, memConfig(m)), m
}

func newRecord(topic string, queueID int32, body, props string) message.Record {
	return message.Record{
		QueueID: queueID, BornTimestamp: 1, BornHost: testHost, StoreHost: testHost,
		Body: []byte(body), Topic: []byte(topic), Properties: []byte(props),
	}
}

// put stores one message and returns the outcome.
func put(tb testing.TB, s *Store, r message.Record) *Put {
	tb.Helper()
	done := 0
	p := &Put{Record: r, Done: func(*Put) { done++ }}
	s.PutBatch([]*Put{p})
	if done != 1 {
		tb.Fatalf("done was called %d times", done)
	}
	return p
}

func mustPut(tb testing.TB, s *Store, r message.Record) *Put {
	tb.Helper()
	p := put(tb, s, r)
	if p.Status != PutOK || p.Err != nil {
		tb.Fatalf("put: %v, %v", p.Status, p.Err)
	}
	return p
}

func TestPutAndGet(t *testing.T) {
	s, m := openMem(t)
	for i := range 30 {
		p := mustPut(t, s, newRecord("T", int32(i%3), fmt.Sprintf("body %d", i), "UNIQ_KEY\x01u"+fmt.Sprint(i)+"\x02"))
		if p.QueueOffset != int64(i/3) || p.StoreTimestamp != 1_700_000_000_000 {
			t.Fatalf("put %d: queue offset %d at %d", i, p.QueueOffset, p.StoreTimestamp)
		}
	}
	check := func(s *Store) {
		t.Helper()
		for id := range int32(3) {
			got := readAll(t, s, "T", id, nil)
			if len(got) != 10 {
				t.Fatalf("%d messages", len(got))
			}
			for i, v := range got {
				if want := fmt.Sprintf("body %d", 3*i+int(id)); string(v.Body()) != want || v.QueueOffset() != int64(i) {
					t.Errorf("queue %d offset %d: %q", id, v.QueueOffset(), v.Body())
				}
			}
		}
	}
	catchUp(t, s)
	check(s)
	mustClose(t, s)
	s = mustOpen(t, memConfig(m))
	if len(s.Findings()) > 0 {
		t.Error(s.Findings())
	}
	check(s)
	if p := mustPut(t, s, newRecord("T", 0, "next", "")); p.QueueOffset != 10 {
		t.Errorf("queue offset %d after reopen", p.QueueOffset)
	}
}

// N107: what is refused says the actual size and the limit; what was refused has changed nothing.
func TestPutRefusals(t *testing.T) {
	s, _ := openMem(t)
	long := strings.Repeat("x", 5<<10)
	for name, c := range map[string]struct {
		r    message.Record
		want Status
		text string
	}{
		"body too large":            {newRecord("T", 0, long, ""), MessageIllegal, "body has 5120 bytes, the limit maxMessageSize is 4096"},
		"properties too large":      {newRecord("T", 0, "b", strings.Repeat("k\x01v\x02", 9000)), PropertiesSizeExceeded, "36000 bytes, the limit is 32767"},
		"topic too long":            {newRecord(strings.Repeat("t", 128), 0, "b", ""), MessageIllegal, "128 bytes, the limit is 127"},
		"retry topic too long":      {newRecord("%RETRY%"+strings.Repeat("t", 249), 0, "b", ""), MessageIllegal, "256 bytes, the limit is 255"},
		"no topic":                  {newRecord("", 0, "b", ""), MessageIllegal, "0 bytes"},
		"no body":                   {message.Record{Topic: []byte("T")}, MessageIllegal, "no body"},
		"record larger than a file": {newRecord("T", 0, "b", strings.Repeat("k\x01v\x02", 4080)), MessageIllegal, "does not fit"},
	} {
		t.Run(name, func(t *testing.T) {
			p := put(t, s, c.r)
			if p.Status != c.want || p.Err == nil || !strings.Contains(p.Err.Error(), c.text) {
				t.Errorf("%v, %v; want %v with %q", p.Status, p.Err, c.want, c.text)
			}
		})
	}
	if s.LogEnd() != 0 {
		t.Errorf("log ends at %d", s.LogEnd())
	}
	if p := mustPut(t, s, newRecord("%RETRY%"+strings.Repeat("t", 248), 0, "b", "")); p.QueueOffset != 0 {
		t.Errorf("queue offset %d", p.QueueOffset)
	}
	if q := s.queues.get("T", 0); q != nil && q.exists() {
		t.Error("a refused message made a queue")
	}
	if st := s.Stats(); st.PutFailed != 7 || st.PutMessages != 1 {
		t.Errorf("stats: %d failed, %d put", st.PutFailed, st.PutMessages)
	}
}

func TestPutBatchOfMessages(t *testing.T) {
	s, _ := openMem(t)
	var body []byte
	for i := range 5 {
		body = message.AppendBatchItem(body, int32(i), fmt.Appendf(nil, "m%d", i), []byte("KEYS\x01k"+fmt.Sprint(i)))
	}
	mustPut(t, s, newRecord("T", 0, "before", ""))
	r := newRecord("T", 0, string(body), "WAIT\x01true\x02")
	p := &Put{Record: r, Batch: true, Done: func(*Put) {}}
	bad := &Put{Record: newRecord("T", 0, "no batch", ""), Batch: true, Done: func(*Put) {}}
	s.PutBatch([]*Put{bad, p})
	if bad.Status != MessageIllegal || p.Status != PutOK || p.QueueOffset != 1 || len(p.Offsets) != 5 || p.Offsets[0] != p.PhysicalOffset {
		t.Fatalf("%v %v; %v %v at %d, offsets %v", bad.Status, bad.Err, p.Status, p.Err, p.QueueOffset, p.Offsets)
	}
	catchUp(t, s)
	got := readAll(t, s, "T", 0, nil)
	if len(got) != 6 {
		t.Fatalf("%d messages", len(got))
	}
	for i, v := range got[1:] {
		if string(v.Body()) != fmt.Sprintf("m%d", i) || v.Flag() != int32(i) || v.PhysicalOffset() != p.Offsets[i] ||
			string(v.Properties()) != fmt.Sprintf("KEYS\x01k%d\x02WAIT\x01true\x02", i) {
			t.Errorf("message %d: %q flag %d at %d, properties %q", i, v.Body(), v.Flag(), v.PhysicalOffset(), v.Properties())
		}
	}
}

// Prepared and rolled back halves take no queue offset and get no unit; a rolled back one no key either.
func TestTransactionRecords(t *testing.T) {
	s, _ := openMem(t)
	for i, state := range []int32{message.TransactionNone, message.TransactionPrepared, message.TransactionRollback, message.TransactionCommit} {
		r := newRecord("T", 0, fmt.Sprint(i), "KEYS\x01key\x02")
		r.SysFlag = state
		if p := mustPut(t, s, r); p.QueueOffset != map[int32]int64{message.TransactionCommit: 1}[state] {
			t.Errorf("state %x: queue offset %d", state, p.QueueOffset)
		}
	}
	catchUp(t, s)
	got := readAll(t, s, "T", 0, nil)
	if len(got) != 2 || string(got[0].Body()) != "0" || string(got[1].Body()) != "3" {
		t.Errorf("messages %q", got)
	}
	res, err := s.Query(t.Context(), QueryRequest{Topic: "T", Key: "key", End: 1 << 60})
	if err != nil || len(res.Parts) != 3 {
		t.Errorf("%d found by key, %v", len(res.Parts), err)
	}
}

func TestScheduledMessagesCarryTheirDeliveryTime(t *testing.T) {
	s, _ := openMem(t)
	for level, want := range map[string]int64{"1": 1_000, "3": 10_000, "18": 7_200_000, "99": 7_200_000} {
		p := mustPut(t, s, newRecord(message.TopicSchedule, 7, "b", "TAGS\x01t\x02DELAY\x01"+level+"\x02"))
		catchUp(t, s)
		units, err := s.Units(message.TopicSchedule, 7, p.QueueOffset, 1)
		if err != nil || len(units) != 1 || units[0].TagsCode != p.StoreTimestamp+want {
			t.Errorf("level %s: %v, %v", level, units, err)
		}
	}
}

// A put that waits for the disk is completed by the flusher, all of one batch at once; a failed sync refuses writes.
func TestSyncFlush(t *testing.T) {
	m := vfs.NewMem()
	cfg := memConfig(m)
	cfg.FlushDiskType = SyncFlush
	s := mustOpen(t, cfg)
	done := make(chan *Put, 10)
	send := func(wait bool) *Put {
		p := &Put{Record: newRecord("T", 0, "b", ""), WaitFlush: wait, Done: func(p *Put) { done <- p }}
		s.PutBatch([]*Put{p})
		return p
	}
	first := send(true)
	select {
	case <-done:
		t.Fatal("completed before the flush")
	default:
	}
	send(false)
	if p := <-done; p == first || p.Status != PutOK {
		t.Fatalf("the put that does not wait: %v", p.Status)
	}
	if err := s.log.Flush(); err != nil {
		t.Fatal(err)
	}
	if p := <-done; p != first || p.Status != PutOK {
		t.Fatalf("after the flush: %v %v", p.Status, p.Err)
	}
	m.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpSync && strings.Contains(op.Path, "commitlog") {
			return syscall.EIO
		}
		return nil
	})
	send(true)
	if err := s.log.Flush(); !errors.Is(err, commitlog.ErrFailed) {
		t.Fatalf("flush: %v", err)
	}
	if p := <-done; p.Status != FlushDiskTimeout || !errors.Is(p.Err, syscall.EIO) {
		t.Errorf("after a failed sync: %v %v", p.Status, p.Err)
	}
	m.Inject(nil)
	send(true)
	if p := <-done; p.Status != ServiceNotAvailable || !errors.Is(p.Err, commitlog.ErrFailed) {
		t.Errorf("later: %v %v", p.Status, p.Err)
	}
	if ok, why := s.Writeable(); ok || !strings.Contains(why, "commitlog") {
		t.Errorf("writeable %v, %q", ok, why)
	}
	if err := s.Close(); !errors.Is(err, syscall.EIO) {
		t.Errorf("close: %v", err)
	}
	if _, err := m.Stat(testRoot + "/abort"); err != nil {
		t.Error("a store that could not be closed cleanly looks as if it was")
	}
}

func TestPutAfterClose(t *testing.T) {
	s, _ := openMem(t)
	mustClose(t, s)
	if p := put(t, s, newRecord("T", 0, "b", "")); p.Status != ServiceNotAvailable {
		t.Errorf("%v %v", p.Status, p.Err)
	}
}

func TestTryPutBatch(t *testing.T) {
	s, _ := openMem(t)
	done := 0
	try := func(what string, n int, want bool) {
		t.Helper()
		var puts []*Put
		for range n {
			puts = append(puts, &Put{Record: newRecord("T", 0, strings.Repeat("b", 1<<10), ""), Done: func(*Put) { done++ }})
		}
		done = 0
		end := s.log.End()
		if got := s.TryPutBatch(puts); got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
		if stored := s.log.End() > end; stored != want || want && done != n || !want && done != 0 {
			t.Errorf("%s: stored %v, %d answered of %d, want %v", what, stored, done, n, want)
		}
	}
	try("a log without a file", 1, false)
	put(t, s, newRecord("T", 0, "b", ""))
	try("the newest file has room", 1, true)
	try("more than is allowed", maxTryBytes>>10+1, false)
	s.putting.Lock()
	try("a topic is being deleted", 1, false)
	s.putting.Unlock()
	s.stats.putSlowAt.Store(int64(time.Since(s.stats.epoch)))
	try("right after a slow append", 1, false)
	s.stats.putSlowAt.Store(int64(time.Since(s.stats.epoch) - slowFor))
	try("long after a slow append", 1, true)
	mustClose(t, s)
	try("a closed store", 1, false)
}

func BenchmarkPutBatch(b *testing.B) {
	for _, n := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("%dx1KiB", n), func(b *testing.B) {
			cfg := DefaultConfig()
			cfg.RootDir, cfg.Logger = b.TempDir(), slog.New(slog.DiscardHandler)
			s := mustOpen(b, cfg)
			body := bytes.Repeat([]byte("x"), 1024)
			puts := make([]*Put, n)
			for i := range puts {
				r := newRecord("BenchmarkTopic", int32(i%16), "", "UNIQ_KEY\x01C000020272F74E0E2F2A9518AA780000\x02WAIT\x01true\x02TAGS\x01TagA\x02")
				r.Body = body
				puts[i] = &Put{Record: r, Done: func(*Put) {}}
			}
			b.ReportAllocs()
			b.SetBytes(int64(n * len(body)))
			for b.Loop() {
				s.PutBatch(puts)
			}
			if puts[0].Status != PutOK {
				b.Fatal(puts[0].Status, puts[0].Err)
			}
		})
	}
}

func BenchmarkDispatch(b *testing.B) {
	cfg := DefaultConfig()
	cfg.RootDir, cfg.Logger = b.TempDir(), slog.New(slog.DiscardHandler)
	s := mustOpen(b, cfg)
	puts := make([]*Put, 1024)
	for i := range puts {
		r := newRecord("BenchmarkTopic", int32(i%16), string(bytes.Repeat([]byte("x"), 1024)),
			fmt.Sprintf("UNIQ_KEY\x01C000020272F74E0E2F2A9518AA78%04X\x02WAIT\x01true\x02TAGS\x01TagA\x02", i))
		puts[i] = &Put{Record: r, Done: func(*Put) {}}
	}
	for range 100 {
		s.PutBatch(puts)
	}
	const records = 100 * 1024
	b.Run("queues", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			for q := range s.queues.all {
				q.cq.Store(nil)
			}
			s.dispatcher.pos.Store(0)
			b.StartTimer()
			for s.dispatcher.pos.Load() < s.log.End() {
				if _, err := s.dispatcher.step(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/records, "ns/record")
	})
	b.Run("index", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.indexer.pos.Store(0)
			for s.indexer.pos.Load() < s.log.End() {
				if _, err := s.indexer.step(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/records, "ns/record")
	})
	b.Run("get32", func(b *testing.B) {
		b.ReportAllocs()
		off := int64(0)
		for b.Loop() {
			res := s.Get(GetRequest{Topic: "BenchmarkTopic", QueueID: 3, Offset: off % 6000, MaxMsgs: 32})
			if res.Count != 32 {
				b.Fatal(res.Status, res.Count, res.Err)
			}
			res.Release()
			off += 32
		}
	})
}

// Properties that a recovery would take for torn are refused, unless a checksum proves them: what was answered OK stays.
func TestPropertiesThatLookTorn(t *testing.T) {
	torn := "a\x01" + strings.Repeat("\x00", 2000) + "\x02"
	for name, sealed := range map[string]bool{"plain": false, "with a checksum": true} {
		t.Run(name, func(t *testing.T) {
			m := vfs.NewMem()
			cfg := memConfig(m)
			cfg.AppendPropCRC = sealed
			s := mustOpen(t, cfg)
			stored := int64(0)
			batch := message.AppendBatchItem(nil, 0, []byte("in a batch"), []byte(torn))
			for _, p := range []*Put{
				{Record: newRecord("T", 0, "single", torn)},
				{Record: newRecord("T", 0, string(batch), ""), Batch: true},
				{Record: newRecord("T", 0, "last", "")},
			} {
				p.Done = func(*Put) {}
				s.PutBatch([]*Put{p})
				switch p.Status {
				case PutOK:
					stored++
				case MessageIllegal:
					if p.Err == nil {
						t.Error("a message was refused without a reason")
					}
				default:
					t.Errorf("put: %v, %v", p.Status, p.Err)
				}
			}
			if want := map[bool]int64{false: 1, true: 3}[sealed]; stored != want {
				t.Errorf("%d messages were stored, want %d", stored, want)
			}
			cfg.FS = m.Kill()
			for _, f := range mustOpen(t, cfg).Findings() {
				if f.Kind == FindRot || f.Kind == FindTornTail {
					t.Errorf("after a kill: %+v", f)
				}
			}
		})
	}
}
