package inspect_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mqx/internal/testkit"
	"mqx/message"
	"mqx/store/consumequeue"
	"mqx/store/inspect"
)

func openGolden(t *testing.T, variant string) *inspect.Dir {
	t.Helper()
	return open(t, testkit.GoldenStore(t, variant))
}

func open(t *testing.T, root string) *inspect.Dir {
	t.Helper()
	d, err := inspect.Open(root, inspect.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// eachSound runs f for every golden store that Apache's own classes read.
func eachSound(t *testing.T, f func(t *testing.T, d *inspect.Dir, m *testkit.Manifest)) {
	t.Helper()
	seen := 0
	for _, variant := range testkit.GoldenStores() {
		m := testkit.GoldenManifest(t, variant)
		if m.StoreView == nil {
			continue
		}
		seen++
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			f(t, openGolden(t, variant), m)
		})
	}
	if seen < 20 {
		t.Fatalf("%d golden stores", seen)
	}
}

func TestGoldenLog(t *testing.T) {
	eachSound(t, func(t *testing.T, d *inspect.Dir, m *testkit.Manifest) {
		want, blanks := []*testkit.LogRecord{}, int64(0)
		for i := range m.StoreView.CommitLogRecords {
			if r := &m.StoreView.CommitLogRecords[i]; r.IsBlank() {
				blanks++
			} else {
				want = append(want, r)
			}
		}
		n := 0
		end, err := d.Log().Walk(context.Background(), inspect.WalkOptions{
			VerifyBody: true, VerifyProp: true,
			OnBreak: func(b inspect.Break) error { t.Errorf("break %+v", b); return nil },
		}, func(off int64, rec message.View) error {
			if n == len(want) {
				t.Fatalf("a record at %d too many", off)
			}
			r := want[n]
			n++
			if sum := sha256.Sum256(rec); off != r.PhysicalOffset || hex.EncodeToString(sum[:]) != r.RecordSHA256 {
				t.Errorf("record %d at %d, want %d", n, off, r.PhysicalOffset)
			}
			again, err := d.Log().Record(off)
			if err != nil || string(again) != string(rec) {
				t.Errorf("record at %d alone: %v", off, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if n != len(want) || end.Reason != inspect.EndOfData || end.Offset != m.StoreView.CommitLogMaxOffset || end.Blanks != blanks {
			t.Errorf("%d records of %d, end %+v, want %d and %d blanks", n, len(want), end, m.StoreView.CommitLogMaxOffset, blanks)
		}
		if d.Log().Min() != m.StoreView.CommitLogMinOffset {
			t.Errorf("the log begins at %d, want %d", d.Log().Min(), m.StoreView.CommitLogMinOffset)
		}
	})
}

func TestGoldenQueues(t *testing.T) {
	eachSound(t, func(t *testing.T, d *inspect.Dir, m *testkit.Manifest) {
		keys, err := d.Queues()
		if err != nil {
			t.Fatal(err)
		}
		if len(keys) != len(m.StoreView.ConsumeQueues) {
			t.Errorf("%d queues, want %d: %v", len(keys), len(m.StoreView.ConsumeQueues), keys)
		}
		for _, want := range m.StoreView.ConsumeQueues {
			k := inspect.QueueKey{Topic: want.Topic, ID: want.QueueID, Batch: want.CQType == "BatchCQ"}
			q, err := d.Queue(k)
			if err != nil {
				t.Fatal(err)
			}
			b, err := q.Bounds(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if b.Min != want.MinOffset || b.Max != want.MaxOffset || b.Gaps != 0 {
				t.Errorf("%s: %+v, want %d..%d", k, b, want.MinOffset, want.MaxOffset)
			}
			checkUnits(t, q, want)
		}
	})
}

func checkUnits(t *testing.T, q *inspect.Queue, want testkit.ConsumeQueue) {
	t.Helper()
	var got []testkit.CQUnit
	err := q.Units(context.Background(), 0, math.MaxInt64, func(u inspect.Unit) error {
		if !u.Written() || u.Filler() {
			return nil
		}
		g := testkit.CQUnit{QueueOffset: u.Offset, Pos: u.Phys, Size: u.Size, TagsCode: u.TagsCode}
		if q.Batch {
			n := int16(u.Count)
			g.BatchNum, g.CompactedOffset = &n, &u.Compacted
		}
		if e, ok, err := q.Ext(u.TagsCode); err != nil {
			return err
		} else if ok {
			g.TagsCode, g.ValidTagsCode = e.TagsCode, &e.TagsCode
			g.Ext = &testkit.CQExt{TagsCode: e.TagsCode, MsgStoreTime: e.StoreTime, Size: 20 + len(e.BitMap), FilterBitMapHex: hex.EncodeToString(e.BitMap)}
		} else if consumequeue.IsExtAddr(u.TagsCode) {
			t.Errorf("%s: no extension unit for %d", q.QueueKey, u.TagsCode)
		}
		got = append(got, g)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	units := want.Units
	for len(got) > 0 && len(units) > 0 && got[0].QueueOffset < units[0].QueueOffset { // below the start of the log
		got = got[1:]
	}
	if diff := cmp.Diff(units, got); diff != "" {
		t.Errorf("%s (-manifest +files):\n%s", q.QueueKey, diff)
	}
}

func TestGoldenIndex(t *testing.T) {
	eachSound(t, func(t *testing.T, d *inspect.Dir, m *testkit.Manifest) {
		files, err := d.Index()
		if err != nil {
			t.Fatal(err)
		}
		var heads []testkit.IndexFile
		for _, x := range files {
			if x.Err != nil {
				t.Errorf("%s: %v", x.Name, x.Err)
				continue
			}
			h := x.Head
			heads = append(heads, testkit.IndexFile{
				File: x.Name, BeginTimestamp: h.BeginTime, EndTimestamp: h.EndTime,
				BeginPhyOffset: h.BeginPhys, EndPhyOffset: h.EndPhys, HashSlotCount: h.UsedSlots, IndexCount: h.Count,
			})
			n := int32(0)
			if err := x.EachEntry(context.Background(), func(inspect.IndexEntry) error { n++; return nil }); err != nil || n != h.Count-1 {
				t.Errorf("%s: %d entries, %v, want %d", x.Name, n, err, h.Count-1)
			}
			n = 0
			if err := x.EachSlot(context.Background(), func(_, _ int32) error { n++; return nil }); err != nil || n != h.UsedSlots {
				t.Errorf("%s: %d slots in use, %v, want %d", x.Name, n, err, h.UsedSlots)
			}
		}
		want := slices.Clone(m.StoreView.Index.Files)
		if m.StoreView.AbortFilePresentBeforeLoad && len(heads) == len(want) { // Apache's load built it again
			for i := range want {
				want[i].File = heads[i].File
			}
		}
		if diff := cmp.Diff(want, heads); diff != "" {
			t.Errorf("heads:\n%s", diff)
		}
	})
}

func TestGoldenCheckpoint(t *testing.T) {
	eachSound(t, func(t *testing.T, d *inspect.Dir, m *testkit.Manifest) {
		c, ok, err := d.Checkpoint()
		got := testkit.Checkpoint{
			PhysicMsgTimestamp: c.PhysicTime, LogicsMsgTimestamp: c.LogicsTime, IndexMsgTimestamp: c.IndexTime,
			MasterFlushedOffset: c.MasterFlushed, ConfirmPhyOffset: c.ConfirmPhys, LogicsPhysicalOffset: c.LogicsPhysOffset,
		}
		if err != nil || !ok || got != m.StoreView.CheckpointBeforeLoad {
			t.Errorf("%+v, %v, %v, want %+v", got, ok, err, m.StoreView.CheckpointBeforeLoad)
		}
		if d.InUse().Abort != m.StoreView.AbortFilePresentBeforeLoad || d.InUse().Locked {
			t.Errorf("in use: %+v", d.InUse())
		}
	})
}

func TestGoldenInfo(t *testing.T) {
	eachSound(t, func(t *testing.T, d *inspect.Dir, m *testkit.Manifest) {
		i, err := d.Info(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		v := m.StoreView
		if i.LogMin != v.CommitLogMinOffset || i.LogEnd != v.CommitLogMaxOffset {
			t.Errorf("log %d..%d, want %d..%d", i.LogMin, i.LogEnd, v.CommitLogMinOffset, v.CommitLogMaxOffset)
		}
		if i.First == nil || i.First.Time != v.EarliestMessageTime {
			t.Errorf("first %+v, want %d", i.First, v.EarliestMessageTime)
		}
		last := v.CommitLogRecords[len(v.CommitLogRecords)-1]
		if i.Last == nil || i.Last.Phys != last.PhysicalOffset || i.Last.Time != last.StoreTimestamp || i.Last.Topic != last.Topic {
			t.Errorf("last %+v, want %+v", i.Last, last)
		}
		messages := map[string]int64{}
		for _, q := range v.ConsumeQueues {
			messages[q.Topic] += q.MaxOffset - q.MinOffset
		}
		for _, topic := range i.Topics {
			if topic.Messages != messages[topic.Topic] {
				t.Errorf("%s: %d messages, want %d", topic.Topic, topic.Messages, messages[topic.Topic])
			}
			delete(messages, topic.Topic)
		}
		if len(messages) > 0 {
			t.Errorf("no word of %v", messages)
		}
		if len(d.Foreign()) > 0 || len(i.Holes) > 0 {
			t.Errorf("foreign %v, holes %v", d.Foreign(), i.Holes)
		}
		for key, want := range m.BrokerConfig {
			if got, ok := i.Settings[key]; ok && got != want {
				t.Errorf("%s=%s, want %s", key, got, want)
			}
		}
	})
}

// storedMax is the end of a queue by Apache's own classes, after the broker had stopped.
func storedMax(m *testkit.Manifest, c testkit.ConsumeStat) int64 {
	for _, q := range m.StoreView.ConsumeQueues {
		if q.Topic == c.Topic && q.QueueID == c.QueueID {
			return q.MaxOffset
		}
	}
	return -1
}

// Offsets, lag and ends are those that Apache's client was told by the broker before it stopped.
func TestGoldenOffsets(t *testing.T) {
	var checked atomic.Int64
	eachSound(t, func(t *testing.T, d *inspect.Dir, m *testkit.Manifest) {
		if m.ClientView == nil {
			t.Skip("no client read the store")
		}
		lags, err := d.Lags(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		have := map[inspect.GroupOffset]inspect.Lag{}
		for _, l := range lags {
			key := l.GroupOffset
			key.Offset = 0
			have[key] = l
			if l.State != inspect.LagOK && l.State != inspect.LagNoTopic && l.State != inspect.LagBelow {
				t.Errorf("%+v: %s", l.GroupOffset, l.State)
			}
		}
		for _, c := range m.ClientView.ConsumeStats {
			l, ok := have[inspect.GroupOffset{Group: c.Group, Topic: c.Topic, Queue: c.QueueID}]
			if !ok && c.ConsumerOffset <= 0 {
				continue // it never committed
			}
			if l.Max != c.BrokerOffset && l.Max == storedMax(m, c) || strings.HasSuffix(m.Variant, "_running") {
				continue // the broker went on with it, or the copy is older than the answer
			}
			checked.Add(1)
			if behind := c.BrokerOffset - c.ConsumerOffset; l.Offset != c.ConsumerOffset || l.Max != c.BrokerOffset || l.Lag != min(behind, l.Max-l.Min) {
				t.Errorf("%s of %s/%d: %+v, the broker said offset %d, end %d", c.Group, c.Topic, c.QueueID, l, c.ConsumerOffset, c.BrokerOffset)
			}
		}
		topics, err := d.Topics()
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range m.ClientView.TopicConfigs {
			got, ok := topics[want.Topic]
			if !ok || got.ReadQueues != int64(want.ReadQueueNums) || got.WriteQueues != int64(want.WriteQueueNums) || got.Perm != int64(want.Perm) || got.Order != want.Order {
				t.Errorf("topic %s: %+v, the broker said %+v", want.Topic, got, want)
			}
		}
		groups, err := d.Groups()
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range m.ClientView.SubscriptionGroups {
			got, ok := groups[want.GroupName]
			if !ok || got.RetryMax != int64(want.RetryMaxTimes) || got.RetryQueues != int64(want.RetryQueueNums) || got.ConsumeEnable != want.ConsumeEnable {
				t.Errorf("group %s: %+v, the broker said %+v", want.GroupName, got, want)
			}
		}
	})
	t.Cleanup(func() { // behind the parallel ones
		if n := checked.Load(); n < 20 {
			t.Errorf("%d offsets were compared", n)
		}
	})
}
