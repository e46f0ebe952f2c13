package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mqx/remoting"
	"mqx/remoting/client"
	"mqx/remoting/server"
)

const (
	codeInline = 30
	codeClass  = 31
	codeBatch  = 32
	codeTry    = 33

	codeTryBatch = 34
)

// gnet starts two goroutines of its ants pool when it is imported.
func TestMain(m *testing.M) {
	if child() {
		return
	}
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"))
}

func echo(r *server.Request) {
	resp := remoting.Command{Fields: r.Fields, Body: r.Body}
	r.ReplyWith(&resp)
}

// startClass runs a class until the test ends.
func startClass(t testing.TB, cfg server.ClassConfig) *server.Class {
	t.Helper()
	c := server.NewClass(cfg)
	go c.Run(context.Background()) //nolint:errcheck // it runs once
	t.Cleanup(c.Close)
	return c
}

// start runs a server on a free loopback port until the test ends.
func start(t testing.TB, cfg server.Config, m *server.Mux) *server.Server {
	t.Helper()
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	if cfg.Logger == nil {
		cfg.Logger = quiet
	}
	s, err := server.New(cfg, m)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
		// A handler that answers what is gone gives its buffer back a moment later.
		eventually(t, "nothing counted after the stop", func() bool {
			st := s.Stats()
			return st.Inbound == 0 && st.Outbound == 0 && st.Parked == 0
		})
	})
	return s
}

func newClient(t testing.TB, cfg client.Config) *client.Client {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = quiet
	}
	c := client.New(cfg)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func echoMux(t testing.TB) *server.Mux {
	m := server.NewMux()
	m.HandleInline(codeInline, echo)
	m.Handle(codeClass, startClass(t, server.ClassConfig{Name: "single", Workers: 4, Queue: 10000}), echo)
	m.HandleBatch(codeBatch, startClass(t, server.ClassConfig{Name: "batch", Workers: 2, Queue: 10000}), func(rs []*server.Request) {
		for _, r := range rs {
			echo(r)
		}
	})
	m.HandleInlineOr(codeTry, func(r *server.Request) bool {
		if len(r.Body)%2 == 0 {
			return false
		}
		echo(r)
		return true
	}, startClass(t, server.ClassConfig{Name: "try", Workers: 1, Queue: 10000}), echo)
	m.HandleTryBatch(codeTryBatch, func(rs []*server.Request) []*server.Request {
		for _, r := range rs {
			if len(r.Body) > 0 {
				return rs
			}
		}
		for _, r := range rs {
			r.Reply(0, fmt.Sprint(len(rs)))
		}
		return nil
	}, startClass(t, server.ClassConfig{Name: "try batch", Workers: 1, Queue: 10000}), func(rs []*server.Request) {
		for _, r := range rs {
			r.Reply(0, "batch")
		}
	})
	return m
}

// forBoth runs a test with connections on event loops and on goroutines.
func forBoth(t *testing.T, f func(t *testing.T, cfg server.Config)) {
	t.Run("loops", func(t *testing.T) { f(t, server.Config{}) })
	t.Run("streams", func(t *testing.T) { f(t, server.Streams(server.Config{})) })
}

// peer is a connection that a test drives byte by byte.
type peer struct {
	net.Conn
	t testing.TB
}

const patience = 10 * time.Second

func dial(t testing.TB, s *server.Server) *peer {
	t.Helper()
	return dialAddr(t, s.Addr().String())
}

func dialAddr(t testing.TB, addr string) *peer {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(patience))
	return &peer{nc, t}
}

func frameOf(t testing.TB, cmd *remoting.Command) []byte {
	t.Helper()
	b, err := cmd.AppendFrame(nil, remoting.SerializeJSON)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (p *peer) send(cmds ...*remoting.Command) {
	p.t.Helper()
	var b []byte
	for _, c := range cmds {
		b = append(b, frameOf(p.t, c)...)
	}
	if _, err := p.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

// receive reads one frame.
func (p *peer) receive() *remoting.Command {
	p.t.Helper()
	cmd, err := p.tryReceive()
	if err != nil {
		p.t.Fatalf("no answer: %v", err)
	}
	return cmd
}

func (p *peer) tryReceive() (*remoting.Command, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(p, head); err != nil {
		return nil, err
	}
	n, _, err := remoting.FrameLen(head)
	if err != nil {
		return nil, err
	}
	frame := append(head, make([]byte, n-4)...)
	if _, err := io.ReadFull(p, frame[4:]); err != nil {
		return nil, err
	}
	cmd := new(remoting.Command)
	return cmd, cmd.Decode(frame)
}

// closed waits until the server closes the connection.
func (p *peer) closed() {
	p.t.Helper()
	n, err := io.Copy(io.Discard, p)
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		p.t.Fatalf("the connection is still open after %d bytes", n)
	}
}

func request(code, opaque int32, body string) *remoting.Command {
	cmd := remoting.NewRequest(code, nil)
	cmd.Opaque = opaque
	cmd.Body = []byte(body)
	return cmd
}

// eventually waits until ok, looking often.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
		time.Sleep(time.Millisecond) // the condition decides, not the pause
	}
}

func TestEcho(t *testing.T) {
	forBoth(t, func(t *testing.T, cfg server.Config) {
		s := start(t, cfg, echoMux(t))
		c := newClient(t, client.Config{})
		for _, code := range []int32{codeInline, codeClass, codeBatch, codeTry} {
			for _, body := range []string{"hello", "hell", strings.Repeat("x", 300_001), strings.Repeat("y", 5<<20)} {
				req := remoting.NewRequest(code, nil)
				req.Fields.Set("k", "v")
				req.Body = []byte(body)
				resp, err := c.Call(t.Context(), s.Addr().String(), req)
				if err != nil {
					t.Fatal(err)
				}
				if resp.Code != 0 || string(resp.Body) != body || resp.Fields.String("k") != "v" || !resp.IsResponse() ||
					resp.Language != remoting.LanguageGo || resp.Version != remoting.Version {
					t.Errorf("code %d with %d bytes answered %d with %d", code, len(body), resp.Code, len(resp.Body))
				}
			}
		}
	})
}

func TestUnsupportedAndDefault(t *testing.T) {
	s := start(t, server.Config{}, echoMux(t))
	p := dial(t, s)
	p.send(request(9999, 5, ""), request(300000, 6, ""))
	for _, want := range []struct {
		opaque int32
		remark string
	}{{5, " request type 9999 not supported"}, {6, " request type 300000 not supported"}} {
		resp := p.receive()
		if resp.Code != remoting.RespRequestCodeNotSupported || resp.Remark != want.remark || resp.Opaque != want.opaque {
			t.Errorf("answer %+v", resp)
		}
	}
	if n := s.Stats().Unsupported; n != 2 {
		t.Errorf("%d unsupported requests counted", n)
	}
	m := server.NewMux()
	m.Default(startClass(t, server.ClassConfig{Name: "admin", Workers: 1, Queue: 10}), echo)
	p = dial(t, start(t, server.Config{}, m))
	p.send(request(9999, 7, "x"))
	if resp := p.receive(); resp.Code != 0 || string(resp.Body) != "x" {
		t.Errorf("default handler answered %+v", resp)
	}
}

func TestSerializeIsTheServers(t *testing.T) {
	for _, own := range []remoting.Serialize{remoting.SerializeJSON, remoting.SerializeROCKETMQ} {
		s := start(t, server.Config{Serialize: own}, echoMux(t))
		for _, theirs := range []remoting.Serialize{remoting.SerializeJSON, remoting.SerializeROCKETMQ} {
			p := dial(t, s)
			b, err := request(codeInline, 1, "x").AppendFrame(nil, theirs)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Write(b); err != nil {
				t.Fatal(err)
			}
			if resp := p.receive(); resp.Serialize != own {
				t.Errorf("a server with %v answered %v in %v", own, theirs, resp.Serialize)
			}
		}
	}
}

func TestOnewayIsNeverAnswered(t *testing.T) {
	forBoth(t, func(t *testing.T, cfg server.Config) {
		s := start(t, cfg, echoMux(t))
		p := dial(t, s)
		for _, code := range []int32{codeInline, codeClass, codeBatch, 9999} {
			one := request(code, 1, "x")
			one.Flag |= remoting.FlagOneway
			p.send(one)
		}
		p.send(request(codeInline, 2, "end"))
		if resp := p.receive(); resp.Opaque != 2 {
			t.Errorf("a one-way request was answered: %+v", resp)
		}
		eventually(t, "all served and counted", func() bool {
			st := s.Stats()
			return st.Inbound == 0 && st.Oneways == 4 && st.Replies >= 1
		})
		if n := s.Stats().Replies; n != 1 {
			t.Errorf("%d answers counted", n)
		}
	})
}

// A frame that comes in pieces and frames that come together are the same.
func TestPiecesOverTheWire(t *testing.T) {
	forBoth(t, func(t *testing.T, cfg server.Config) {
		p := dial(t, start(t, cfg, echoMux(t)))
		var all []byte
		for i := range int32(20) {
			all = append(all, frameOf(t, request(codeBatch, i, strings.Repeat("z", int(i))))...)
		}
		for i, b := range all[:200] {
			if _, err := p.Write([]byte{b}); err != nil {
				t.Fatalf("byte %d: %v", i, err)
			}
		}
		if _, err := p.Write(all[200:]); err != nil {
			t.Fatal(err)
		}
		seen := map[int32]bool{}
		for range 20 {
			resp := p.receive()
			if len(resp.Body) != int(resp.Opaque) {
				t.Errorf("answer to %d has %d bytes", resp.Opaque, len(resp.Body))
			}
			seen[resp.Opaque] = true
		}
		if len(seen) != 20 {
			t.Errorf("%d of 20 answers", len(seen))
		}
	})
}

// Answers of one read are gathered: far fewer writes than answers.
func TestAnswersAreGathered(t *testing.T) {
	for _, code := range []int32{codeInline, codeBatch} {
		s := start(t, server.Config{}, echoMux(t))
		p := dial(t, s)
		var cmds []*remoting.Command
		for i := range int32(64) {
			cmds = append(cmds, request(code, i, "x"))
		}
		p.send(cmds...)
		for range cmds {
			p.receive()
		}
		eventually(t, "answers counted", func() bool { return s.Stats().Replies == 64 })
		if w := s.Stats().Writes; w > 8 {
			t.Errorf("code %d: 64 answers took %d writes", code, w)
		}
	}
}

func TestAlone(t *testing.T) {
	forBoth(t, func(t *testing.T, cfg server.Config) {
		m := server.NewMux()
		m.HandleInline(1, func(r *server.Request) { r.Reply(0, fmt.Sprint(r.Alone())) })
		p := dial(t, start(t, cfg, m))
		p.send(request(1, 1, ""))
		if resp := p.receive(); resp.Remark != "true" {
			t.Error("a lone request is not alone")
		}
		p.send(request(1, 1, ""), request(1, 2, ""))
		for range 2 {
			if resp := p.receive(); resp.Remark != "false" {
				t.Error("one of two requests is alone")
			}
		}
	})
}

func TestTryBatch(t *testing.T) {
	forBoth(t, func(t *testing.T, cfg server.Config) {
		p := dial(t, start(t, cfg, echoMux(t)))
		for _, tc := range []struct {
			bodies []string
			want   string
		}{
			{[]string{""}, "1"},
			{[]string{"", ""}, "2"},
			{[]string{"", "class"}, "batch"},
			{[]string{"class"}, "batch"},
		} {
			var cmds []*remoting.Command
			for i, body := range tc.bodies {
				cmds = append(cmds, request(codeTryBatch, int32(i), body))
			}
			p.send(cmds...)
			for i := range tc.bodies {
				if resp := p.receive(); resp.Remark != tc.want || resp.Opaque != int32(i) {
					t.Errorf("answer %d of %q is %d %q, want %q", i, tc.bodies, resp.Opaque, resp.Remark, tc.want)
				}
			}
		}
	})
}

func TestBatchMergesConnections(t *testing.T) {
	m := server.NewMux()
	class := startClass(t, server.ClassConfig{Name: "send", Workers: 1, Queue: 100, MaxBatch: 10})
	gate, open := newGate(t)
	entered := make(chan int, 100)
	h := func(rs []*server.Request) {
		entered <- len(rs)
		<-gate
		for _, r := range rs {
			echo(r)
		}
	}
	m.HandleBatch(10, class, h)
	m.HandleBatch(310, class, h)
	s := start(t, server.Config{}, m)
	first := dial(t, s)
	first.send(request(10, 0, "a"))
	if n := <-entered; n != 1 {
		t.Fatalf("first batch has %d requests", n)
	}
	peers := []*peer{dial(t, s), dial(t, s), dial(t, s)}
	for i, p := range peers {
		for j := range int32(4) {
			p.send(request(10+300*(j%2), j, strings.Repeat("x", i)))
		}
	}
	eventually(t, "12 requests wait", func() bool { return class.Stats().Waiting == 12 })
	open()
	first.receive()
	for i, p := range peers {
		for range 4 {
			if resp := p.receive(); len(resp.Body) != i {
				t.Errorf("connection %d got the answer of another", i)
			}
		}
	}
	if a, b := <-entered, <-entered; a != 10 || b != 2 {
		t.Errorf("batches of %d and %d, want 10 and 2", a, b)
	}
	eventually(t, "counters of 13 requests in 3 batches", func() bool {
		st := class.Stats()
		return st.Requests == 13 && st.Batches == 3 && st.Running == 0 && st.TotalWait > 0
	})
}

func TestPanicAnswersSystemError(t *testing.T) {
	forBoth(t, func(t *testing.T, cfg server.Config) {
		var log bytes.Buffer
		cfg.Logger = logTo(&log)
		m := server.NewMux()
		class := startClass(t, server.ClassConfig{Name: "send", Workers: 1, Queue: 100})
		boom := func(*server.Request) { panic("boom 17") }
		m.HandleInline(1, boom)
		m.Handle(2, class, boom)
		m.HandleBatch(3, class, func(rs []*server.Request) {
			for _, r := range rs {
				if string(r.Body) == "bad" {
					panic("boom 18")
				}
				echo(r)
			}
		})
		m.HandleInline(4, echo)
		s := start(t, cfg, m)
		p := dial(t, s)
		for i, code := range []int32{1, 2} {
			p.send(request(code, int32(i), ""))
			resp := p.receive()
			if resp.Code != remoting.RespSystemError || !strings.Contains(resp.Remark, "boom 17") {
				t.Errorf("code %d answered %+v", code, resp)
			}
		}
		p.send(request(3, 10, "good"), request(3, 11, "bad"), request(3, 12, "good"))
		got := map[int32]int32{}
		for range 3 {
			resp := p.receive()
			got[resp.Opaque] = resp.Code
		}
		if len(got) != 3 || got[11] != remoting.RespSystemError {
			t.Errorf("answers by opaque: %v", got)
		}
		p.send(request(4, 13, "alive"))
		if resp := p.receive(); string(resp.Body) != "alive" {
			t.Errorf("after panics: %+v", resp)
		}
		if n := s.Stats().Panics; n != 3 {
			t.Errorf("%d panics counted", n)
		}
		if !strings.Contains(log.String(), "server_test.go") || !strings.Contains(log.String(), "boom 17") {
			t.Errorf("the log has no stack: %s", log.String())
		}
	})
}

func TestDoubleReplyIsDetected(t *testing.T) {
	m := server.NewMux()
	m.HandleInline(1, func(r *server.Request) {
		r.Reply(0, "first")
		r.Reply(0, "second")
	})
	s := start(t, server.Config{}, m)
	p := dial(t, s)
	for i := range int32(3) {
		p.send(request(1, i, ""))
		if resp := p.receive(); resp.Remark != "first" || resp.Opaque != i {
			t.Errorf("answer %+v", resp)
		}
	}
	if n := s.Stats().DoubleReplies; n != 3 {
		t.Errorf("%d double replies counted, want 3", n)
	}
}

// Requests may be kept and answered by anybody, any time later.
func TestParkedRequests(t *testing.T) {
	forBoth(t, func(t *testing.T, cfg server.Config) {
		var mu sync.Mutex
		var parked []*server.Request
		m := server.NewMux()
		park := func(r *server.Request) {
			r.Detach()
			mu.Lock()
			parked = append(parked, r)
			mu.Unlock()
		}
		m.HandleInline(1, park)
		m.Handle(2, startClass(t, server.ClassConfig{Name: "pull", Workers: 2, Queue: 100}), park)
		m.HandleInline(3, echo)
		s := start(t, cfg, m)
		p := dial(t, s)
		var cmds []*remoting.Command
		for i := range int32(50) {
			cmd := request(1+i%2, i, strings.Repeat("p", 100+int(i)))
			cmd.Fields.SetInt("n", int64(i))
			cmds = append(cmds, cmd)
		}
		// A large neighbour in the same read must not be kept alive by them.
		p.send(append(cmds, request(3, 100, strings.Repeat("x", 200_000)))...)
		p.receive()
		eventually(t, "all parked", func() bool { mu.Lock(); defer mu.Unlock(); return len(parked) == 50 })
		if st := s.Stats(); st.Parked == 0 || st.Parked > 50*1024 {
			t.Errorf("50 small parked requests hold %d bytes", st.Parked)
		}
		eventually(t, "nothing else held", func() bool { return s.Stats().Inbound == 0 })
		for _, r := range parked {
			if n, _, _ := r.Fields.Int32("n"); n != r.Opaque || len(r.Body) != 100+int(n) {
				t.Errorf("request %d reads field %d and %d bytes after Detach", r.Opaque, n, len(r.Body))
			}
		}
		var wg sync.WaitGroup
		for _, r := range parked {
			wg.Go(func() { echo(r) })
		}
		wg.Wait()
		seen := map[int32]bool{}
		for range 50 {
			resp := p.receive()
			seen[resp.Opaque] = len(resp.Body) == 100+int(resp.Opaque)
		}
		for i := range int32(50) {
			if !seen[i] {
				t.Errorf("request %d has no or a wrong answer", i)
			}
		}
	})
}

func TestStatesAndCallbacks(t *testing.T) {
	forBoth(t, func(t *testing.T, cfg server.Config) {
		var opened, closed atomic.Int32
		var reason atomic.Value
		cfg.OnOpen = func(c *server.Conn) { c.SetSession("mine"); opened.Add(1) }
		cfg.OnClose = func(c *server.Conn, err error) {
			if c.Session() == "mine" && c.State() == server.StateClosed {
				reason.Store(err.Error())
				closed.Add(1)
			}
		}
		s := start(t, cfg, echoMux(t))
		p := dial(t, s)
		eventually(t, "accepted", func() bool { return s.Stats().Connections[server.StateAccepted] == 1 })
		s.Conns(func(*server.Conn) bool { t.Error("a connection without a byte is listed"); return true })
		if opened.Load() != 0 {
			t.Error("OnOpen before the first byte")
		}
		if _, err := p.Write(frameOf(t, request(codeInline, 1, ""))[:3]); err != nil {
			t.Fatal(err)
		}
		eventually(t, "connected", func() bool { return s.Stats().Connections[server.StateConnected] == 1 })
		if _, err := p.Write(frameOf(t, request(codeInline, 1, ""))[3:]); err != nil {
			t.Fatal(err)
		}
		p.receive()
		if n := s.Stats().Connections[server.StateReady]; n != 1 || opened.Load() != 1 {
			t.Errorf("%d ready connections, %d opened", n, opened.Load())
		}
		s.Conns(func(c *server.Conn) bool {
			if c.State() != server.StateReady || c.Language() != remoting.LanguageGo || c.Version() != remoting.Version || c.TLS() ||
				c.Remote().String() != p.LocalAddr().String() || c.Local().String() != p.RemoteAddr().String() ||
				time.Since(c.Opened()) > patience || c.ID() == 0 {
				t.Errorf("connection %d: state %v, language %v, remote %v, local %v", c.ID(), c.State(), c.Language(), c.Remote(), c.Local())
			}
			c.SetAuthenticated()
			if c.State() != server.StateAuthenticated {
				t.Errorf("state %v after SetAuthenticated", c.State())
			}
			return true
		})
		p.send(request(codeInline, 2, ""))
		p.receive()
		if n := s.Stats().Connections[server.StateReady]; n != 1 {
			t.Errorf("%d connections ready again", n)
		}
		s.Conns(func(c *server.Conn) bool { c.Close("enough"); return true })
		p.closed()
		eventually(t, "closed", func() bool { return closed.Load() == 1 })
		if got := reason.Load(); got != "closed by handler: enough" {
			t.Errorf("reason %q", got)
		}
		st := s.Stats()
		if st.Connections[server.StateClosed] != 1 || st.Connections[server.StateReady] != 0 || st.Closed[server.ReasonApplication] != 1 {
			t.Errorf("counts %v, reasons %v", st.Connections, st.Closed)
		}
	})
}

func TestSendAndCallOverConn(t *testing.T) {
	forBoth(t, func(t *testing.T, cfg server.Config) {
		s := start(t, cfg, echoMux(t))
		got := make(chan string, 10)
		c := newClient(t, client.Config{OnRequest: func(_ string, req *remoting.Command) *remoting.Command {
			got <- string(req.Body)
			resp := remoting.NewResponse(req, 0, "done")
			resp.Body = append([]byte("re: "), req.Body...)
			return resp
		}})
		if _, err := c.Call(t.Context(), s.Addr().String(), request(codeInline, 0, "")); err != nil {
			t.Fatal(err)
		}
		var conn *server.Conn
		s.Conns(func(c *server.Conn) bool { conn = c; return false })
		push := remoting.NewRequest(remoting.ReqNotifyConsumerIDsChanged, nil)
		push.Body = []byte("push")
		if err := conn.Send(push); err != nil {
			t.Fatal(err)
		}
		if b := <-got; b != "push" {
			t.Errorf("client got %q", b)
		}
		var wg sync.WaitGroup
		for _, body := range []string{"a", "bb", "ccc"} {
			wg.Go(func() {
				ask := remoting.NewRequest(remoting.ReqGetConsumerRunningInfo, nil)
				ask.Body = []byte(body)
				resp, err := conn.Call(t.Context(), ask)
				if err != nil || string(resp.Body) != "re: "+body || resp.Remark != "done" {
					t.Errorf("call with %q: %+v, %v", body, resp, err)
				}
			})
		}
		wg.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		silent := dial(t, s)
		silent.send(request(codeInline, 1, ""))
		silent.receive()
		s.Conns(func(c *server.Conn) bool {
			if c != conn {
				if _, err := c.Call(ctx, remoting.NewRequest(1, nil)); err == nil {
					t.Error("a peer that says nothing has answered")
				}
			}
			return true
		})
		silent.receive()
		failed := make(chan error, 1)
		s.Conns(func(c *server.Conn) bool {
			if c != conn {
				go func() {
					_, err := c.Call(context.Background(), remoting.NewRequest(1, nil))
					failed <- err
				}()
			}
			return true
		})
		silent.receive()
		_ = silent.Close()
		if err := <-failed; err == nil {
			t.Error("a call on a connection that closed has been answered")
		}
	})
}
