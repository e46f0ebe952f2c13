package server_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mqx/remoting"
	"mqx/remoting/client"
	"mqx/remoting/server"
)

func TestConnectionLimits(t *testing.T) {
	for _, tc := range []struct {
		name   string
		limits *server.Limits
		why    string
		open   int
	}{
		{"total", server.NewLimits(3, 3), server.ReasonMaxTotal, 3},
		{"address", server.NewLimits(10, 2), server.ReasonMaxPerIP, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var log bytes.Buffer
			s := start(t, server.Config{Limits: tc.limits, Logger: logTo(&log)}, echoMux(t))
			var peers []*peer
			for range tc.open {
				p := dial(t, s)
				p.send(request(codeInline, 1, ""))
				p.receive()
				peers = append(peers, p)
			}
			for range 20 {
				p := dial(t, s)
				resp, err := p.tryReceive()
				if err != nil {
					t.Fatalf("no word of refusal: %v", err)
				}
				if resp.Code != remoting.RespSystemBusy || !strings.Contains(resp.Remark, tc.why) {
					t.Errorf("refusal %+v", resp)
				}
				p.closed()
			}
			st := s.Stats()
			if st.Refused[tc.why] != 20 || st.Accepted != uint64(tc.open)+20 {
				t.Errorf("refused %v of %d", st.Refused, st.Accepted)
			}
			if n := strings.Count(log.String(), "connection refused"); n != 1 || !strings.Contains(log.String(), tc.why) {
				t.Errorf("%d lines in the log: %s", n, log.String())
			}
			c := newClient(t, client.Config{})
			_, err := c.Call(t.Context(), s.Addr().String(), request(codeInline, 1, ""))
			if err == nil || !strings.Contains(err.Error(), tc.why) {
				t.Errorf("a client of mqx is told %v", err)
			}
			// Room again.
			_ = peers[0].Close()
			eventually(t, "room", func() bool { return tc.limits.Open() < tc.open })
			p := dial(t, s)
			p.send(request(codeInline, 9, ""))
			if resp := p.receive(); resp.Opaque != 9 {
				t.Errorf("answer %+v", resp)
			}
		})
	}
}

func TestSharedLimits(t *testing.T) {
	limits := server.NewLimits(2, 2)
	a, b := start(t, server.Config{Limits: limits}, echoMux(t)), start(t, server.Config{Limits: limits}, echoMux(t))
	for _, s := range []*server.Server{a, b} {
		p := dial(t, s)
		p.send(request(codeInline, 1, ""))
		p.receive()
	}
	if resp := dial(t, b).receive(); resp.Code != remoting.RespSystemBusy {
		t.Errorf("answer %+v", resp)
	}
}

func TestSilentConnections(t *testing.T) {
	forBoth(t, func(t *testing.T, cfg server.Config) {
		cfg.IdleTimeout, cfg.FirstByteTimeout, cfg.HandshakeTimeout = 400*time.Millisecond, 200*time.Millisecond, 100*time.Millisecond
		s := start(t, cfg, echoMux(t))
		busy := dial(t, s)
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for i := int32(0); ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
				}
				busy.send(request(codeInline, i, ""))
				busy.receive()
			}
		}()
		begin := time.Now()
		nothing := dial(t, s)
		header := dial(t, s)
		if _, err := header.Write([]byte("PROXY TCP4")); err != nil {
			t.Fatal(err)
		}
		idle := dial(t, s)
		idle.send(request(codeInline, 1, ""))
		idle.receive()
		half := dial(t, s)
		half.send(request(codeInline, 1, ""))
		half.receive()
		f := frameOf(t, request(codeInline, 2, "abc"))
		for i := range 10 {
			// One byte at a time does not keep a connection alive.
			if _, err := half.Write(f[i : i+1]); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond) // the peer is slow: that is the input
		}
		header.closed()
		if d := time.Since(begin); d < 90*time.Millisecond {
			t.Errorf("a header that does not end was closed after %v", d)
		}
		nothing.closed()
		if d := time.Since(begin); d < 190*time.Millisecond {
			t.Errorf("a connection without a byte was closed after %v", d)
		}
		idle.closed()
		half.closed()
		if d := time.Since(begin); d < 390*time.Millisecond {
			t.Errorf("an idle connection was closed after %v", d)
		}
		close(stop)
		<-done
		eventually(t, "reasons", func() bool {
			st := s.Stats().Closed
			return st[server.ReasonFirstByte] == 1 && st[server.ReasonHandshake] == 1 && st[server.ReasonIdle] >= 1 && st[server.ReasonIdle]+st[server.ReasonHalfFrame] == 2
		})
		if n := s.Stats().Connections[server.StateReady]; n != 1 {
			t.Errorf("%d connections are left, want the busy one", n)
		}
	})
}

// A peer that keeps other requests coming while one frame never ends.
func TestHalfFrameOfABusySender(t *testing.T) {
	s := start(t, server.Config{IdleTimeout: 300 * time.Millisecond}, echoMux(t))
	p := dial(t, s)
	p.send(request(codeInline, 1, ""))
	p.receive()
	f := frameOf(t, request(codeInline, 2, strings.Repeat("x", 1000)))
	begin := time.Now()
	for i := 0; ; i++ {
		if _, err := p.Write(f[i%500 : i%500+1]); err != nil {
			break
		}
		if time.Since(begin) > patience {
			t.Fatal("a frame that never ends is waited for")
		}
		time.Sleep(10 * time.Millisecond) // the peer is slow: that is the input
	}
	eventually(t, "reason", func() bool { st := s.Stats().Closed; return st[server.ReasonHalfFrame]+st[server.ReasonIdle] == 1 })
}

// Connections that hold the ends of large frames back are closed before others find no room for theirs; a single one may
// take its time.
func TestHalfFramesThatCrowdTheMemory(t *testing.T) {
	cfg := server.Crowded(server.Config{IdleTimeout: patience, MaxFrame: 1 << 20, InboundTotal: 4 << 20}, 100*time.Millisecond)
	s := start(t, cfg, echoMux(t))
	hold := func() *peer {
		p := dial(t, s)
		p.send(request(codeInline, 1, ""))
		p.receive()
		f := frameOf(t, request(codeInline, 2, strings.Repeat("x", 600_000)))
		if _, err := p.Write(f[:len(f)-1]); err != nil {
			t.Fatal(err)
		}
		return p
	}
	hold()
	time.Sleep(300 * time.Millisecond) // a slow peer: that is the input
	if n := s.Stats().Closed[server.ReasonHalfFrame]; n != 0 {
		t.Errorf("%d closed with room for others", n)
	}
	hold()
	// One that goes may make room enough for the other to stay.
	eventually(t, "room", func() bool { return s.Stats().Closed[server.ReasonHalfFrame] >= 1 })
}

func TestBadFramesCloseOneConnection(t *testing.T) {
	forBoth(t, func(t *testing.T, cfg server.Config) {
		cfg.MaxFrame = 100_000
		s := start(t, cfg, echoMux(t))
		good := dial(t, s)
		header := func(h string) []byte {
			b := binary.BigEndian.AppendUint32(nil, uint32(4+len(h)))
			b = binary.BigEndian.AppendUint32(b, uint32(len(h)))
			return append(b, h...)
		}
		bad := map[string][]byte{
			"over the limit":     binary.BigEndian.AppendUint32(nil, 100_000),
			"16 MiB + 1":         binary.BigEndian.AppendUint32(nil, 16<<20-3),
			"negative":           {0x80, 0, 0, 1},
			"http":               []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
			"garbage":            bytes.Repeat([]byte{0xfe, 0xdc}, 500),
			"empty frame":        {0, 0, 0, 0},
			"header too long":    {0, 0, 0, 8, 0, 0, 0, 100, 1, 2, 3, 4},
			"header is no JSON":  header("hello"),
			"deep JSON":          header(`{"extFields":` + strings.Repeat(`{"a":`, 10_000)),
			"too many fields":    header(`{"code":1,"extFields":{` + strings.Repeat(`"a":"b",`, 9_000) + `"z":"z"}}`),
			"unknown serialize":  {0, 0, 0, 8, 7, 0, 0, 4, 1, 2, 3, 4},
			"good and then bad":  append(frameOf(t, request(codeInline, 1, "x")), 0xff, 0xff, 0xff, 0xff),
			"TLS when it is off": {0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0},
		}
		for name, b := range bad {
			p := dial(t, s)
			if _, err := p.Write(b); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if name == "good and then bad" {
				if resp := p.receive(); string(resp.Body) != "x" {
					t.Errorf("the good frame was answered %+v", resp)
				}
			}
			p.closed()
			good.send(request(codeInline, 1, name))
			if resp := good.receive(); string(resp.Body) != name {
				t.Errorf("%s: another client gets %+v", name, resp)
			}
		}
		eventually(t, "reasons", func() bool {
			st := s.Stats()
			return st.Closed[server.ReasonBadFrame] == uint64(len(bad))-1 && st.Closed[server.ReasonTLSDisabled] == 1
		})
	})
}

func TestProxyHeader(t *testing.T) {
	forBoth(t, func(t *testing.T, cfg server.Config) {
		m := server.NewMux()
		m.HandleInline(1, func(r *server.Request) { r.Reply(0, r.Conn().Remote().String()) })
		s := start(t, cfg, m)
		frame := frameOf(t, request(1, 1, ""))
		v2 := append([]byte("\r\n\r\n\x00\r\nQUIT\n\x21\x21\x00\x24"), make([]byte, 36)...)
		v2[16], v2[31], v2[49] = 0xfd, 9, 8
		for _, tc := range []struct {
			head string
			want string
		}{
			{"PROXY TCP4 192.0.2.7 192.0.2.2 5555 443\r\n", "192.0.2.7:5555"},
			{"PROXY UNKNOWN\r\n", ""},
			{string(v2), "[fd00::9]:8"},
		} {
			for _, step := range []int{1, 7, 1000} {
				p := dial(t, s)
				b := append([]byte(tc.head), frame...)
				for len(b) > 0 {
					n := min(step, len(b))
					if _, err := p.Write(b[:n]); err != nil {
						t.Fatal(err)
					}
					b = b[n:]
				}
				want := tc.want
				if want == "" {
					want = p.LocalAddr().String()
				}
				if resp := p.receive(); resp.Remark != want {
					t.Errorf("%q in steps of %d: remote %q, want %q", tc.head, step, resp.Remark, want)
				}
			}
		}
		p := dial(t, s)
		if _, err := p.Write([]byte("POST / HTTP/1.1\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		p.closed()
		eventually(t, "reason", func() bool { return s.Stats().Closed[server.ReasonProxyHeader] == 1 })
	})
}

func TestIPv6Peer(t *testing.T) {
	m := server.NewMux()
	m.HandleInline(1, func(r *server.Request) {
		r.Reply(0, r.Conn().Remote().String()+" "+r.Conn().Local().Addr().String())
	})
	s := start(t, server.Config{Addr: ":0"}, m)
	_, port, _ := net.SplitHostPort(s.Addr().String())
	for addr, want := range map[string]string{"127.0.0.1": "127.0.0.1", "::1": "::1"} {
		ln, err := net.Listen("tcp", net.JoinHostPort(addr, "0"))
		if err != nil {
			t.Logf("this system has no %s: %v", addr, err)
			continue
		}
		_ = ln.Close()
		p := dialAddr(t, net.JoinHostPort(addr, port))
		p.send(request(1, 1, ""))
		if resp := p.receive(); resp.Remark != p.LocalAddr().String()+" "+want {
			t.Errorf("from %s: %q", addr, resp.Remark)
		}
	}
}

func TestDrain(t *testing.T) {
	forBoth(t, func(t *testing.T, cfg server.Config) {
		class := startClass(t, server.ClassConfig{Name: "send", Workers: 1, Queue: 100})
		gate, open := newGate(t)
		entered := new(atomic.Int32)
		m := server.NewMux()
		m.Handle(10, class, gated(gate, entered))
		m.HandleInline(30, echo)
		s := start(t, cfg, m)
		p := dial(t, s)
		p.send(request(10, 1, "in flight"))
		eventually(t, "it runs", func() bool { return entered.Load() == 1 })
		drained := make(chan error, 1)
		go func() { drained <- s.Drain(context.Background()) }()
		eventually(t, "draining", func() bool { return s.Stats().Connections[server.StateDraining] == 1 })
		newer, older := request(30, 2, ""), request(30, 3, "")
		older.Version = 431
		p.send(newer, older)
		if resp := p.receive(); resp.Code != remoting.RespGoAway || resp.Remark != "please go away" {
			t.Errorf("a new peer is told %+v", resp)
		}
		if resp := p.receive(); resp.Code != remoting.RespSystemBusy {
			t.Errorf("an old peer is told %+v", resp)
		}
		if _, err := net.Dial("tcp", s.Addr().String()); err == nil {
			t.Error("a draining server accepts")
		}
		select {
		case err := <-drained:
			t.Errorf("drained with a request in flight: %v", err)
		default:
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if err := s.Drain(ctx); err == nil {
			t.Error("Drain with a deadline waited for nothing")
		}
		open()
		if err := <-drained; err != nil {
			t.Error(err)
		}
		if resp := p.receive(); string(resp.Body) != "in flight" {
			t.Errorf("the request in flight: %+v", resp)
		}
	})
}

// Answers that come after the server has stopped go nowhere, and do no harm.
func TestReplyAfterStop(t *testing.T) {
	forBoth(t, func(t *testing.T, cfg server.Config) {
		parked := make(chan *server.Request, 10)
		m := server.NewMux()
		m.HandleInline(1, func(r *server.Request) { parked <- r })
		closed := make(chan error, 1)
		cfg.OnOpen = func(*server.Conn) {}
		cfg.OnClose = func(_ *server.Conn, err error) { closed <- err }
		s := start(t, cfg, m)
		p := dial(t, s)
		var reqs []*remoting.Command
		for i := range int32(4) {
			reqs = append(reqs, request(1, i, "x"))
		}
		p.send(reqs...)
		var rs []*server.Request
		for range reqs {
			rs = append(rs, <-parked)
		}
		conn := rs[0].Conn()
		for range 2 {
			if err := s.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		p.closed()
		if err := <-closed; err == nil || !strings.Contains(err.Error(), server.ReasonStop) {
			t.Errorf("reason %v", err)
		}
		released := 0
		rs[0].Reply(0, "late")
		rs[1].ReplyBody(&remoting.Command{}, [][]byte{[]byte("late")}, func() { released++ })
		echo(rs[2])
		rs[3].Done()
		if released != 1 {
			t.Errorf("body released %d times", released)
		}
		conn.Close("late")
		if err := conn.Send(request(1, 1, "")); err == nil {
			t.Error("sent on a closed connection")
		}
		if _, err := conn.Call(t.Context(), request(1, 1, "")); err == nil {
			t.Error("called on a closed connection")
		}
		if conn.State() != server.StateClosed {
			t.Errorf("state %v", conn.State())
		}
		if err := s.Start(t.Context()); err == nil {
			t.Error("started again")
		}
	})
}

func TestCloseAfterReply(t *testing.T) {
	m := server.NewMux()
	farewell := func(r *server.Request) {
		c := r.Conn()
		r.Reply(0, "bye")
		c.Close("said so")
	}
	m.HandleInline(1, farewell)
	m.Handle(2, startClass(t, server.ClassConfig{Name: "admin", Workers: 1, Queue: 10}), farewell)
	s := start(t, server.Config{}, m)
	for code := range int32(2) {
		p := dial(t, s)
		p.send(request(1+code, 1, ""))
		if resp := p.receive(); resp.Remark != "bye" {
			t.Errorf("answer %+v", resp)
		}
		p.closed()
	}
}

func TestOnCloseWithoutOnOpen(t *testing.T) {
	forBoth(t, func(t *testing.T, cfg server.Config) {
		closed := make(chan error, 2)
		cfg.OnClose = func(_ *server.Conn, err error) { closed <- err }
		s := start(t, cfg, echoMux(t))
		_ = dial(t, s).Close() // never said anything: not told
		p := dial(t, s)
		p.send(request(codeInline, 1, ""))
		p.receive()
		_ = p.Close()
		if err := <-closed; err == nil || !strings.Contains(err.Error(), server.ReasonPeer) {
			t.Errorf("reason %v", err)
		}
		eventually(t, "both gone", func() bool { return s.Stats().Connections[server.StateClosed] == 2 })
		select {
		case err := <-closed:
			t.Errorf("told of a connection that sent nothing: %v", err)
		default:
		}
	})
}

func TestManyReconnects(t *testing.T) {
	s := start(t, server.Config{}, echoMux(t))
	n := 3000
	if testing.Short() {
		n = 300
	}
	for i := range n {
		nc, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if i%3 != 0 {
			_, _ = nc.Write(frameOf(t, request(codeBatch, 1, "x")))
		}
		if i%5 == 0 {
			_ = nc.(*net.TCPConn).SetLinger(0) // a reset, also before it is accepted
		}
		_ = nc.Close()
	}
	eventually(t, "all gone", func() bool {
		st := s.Stats()
		open := 0
		for _, k := range st.Connections[:server.StateClosed] {
			open += k
		}
		return open == 0 && st.Inbound == 0
	})
	p := dial(t, s)
	p.send(request(codeInline, 1, "alive"))
	if resp := p.receive(); string(resp.Body) != "alive" {
		t.Errorf("afterwards: %+v", resp)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, cfg := range map[string]server.Config{
		"no port":   {Addr: "127.0.0.1"},
		"zone":      {Addr: "[fe80::1%eth0]:9876"},
		"loops":     {Addr: ":0", Loops: 1000},
		"frame":     {Addr: ":0", MaxFrame: 17 << 20},
		"outbound":  {Addr: ":0", OutboundSoft: 10, OutboundHard: 5},
		"tls mode":  {Addr: ":0", TLS: server.TLSConfig{Mode: "sometimes"}},
		"tls auth":  {Addr: ":0", TLS: server.TLSConfig{ClientAuth: "maybe"}},
		"no cert":   {Addr: ":0", TLS: server.TLSConfig{Mode: server.TLSEnforcing}},
		"half cert": {Addr: ":0", TLS: server.TLSConfig{CertPath: "x"}},
		"no file":   {Addr: ":0", TLS: server.TLSConfig{CertPath: "/no/such", KeyPath: "/no/such"}},
	} {
		if _, err := server.New(cfg, server.NewMux()); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	s := start(t, server.Config{}, server.NewMux())
	taken, err := server.New(server.Config{Addr: s.Addr().String(), Logger: quiet}, server.NewMux())
	if err != nil {
		t.Fatal(err)
	}
	if err := taken.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("a port that is taken: %v", err)
	}
	if err := taken.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
