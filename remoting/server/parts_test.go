package server

import (
	"math"
	"net/netip"
	"slices"
	"testing"
)

func TestLimitsFromDescriptors(t *testing.T) {
	for _, tc := range []struct {
		maxConns, perIP int
		fds             uint64
		wantMax, wantIP int
	}{
		{0, 0, 64, 32, 24},
		{0, 0, 1024, 768, 576},
		{0, 0, 1 << 20, 3 << 18, 9 << 16},
		{100, 0, 1024, 100, 75},
		{100, 10, 1024, 100, 10},
		{5000, 5000, 1024, 768, 768}, // cut to what descriptors allow
		{-1, -1, 1024, 768, 768},
		{1, 0, 1024, 1, 1},
		{0, 0, 1 << 63, 1610612736, 1207959552},
	} {
		l := newLimits(tc.maxConns, tc.perIP, tc.fds)
		if want := int(min(tc.fds, math.MaxInt32)) - tc.wantMax; l.Rest() != want {
			t.Errorf("limits of %d, %d with %d descriptors leave %d, want %d", tc.maxConns, tc.perIP, tc.fds, l.Rest(), want)
		}
		if l.max != tc.wantMax || l.perIP != tc.wantIP {
			t.Errorf("limits of %d, %d with %d descriptors: %d, %d, want %d, %d",
				tc.maxConns, tc.perIP, tc.fds, l.max, l.perIP, tc.wantMax, tc.wantIP)
		}
	}
}

func TestLimitsCount(t *testing.T) {
	l := newLimits(3, 2, 1024)
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	for i, step := range []struct {
		addr netip.Addr
		want string
	}{{a, ""}, {a, ""}, {a, ReasonMaxPerIP}, {b, ""}, {b, ReasonMaxTotal}} {
		if got := l.acquire(step.addr); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
	l.release(a)
	l.release(a)
	l.release(b)
	if l.Open() != 0 || len(l.mu.byIP) != 0 {
		t.Errorf("%d open, %d addresses after all were released", l.Open(), len(l.mu.byIP))
	}
}

func TestParseProxy(t *testing.T) {
	v2 := func(rest ...byte) string { return string(append(slices.Clone(proxyV2), rest...)) }
	for name, tc := range map[string]struct {
		in   string
		n    int
		src  string
		fail bool
	}{
		"v1 tcp4":      {in: "PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\nrest", n: 42, src: "192.0.2.1:56324"},
		"v1 tcp6":      {in: "PROXY TCP6 2001:db8::1 2001:db8::2 1 2\r\n", n: 40, src: "[2001:db8::1]:1"},
		"v1 unknown":   {in: "PROXY UNKNOWN\r\n", n: 15},
		"v1 part":      {in: "PROXY TCP4 192.0."},
		"v1 first":     {in: "P"},
		"v1 not":       {in: "POST / HTTP/1.1\r\n", fail: true},
		"v1 too long":  {in: "PROXY TCP4 " + string(make([]byte, 100)), fail: true},
		"v1 bad port":  {in: "PROXY TCP4 192.0.2.1 192.0.2.2 99999 443\r\n", fail: true},
		"v1 bad addr":  {in: "PROXY TCP4 192.0.2 192.0.2.2 1 443\r\n", fail: true},
		"v1 bad proto": {in: "PROXY UDP4 192.0.2.1 192.0.2.2 1 443\r\n", fail: true},
		"v2 tcp4":      {in: v2(0x21, 0x11, 0, 12, 192, 0, 2, 1, 192, 0, 2, 2, 0xdc, 4, 1, 0xbb), n: 28, src: "192.0.2.1:56324"},
		"v2 tcp6":      {in: v2(append([]byte{0x21, 0x21, 0, 36, 0x20, 1, 0xd, 0xb8, 15: 0, 19: 1}, append(make([]byte, 16), 0, 7, 0, 8)...)...), n: 52, src: "[2001:db8::1]:7"},
		"v2 local":     {in: v2(0x20, 0, 0, 0), n: 16},
		"v2 unix":      {in: v2(0x21, 0x31, 0, 2, 1, 2), n: 18},
		"v2 part":      {in: v2(0x21, 0x11, 0, 12, 192)},
		"v2 first":     {in: "\r"},
		"v2 version":   {in: v2(0x11, 0x11, 0, 0), fail: true},
		"v2 short":     {in: v2(0x21, 0x11, 0, 2, 1, 2), fail: true},
		"v2 long":      {in: v2(0x21, 0x11, 0xff, 0xff), fail: true},
		"v2 not":       {in: "\r\nGET", fail: true},
	} {
		n, src, err := parseProxy([]byte(tc.in))
		if (err != nil) != tc.fail || n != tc.n {
			t.Errorf("%s: %d bytes, error %v", name, n, err)
			continue
		}
		if got := src.String(); src.IsValid() && got != tc.src || !src.IsValid() && tc.src != "" {
			t.Errorf("%s: source %q, want %q", name, got, tc.src)
		}
	}
}

func FuzzParseProxy(f *testing.F) {
	f.Add([]byte("PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n"))
	f.Add(append(slices.Clone(proxyV2), 0x21, 0x11, 0, 12, 192, 0, 2, 1, 192, 0, 2, 2, 0xdc, 4, 1, 0xbb))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		n, src, err := parseProxy(b)
		if n > len(b) || n < 0 || err != nil && n != 0 || src.IsValid() && n == 0 {
			t.Errorf("%d of %d bytes, %v, %v", n, len(b), src, err)
		}
	})
}

func TestRing(t *testing.T) {
	var q ring
	next, want := 0, 0
	all := make([]Request, 100_000)
	for _, n := range []int{1, 63, 200, 5, 9000, 40_000} {
		for range n {
			q.push(&all[next])
			next++
		}
		for range n/2 + 1 {
			if q.len() == 0 {
				break
			}
			if q.front() != &all[want] || q.pop() != &all[want] {
				t.Fatalf("request %d is not at the head", want)
			}
			want++
		}
	}
	for q.len() > 0 {
		if q.pop() != &all[want] {
			t.Fatalf("request %d is not at the head", want)
		}
		want++
	}
	if want != next || q.front() != nil {
		t.Errorf("%d of %d requests came out", want, next)
	}
	if len(q.slots) > 64*minRing {
		t.Errorf("an empty queue keeps %d slots", len(q.slots))
	}
}

func TestMuxIdentity(t *testing.T) {
	m := NewMux()
	c := NewClass(ClassConfig{Name: "c"})
	make1 := func(n *int) func([]*Request) { return func([]*Request) { *n++ } }
	var a, b int
	ha, hb := make1(&a), make1(&b)
	m.HandleBatch(1, c, ha)
	m.HandleBatch(2, c, ha)
	m.HandleBatch(300000, c, hb)
	if m.find(1).key != m.find(2).key {
		t.Error("one function value is two handlers")
	}
	if m.find(1).key == m.find(300000).key {
		t.Error("two closures of one text are one handler")
	}
	if m.find(3) != nil || m.find(-1) != nil {
		t.Error("a code without a handler has one")
	}
	defer func() {
		if recover() == nil {
			t.Error("a second handler for a code was taken")
		}
	}()
	m.Handle(300000, c, func(*Request) {})
}
