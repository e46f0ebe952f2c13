package commitlog_test

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"mqx/message"
	"mqx/store/commitlog"
)

// No checksum covers the properties: a record of which the last sectors did not reach the disk has a right size, a right
// body and zeros where properties should be. It is a torn end, not a message.
func TestLostSectorOfProperties(t *testing.T) {
	const size = 2000 // a body of 200 bytes; the properties begin in the first sector of the record
	for name, c := range map[string]struct {
		from, to int64 // bytes of the last record that are zero
		torn     bool
	}{
		"whole":               {0, 0, false},
		"last sector":         {1536, 2000, true},
		"two sectors":         {1024, 2000, true},
		"middle sector":       {1024, 1536, true},
		"not a sector":        {1100, 1400, false}, // zero bytes that somebody sent
		"less than the last":  {1600, 1900, false},
		"first of properties": {512, 1024, true},
	} {
		t.Run(name, func(t *testing.T) {
			x := newFixture(t, 1<<16)
			l := x.open()
			var c1 commitlog.Counter
			mustAppend(t, l, withProperties(512, &c1), withProperties(512, &c1)) // the third begins with a sector
			mustAppend(t, l, withProperties(size, &c1))
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			x.corrupt(1024+c.from, make([]byte, c.to-c.from))
			l = x.open()
			end := x.recoverLog(l)
			want := int64(1024)
			if !c.torn {
				want += size
			}
			if end.Offset != want || (end.Reason == commitlog.EndTorn) != c.torn {
				t.Errorf("the log ends at %d (%v, %v), want %d, torn %v", end.Offset, end.Reason, end.Err, want, c.torn)
			}
		})
	}
}

// A record that carries a checksum is believed whatever its properties are.
func TestZerosUnderChecksum(t *testing.T) {
	x := newFixture(t, 1<<16)
	x.cfg.PropCRC = true
	l := x.open()
	r := message.Record{
		Topic: []byte("T"), Body: []byte("body"), Properties: append([]byte("p\x01"), make([]byte, 2000)...),
		BornHost: netip.MustParseAddrPort("10.0.0.1:1"), StoreHost: netip.MustParseAddrPort("10.0.0.2:2"),
	}
	a := &commitlog.Append{Buf: r.Append(nil, true), Counter: &commitlog.Counter{}}
	mustAppend(t, l, a)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if end := x.recoverLog(x.open()); end.Offset != a.End {
		t.Errorf("the log ends at %d (%v, %v), want %d", end.Offset, end.Reason, end.Err, a.End)
	}
}

// What CheckProperties lets pass is never taken for torn, wherever it lies; and what it refuses would be somewhere.
func TestCheckProperties(t *testing.T) {
	zeros := func(n int) string { return strings.Repeat("\x00", n) }
	for name, c := range map[string]struct {
		props string
		fine  bool
	}{
		"none":             {"", true},
		"plain":            {"a\x01b\x02", true},
		"zeros":            {"a\x01" + zeros(511) + "\x02b\x01" + zeros(511) + "\x02", true},
		"a sector":         {"a\x01" + zeros(512) + "\x02", false},
		"a sector, behind": {"a\x01" + zeros(3) + "x" + zeros(600) + "\x02", false},
		"zero at the end":  {"a\x01b" + zeros(1), false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := commitlog.CheckProperties([]byte(c.props)); (err == nil) != c.fine {
				t.Fatalf("got %v, want fine %v", err, c.fine)
			}
			torn := 0
			for shift := range 512 {
				x := newFixture(t, 1<<13)
				l := x.open()
				counter := &commitlog.Counter{}
				r := message.Record{
					Topic: []byte("T"), Body: bytes.Repeat([]byte("b"), 1+shift), Properties: []byte(c.props),
					BornHost: netip.MustParseAddrPort("10.0.0.1:1"), StoreHost: netip.MustParseAddrPort("10.0.0.2:2"),
				}
				a := &commitlog.Append{Buf: r.Append(nil, false), Counter: counter}
				mustAppend(t, l, a)
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				l = x.open()
				if end := x.recoverLog(l); end.Offset != a.End {
					torn++
				}
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if (torn == 0) != c.fine {
				t.Errorf("%d of 512 places are taken for torn, want fine %v", torn, c.fine)
			}
		})
	}
}

// withProperties is a record of n bytes, most of them properties.
func withProperties(n int, c *commitlog.Counter) *commitlog.Append {
	r := message.Record{
		Topic: []byte("T"), Body: make([]byte, 200),
		BornHost: netip.MustParseAddrPort("10.0.0.1:1"), StoreHost: netip.MustParseAddrPort("10.0.0.2:2"),
	}
	rest := n - r.EncodedLen(false)
	r.Properties = []byte("p\x01" + strings.Repeat("x", rest-3) + "\x02")
	return &commitlog.Append{Buf: r.Append(nil, false), Counter: c}
}
