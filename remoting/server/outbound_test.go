//go:build unix

package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mqx/remoting"
	"mqx/remoting/server"
)

// partsHandler answers with n parts of size bytes, the i-th filled with i.
func partsHandler(released *atomic.Int32) func(*server.Request) {
	return func(r *server.Request) {
		n, _, _ := r.Fields.Int32("n")
		size, _, _ := r.Fields.Int32("size")
		resp := remoting.Command{Remark: "parts"}
		resp.Fields.SetInt("next", 7)
		parts := make([][]byte, n)
		for i := range parts {
			parts[i] = bytes.Repeat([]byte{byte(i)}, int(size))
		}
		r.ReplyBody(&resp, parts, func() {
			released.Add(1)
			for _, p := range parts {
				clear(p) // nobody may look at it any more
			}
		})
	}
}

func partsRequest(code, opaque int32, n, size int) *remoting.Command {
	req := request(code, opaque, "")
	req.Fields.SetInt("n", int64(n))
	req.Fields.SetInt("size", int64(size))
	return req
}

func checkParts(t *testing.T, resp *remoting.Command, n, size int) {
	t.Helper()
	if resp.Code != 0 || resp.Remark != "parts" || resp.Fields.String("next") != "7" || len(resp.Body) != n*size {
		t.Fatalf("answer %d with %d bytes: %d %q", resp.Opaque, len(resp.Body), resp.Code, resp.Remark)
	}
	for i, b := range resp.Body {
		if b != byte(i/size) {
			t.Fatalf("byte %d is %d, want %d", i, b, byte(i/size))
		}
	}
}

func TestReplyBody(t *testing.T) {
	forBoth(t, func(t *testing.T, cfg server.Config) {
		released := new(atomic.Int32)
		m := server.NewMux()
		m.HandleInline(1, partsHandler(released))
		m.Handle(2, startClass(t, server.ClassConfig{Name: "pull", Workers: 2, Queue: 100}), partsHandler(released))
		m.HandleInline(3, echo)
		s := start(t, cfg, m)
		p := dial(t, s)
		asked := int32(0)
		for _, code := range []int32{1, 2} {
			for _, shape := range [][2]int{{0, 1}, {1, 1}, {32, 1000}, {999, 10}, {1000, 1}, {1001, 3}, {2500, 7}, {10, 1_000_000}} {
				// Small answers before and after share the writes.
				p.send(request(3, 1, "before"), partsRequest(code, 2, shape[0], shape[1]), request(3, 3, "after"))
				asked++
				for range 3 {
					switch resp := p.receive(); resp.Opaque {
					case 2:
						checkParts(t, resp, shape[0], max(shape[1], 1))
					default:
						if b := string(resp.Body); b != "before" && b != "after" {
							t.Errorf("answer %+v", resp)
						}
					}
				}
			}
		}
		one := partsRequest(2, 9, 3, 3)
		one.Flag |= remoting.FlagOneway
		p.send(one)
		asked++
		eventually(t, "released", func() bool { return released.Load() == asked })
		tooLarge := partsRequest(2, 10, 17, 1<<20)
		p.send(tooLarge)
		if resp := p.receive(); resp.Code != remoting.RespSystemError || resp.Opaque != 10 {
			t.Errorf("a body over the frame limit: %d %q", resp.Code, resp.Remark)
		}
	})
}

// slowPeer sends requests for large bodies and does not read.
func slowPeer(t *testing.T, s *server.Server, n int) *peer {
	t.Helper()
	d := net.Dialer{Control: func(_, _ string, rc syscall.RawConn) error {
		return rc.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 16<<10)
		})
	}}
	nc, err := d.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(patience))
	p := &peer{nc, t}
	// In one write: the server may close before a second one.
	requests := make([]*remoting.Command, n)
	for i := range requests {
		requests[i] = partsRequest(2, int32(i), 100, 1000)
	}
	p.send(requests...)
	return p
}

// What a slow reader has asked for comes whole and in order once it reads.
func TestSlowReaderGetsEverything(t *testing.T) {
	forBoth(t, func(t *testing.T, cfg server.Config) {
		released := new(atomic.Int32)
		m := server.NewMux()
		m.Handle(2, startClass(t, server.ClassConfig{Name: "pull", Workers: 4, Queue: 1000}), partsHandler(released))
		m.HandleInline(3, echo)
		cfg.SendBuffer = 16 << 10
		writable := make(chan *server.Conn, 100)
		cfg.OnWritable = func(c *server.Conn) { writable <- c }
		cfg.OutboundSoft = 200_000
		s := start(t, cfg, m)
		p := slowPeer(t, s, 50)
		eventually(t, "all handled", func() bool { return released.Load() == 50 })
		p.send(request(3, 1000, "small"))
		var conn *server.Conn
		eventually(t, "not writable", func() bool {
			s.Conns(func(c *server.Conn) bool { conn = c; return false })
			return !conn.Writable() && conn.Outbound() > 2_000_000
		})
		if out := s.Stats().Outbound; out < 2_000_000 || out > 6_000_000 {
			t.Errorf("%d bytes are counted as unsent", out)
		}
		seen := map[int32]bool{}
		for range 51 {
			resp := p.receive()
			seen[resp.Opaque] = true
			if resp.Opaque < 1000 {
				checkParts(t, resp, 100, 1000)
			}
		}
		if len(seen) != 51 {
			t.Errorf("%d different answers", len(seen))
		}
		eventually(t, "writable", func() bool { return conn.Writable() && s.Stats().Outbound == 0 })
		select {
		case c := <-writable:
			if c != conn {
				t.Error("OnWritable for another connection")
			}
		case <-time.After(patience):
			t.Error("OnWritable was not called")
		}
		// The quick way again.
		p.send(partsRequest(2, 7, 10, 10))
		checkParts(t, p.receive(), 10, 10)
	})
}

func TestOutboundHardLimit(t *testing.T) {
	forBoth(t, func(t *testing.T, cfg server.Config) {
		released := new(atomic.Int32)
		m := server.NewMux()
		class := startClass(t, server.ClassConfig{Name: "pull", Workers: 4, Queue: 1000})
		m.Handle(2, class, partsHandler(released))
		m.HandleInline(3, echo)
		cfg.SendBuffer, cfg.OutboundSoft, cfg.OutboundHard = 16<<10, 100_000, 1_000_000
		s := start(t, cfg, m)
		p := slowPeer(t, s, 60)
		eventually(t, "closed", func() bool { return s.Stats().Closed[server.ReasonOutboundHard] == 1 })
		eventually(t, "all released", func() bool {
			return s.Stats().Inbound == 0 && uint64(released.Load()) == class.Stats().Requests
		})
		if out := s.Stats().Outbound; out != 0 {
			t.Errorf("%d bytes are still counted", out)
		}
		p.closed()
		other := dial(t, s)
		other.send(request(3, 1, "alive"))
		if resp := other.receive(); string(resp.Body) != "alive" {
			t.Errorf("another client gets %+v", resp)
		}
	})
}

func TestOutboundTotal(t *testing.T) {
	released := new(atomic.Int32)
	m := server.NewMux()
	m.Handle(2, startClass(t, server.ClassConfig{Name: "pull", Workers: 4, Queue: 1000}), partsHandler(released))
	s := start(t, server.Config{SendBuffer: 16 << 10, OutboundSoft: 500_000, OutboundHard: 3_000_000, OutboundTotal: 4_000_000}, m)
	for range 8 {
		slowPeer(t, s, 12)
	}
	eventually(t, "some closed", func() bool { return s.Stats().Closed[server.ReasonOutboundTotal] > 0 })
	eventually(t, "all handled", func() bool { return released.Load() == 96 })
	// Every connection may have what is under its soft limit besides.
	if out := s.Stats().Outbound; out > 4_000_000+8*500_000 {
		t.Errorf("%d bytes are unsent", out)
	}
	if st := s.Stats(); st.Closed[server.ReasonOutboundTotal] == 8 {
		t.Error("connections under the limit were closed too")
	}
}

// A peer that does not read does not hold up a stop.
func TestDrainDoesNotWaitForWhoDoesNotRead(t *testing.T) {
	forBoth(t, func(t *testing.T, cfg server.Config) {
		released := new(atomic.Int32)
		m := server.NewMux()
		m.Handle(2, startClass(t, server.ClassConfig{Name: "pull", Workers: 4, Queue: 1000}), partsHandler(released))
		cfg.SendBuffer = 16 << 10
		s := start(t, cfg, m)
		slowPeer(t, s, 30)
		eventually(t, "all handled", func() bool { return released.Load() == 30 })
		begin := time.Now()
		if err := s.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		if d := time.Since(begin); d > 4*time.Second {
			t.Errorf("drained after %v", d)
		}
	})
}

// A slow reader that takes nothing at all is closed by the idle limit.
func TestStalledReaderIsIdle(t *testing.T) {
	released := new(atomic.Int32)
	m := server.NewMux()
	m.Handle(2, startClass(t, server.ClassConfig{Name: "pull", Workers: 4, Queue: 1000}), partsHandler(released))
	s := start(t, server.Config{SendBuffer: 16 << 10, IdleTimeout: 500 * time.Millisecond}, m)
	slowPeer(t, s, 20)
	eventually(t, "closed", func() bool { return s.Stats().Closed[server.ReasonIdle] == 1 })
	eventually(t, "nothing left", func() bool { return s.Stats().Outbound == 0 })
}

// Pages of a mapped file that has become shorter cannot be read: the client
// gets an error or a closed connection, the server lives.
func TestReplyBodyUnreadable(t *testing.T) {
	forBoth(t, func(t *testing.T, cfg server.Config) {
		f, err := os.CreateTemp(t.TempDir(), "map")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		const size = 1 << 20
		if err := f.Truncate(size); err != nil {
			t.Fatal(err)
		}
		mem, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Munmap(mem) //nolint:errcheck // the process ends
		if err := f.Truncate(4096); err != nil {
			t.Fatal(err)
		}
		released := new(atomic.Int32)
		m := server.NewMux()
		m.Handle(2, startClass(t, server.ClassConfig{Name: "pull", Workers: 1, Queue: 1000}), func(r *server.Request) {
			r.ReplyBody(&remoting.Command{}, [][]byte{mem[:4096], mem[8192:20000]}, func() { released.Add(1) })
		})
		m.HandleInline(3, echo)
		s := start(t, cfg, m)
		p := dial(t, s)
		p.send(request(2, 1, ""))
		resp, err := p.tryReceive()
		if err == nil && resp.Code != remoting.RespSystemError {
			t.Errorf("answer %d with %d bytes", resp.Code, len(resp.Body))
		}
		if err != nil {
			if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
				t.Error("neither answered nor closed")
			}
			eventually(t, "reason", func() bool { return s.Stats().Closed[server.ReasonUnreadable] == 1 })
		}
		eventually(t, "release", func() bool { return released.Load() > 0 })
		other := dial(t, s)
		other.send(request(3, 1, "alive"))
		if resp := other.receive(); string(resp.Body) != "alive" {
			t.Errorf("another client gets %+v", resp)
		}
		if released.Load() != 1 {
			t.Errorf("released %d times", released.Load())
		}
	})
}

// Many workers answer one connection at once: frames stay whole.
func TestConcurrentAnswers(t *testing.T) {
	forBoth(t, func(t *testing.T, cfg server.Config) {
		released := new(atomic.Int32)
		m := server.NewMux()
		m.Handle(2, startClass(t, server.ClassConfig{Name: "pull", Workers: 8, Queue: 10000}), partsHandler(released))
		m.Handle(4, startClass(t, server.ClassConfig{Name: "query", Workers: 8, Queue: 10000}), echo)
		m.HandleInline(3, echo)
		cfg.SendBuffer = 32 << 10
		s := start(t, cfg, m)
		p := dial(t, s)
		const n = 3000
		go func() {
			var b []byte
			for i := range int32(n) {
				switch i % 3 {
				case 0:
					b = append(b, frameOf(t, partsRequest(2, i, 1+int(i)%40, 100))...)
				case 1:
					b = append(b, frameOf(t, request(3, i, strings.Repeat("i", int(i)%500)))...)
				default:
					b = append(b, frameOf(t, request(4, i, strings.Repeat("c", int(i)%500)))...)
				}
				if len(b) > 10_000 {
					if _, err := p.Write(b); err != nil && !errors.Is(err, net.ErrClosed) {
						t.Error(err)
					}
					b = b[:0]
				}
			}
			_, _ = p.Write(b)
		}()
		seen := make([]bool, n)
		for range n {
			resp, err := p.tryReceive()
			if err != nil {
				if errors.Is(err, io.EOF) {
					t.Fatal(fmt.Sprint("closed: ", s.Stats().Closed))
				}
				t.Fatal(err)
			}
			i := resp.Opaque
			if seen[i] {
				t.Fatalf("request %d was answered twice", i)
			}
			seen[i] = true
			if i%3 == 0 {
				checkParts(t, resp, 1+int(i)%40, 100)
			} else if len(resp.Body) != int(i)%500 {
				t.Fatalf("answer %d has %d bytes", i, len(resp.Body))
			}
		}
	})
}
