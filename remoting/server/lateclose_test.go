//go:build linux || darwin

package server_test

import (
	"io"
	"net"
	"os"
	"testing"
	"time"

	"mqx/remoting/server"
)

// A peer that sends what is no frame is not closed at once: it would be back at once. Its place is free at once, and so many at one
// time are not held.
func TestBadFramesAreClosedLate(t *testing.T) {
	s := start(t, server.Config{}, echoMux(t))
	bad := func() net.Conn {
		p := dial(t, s)
		if _, err := p.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		return p.Conn
	}
	begin := time.Now()
	c := bad()
	eventually(t, "closed", func() bool { return s.Stats().Closed[server.ReasonBadFrame] == 1 })
	if n, err := io.Copy(io.Discard, c); n != 0 {
		t.Errorf("it was sent %d bytes, %v", n, err)
	}
	if d := time.Since(begin); d < server.LateClose {
		t.Errorf("it was closed after %v", d)
	}
	var open []net.Conn
	for range server.LateCloseMost + 20 {
		open = append(open, bad())
	}
	eventually(t, "closed", func() bool { return s.Stats().Closed[server.ReasonBadFrame] == uint64(len(open))+1 })
	if err := s.Stop(t.Context()); err != nil { // with some of them held
		t.Fatal(err)
	}
	for _, c := range open {
		_ = c.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.Copy(io.Discard, c); os.IsTimeout(err) {
			t.Fatal("a connection outlives the server")
		}
	}
}
