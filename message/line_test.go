package message

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mqx/internal/testkit"
)

func TestLineRoundTrip(t *testing.T) {
	id, off := int32(3), int64(1)<<53+1
	for _, l := range []Line{
		{Topic: "T", Body: []byte("hello"), Properties: map[string]string{}},
		{
			Topic: "T", QueueID: &id, QueueOffset: &off, StoreTimestamp: 1795992621816, BornTimestamp: 1795992621689,
			BornHost: netip.MustParseAddrPort("127.0.0.1:58420"), StoreHost: netip.MustParseAddrPort("[::1]:10911"),
			MsgID: "C0", Body: []byte{0xff, 0, 1}, ReconsumeTimes: 2, Flag: -7, SysFlag: FlagCompressed,
			Properties: map[string]string{"TAGS": "<a&b>", "KEYS": "k1 k2", "颜色": "红\n"}, RawProperties: []byte("a\x01\xff\x02"),
		},
		{Topic: "T", Body: []byte{}, Properties: map[string]string{}},
	} {
		b, err := AppendLine(nil, &l)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseLine(b)
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if diff := cmp.Diff(l, got, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
			t.Errorf("%s:\n%s", b, diff)
		}
		again, err := AppendLine(nil, &got)
		if err != nil || string(again) != string(b) {
			t.Errorf("%s and again %s, %v", b, again, err)
		}
	}
}

func TestParseLine(t *testing.T) {
	l, err := ParseLine([]byte(`{"body":"x","keys":["a","b"],"tag":"t","new":[1]}`))
	if err != nil || l.Properties["KEYS"] != "a b" || l.Properties["TAGS"] != "t" || l.QueueID != nil {
		t.Errorf("%+v, %v", l, err)
	}
	for text, want := range map[string]string{
		`{"topic":"T"}`:                         "no member body",
		`{"body":"zz","bodyEncoding":"hex"}`:    "body",
		`{"body":"x","bodyEncoding":"rot13"}`:   "rot13",
		`{"body":"x","storeTime":"yesterday"}`:  "storeTime",
		`{"body":"x","bornHost":"nowhere"}`:     "bornHost",
		`{"body":"x","queueId":"3"}`:            "queueId",
		`hello`:                                 "invalid character",
		`{"body":"x","queueId":3000000000000}`:  "queueId",
		`{"body":"x","properties":{"a":["b"]}}`: "properties",
	} {
		if _, err := ParseLine([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// Every record of the golden stores becomes lines that say what Apache's client said of its messages.
func TestGoldenLines(t *testing.T) {
	for _, variant := range testkit.GoldenStores() {
		m := testkit.GoldenManifest(t, variant)
		if m.StoreView == nil {
			continue
		}
		log := testkit.GoldenCommitLog(t, testkit.GoldenStore(t, variant))
		for i := range m.StoreView.CommitLogRecords {
			r := &m.StoreView.CommitLogRecords[i]
			if r.IsBlank() {
				continue
			}
			v, err := ParseView(log.From(r.PhysicalOffset), DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			lines, err := v.Lines(true)
			if err != nil {
				t.Fatalf("%s at %d: %v", variant, r.PhysicalOffset, err)
			}
			want := max(1, len(r.InnerMessages))
			if len(lines) != want || lines[0].Topic != r.Topic || *lines[0].QueueOffset != r.QueueOffset {
				t.Errorf("%s at %d: %d lines, want %d: %+v", variant, r.PhysicalOffset, len(lines), want, lines)
			}
			for _, l := range lines {
				b, err := AppendLine(nil, &l)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := ParseLine(b); err != nil {
					t.Errorf("%s: %v", b, err)
				}
			}
		}
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add([]byte(`{"topic":"T","queueId":1,"queueOffset":2,"body":"x","bodyEncoding":"text","properties":{"a":"b"}}`))
	f.Add([]byte(`{"body":"00ff","bodyEncoding":"hex","bornHost":"[::1]:1","storeTime":"2026-01-02T03:04:05.678Z"}`))
	f.Add([]byte(`{"body":"x","properties":{"b":"1","a":"2","b":"3"},"physicalOffset":7,"recordMessage":1,"logFileSize":9,"record":"AAAA"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := ParseLine(b)
		if err != nil {
			return
		}
		first, err := AppendLine(nil, &l)
		if err != nil {
			t.Skip() // a time that JSON can write and that has no year of four digits
		}
		again, err := ParseLine(first)
		if err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		second, err := AppendLine(nil, &again)
		if err != nil || string(first) != string(second) {
			t.Fatalf("%s then %s, %v", first, second, err)
		}
		rec, err := l.AppendRecord(nil)
		if err != nil {
			return
		}
		v, err := ParseView(rec, DecodeOptions{VerifyBodyCRC: true})
		if err != nil || len(v) != len(rec) {
			t.Fatalf("%s makes the record %x, which is none: %v", b, rec, err)
		}
		for i, w := range v.WholeLines() { // what it is exported as comes back
			if got, err := w.AppendRecord(nil); i == 0 && (err != nil || !bytes.Equal(got, rec)) {
				t.Fatalf("%x comes back as %x, %v", rec, got, err)
			}
		}
		if _, err := l.Message(); err != nil && len(l.Record) == 0 {
			t.Fatalf("%s has a record and no message: %v", b, err)
		}
	})
}
