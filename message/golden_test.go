package message_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mqx/internal/testkit"
	"mqx/message"
)

const bodyLimit = 8 << 20

func sha(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// goldenRecords returns what Apache read from the log of a golden store, before damage if there was any, and whether
// the bytes in the archive are those that it read.
func goldenRecords(m *testkit.Manifest) (records []testkit.LogRecord, damaged bool) {
	if m.StoreView != nil {
		return m.StoreView.CommitLogRecords, false
	}
	return m.BeforeDamage.Records, true
}

// Every record of every golden store decodes to what Apache decoded, re-encodes to the same bytes, and View agrees.
func TestGoldenRecords(t *testing.T) {
	seen := map[string]int{}
	for _, variant := range testkit.GoldenStores() {
		t.Run(variant, func(t *testing.T) {
			log := testkit.GoldenCommitLog(t, testkit.GoldenStore(t, variant))
			records, damaged := goldenRecords(testkit.GoldenManifest(t, variant))
			broken := 0
			for i := range records {
				want := &records[i]
				b := log.From(want.Offset())
				if b == nil {
					if !damaged {
						t.Fatalf("no bytes at %d", want.Offset())
					}
					broken++
					continue
				}
				if want.IsBlank() {
					checkBlank(t, b, want)
					continue
				}
				if damaged && (int64(len(b)) < want.Len() || sha(b[:want.Len()]) != want.RecordSHA256) {
					broken++
					checkBroken(t, b, want)
					continue
				}
				checkRecord(t, b, want)
				count(seen, want)
			}
			if strings.HasPrefix(variant, "crash_torn") && broken != 1 || strings.HasSuffix(variant, "_reference") && broken != 0 {
				t.Errorf("%d broken records", broken)
			}
		})
	}
	for _, kind := range []string{
		"V1", "V2", "IPv6", "inner batch", "LZ4", "ZSTD", "ZLIB", "propcrc", "commit", "no tags", "unicode",
	} {
		if seen[kind] == 0 {
			t.Errorf("no golden record of kind %s", kind)
		}
	}
	t.Logf("kinds of records: %v", seen)
}

func count(seen map[string]int, r *testkit.LogRecord) {
	seen[r.MagicCode]++
	if r.SysFlag&message.FlagBornHostV6 != 0 && r.SysFlag&message.FlagStoreHostV6 != 0 {
		seen["IPv6"]++
	}
	if r.SysFlag&message.FlagInnerBatch != 0 {
		seen["inner batch"]++
	}
	if r.SysFlag&message.FlagCompressed != 0 {
		seen[message.CompressionOf(r.SysFlag).String()]++
	}
	if r.Properties[message.PropCRC32] != "" {
		seen["propcrc"]++
	}
	switch message.Transaction(r.SysFlag) {
	case message.TransactionPrepared:
		seen["prepared"]++
	case message.TransactionCommit:
		seen["commit"]++
	case message.TransactionRollback:
		seen["rollback"]++
	}
	if r.Tags == nil {
		seen["no tags"]++
	} else if strings.ContainsFunc(*r.Tags, func(r rune) bool { return r > 0x7F }) {
		seen["unicode"]++
	}
}

func checkBlank(t *testing.T, b []byte, want *testkit.LogRecord) {
	t.Helper()
	rec, err := message.DecodeRecord(b, message.DecodeOptions{VerifyBodyCRC: true})
	if !errors.Is(err, message.ErrBlank) || int64(rec.Size) != want.BlankLen || rec.Magic != message.MagicBlank {
		t.Errorf("blank at %d: size %d, magic %d, %v", want.Offset(), rec.Size, rec.Magic, err)
	}
	if got := message.AppendBlank(nil, int32(want.BlankLen)); !bytes.Equal(got, b[:message.BlankLen]) {
		t.Errorf("blank at %d: encodes to %x, want %x", want.Offset(), got, b[:message.BlankLen])
	}
}

// checkBroken checks that a damaged record is refused and does not take the decoder along.
func checkBroken(t *testing.T, b []byte, want *testkit.LogRecord) {
	t.Helper()
	_, err := message.DecodeRecord(b, message.DecodeOptions{VerifyBodyCRC: true})
	if !message.IsCorrupt(err) && !errors.Is(err, message.ErrShort) {
		t.Errorf("damaged record at %d: %v", want.Offset(), err)
	}
}

func checkRecord(t *testing.T, b []byte, want *testkit.LogRecord) {
	t.Helper()
	hasCRC := want.Properties[message.PropCRC32] != ""
	o := message.DecodeOptions{VerifyBodyCRC: true, VerifyPropCRC: hasCRC}
	rec, err := message.DecodeRecord(b, o)
	if err != nil {
		t.Fatalf("record at %d: %v", want.PhysicalOffset, err)
	}
	raw := b[:rec.Size]
	if got := sha(raw); got != want.RecordSHA256 {
		t.Fatalf("record at %d: %d bytes are not the record Apache read", want.PhysicalOffset, rec.Size)
	}
	w := want.Message
	w.BodyText = nil // compared once decompressed
	w.BornHost, w.StoreHost = goHost(t, w.BornHost), goHost(t, w.StoreHost)
	if d := cmp.Diff(w, goldenMessage(&rec)); d != "" {
		t.Errorf("record at %d (-want +got):\n%s", want.PhysicalOffset, d)
	}
	if magic := map[string]int32{"V1": message.MagicV1, "V2": message.MagicV2}[want.MagicCode]; rec.Magic != magic {
		t.Errorf("record at %d: magic %d, want %d", want.PhysicalOffset, rec.Magic, magic)
	}
	checkDispatch(t, &rec, want)
	checkUncompressed(t, &rec, want)
	checkEncode(t, raw, &rec, hasCRC)
	checkView(t, raw, &rec)
}

// goldenMessage brings a decoded record into the manifest's form.
func goldenMessage(rec *message.Record) testkit.Message {
	m := testkit.Message{
		Topic: string(rec.Topic), QueueID: rec.QueueID, QueueOffset: rec.QueueOffset,
		PhysicalOffset: rec.PhysicalOffset, StoreSize: rec.Size, Flag: rec.Flag, SysFlag: rec.SysFlag,
		OffsetMsgID:   message.FormatOffsetID(rec.StoreHost, rec.PhysicalOffset),
		BornTimestamp: rec.BornTimestamp, BornHost: rec.BornHost.String(),
		StoreTimestamp: rec.StoreTimestamp, StoreHost: rec.StoreHost.String(),
		ReconsumeTimes: rec.ReconsumeTimes, PreparedTransactionOffset: rec.PreparedTransactionOffset,
		BodyCRC: rec.BodyCRC, Properties: message.ParseProperties(rec.Properties),
		BodyLen: len(rec.Body), BodySHA256: sha(rec.Body),
	}
	m.Tags, m.Keys = optional(rec.Properties, message.PropTags), optional(rec.Properties, message.PropKeys)
	return m
}

// goHost turns Java's text of an address and port ([0:0:0:0:0:0:0:1]:10911) into Go's.
func goHost(t *testing.T, s string) string {
	t.Helper()
	a, err := netip.ParseAddrPort(s)
	if err != nil {
		t.Fatal(err)
	}
	return a.String()
}

func optional(props []byte, name string) *string {
	v, ok := message.Property(props, name)
	if !ok {
		return nil
	}
	s := string(v)
	return &s
}

func checkDispatch(t *testing.T, rec *message.Record, want *testkit.LogRecord) {
	t.Helper()
	tags, _ := message.Property(rec.Properties, message.PropTags)
	code := message.TagsCode(tags)
	if level, ok := message.Property(rec.Properties, message.PropDelay); ok && want.Topic == message.TopicSchedule {
		code = rec.StoreTimestamp + delayMs(t, string(level))
	}
	if code != want.Dispatch.TagsCode {
		t.Errorf("record at %d: tags code %d, want %d", want.PhysicalOffset, code, want.Dispatch.TagsCode)
	}
	if d := cmp.Diff(want.Dispatch.UniqKey, optional(rec.Properties, message.PropUniqKey)); d != "" {
		t.Errorf("record at %d: unique key (-want +got):\n%s", want.PhysicalOffset, d)
	}
	if d := cmp.Diff(want.Dispatch.Keys, optional(rec.Properties, message.PropKeys)); d != "" {
		t.Errorf("record at %d: keys (-want +got):\n%s", want.PhysicalOffset, d)
	}
}

// delayMs is the default table of delay levels, as far as the golden stores use it.
func delayMs(t *testing.T, level string) int64 {
	t.Helper()
	levels := strings.Fields("1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h")
	n, err := strconv.Atoi(level)
	if err != nil || n < 1 || n > len(levels) {
		t.Fatalf("delay level %q", level)
	}
	d, err := time.ParseDuration(levels[n-1])
	if err != nil {
		t.Fatal(err)
	}
	return d.Milliseconds()
}

func checkUncompressed(t *testing.T, rec *message.Record, want *testkit.LogRecord) {
	t.Helper()
	body, err := message.Decompress(rec.Body, rec.SysFlag, bodyLimit)
	if err != nil {
		t.Fatalf("record at %d: %v", want.PhysicalOffset, err)
	}
	if want.UncompressedBodyLen == nil {
		if rec.SysFlag&message.FlagCompressed != 0 {
			t.Errorf("record at %d is compressed, the manifest says it is not", want.PhysicalOffset)
		}
		body = rec.Body
	} else if len(body) != *want.UncompressedBodyLen || sha(body) != want.UncompressedBodySHA256 {
		t.Errorf("record at %d: body decompresses to %d bytes, want %d", want.PhysicalOffset, len(body), *want.UncompressedBodyLen)
	}
	text := want.BodyText
	if want.UncompressedBodyText != nil {
		text = want.UncompressedBodyText
	}
	if text != nil && string(body) != *text {
		t.Errorf("record at %d: body %q, want %q", want.PhysicalOffset, body, *text)
	}
	if want.InnerMessages != nil {
		checkInner(t, body, want)
	}
}

func checkInner(t *testing.T, body []byte, want *testkit.LogRecord) {
	t.Helper()
	var again []byte
	i := 0
	for item, err := range message.SplitBatch(body) {
		if err != nil {
			t.Fatalf("record at %d: %v", want.PhysicalOffset, err)
		}
		if i >= len(want.InnerMessages) {
			t.Fatalf("record at %d: more than %d inner messages", want.PhysicalOffset, i)
		}
		w := &want.InnerMessages[i]
		if item.Flag != w.Flag || len(item.Body) != w.BodyLen || sha(item.Body) != w.BodySHA256 {
			t.Errorf("record at %d inner %d: flag %d, body %q", want.PhysicalOffset, i, item.Flag, item.Body)
		}
		if d := cmp.Diff(w.Properties, message.ParseProperties(item.Properties)); d != "" {
			t.Errorf("record at %d inner %d (-want +got):\n%s", want.PhysicalOffset, i, d)
		}
		again = message.AppendBatchItem(again, item.Flag, item.Body, item.Properties)
		i++
	}
	if i != len(want.InnerMessages) {
		t.Errorf("record at %d: %d inner messages, want %d", want.PhysicalOffset, i, len(want.InnerMessages))
	}
	// Apache writes item heads of zeros; if it did not, again would differ.
	if !bytes.Equal(again, body) {
		t.Errorf("record at %d: batch does not encode to the same bytes", want.PhysicalOffset)
	}
}

// checkEncode encodes a decoded record in the two steps of the append path.
func checkEncode(t *testing.T, raw []byte, rec *message.Record, propCRC bool) {
	t.Helper()
	in := *rec
	in.Magic, in.Size, in.BodyCRC, in.QueueOffset, in.PhysicalOffset, in.StoreTimestamp = 0, 0, 0, 0, 0, 0
	if n := in.EncodedLen(propCRC); n != len(raw) {
		t.Errorf("record at %d: encoded length %d, want %d", rec.PhysicalOffset, n, len(raw))
	}
	out := bytes.Repeat([]byte{0xEE}, len(raw)+10)[:10] // what was in the buffer must not shine through
	out = in.Append(out, propCRC)[10:]
	message.PatchOffsets(out, rec.QueueOffset, rec.PhysicalOffset, rec.StoreTimestamp)
	if propCRC {
		message.SealPropCRC(out)
	}
	if !bytes.Equal(out, raw) {
		t.Errorf("record at %d does not encode to the same bytes:\n%s", rec.PhysicalOffset,
			cmp.Diff(hex.Dump(raw), hex.Dump(out)))
	}
	// Properties byte for byte, piece by piece.
	var props []byte
	message.EachProperty(rec.Properties, func(name, value []byte) bool {
		props = message.AppendProperty(props, string(name), string(value))
		return true
	})
	// Apache stores TRACE_CONTEXT without a value in the delete marker of a recalled message; no reader sees it.
	want := bytes.ReplaceAll(rec.Properties, []byte("TRACE_CONTEXT\x01\x02"), nil)
	if !bytes.Equal(props, want) {
		t.Errorf("record at %d: properties %q, want %q", rec.PhysicalOffset, props, rec.Properties)
	}
}

func checkView(t *testing.T, raw []byte, rec *message.Record) {
	t.Helper()
	v, err := message.ParseView(raw, message.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := v.Record()
	if d := cmp.Diff(*rec, got, cmp.Comparer(func(a, b message.Record) bool { return equalRecords(&a, &b) })); d != "" {
		t.Errorf("view at %d:\n%s", rec.PhysicalOffset, d)
	}
	if v.Transaction() != message.Transaction(rec.SysFlag) || v.BodyLen() != len(rec.Body) {
		t.Errorf("view at %d: transaction %d, body of %d", rec.PhysicalOffset, v.Transaction(), v.BodyLen())
	}
}

func equalRecords(a, b *message.Record) bool {
	return a.Magic == b.Magic && a.Size == b.Size && a.BodyCRC == b.BodyCRC && a.QueueID == b.QueueID &&
		a.Flag == b.Flag && a.QueueOffset == b.QueueOffset && a.PhysicalOffset == b.PhysicalOffset &&
		a.SysFlag == b.SysFlag && a.BornTimestamp == b.BornTimestamp && a.BornHost == b.BornHost &&
		a.StoreTimestamp == b.StoreTimestamp && a.StoreHost == b.StoreHost && a.ReconsumeTimes == b.ReconsumeTimes &&
		a.PreparedTransactionOffset == b.PreparedTransactionOffset && bytes.Equal(a.Body, b.Body) &&
		bytes.Equal(a.Topic, b.Topic) && bytes.Equal(a.Properties, b.Properties)
}

// A walk from the first record over records and blanks finds exactly the records that Apache's walk found.
func TestGoldenWalk(t *testing.T) {
	for _, variant := range testkit.GoldenStores() {
		m := testkit.GoldenManifest(t, variant)
		if m.StoreView == nil {
			continue
		}
		log := testkit.GoldenCommitLog(t, testkit.GoldenStore(t, variant))
		off, found := m.StoreView.CommitLogMinOffset, []int64{}
		for {
			rec, err := message.DecodeRecord(log.From(off), message.DecodeOptions{VerifyBodyCRC: true})
			if err != nil && !errors.Is(err, message.ErrBlank) {
				break
			}
			found = append(found, off)
			off += int64(rec.Size)
		}
		var want []int64
		for _, r := range m.StoreView.CommitLogRecords {
			want = append(want, r.Offset())
		}
		if d := cmp.Diff(want, found); d != "" || off != m.StoreView.CommitLogWalkStoppedAt {
			t.Errorf("%s: walk ends at %d, want %d; offsets (-want +got):\n%s", variant, off, m.StoreView.CommitLogWalkStoppedAt, d)
		}
	}
}

// Every id in the manifests parses, says what the record says, and formats back.
func TestGoldenIDs(t *testing.T) {
	offsetIDs, uniqueIDs := 0, 0
	for _, variant := range testkit.GoldenStores() {
		m := testkit.GoldenManifest(t, variant)
		records, _ := goldenRecords(m)
		for i := range records {
			r := &records[i]
			if r.IsBlank() {
				continue
			}
			host, phys, err := message.ParseOffsetID(r.OffsetMsgID)
			if err != nil || host.String() != goHost(t, r.StoreHost) || phys != r.PhysicalOffset {
				t.Errorf("%s: id %s: %v, %d, %v", variant, r.OffsetMsgID, host, phys, err)
			}
			offsetIDs++
			if checkUniqueID(t, variant, r) {
				uniqueIDs++
			}
		}
		for _, op := range m.Ops {
			if op.OffsetMsgID == "" {
				continue
			}
			for id := range strings.SplitSeq(op.OffsetMsgID, ",") {
				host, phys, err := message.ParseOffsetID(id)
				if err != nil || message.FormatOffsetID(host, phys) != id {
					t.Errorf("%s: id %s: %v, %d, %v", variant, id, host, phys, err)
				}
			}
		}
	}
	for _, ack := range testkit.GoldenManifest(t, "crash_midwrite").Acknowledged {
		host, phys, err := message.ParseOffsetID(ack.OffsetMsgID)
		if err != nil || message.FormatOffsetID(host, phys) != ack.OffsetMsgID {
			t.Errorf("acknowledged %d: %s: %v", ack.I, ack.OffsetMsgID, err)
		}
		if id, err := message.ParseUniqueID(ack.MsgID); err != nil || id.String() != ack.MsgID {
			t.Errorf("acknowledged %d: %s: %v", ack.I, ack.MsgID, err)
		}
	}
	if offsetIDs < 4000 || uniqueIDs < 4000 {
		t.Errorf("%d offset ids, %d unique ids", offsetIDs, uniqueIDs)
	}
}

// checkUniqueID checks a UNIQ_KEY; pop's own records have keys of another form.
func checkUniqueID(t *testing.T, variant string, r *testkit.LogRecord) bool {
	t.Helper()
	if strings.Contains(r.UniqKey, "@") || r.UniqKey == "" {
		return false
	}
	id, err := message.ParseUniqueID(r.UniqKey)
	if err != nil || id.String() != r.UniqKey {
		t.Errorf("%s: unique id %s: %#v, %v", variant, r.UniqKey, id, err)
		return false
	}
	// Months are counted in the producer's time zone, which was UTC. Copies of a message keep its id.
	stored := time.UnixMilli(r.StoreTimestamp).UTC()
	if made := id.Time(stored); stored.Sub(made) > 10*time.Minute {
		t.Errorf("%s: unique id %s is from %v, its record from %v", variant, r.UniqKey, made, stored)
	}
	return true
}

// What DecodeMessages makes of records is what Apache's pull consumer made of them.
func TestGoldenReceived(t *testing.T) {
	seen := 0
	for _, variant := range testkit.GoldenStores() {
		m := testkit.GoldenManifest(t, variant)
		if m.ClientView == nil {
			continue
		}
		log := testkit.GoldenCommitLog(t, testkit.GoldenStore(t, variant))
		for _, q := range m.ClientView.Queues {
			for i := range q.Messages {
				want := &q.Messages[i]
				b := log.From(want.PhysicalOffset)
				if b == nil {
					if variant != "roll" {
						t.Errorf("%s: no bytes at %d", variant, want.PhysicalOffset)
					}
					continue
				}
				checkReceived(t, variant, b[:binary.BigEndian.Uint32(b)], want)
				seen++
			}
		}
	}
	if seen < 1400 {
		t.Errorf("only %d messages compared", seen)
	}
}

func checkReceived(t *testing.T, variant string, b []byte, want *testkit.Message) {
	t.Helper()
	for got, err := range message.DecodeMessages(b, message.ReceiveOptions{VerifyBodyCRC: true, BodyLimit: bodyLimit}) {
		if err != nil {
			t.Errorf("%s at %d: %v", variant, want.PhysicalOffset, err)
			return
		}
		if got.QueueOffset != want.QueueOffset {
			continue // another message of the same inner batch
		}
		m := testkit.Message{
			Topic: got.Topic, QueueID: got.QueueID, QueueOffset: got.QueueOffset, PhysicalOffset: got.PhysicalOffset,
			StoreSize: got.Size, MsgID: want.MsgID, OffsetMsgID: got.OffsetID(), Flag: got.Flag, SysFlag: got.SysFlag,
			BornTimestamp: got.BornTimestamp, BornHost: got.BornHost.String(),
			StoreTimestamp: got.StoreTimestamp, StoreHost: got.StoreHost.String(),
			ReconsumeTimes: got.ReconsumeTimes, PreparedTransactionOffset: got.PreparedTransactionOffset,
			BodyCRC: got.BodyCRC, Tags: want.Tags, Keys: want.Keys, Properties: got.Properties,
			BodyLen: len(got.Body), BodySHA256: sha(got.Body), BodyText: want.BodyText,
		}
		if want.OffsetMsgID == "" {
			m.OffsetMsgID = ""
		}
		if id := got.UniqKey(); id != "" && id != want.MsgID {
			t.Errorf("%s at %d: unique key %s, want %s", variant, want.PhysicalOffset, id, want.MsgID)
		}
		w := *want
		w.BornHost, w.StoreHost = goHost(t, w.BornHost), goHost(t, w.StoreHost)
		w.Properties = map[string]string{}
		for k, v := range want.Properties { // these the client adds
			if k != message.PropMinOffset && k != message.PropMaxOffset {
				w.Properties[k] = v
			}
		}
		if d := cmp.Diff(w, m); d != "" {
			t.Errorf("%s at %d (-want +got):\n%s", variant, want.PhysicalOffset, d)
		}
		return
	}
	t.Errorf("%s at %d: no message with queue offset %d", variant, want.PhysicalOffset, want.QueueOffset)
}
