package inspect_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"mqx/internal/testkit"
	"mqx/message"
	"mqx/store"
	"mqx/store/inspect"
)

// putSingle sends one message that is no batch to the topic of a store that has batch queues.
func putSingle(t *testing.T, root string) {
	t.Helper()
	host := netip.MustParseAddrPort("127.0.0.1:1234")
	putInto(t, root, &store.Put{Record: message.Record{
		Topic: []byte("BcqTopic"), QueueID: 0, Body: []byte("alone"), BornHost: host, StoreHost: host, BornTimestamp: 1_700_000_000_000,
		Properties: message.AppendProperty(nil, message.PropUniqKey, "C000020272F74E0E2F2A9518AA000001"),
	}})
}

// putInto opens a store of batch queues with mqx and stores messages, one after the other.
func putInto(t *testing.T, root string, puts ...*store.Put) {
	t.Helper()
	cfg := store.DefaultConfig()
	cfg.RootDir, cfg.Logger = root, slog.New(slog.DiscardHandler)
	cfg.BatchTopic = func(topic string) bool { return topic == "BcqTopic" }
	size := func(name string) int {
		st, err := os.Stat(filepath.Join(root, name, inspect.FileName(0)))
		try(t, err)
		return int(st.Size())
	}
	cfg.CommitLogFileBytes, cfg.BatchConsumeQueueFileBytes = size("commitlog"), size("batchconsumequeue/BcqTopic/0")
	d, err := inspect.Open(root, inspect.Options{})
	try(t, err)
	index, err := d.Index()
	try(t, errors.Join(err, d.Close()))
	cfg.MaxHashSlotNum, cfg.MaxIndexNum = int(index[0].Slots), int(index[0].Entries)
	s, err := store.Open(cfg)
	try(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	for _, p := range puts {
		p.Done = func(*store.Put) {}
		s.PutBatch([]*store.Put{p})
		try(t, p.Err)
	}
	cancel()
	try(t, errors.Join(<-done, s.Close()))
}

// A message that was sent alone to a topic with batch queues: mqx lists it, and verify says so when its unit is gone; where
// Apache's broker wrote, which lists batches only, it is worth a note.
func TestVerifySingleOfBatchTopic(t *testing.T) {
	root := testkit.GoldenStore(t, "batchcq")
	before := verify(t, root)
	putSingle(t, root)
	if r := verify(t, root); r.Damaged() || r.Records != before.Records+1 || r.Units != before.Units+1 {
		t.Fatalf("%d records, %d units, before %d and %d: %s", r.Records, r.Units, before.Records, before.Units, findingsText(r))
	}
	name := filepath.Join(root, "batchconsumequeue/BcqTopic/0", inspect.FileName(0))
	b, err := os.ReadFile(name)
	try(t, err)
	const unit = 46
	last := (len(bytes.TrimRight(b, "\x00")) - 1) / unit * unit // the reserved end of a unit is zero
	// Another base is none that the record has.
	b[last+33] ^= 1
	try(t, os.WriteFile(name, b, 0o600))
	if r := verify(t, root); !r.Damaged() {
		t.Error("a unit with another base: no finding")
	}
	clear(b[last : last+unit])
	try(t, os.WriteFile(name, b, 0o600))
	if r := verify(t, root); !r.Damaged() {
		t.Error("mqx: the unit is gone: no finding")
	}
	apache := filepath.Join(t.TempDir(), "store")
	copyTree(t, root, apache)
	try(t, os.RemoveAll(filepath.Join(apache, "mqx")))
	r := verify(t, apache)
	if r.Damaged() {
		t.Errorf("Apache: %s", findingsText(r))
	}
	noted := int64(0)
	for _, f := range r.Findings {
		if f.Kind == inspect.FindRecordsUnseen {
			noted += f.Messages
		}
	}
	if noted != 1 {
		t.Errorf("Apache: %d messages noted, want 1", noted)
	}
	repair(t, root)
	if r := verify(t, root); r.Damaged() || r.Units != before.Units+1 {
		t.Errorf("after the repair %d units, want %d: %s", r.Units, before.Units+1, findingsText(r))
	}
}

// Batches that come again in a retry topic are single messages of a plain queue there: mqx lists them so, verify expects
// that, and so does a queue that is built again, by repair and by the broker's start.
func TestBatchesOfRetryTopics(t *testing.T) {
	root := testkit.GoldenStore(t, "batchcq")
	before := verify(t, root)
	host := netip.MustParseAddrPort("127.0.0.1:1234")
	again := func() *store.Put {
		return &store.Put{Whole: true, Record: message.Record{
			Topic: []byte("%RETRY%G"), Body: []byte("three messages"), BornHost: host, StoreHost: host, BornTimestamp: 1_700_000_000_000,
			SysFlag: message.FlagInnerBatch | message.FlagNeedUnwrap, Properties: message.AppendProperty(nil, message.PropInnerNum, "3"),
		}}
	}
	putInto(t, root, again(), again())
	look := func(when string, units int64) {
		t.Helper()
		r := verify(t, root)
		if r.Damaged() || r.Units != before.Units+units {
			t.Errorf("%s: %d units, want %d: %s", when, r.Units, before.Units+units, findingsText(r))
		}
		if _, err := os.Stat(filepath.Join(root, "batchconsumequeue", "%RETRY%G")); err == nil {
			t.Errorf("%s: a batch queue of a retry topic", when)
		}
	}
	look("stored", 2)
	name := filepath.Join(root, "consumequeue/%RETRY%G/0", inspect.FileName(0))
	b, err := os.ReadFile(name)
	try(t, err)
	clear(b[20:])
	try(t, os.WriteFile(name, b, 0o600))
	if r := verify(t, root); !r.Damaged() {
		t.Error("a unit is gone: no finding")
	}
	repair(t, root)
	look("repaired", 2)
	try(t, os.RemoveAll(filepath.Join(root, "consumequeue/%RETRY%G")))
	p := again()
	putInto(t, root, p)
	if p.QueueOffset != 2 {
		t.Errorf("the next message was stored at %d, want 2", p.QueueOffset)
	}
	look("opened again", 3)
}
