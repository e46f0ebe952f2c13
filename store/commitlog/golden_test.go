package commitlog_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mqx/internal/clock"
	"mqx/internal/testkit"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/store/commitlog"
)

func openGolden(t *testing.T, variant string, readOnly bool) (l *commitlog.Log, dir string) {
	t.Helper()
	dir = filepath.Join(testkit.GoldenStore(t, variant), "commitlog")
	l, err := commitlog.Open(commitlog.Config{Dir: dir, ReadOnly: readOnly, Clock: clock.NewManual(epoch), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, dir
}

type goldenRec struct {
	off int64
	sha string
}

func walkGolden(t *testing.T, l *commitlog.Log, from int64, o commitlog.WalkOptions) ([]goldenRec, commitlog.WalkEnd) {
	t.Helper()
	var out []goldenRec
	end, err := l.Walk(from, o, func(off int64, v message.View) error {
		sum := sha256.Sum256(v)
		out = append(out, goldenRec{off, hex.EncodeToString(sum[:])})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out, end
}

func compareGolden(t *testing.T, got, want []goldenRec) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Fatalf("record %d at %d is missing (%d of %d)", i, want[i].off, len(got), len(want))
		case i >= len(want):
			t.Fatalf("record %d at %d is too much", i, got[i].off)
		case got[i] != want[i]:
			t.Fatalf("record %d: %+v, want %+v", i, got[i], want[i])
		}
	}
}

func recordsOf(list []testkit.LogRecord) []goldenRec {
	var out []goldenRec
	for i := range list {
		if r := &list[i]; !r.IsBlank() {
			out = append(out, goldenRec{r.PhysicalOffset, r.RecordSHA256})
		}
	}
	return out
}

// Stores as Apache left them: the walk delivers the records that Apache reads, byte for byte, in every way of walking.
func TestGoldenWalk(t *testing.T) {
	for _, variant := range testkit.GoldenStores() {
		m := testkit.GoldenManifest(t, variant)
		if m.StoreView == nil {
			continue
		}
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			want := recordsOf(m.StoreView.CommitLogRecords)
			l, _ := openGolden(t, variant, false)
			if l.Min() != m.StoreView.CommitLogMinOffset {
				t.Fatalf("Min = %d, want %d", l.Min(), m.StoreView.CommitLogMinOffset)
			}
			findings := 0
			count := func(commitlog.Finding) error { findings++; return nil }
			got, end := walkGolden(t, l, l.Min(), commitlog.WalkOptions{VerifyBody: true, VerifyProp: true, OnFinding: count})
			compareGolden(t, got, want)
			if end.Offset != m.StoreView.CommitLogMaxOffset || end.Reason != commitlog.EndOfData || findings != 0 {
				t.Fatalf("end %+v, want %d; %d findings", end, m.StoreView.CommitLogMaxOffset, findings)
			}
			if err := l.SetEnd(end.Offset); err != nil {
				t.Fatal(err)
			}
			for _, hot := range []bool{false, true} {
				got, end = walkGolden(t, l, l.Min(), commitlog.WalkOptions{Hot: hot})
				compareGolden(t, got, want)
				if end.Reason != commitlog.EndLimit || end.Offset != l.End() {
					t.Fatalf("hot %v: end %+v", hot, end)
				}
			}
			if size := m.BrokerConfig["mappedFileSizeCommitLog"]; size != "" && size != strconv.FormatInt(l.FileSize(), 10) {
				t.Fatalf("file size %d, want %s", l.FileSize(), size)
			}
			for _, r := range want {
				got, end := walkGolden(t, l, r.off, commitlog.WalkOptions{To: r.off + 1})
				if len(got) != 1 || got[0] != r || end.Reason != commitlog.EndLimit {
					t.Fatalf("walk of the record at %d alone: %v, %+v", r.off, got, end)
				}
			}
		})
	}
}

// Damaged stores: every record that is whole on the disk is delivered, whatever stands before it; that is never less
// than what Apache recovers.
func TestGoldenDamaged(t *testing.T) {
	for _, variant := range testkit.GoldenStores() {
		m := testkit.GoldenManifest(t, variant)
		if m.BeforeDamage == nil {
			continue
		}
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			checkDamaged(t, variant, m)
		})
	}
}

func checkDamaged(t *testing.T, variant string, m *testkit.Manifest) {
	t.Helper()
	for _, readOnly := range []bool{true, false} {
		l, dir := openGolden(t, variant, readOnly)
		raw := rawFiles(t, dir)
		var want []goldenRec
		wantEnd := l.Min()
		for _, r := range m.BeforeDamage.Records {
			if r.IsBlank() {
				continue
			}
			if b := raw.at(r.PhysicalOffset, int64(r.StoreSize)); b != nil {
				if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) == r.RecordSHA256 {
					want = append(want, goldenRec{r.PhysicalOffset, r.RecordSHA256})
					wantEnd = r.PhysicalOffset + int64(r.StoreSize)
				}
			}
		}
		var findings []commitlog.Finding
		o := commitlog.WalkOptions{VerifyBody: true, OnFinding: func(f commitlog.Finding) error {
			findings = append(findings, f)
			return nil
		}}
		got, end := walkGolden(t, l, l.Min(), o)
		compareGolden(t, got, want)
		// A walk ends behind its last record, or behind the blank of a file after which nothing is there.
		if end.Offset != wantEnd && raw.at(wantEnd, end.Offset-wantEnd) == nil {
			t.Fatalf("end %+v, want %d", end, wantEnd)
		}
		if a := m.Recovery.StoreViewAfterRecovery; a != nil {
			if end.Offset < a.CommitLogMaxOffset || len(got) < len(recordsOf(a.CommitLogRecords)) {
				t.Fatalf("end %d with %d records; Apache recovers %d with %d",
					end.Offset, len(got), a.CommitLogMaxOffset, len(recordsOf(a.CommitLogRecords)))
			}
		}
		checkFindings(t, variant, findings, end)
		if readOnly {
			if after := rawFiles(t, dir); !after.equal(raw) {
				t.Fatal("reading changed the files")
			}
			continue
		}
		cutAndReopen(t, l, dir, end, want)
	}
}

func checkFindings(t *testing.T, variant string, findings []commitlog.Finding, end commitlog.WalkEnd) {
	t.Helper()
	var want commitlog.FindingKind
	switch {
	case strings.Contains(variant, "midfile_missing"):
		want = commitlog.Hole
	case strings.Contains(variant, "_mid_"):
		want = commitlog.Rot
	}
	switch {
	case want == 0 && len(findings) != 0:
		t.Fatalf("findings %+v", findings)
	case want != 0 && (len(findings) != 1 || findings[0].Kind != want || findings[0].Path == ""):
		t.Fatalf("findings %+v, want kind %d", findings, want)
	}
	torn := strings.Contains(variant, "torn") || strings.Contains(variant, "tail_bad_crc") || strings.Contains(variant, "lastfile_short")
	if torn != (end.Reason == commitlog.EndTorn) || torn != (end.Err != nil) {
		t.Fatalf("end %+v, torn %v", end, torn)
	}
}

// cutAndReopen ends the log where the walk ended and looks whether a second start finds the same, cleanly, and
// whether what was cut is kept.
func cutAndReopen(t *testing.T, l *commitlog.Log, dir string, end commitlog.WalkEnd, want []goldenRec) {
	t.Helper()
	salvage := filepath.Join(filepath.Dir(dir), "mqx", "salvage")
	if end.Reason == commitlog.EndTorn {
		before := rawFiles(t, dir).at(end.Offset, 1)
		if err := l.Truncate(end.Offset, salvage); err != nil {
			t.Fatal(err)
		}
		list, err := os.ReadDir(salvage)
		if err != nil || len(list) != 1 || before == nil {
			t.Fatalf("salvage: %v, %v", list, err)
		}
	} else if err := l.SetEnd(end.Offset); err != nil {
		t.Fatal(err)
	}
	var c commitlog.Counter
	a := one(t, 500, &c)
	mustAppend(t, l, a)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := commitlog.Open(commitlog.Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got, again := walkGolden(t, l, l.Min(), commitlog.WalkOptions{VerifyBody: true})
	if again.Reason != commitlog.EndOfData || again.Offset != a.End || len(got) != len(want)+1 {
		t.Fatalf("after an append and a restart: %+v with %d records, want %d with %d", again, len(got), a.End, len(want)+1)
	}
	compareGolden(t, got[:len(want)], want)
}

type raws map[int64][]byte

func rawFiles(t *testing.T, dir string) raws {
	t.Helper()
	out := raws{}
	list, err := vfs.OS.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		var start int64
		for _, d := range e.Name() {
			start = start*10 + int64(d-'0')
		}
		out[start] = b
	}
	return out
}

func (r raws) at(off, n int64) []byte {
	for start, b := range r {
		if off >= start && off+n <= start+int64(len(b)) && n >= 0 {
			return b[off-start : off-start+n]
		}
	}
	return nil
}

func (r raws) equal(o raws) bool {
	if len(r) != len(o) {
		return false
	}
	for start, b := range r {
		if !bytes.Equal(b, o[start]) {
			return false
		}
	}
	return true
}
