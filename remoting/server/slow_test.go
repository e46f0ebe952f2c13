package server

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// The limit is changed while it runs; 0 is none.
func TestSlowLimit(t *testing.T) {
	s := NewSlow(slog.New(slog.DiscardHandler), 0)
	if s.Is(time.Hour) {
		t.Error("without a limit nothing is slow")
	}
	s.SetAfter(time.Second)
	if s.Is(999*time.Millisecond) || !s.Is(time.Second) {
		t.Error("the limit is not where it was set")
	}
}

// A slow request is told with the stages that it had, and no others.
func TestSlowStages(t *testing.T) {
	var out bytes.Buffer
	s := NewSlow(slog.New(slog.NewTextHandler(&out, nil)), time.Second)
	at := time.Unix(1000, 0)
	r := newRequest()
	r.conn = &Conn{}
	r.conn.remote.Store(&netip.AddrPort{})
	r.Code, r.received, r.taken = 310, at, at.Add(300*time.Millisecond)
	s.tell(r, 0, 2*time.Second)
	r.SetStages(Stages{Locked: 100 * time.Millisecond, Appended: 5 * time.Millisecond, Flushed: 1500 * time.Millisecond, Ready: at.Add(1990 * time.Millisecond)})
	s.tell(r, 0, 2*time.Second)
	for _, want := range []string{
		"request=SEND_MESSAGE_V2 response=SUCCESS took_ms=2000", "queued_ms=300 served_ms=1700\n",
		"queued_ms=300 locked_ms=100 appended_ms=5 flushed_ms=1500 answered_ms=10\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
