package message

import (
	"bytes"
	"strings"
	"testing"

	"mqx/internal/testkit"
)

// Every record of every golden store goes into lines and comes back the same.
func TestWholeLinesOfGoldenRecords(t *testing.T) {
	withRecord, all := 0, 0
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
			v, err := ParseView(log.From(r.Offset())[:r.Len()], DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			all++
			if checkWholeLines(t, v) {
				withRecord++
			}
		}
	}
	if all < 1000 || withRecord > all/5 {
		t.Errorf("%d of %d records are repeated in their lines", withRecord, all)
	}
}

// checkWholeLines reports whether the record is repeated.
func checkWholeLines(t *testing.T, v View) bool {
	t.Helper()
	lines := v.WholeLines()
	for i := range lines {
		b, err := AppendLine(nil, &lines[i])
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseLine(b)
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if got.RecordMessage != i || got.PhysicalOffset == nil {
			t.Errorf("%s: %+v", b, got)
		}
		if again, err := AppendLine(nil, &got); err != nil || !bytes.Equal(again, b) {
			t.Errorf("%s and again %s, %v", b, again, err)
		}
		if i > 0 {
			continue
		}
		rec, err := got.AppendRecord(nil)
		if err != nil || !bytes.Equal(rec, v) {
			t.Errorf("%s: %x, want %x, %v", b, rec, []byte(v), err)
		}
	}
	return len(lines[0].Record) > 0
}

func TestAppendRecordRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{"topic":"T","body":"x","record":"AAAA"}`:                                                                  "member record",
		`{"topic":"` + strings.Repeat("t", 40000) + `","body":"x"}`:                                                 "topic takes 40000 bytes",
		`{"topic":"T","body":"x","properties":{"a":"` + strings.Repeat("b", 40000) + `"}}`:                          "properties takes",
		`{"topic":"T","body":"","bodyEncoding":"text","physicalOffset":7,"record":"` + oneRecord(t) + `"}`:          "another position",
		`{"topic":"T","body":"","bodyEncoding":"text","physicalOffset":0,"record":"` + oneRecord(t)[:80] + `AAAA"}`: "member record",
	} {
		l, err := ParseLine([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.AppendRecord(nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", text, err, want)
		}
	}
}

func oneRecord(t *testing.T) string {
	t.Helper()
	r := Record{Topic: []byte("T"), Properties: []byte("b\x01x\x02a\x01y")}
	l := View(r.Append(nil, false)).WholeLines()[0]
	l.Record = r.Append(nil, false)
	b, err := AppendLine(nil, &l)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), `"record":"`)
	text, _, _ := strings.Cut(rest, `"`)
	return text
}

func TestRedactedLine(t *testing.T) {
	b, err := AppendLine(nil, &Line{Topic: "T", Body: []byte("secret"), Redacted: true})
	if err != nil || strings.Contains(string(b), "secret") {
		t.Fatalf("%s, %v", b, err)
	}
	if _, err := ParseLine(b); err == nil {
		t.Error("a redacted line was taken")
	}
}
