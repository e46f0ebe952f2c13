package store

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mqx/internal/clock"
	"mqx/internal/testkit"
	"mqx/internal/vfs"
	"mqx/message"
)

func lightConfig(m vfs.FS) Config {
	cfg := memConfig(m)
	cfg.EnableLMQ, cfg.EnableMultiDispatch = true, true
	cfg.BatchTopic = func(topic string) bool { return strings.HasPrefix(topic, "Batch") }
	return cfg
}

func lightRecord(i int, names string) message.Record {
	props := message.AppendProperty(nil, message.PropInnerMultiDispatch, names)
	return newRecord("T", int32(i%2), fmt.Sprintf("m%d", i), string(props))
}

// bodiesOf are the bodies of a queue, in order.
func bodiesOf(tb testing.TB, s *Store, topic string, id int32) []string {
	tb.Helper()
	var out []string
	for _, v := range readAll(tb, s, topic, id, nil) {
		out = append(out, string(v.Body()))
	}
	return out
}

func offsetsOf(tb testing.TB, s *Store, p *Put) string {
	tb.Helper()
	rec, err := s.RecordAt(p.PhysicalOffset)
	if err != nil {
		tb.Fatal(err)
	}
	v, _ := viewOf(tb, rec).Property(message.PropInnerMultiQueueOffset)
	return string(v)
}

// A record belongs to its own queue and to the light queues that it names; their numbers go on after a stop and a crash.
func TestLightQueues(t *testing.T) {
	m := vfs.NewMem()
	s := mustOpen(t, lightConfig(m))
	for i, tt := range []struct{ names, offsets string }{
		{"%LMQ%a", "0"}, {"%LMQ%a,%LMQ%b", "1,0"}, {"plain,%LMQ%b", ",1"}, {"%LMQ%c,%LMQ%c", "0,0"}, {"%LMQ%c", "1"}, {"plain", ""},
	} {
		if got := offsetsOf(t, s, mustPut(t, s, lightRecord(i, tt.names))); got != tt.offsets {
			t.Errorf("%s got the offsets %q, want %q", tt.names, got, tt.offsets)
		}
	}
	// What waits elsewhere gets its numbers when it is stored in its own topic.
	for _, topic := range []string{message.TopicSchedule, message.TopicHalf, "%RETRY%g", "rmq_sys_x"} {
		r := lightRecord(0, "%LMQ%a")
		r.Topic = []byte(topic)
		if got := offsetsOf(t, s, mustPut(t, s, r)); got != "" {
			t.Errorf("in %s it got the offsets %q", topic, got)
		}
	}
	catchUp(t, s)
	check := func(s *Store) {
		t.Helper()
		catchUp(t, s)
		for topic, want := range map[string][]string{"%LMQ%a": {"m0", "m1"}, "%LMQ%b": {"m1", "m2"}, "%LMQ%c": {"m3", "m4"}} {
			if got := bodiesOf(t, s, topic, 0); !slices.Equal(got, want) {
				t.Errorf("%s holds %v, want %v", topic, got, want)
			}
		}
		if s.LightQueues() != 3 {
			t.Errorf("%d light queues", s.LightQueues())
		}
		if got := offsetsOf(t, s, mustPut(t, s, lightRecord(0, "%LMQ%c,%LMQ%a,%LMQ%n"))); got != "2,2,0" {
			t.Errorf("the next offsets are %q", got)
		}
	}
	killed := m.Kill()
	mustClose(t, s)
	check(mustOpen(t, lightConfig(killed)))
	check(mustOpen(t, lightConfig(m.Kill())))
}

func TestLightQueueRefusals(t *testing.T) {
	cfg := lightConfig(vfs.NewMem())
	cfg.EnableLMQQuota, cfg.MaxLMQs = true, 2
	s := mustOpen(t, cfg)
	mustPut(t, s, lightRecord(0, "%LMQ%a,%LMQ%b"))
	for names, want := range map[string]Status{
		"%LMQ%a":                           PutOK,
		"%LMQ%c":                           LMQConsumeQueueNumExceeded,
		"%LMQ%../../x":                     MessageIllegal,
		"%LMQ%" + strings.Repeat("n", 200): MessageIllegal,
		strings.Repeat("%LMQ%a,", 4200):    MessageIllegal,
	} {
		if p := put(t, s, lightRecord(0, names)); p.Status != want {
			t.Errorf("%.30s: %v, %v; want %v", names, p.Status, p.Err, want)
		}
	}
	if s.MaxOffset("T", 1) != 0 || s.LightQueues() != 2 {
		t.Error("something refused was stored")
	}
	// Switched off, the names are a property like any other.
	off := mustOpen(t, memConfig(vfs.NewMem()))
	if got := offsetsOf(t, off, mustPut(t, off, lightRecord(0, "%LMQ%a"))); got != "" || off.LightQueues() != 0 {
		t.Errorf("without enableLmq: offsets %q, %d light queues", got, off.LightQueues())
	}
}

// A write that failed has numbered nothing.
func TestLightQueuesAfterAFailedWrite(t *testing.T) {
	m := vfs.NewMem()
	s := mustOpen(t, lightConfig(m))
	mustPut(t, s, lightRecord(0, "%LMQ%a"))
	fail := true
	m.Inject(func(op vfs.Op) error {
		if fail && op.Kind == vfs.OpWrite && strings.Contains(op.Path, "commitlog") {
			return errors.New("bad sector")
		}
		return nil
	})
	ps := []*Put{{Record: lightRecord(0, "%LMQ%a,%LMQ%b"), Done: func(*Put) {}}, {Record: lightRecord(1, "%LMQ%a"), Done: func(*Put) {}}}
	if s.PutBatch(ps); ps[0].Status.Stored() || ps[1].Status.Stored() {
		t.Fatalf("%v, %v on a broken disk", ps[0].Status, ps[1].Status)
	}
	fail = false
	if got := offsetsOf(t, s, mustPut(t, s, lightRecord(2, "%LMQ%b,%LMQ%a"))); got != "0,1" {
		t.Errorf("the next offsets are %q", got)
	}
	catchUp(t, s)
	if got := bodiesOf(t, s, "%LMQ%a", 0); !slices.Equal(got, []string{"m0", "m2"}) {
		t.Errorf("the queue holds %v", got)
	}
}

// innerPut stores n messages as one record.
func innerPut(tb testing.TB, s *Store, topic string, from, n int) *Put {
	tb.Helper()
	var body []byte
	for i := range n {
		body = message.AppendBatchItem(body, 0, []byte(fmt.Sprint("b", from+i)), nil)
	}
	r := newRecord(topic, 0, string(body), string(message.AppendProperty(nil, message.PropInnerNum, strconv.Itoa(n))))
	r.SysFlag = message.FlagInnerBatch | message.FlagNeedUnwrap
	done := false
	p := &Put{Record: r, Inner: int16(n), Done: func(*Put) { done = true }}
	s.PutBatch([]*Put{p})
	if !done || p.Status != PutOK {
		tb.Fatalf("put of a batch: %v, %v", p.Status, p.Err)
	}
	return p
}

// innerBodies are the messages of a batch queue as a consumer takes them apart, with their offsets.
func innerBodies(tb testing.TB, s *Store, topic string) []string {
	tb.Helper()
	var out []string
	for _, v := range readAll(tb, s, topic, 0, nil) {
		for m, err := range message.DecodeMessages(v, message.ReceiveOptions{}) {
			if err != nil {
				tb.Fatal(err)
			}
			out = append(out, fmt.Sprintf("%d:%s", m.QueueOffset, m.Body))
		}
	}
	return out
}

func TestBatchQueuesAreWritten(t *testing.T) {
	m := vfs.NewMem()
	s := mustOpen(t, lightConfig(m))
	var want []string
	add := func(s *Store, n int) {
		t.Helper()
		from := len(want)
		p := innerPut(t, s, "BatchT", from, n)
		if p.QueueOffset != int64(from) {
			t.Fatalf("a batch behind %d messages got the offset %d", from, p.QueueOffset)
		}
		for i := range n {
			want = append(want, fmt.Sprintf("%d:b%d", from+i, from+i))
		}
	}
	single := func(s *Store) {
		t.Helper()
		n := len(want)
		mustPut(t, s, newRecord("BatchT", 0, fmt.Sprint("b", n), ""))
		want = append(want, fmt.Sprintf("%d:b%d", n, n))
	}
	single(s) // the first record of the topic is no batch
	for _, n := range []int{3, 1, 7} {
		add(s, n)
		single(s)
	}
	catchUp(t, s)
	if exists(m, testRoot+"/consumequeue/BatchT") || !exists(m, testRoot+"/batchconsumequeue/BatchT/0") {
		t.Error("the queue is of the wrong kind")
	}
	if got := innerBodies(t, s, "BatchT"); !slices.Equal(got, want) {
		t.Errorf("the queue holds\n%v, want\n%v", got, want)
	}
	killed := m.Kill()
	mustClose(t, s)
	before := slices.Clone(want)
	for _, m := range []*vfs.Mem{killed, m.Kill()} {
		want = slices.Clone(before)
		s := mustOpen(t, lightConfig(m))
		add(s, 4)
		single(s)
		catchUp(t, s)
		if got := innerBodies(t, s, "BatchT"); !slices.Equal(got, want) {
			t.Errorf("after a new start the queue holds\n%v, want\n%v", got, want)
		}
		// Cut to the record before the last batch.
		units, err := s.Units("BatchT", 0, int64(len(before)), 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Truncate(units[0].PhysicalOffset); err != nil {
			t.Fatal(err)
		}
		want = slices.Clone(before)
		add(s, 2)
		catchUp(t, s)
		if got := innerBodies(t, s, "BatchT"); !slices.Equal(got, want) {
			t.Errorf("after a cut the queue holds\n%v, want\n%v", got, want)
		}
		if err := s.DeleteTopic("BatchT"); err != nil || s.MaxOffset("BatchT", 0) != 0 {
			t.Errorf("delete: %v, max offset %d", err, s.MaxOffset("BatchT", 0))
		}
	}
}

// What Apache stored as batches and for light queues, stored here once more, gets the same numbers.
func TestGoldenNumbersAgain(t *testing.T) {
	for variant, batch := range map[string]string{"batchcq": "BcqTopic", "lmq": ""} {
		t.Run(variant, func(t *testing.T) {
			view := testkit.GoldenManifest(t, variant).StoreView
			from := mustOpen(t, goldenConfig(t, variant, testkit.GoldenStore(t, variant)))
			cfg := goldenConfig(t, variant, t.TempDir())
			cfg.EnableLMQ, cfg.EnableMultiDispatch = true, true
			cfg.BatchTopic = func(topic string) bool { return topic == batch }
			clk := clock.NewManual(time.UnixMilli(1))
			cfg.Clock = clk
			s := mustOpen(t, cfg)
			for i := range view.CommitLogRecords {
				old := &view.CommitLogRecords[i]
				if old.IsBlank() {
					continue
				}
				raw, err := from.RecordAt(old.PhysicalOffset)
				if err != nil {
					t.Fatal(err)
				}
				rec, err := message.DecodeRecord(raw, message.DecodeOptions{})
				if err != nil {
					t.Fatal(err)
				}
				clk.Set(time.UnixMilli(old.StoreTimestamp))
				n, _ := strconv.Atoi(old.Properties[message.PropInnerNum])
				rec.Properties = message.DeleteProperty(message.DeleteProperty(rec.Properties, message.PropInnerBase), message.PropInnerMultiQueueOffset)
				p := &Put{Record: rec, Inner: int16(n), Done: func(*Put) {}}
				if s.PutBatch([]*Put{p}); p.Status != PutOK {
					t.Fatal(p.Status, p.Err)
				}
				again, err := s.RecordAt(p.PhysicalOffset)
				if err != nil {
					t.Fatal(err)
				}
				v := viewOf(t, again)
				if v.QueueOffset() != old.QueueOffset || v.Size() != old.StoreSize {
					t.Errorf("record %d: offset %d, %d bytes; want %d, %d", i, v.QueueOffset(), v.Size(), old.QueueOffset, old.StoreSize)
				}
				for _, name := range []string{message.PropInnerBase, message.PropInnerMultiQueueOffset} {
					if got, _ := v.Property(name); string(got) != old.Properties[name] {
						t.Errorf("record %d: %s is %q, want %q", i, name, got, old.Properties[name])
					}
				}
			}
			catchUp(t, s)
			for _, q := range view.ConsumeQueues {
				checkQueue(t, s, q)
			}
		})
	}
}

// A record that says it is a batch and is none of Put.Inner is refused, and so is a batch for a queue of single messages:
// either would number the queue otherwise than its messages, and a batch queue beside the other would hide it.
func TestNoBatchAmongSingleMessages(t *testing.T) {
	cfg := DefaultConfig()
	cfg.RootDir = t.TempDir()
	s := mustOpen(t, cfg)
	put := func(body string, flag int32, inner int16) Status {
		r := newRecord("T", 0, body, string(message.AppendProperty(nil, message.PropInnerNum, "3")))
		r.SysFlag = flag
		p := &Put{Record: r, Inner: inner, Done: func(*Put) {}}
		s.PutBatch([]*Put{p})
		catchUp(t, s)
		return p.Status
	}
	if status := put("x", message.FlagInnerBatch, 0); status != MessageIllegal {
		t.Errorf("a false batch: %v", status)
	}
	if status := put("a", 0, 0); status != PutOK {
		t.Fatal(status)
	}
	if status := put("x", message.FlagInnerBatch, 0); status != MessageIllegal {
		t.Errorf("a false batch: %v", status)
	}
	if status := put("x", message.FlagInnerBatch|message.FlagNeedUnwrap, 3); status != MessageIllegal {
		t.Errorf("a batch: %v", status)
	}
	if status := put("b", 0, 0); status != PutOK {
		t.Fatal(status)
	}
	if got := readAll(t, s, "T", 0, nil); len(got) != 2 || string(got[0].Body()) != "a" || string(got[1].Body()) != "b" {
		t.Errorf("%d messages", len(got))
	}
	// In a log that another wrote, it is a message among the others.
	rec := newRecord("T", 0, "c", string(message.AppendProperty(nil, message.PropInnerNum, "3")))
	rec.SysFlag = message.FlagInnerBatch
	buf := rec.Append(nil, false)
	message.PatchOffsets(buf, 2, s.LogEnd(), 1)
	s.dispatcher.put(s.LogEnd(), buf)
	if q := s.queues.get("T", 0); q.batch.Load() != nil || q.cq.Load().Max() != 3 {
		t.Errorf("a queue of single messages has become one of batches")
	}
}
