package commitlog_test

import (
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
