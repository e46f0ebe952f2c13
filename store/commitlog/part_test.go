package commitlog_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"mqx/internal/vfs"
	"mqx/message"
	"mqx/store/commitlog"
)

// otherLog is the bytes of a log of two files of 4096 bytes, and where its records and files end.
func otherLog(tb testing.TB) (all []byte, ends []int64) {
	tb.Helper()
	l := newFixture(tb, 4096).open()
	c := &commitlog.Counter{}
	for i := range 14 {
		r := message.Record{
			Topic: []byte("T"), Body: bytes.Repeat([]byte{byte(i + 1)}, 20+50*(i%3)),
			BornHost: netip.MustParseAddrPort("10.0.0.1:1"), StoreHost: netip.MustParseAddrPort("10.0.0.2:2"),
		}
		if i%5 > 0 {
			r.Properties = []byte("p\x01" + strings.Repeat("x", 150*(i%5)) + "\x02")
		}
		a := &commitlog.Append{Buf: r.Append(nil, false), Counter: c}
		mustAppend(tb, l, a)
		if n := len(ends); n > 0 && ends[n-1] < a.PhysicalOffset {
			ends = append(ends, a.PhysicalOffset)
		}
		ends = append(ends, a.End)
	}
	if l.End() < 5000 {
		tb.Fatalf("the log ends at %d", l.End())
	}
	all = make([]byte, l.End())
	if err := l.ReadAt(all, 0); err != nil {
		tb.Fatal(err)
	}
	return all, ends
}

// endBefore is the last of ends that is not behind n.
func endBefore(ends []int64, n int64) (at int64) {
	for _, end := range ends {
		if end <= n {
			at = end
		}
	}
	return at
}

func wantLog(t *testing.T, l *commitlog.Log, want []byte) {
	t.Helper()
	if l.End() != int64(len(want)) || l.Confirmed() != l.End() {
		t.Errorf("the log ends at %d, confirmed up to %d, want %d", l.End(), l.Confirmed(), len(want))
		return
	}
	if len(want) == 0 {
		return
	}
	got := make([]byte, len(want))
	if err := l.ReadAt(got, 0); err != nil || !bytes.Equal(got, want) {
		t.Errorf("up to %d the log is not the other one (%v)", len(want), err)
	}
}

// A log that follows another holds whole records only, whatever has come: a record that lacks its last bytes has the right sizes and the
// right body, and nobody would see after a kill that it is none.
func TestPartOfARecordIsNotWritten(t *testing.T) {
	all, ends := otherLog(t)
	for n := range int64(len(all) + 1) {
		x := newFixture(t, 4096)
		l := x.open()
		if err := errors.Join(l.AppendRaw(0, all[:n/2]), l.AppendRaw(n/2, all[n/2:n])); err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		want := endBefore(ends, n)
		wantLog(t, l, all[:want])
		killed := newFixture(t, 4096)
		killed.fs = x.fs.(*vfs.Mem).Kill()
		killed.cfg.FS = killed.fs
		again, _ := killed.recover()
		wantLog(t, again, all[:want])
		for _, l := range []*commitlog.Log{l, again} { // the next connection begins at the end
			if err := l.AppendRaw(want, all[want:]); err != nil {
				t.Fatalf("%d bytes: %v", n, err)
			}
			wantLog(t, l, all)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if t.Failed() {
			t.Fatalf("after %d bytes", n)
		}
	}
}

// The same when the power fails, which leaves any sector as it was at some time before.
func TestPartOfARecordAndThePower(t *testing.T) {
	all, ends := otherLog(t)
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 0))
		m := vfs.NewMem()
		m.SetWriteback(seed, 0.7)
		x := newFixture(t, 4096)
		x.fs, x.cfg.FS = m, m
		l := x.open()
		for at, to := int64(0), 1+r.Int64N(int64(len(all))); at < to; {
			n := min(1+r.Int64N(300), to-at)
			if err := l.AppendRaw(at, all[at:at+n]); err != nil {
				t.Fatal(err)
			}
			at += n
		}
		m = m.PowerLoss(seed)
		x = newFixture(t, 4096)
		x.fs, x.cfg.FS = m, m
		l = x.open()
		if len(files(t, l)) == 0 {
			continue
		}
		end, err := l.Walk(0, commitlog.WalkOptions{VerifyBody: true, OnFinding: func(commitlog.Finding) error { return commitlog.ErrStop }},
			func(int64, message.View) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Truncate(end.Offset, ""); err != nil {
			t.Fatal(err)
		}
		if want := endBefore(ends, end.Offset); want != end.Offset && end.Offset != 4096 {
			t.Errorf("the log ends at %d, where no record does", end.Offset)
		}
		wantLog(t, l, all[:end.Offset])
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// What a slave of Apache's leaves may end in any byte of a record: a start takes no part of one for a record.
func TestPartOfARecordThatWasWritten(t *testing.T) {
	all, ends := otherLog(t)
	for n := range int64(len(all)) {
		x := newFixture(t, 4096)
		x.makeFiles(map[int64]int64{0: 4096, 4096: 4096})
		x.corrupt(0, all[:min(n, 4096)])
		if n > 4096 {
			x.corrupt(4096, all[4096:n])
		}
		l := x.open()
		_, end := walk(t, l, 0, commitlog.WalkOptions{VerifyBody: true, VerifyEnd: true})
		want := endBefore(ends, n)
		if end.Offset != want && !bytes.Equal(append(bytes.Clone(all[:n]), make([]byte, end.Offset-n)...), all[:end.Offset]) {
			t.Fatalf("of %d bytes those up to %d are taken for records (%v), want %d", n, end.Offset, end.Reason, want)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Properties that end in a zero byte, as others may store them, are those of a record that others follow.
func TestPropertiesThatEndInZero(t *testing.T) {
	zero := func(c *commitlog.Counter) *commitlog.Append {
		r := message.Record{
			Topic: []byte("T"), Body: []byte("body"), Properties: []byte("p\x01x\x00"),
			BornHost: netip.MustParseAddrPort("10.0.0.1:1"), StoreHost: netip.MustParseAddrPort("10.0.0.2:2"),
		}
		return &commitlog.Append{Buf: r.Append(nil, false), Counter: c}
	}
	for name, tt := range map[string]struct {
		after func(*commitlog.Log, *commitlog.Counter)
		crc   bool
		want  int
	}{
		"last":       {want: 0},
		"checksum":   {crc: true, want: 1},
		"a record":   {after: func(l *commitlog.Log, c *commitlog.Counter) { mustAppend(t, l, one(t, 300, c)) }, want: 2},
		"a blank":    {after: func(l *commitlog.Log, c *commitlog.Counter) { mustAppend(t, l, one(t, 4000, c)) }, want: 2},
		"zeros also": {after: func(l *commitlog.Log, c *commitlog.Counter) { mustAppend(t, l, zero(c)) }, want: 1},
	} {
		x := newFixture(t, 4096)
		x.cfg.PropCRC = tt.crc
		l := x.open()
		var c commitlog.Counter
		a := zero(&c)
		if tt.crc {
			r := message.Record{
				Topic: []byte("T"), Body: []byte("body"), Properties: []byte("p\x01x\x00"),
				BornHost: netip.MustParseAddrPort("10.0.0.1:1"), StoreHost: netip.MustParseAddrPort("10.0.0.2:2"),
			}
			a.Buf = r.Append(nil, true)
		}
		mustAppend(t, l, a)
		if tt.after != nil {
			tt.after(l, &c)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		got, end := walk(t, x.open(), 0, commitlog.WalkOptions{VerifyBody: true, VerifyEnd: true})
		if len(got) != tt.want || (end.Reason == commitlog.EndTorn) != (name == "last" || name == "zeros also") {
			t.Errorf("%s: %d records, %v, want %d", name, len(got), end.Reason, tt.want)
		}
	}
}
