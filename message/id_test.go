package message_test

import (
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mqx/internal/clock"
	"mqx/message"
)

func TestOffsetIDs(t *testing.T) {
	for _, tt := range []struct {
		host string
		phys int64
		id   string
	}{
		{"127.0.0.1:30911", 0, "7F000001000078BF0000000000000000"},
		{"127.0.0.1:30911", 119796, "7F000001000078BF000000000001D3F4"},
		{"255.255.255.255:65535", 1<<63 - 1, "FFFFFFFF0000FFFF7FFFFFFFFFFFFFFF"},
		{"[::1]:30911", 285, "00000000000000000000000000000001000078BF000000000000011D"},
	} {
		host := netip.MustParseAddrPort(tt.host)
		if got := message.FormatOffsetID(host, tt.phys); got != tt.id {
			t.Errorf("%s, %d: %s, want %s", tt.host, tt.phys, got, tt.id)
		}
		for _, text := range []string{tt.id, strings.ToLower(tt.id)} {
			gotHost, phys, err := message.ParseOffsetID(text)
			if gotHost != host || phys != tt.phys || err != nil {
				t.Errorf("%s: %v, %d, %v", text, gotHost, phys, err)
			}
		}
	}
	if got := message.FormatOffsetID(netip.AddrPort{}, 1); got != "00000000000000000000000000000001" {
		t.Errorf("id without an address: %s", got)
	}
	mapped := netip.AddrPortFrom(netip.MustParseAddr("::ffff:127.0.0.1"), 1)
	if got := message.FormatOffsetID(mapped, 1); got != "7F000001000000010000000000000001" {
		t.Errorf("id of a mapped address: %s", got)
	}
}

func TestNoOffsetID(t *testing.T) {
	for _, tt := range []struct{ id, want string }{
		{"", `message id "": 0 characters, an id has 32 or 56`},
		{"7F00", `message id "7F00": 4 characters, an id has 32 or 56`},
		{strings.Repeat("0", 31) + "x", "not hexadecimal"},
		{"7F000001000178BF0000000000000000", "port 96447 is above 65535"},
		{"7F000001000078BF8000000000000000", "offset is negative"},
		{strings.Repeat("é", 16), "not hexadecimal"},
	} {
		_, _, err := message.ParseOffsetID(tt.id)
		var e *message.IDError
		if !errors.As(err, &e) || !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %s", tt.id, err, tt.want)
		}
	}
	long := strings.Repeat("9", 100000)
	if _, err := message.ParseUniqueID(long); err == nil || len(err.Error()) > 500 {
		t.Error("the error repeats all of a long text")
	}
}

func TestIDsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{4, 16}).Draw(t, "ip length")
		addr, _ := netip.AddrFromSlice(rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "ip"))
		if addr.Is4In6() {
			t.Skip("written as IPv4")
		}
		host := netip.AddrPortFrom(addr, rapid.Uint16().Draw(t, "port"))
		phys := rapid.Int64Min(0).Draw(t, "offset")
		gotHost, gotPhys, err := message.ParseOffsetID(message.FormatOffsetID(host, phys))
		if gotHost != host || gotPhys != phys || err != nil {
			t.Fatalf("%v, %d, %v", gotHost, gotPhys, err)
		}
		id := message.UniqueID{
			IP: addr, PID: rapid.Uint16().Draw(t, "pid"), Class: rapid.Uint32().Draw(t, "class"),
			Millis: rapid.Uint32().Draw(t, "ms"), Counter: rapid.Uint16().Draw(t, "counter"),
		}
		if got, err := message.ParseUniqueID(id.String()); got != id || err != nil {
			t.Fatalf("%#v, %v, want %#v", got, err, id)
		}
	})
}

func TestUniqueIDTime(t *testing.T) {
	zone := time.FixedZone("", 8*3600)
	now := time.Date(2026, 3, 2, 1, 0, 0, 0, zone)
	for _, tt := range []struct {
		millis uint32
		want   time.Time
	}{
		{0, time.Date(2026, 3, 1, 0, 0, 0, 0, zone)},
		{25 * 3600 * 1000, now},
		{25*3600*1000 + 1, time.Date(2026, 2, 2, 1, 0, 0, 1e6, zone)}, // later than now: a month ago
	} {
		if got := (message.UniqueID{Millis: tt.millis}).Time(now); !got.Equal(tt.want) {
			t.Errorf("%d ms: %v, want %v", tt.millis, got, tt.want)
		}
	}
}

func TestIDGenerator(t *testing.T) {
	at := time.Date(2026, 1, 31, 23, 59, 59, 999e6, time.UTC)
	c := clock.NewManual(at)
	ip := netip.MustParseAddr("192.0.2.7")
	g := message.NewIDGenerator(ip, 0x12345, c)
	parse := func(s string) message.UniqueID {
		t.Helper()
		id, err := message.ParseUniqueID(s)
		if err != nil || id.IP != ip || id.PID != 0x2345 || len(s) != message.IDLenV4 {
			t.Fatalf("%s: %#v, %v", s, id, err)
		}
		return id
	}
	first, second := parse(g.Next()), parse(g.Next())
	if !first.Time(at).Equal(at) || second.Counter != first.Counter+1 || first.Class != second.Class {
		t.Errorf("%#v, then %#v", first, second)
	}
	c.Advance(time.Millisecond)
	if id := parse(g.Next()); id.Millis != 0 {
		t.Errorf("first id of the month: %#v", id)
	}
	c.Set(at) // the clock steps back over the start of the month
	if id := parse(g.Next()); id.Millis != first.Millis {
		t.Errorf("clock stepped back: %#v", id)
	}
	if other := parse(message.NewIDGenerator(ip, 0x12345, c).Next()); other.Class == first.Class {
		t.Error("two generators of a process make the same ids")
	}
	if id := message.NewIDGenerator(netip.MustParseAddr("2001:db8::1"), 1, c).Next(); len(id) != message.IDLenV6 {
		t.Errorf("IPv6: %s", id)
	}
}

func TestIDGeneratorShared(t *testing.T) {
	g := message.NewIDGenerator(netip.MustParseAddr("192.0.2.7"), 1, clock.System)
	const workers, each = 4, 5000
	var wg sync.WaitGroup
	ids := make([][]string, workers)
	for i := range workers {
		wg.Go(func() {
			for range each {
				ids[i] = append(ids[i], g.Next())
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, some := range ids {
		for _, id := range some {
			seen[id] = true
		}
	}
	if len(seen) != workers*each {
		t.Errorf("%d different ids of %d", len(seen), workers*each)
	}
}
