package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"))
}

const (
	codeEcho  = 30
	codeNever = 31 // is not answered
	codeWho   = 32 // the server's name
	codeBusy  = 33
	codeCount = 34 // one-way
)

var quiet = slog.New(slog.DiscardHandler)

const patience = 10 * time.Second

// node is a server whose requests a test can count.
type node struct {
	*server.Server
	t        testing.TB
	addr     string
	requests atomic.Int32
	oneways  atomic.Int32
	parked   chan *server.Request
}

func startNode(t testing.TB, name, addr string, cfg server.Config) *node {
	t.Helper()
	n := &node{t: t, parked: make(chan *server.Request, 100_000)}
	m := server.NewMux()
	m.HandleInline(codeEcho, func(r *server.Request) {
		n.requests.Add(1)
		r.ReplyWith(&remoting.Command{Fields: r.Fields, Body: r.Body})
	})
	m.HandleInline(codeNever, func(r *server.Request) { n.requests.Add(1); n.parked <- r })
	m.HandleInline(codeWho, func(r *server.Request) { n.requests.Add(1); r.Reply(0, name) })
	m.HandleInline(codeBusy, func(r *server.Request) { r.Reply(remoting.RespSystemBusy, "busy") })
	m.HandleInline(codeCount, func(r *server.Request) { n.oneways.Add(1); r.Reply(0, "") })
	cfg.Addr, cfg.Logger = addr, quiet
	if addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	s, err := server.New(cfg, m)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.Server, n.addr = s, s.Addr().String()
	t.Cleanup(n.stop)
	return n
}

func (n *node) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := n.Stop(ctx); err != nil {
		n.t.Error(err)
	}
	for {
		select {
		case r := <-n.parked:
			r.Done()
		default:
			return
		}
	}
}

func newClient(t testing.TB, cfg client.Config) *client.Client {
	t.Helper()
	cfg.Logger = quiet
	c := client.New(cfg)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func request(code int32, body string) *remoting.Command {
	cmd := remoting.NewRequest(code, nil)
	cmd.Body = []byte(body)
	return cmd
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

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

// deaf listens and accepts, as a stopped process does: nothing is ever read.
func deaf(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	return ln.Addr().String()
}

// nobody returns an address on which nobody listens.
func nobody(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close()
	return ln.Addr().String()
}

func TestCall(t *testing.T) {
	n := startNode(t, "a", "", server.Config{})
	for _, cfg := range []client.Config{{}, {Connections: 3}, {Serialize: remoting.SerializeROCKETMQ}} {
		c := newClient(t, cfg)
		for _, size := range []int{0, 1, 1000, 70_000, 3 << 20} {
			body := strings.Repeat("x", size)
			req := request(codeEcho, body)
			req.Fields.Set("k", "v")
			resp, err := c.Call(t.Context(), n.addr, req)
			if err != nil {
				t.Fatal(err)
			}
			if string(resp.Body) != body || resp.Fields.String("k") != "v" {
				t.Errorf("%d bytes came back as %d", size, len(resp.Body))
			}
			if req.Opaque != 0 || req.Flag != 0 {
				t.Error("the request was changed")
			}
		}
	}
}

// Many callers share a connection and get their own answers, which stay
// theirs.
func TestCallConcurrently(t *testing.T) {
	n := startNode(t, "a", "", server.Config{})
	c := newClient(t, client.Config{Connections: 2})
	var wg sync.WaitGroup
	for g := range 64 {
		wg.Go(func() {
			var kept []*remoting.Command
			for i := range 100 {
				body := fmt.Sprintf("%d/%d %s", g, i, strings.Repeat("z", (g*i)%3000))
				resp, err := c.Call(t.Context(), n.addr, request(codeEcho, body))
				if err != nil || string(resp.Body) != body {
					t.Errorf("%s: %v", body[:5], err)
					return
				}
				kept = append(kept, resp)
			}
			for i, resp := range kept {
				if !strings.HasPrefix(string(resp.Body), fmt.Sprintf("%d/%d ", g, i)) {
					t.Errorf("an answer that was kept has changed")
				}
			}
		})
	}
	wg.Wait()
	if open := n.Stats().Connections[server.StateReady]; open != 2 {
		t.Errorf("%d connections, want 2", open)
	}
	if st := n.Stats(); st.Reads > 6000 {
		t.Logf("6400 requests in %d reads", st.Reads)
	}
}

func TestGo(t *testing.T) {
	n := startNode(t, "a", "", server.Config{})
	c := newClient(t, client.Config{})
	// A chain: each answer sends the next, from within the callback.
	const chains, length = 50, 40
	done := make(chan error, chains)
	for k := range chains {
		req := request(codeEcho, "")
		var step func(i int) func(*remoting.Command, error)
		step = func(i int) func(*remoting.Command, error) {
			return func(resp *remoting.Command, err error) {
				if err == nil && string(resp.Body) != fmt.Sprint(k, i) {
					err = fmt.Errorf("chain %d step %d got %q", k, i, resp.Body)
				}
				if err != nil || i == length {
					done <- err
					return
				}
				req.Body = []byte(fmt.Sprint(k, i+1)) // reused at once
				if err := c.Go(n.addr, req, 0, step(i+1)); err != nil {
					done <- err
				}
			}
		}
		req.Body = []byte(fmt.Sprint(k, 0))
		if err := c.Go(n.addr, req, 0, step(0)); err != nil {
			t.Fatal(err)
		}
	}
	for range chains {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	result := make(chan error, 1)
	if err := c.Go(nobody(t), request(codeEcho, ""), 0, func(_ *remoting.Command, err error) { result <- err }); err != nil {
		t.Fatal(err)
	}
	var ce *client.ConnectError
	if err := <-result; !errors.As(err, &ce) {
		t.Errorf("nobody there: %v", err)
	}
}

func TestOneway(t *testing.T) {
	n := startNode(t, "a", "", server.Config{})
	c := newClient(t, client.Config{})
	for range 1000 {
		if err := c.Oneway(t.Context(), n.addr, request(codeCount, "x")); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all arrived", func() bool { return n.oneways.Load() == 1000 })
	if st := n.Stats(); st.Replies != 0 {
		t.Errorf("%d answers to one-way requests", st.Replies)
	}
}

func TestTimeouts(t *testing.T) {
	n := startNode(t, "a", "", server.Config{})
	c := newClient(t, client.Config{RequestTimeout: 80 * time.Millisecond})
	check := func(how string, err error, begin time.Time) {
		t.Helper()
		var te *client.TimeoutError
		if !errors.As(err, &te) || te.Addr != n.addr || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", how, err)
		}
		if d := time.Since(begin); d < 70*time.Millisecond || d > 5*time.Second {
			t.Errorf("%s: after %v", how, d)
		}
	}
	begin := time.Now()
	_, err := c.Call(t.Context(), n.addr, request(codeNever, ""))
	check("RequestTimeout", err, begin)
	begin = time.Now()
	_, err = c.Call(within(t, 80*time.Millisecond), n.addr, request(codeNever, ""))
	check("deadline", err, begin)
	begin = time.Now()
	errs := make(chan error, 1)
	if err := c.Go(n.addr, request(codeNever, ""), 80*time.Millisecond, func(_ *remoting.Command, err error) { errs <- err }); err != nil {
		t.Fatal(err)
	}
	check("Go", <-errs, begin)
	ctx, cancel := context.WithTimeout(t.Context(), patience) // longer than RequestTimeout
	defer cancel()
	go func() {
		eventually(t, "fourth request", func() bool { return n.requests.Load() == 4 })
		cancel()
	}()
	if _, err := c.Call(ctx, n.addr, request(codeNever, "")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	// Answers that come too late find nobody, and the connection goes on.
	for range 4 {
		r := <-n.parked
		r.Reply(0, "late")
	}
	for range 100 {
		resp, err := c.Call(t.Context(), n.addr, request(codeWho, ""))
		if err != nil || resp.Remark != "a" {
			t.Fatalf("afterwards: %+v, %v", resp, err)
		}
	}
	if open := n.Stats().Connections[server.StateClosed]; open != 0 {
		t.Error("a late answer closed the connection")
	}
}

func TestTooManyPending(t *testing.T) {
	n := startNode(t, "a", "", server.Config{})
	c := newClient(t, client.Config{MaxPending: 10})
	if _, err := c.Call(t.Context(), n.addr, request(codeEcho, "")); err != nil {
		t.Fatal(err)
	}
	var ended sync.WaitGroup
	for range 10 {
		ended.Add(1)
		if err := c.Go(n.addr, request(codeNever, ""), time.Minute, func(*remoting.Command, error) { ended.Done() }); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Go(n.addr, request(codeNever, ""), time.Minute, func(*remoting.Command, error) {}); !errors.Is(err, client.ErrTooManyPending) {
		t.Errorf("the eleventh: %v", err)
	}
	if _, err := c.Call(t.Context(), n.addr, request(codeEcho, "")); !errors.Is(err, client.ErrTooManyPending) {
		t.Errorf("a call besides: %v", err)
	}
	if err := c.Oneway(t.Context(), n.addr, request(codeCount, "")); err != nil {
		t.Errorf("a one-way request besides: %v", err)
	}
	for range 10 {
		r := <-n.parked
		r.Reply(0, "")
	}
	ended.Wait()
	if _, err := c.Call(t.Context(), n.addr, request(codeEcho, "")); err != nil {
		t.Errorf("room again: %v", err)
	}
}

func TestConnectErrors(t *testing.T) {
	c := newClient(t, client.Config{ConnectTimeout: time.Second})
	addr := nobody(t)
	for range 3 { // also while the next dial has to wait
		_, err := c.Call(t.Context(), addr, request(codeEcho, ""))
		var ce *client.ConnectError
		if !errors.As(err, &ce) || ce.Addr != addr {
			t.Errorf("nobody there: %v", err)
		}
	}
	// Somebody is there, later.
	startNode(t, "late", addr, server.Config{})
	eventually(t, "connected", func() bool {
		resp, err := c.Call(t.Context(), addr, request(codeWho, ""))
		return err == nil && resp.Remark == "late"
	})
}

func TestReconnect(t *testing.T) {
	var reasons atomic.Int32
	c := newClient(t, client.Config{OnClose: func(string, error) { reasons.Add(1) }})
	n := startNode(t, "first", "", server.Config{})
	call := func() (*remoting.Command, error) { return c.Call(t.Context(), n.addr, request(codeWho, "")) }
	if resp, err := call(); err != nil || resp.Remark != "first" {
		t.Fatal(resp, err)
	}
	waits := make(chan error, 1)
	if err := c.Go(n.addr, request(codeNever, ""), time.Minute, func(_ *remoting.Command, err error) { waits <- err }); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it waits", func() bool { return n.requests.Load() == 2 })
	n.stop()
	var closed *client.ClosedError
	if err := <-waits; !errors.As(err, &closed) {
		t.Errorf("what waited: %v", err)
	}
	if _, err := call(); err == nil {
		t.Error("a stopped server has answered")
	}
	startNode(t, "second", n.addr, server.Config{})
	eventually(t, "connected again", func() bool { resp, err := call(); return err == nil && resp.Remark == "second" })
	if reasons.Load() != 1 {
		t.Errorf("%d connections closed", reasons.Load())
	}
	c.CloseAddr(n.addr)
	if resp, err := call(); err != nil || resp.Remark != "second" {
		t.Errorf("after CloseAddr: %+v, %v", resp, err)
	}
}

// A peer that accepts and never reads: calls end in time, also those that
// have to send more than the kernel takes.
func TestDeafPeer(t *testing.T) {
	addr := deaf(t)
	c := newClient(t, client.Config{})
	begin := time.Now()
	var wg sync.WaitGroup
	for _, size := range []int{10, 1 << 20, 8 << 20, 8 << 20} {
		wg.Go(func() {
			_, err := c.Call(within(t, time.Second), addr, request(codeEcho, strings.Repeat("x", size)))
			var te *client.TimeoutError
			if !errors.As(err, &te) {
				t.Errorf("%d bytes: %v", size, err)
			}
		})
	}
	wg.Wait()
	if d := time.Since(begin); d > 5*time.Second {
		t.Errorf("ended after %v", d)
	}
	full := false
	for range 20 {
		if err := c.Oneway(t.Context(), addr, request(codeCount, strings.Repeat("x", 8<<20))); errors.Is(err, client.ErrTooManyPending) {
			full = true
		}
	}
	if !full {
		t.Error("160 MB were taken for a peer that does not read")
	}
}

// A connection on which nothing comes back at all is given up.
func TestSilentPeerIsGivenUp(t *testing.T) {
	addr := deaf(t)
	closed := make(chan error, 1)
	c := newClient(t, client.Config{OnClose: func(_ string, err error) { closed <- err }})
	if _, err := c.Call(within(t, 3200*time.Millisecond), addr, request(codeEcho, "")); err == nil {
		t.Fatal("answered")
	}
	select {
	case err := <-closed:
		if err == nil {
			t.Error("closed without a reason")
		}
	case <-time.After(patience):
		t.Error("the connection is kept")
	}
}

func TestIdleConnectionCloses(t *testing.T) {
	n := startNode(t, "a", "", server.Config{})
	c := newClient(t, client.Config{IdleTimeout: 100 * time.Millisecond})
	if _, err := c.Call(t.Context(), n.addr, request(codeEcho, "")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "closed", func() bool { return n.Stats().Connections[server.StateClosed] == 1 })
	if _, err := c.Call(t.Context(), n.addr, request(codeEcho, "")); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestBadAnswerClosesConnection(t *testing.T) {
	for _, answer := range []string{"HTTP/1.1 400 Bad Request\r\n\r\n", "\xff\xff\xff\xff", "\x00\x00\x00\x08\x00\x00\x00\x04abcd"} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = nc.Read(make([]byte, 1000))
			_, _ = io.WriteString(nc, answer)
			_, _ = io.Copy(io.Discard, nc)
			_ = nc.Close()
		}()
		c := newClient(t, client.Config{})
		_, err = c.Call(t.Context(), ln.Addr().String(), request(codeEcho, ""))
		var closed *client.ClosedError
		if !errors.As(err, &closed) {
			t.Errorf("%q: %v", answer, err)
		}
		_ = ln.Close()
	}
}

func TestServerRequests(t *testing.T) {
	n := startNode(t, "a", "", server.Config{})
	var running atomic.Int32
	release := make(chan struct{})
	c := newClient(t, client.Config{OnRequest: func(addr string, req *remoting.Command) *remoting.Command {
		running.Add(1)
		defer running.Add(-1)
		<-release
		if addr != n.addr || len(req.Body) == 0 {
			return nil
		}
		resp := remoting.NewResponse(req, 0, "")
		resp.Body = req.Body
		return resp
	}})
	none := newClient(t, client.Config{})
	for _, cl := range []*client.Client{c, none} {
		if _, err := cl.Call(t.Context(), n.addr, request(codeEcho, "")); err != nil {
			t.Fatal(err)
		}
	}
	var conns []*server.Conn
	n.Conns(func(c *server.Conn) bool { conns = append(conns, c); return true })
	if conns[0].ID() > conns[1].ID() {
		conns[0], conns[1] = conns[1], conns[0]
	}
	codes := make(chan int32, 100)
	for i := range 100 {
		go func() {
			resp, err := conns[0].Call(t.Context(), request(307, fmt.Sprint("b", i)))
			if err != nil {
				t.Error(err)
				codes <- -1
				return
			}
			codes <- resp.Code
		}()
	}
	got := map[int32]int{}
	for range 36 { // 64 run, the others are refused
		got[<-codes]++
	}
	eventually(t, "64 run", func() bool { return running.Load() == 64 })
	close(release)
	for range 64 {
		got[<-codes]++
	}
	if got[0] != 64 || got[remoting.RespSystemBusy] != 36 {
		t.Errorf("answers by code %v", got)
	}
	if resp, err := conns[0].Call(t.Context(), request(307, "")); err != nil || resp.Code != remoting.RespSystemError {
		t.Errorf("no answer of the callback: %+v, %v", resp, err)
	}
	if resp, err := conns[1].Call(t.Context(), request(307, "x")); err != nil || resp.Code != remoting.RespRequestCodeNotSupported {
		t.Errorf("no callback: %+v, %v", resp, err)
	}
	if err := conns[0].Send(request(40, "one-way")); err != nil {
		t.Error(err)
	}
}

func TestCredentialsSign(t *testing.T) {
	m := server.NewMux()
	m.HandleInline(codeEcho, func(r *server.Request) {
		sig := r.Fields.String(remoting.FieldSignature)
		switch {
		case r.Fields.String(remoting.FieldAccessKey) != "ak" || r.Fields.String(remoting.FieldSecurityToken) != "tok":
			r.Reply(1, "fields")
		case sig == "" || sig != remoting.Signature(&r.Command, "sk"):
			r.Reply(1, "signature")
		default:
			r.Reply(0, "")
		}
	})
	s, err := server.New(server.Config{Addr: "127.0.0.1:0", Logger: quiet}, m)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Stop(context.Background()) //nolint:errcheck // waits without a limit
	c := newClient(t, client.Config{Credentials: &client.Credentials{AccessKey: "ak", SecretKey: "sk", Token: "tok"}})
	req := request(codeEcho, "body")
	req.Fields.Set("z", "1")
	for range 2 {
		resp, err := c.Call(t.Context(), s.Addr().String(), req)
		if err != nil || resp.Code != 0 {
			t.Errorf("%+v, %v", resp, err)
		}
	}
	if len(req.Fields) != 1 {
		t.Error("the caller's request was signed in place")
	}
}

func TestRefusedConnection(t *testing.T) {
	n := startNode(t, "a", "", server.Config{MaxConnections: 1})
	first := newClient(t, client.Config{})
	if _, err := first.Call(t.Context(), n.addr, request(codeEcho, "")); err != nil {
		t.Fatal(err)
	}
	second := newClient(t, client.Config{})
	_, err := second.Call(t.Context(), n.addr, request(codeEcho, ""))
	var ce *client.ConnectError
	var re *remoting.ResponseError
	if !errors.As(err, &ce) || !errors.As(err, &re) || !strings.Contains(err.Error(), server.ReasonMaxTotal) {
		t.Errorf("refused: %v", err)
	}
}

func TestClose(t *testing.T) {
	n := startNode(t, "a", "", server.Config{})
	c := client.New(client.Config{Logger: quiet})
	if _, err := c.Call(t.Context(), n.addr, request(codeEcho, "")); err != nil {
		t.Fatal(err)
	}
	waits := make(chan error, 3)
	for range 2 {
		if err := c.Go(n.addr, request(codeNever, ""), time.Minute, func(_ *remoting.Command, err error) { waits <- err }); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		_, err := c.Call(context.Background(), n.addr, request(codeNever, ""))
		waits <- err
	}()
	eventually(t, "all wait", func() bool { return n.requests.Load() == 4 })
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	for range 3 {
		if err := <-waits; !errors.Is(err, client.ErrClosed) {
			t.Errorf("what waited: %v", err)
		}
	}
	if _, err := c.Call(t.Context(), n.addr, request(codeEcho, "")); !errors.Is(err, client.ErrClosed) {
		t.Errorf("a call: %v", err)
	}
	if err := c.Go(n.addr, request(codeEcho, ""), 0, nil); !errors.Is(err, client.ErrClosed) {
		t.Errorf("Go: %v", err)
	}
	if err := c.Oneway(t.Context(), n.addr, request(codeEcho, "")); !errors.Is(err, client.ErrClosed) {
		t.Errorf("one-way: %v", err)
	}
	if err := client.New(client.Config{}).Close(); err != nil {
		t.Error(err)
	}
}

// Addresses that come and go are not kept for ever.
func TestManyAddresses(t *testing.T) {
	n := startNode(t, "a", ":0", server.Config{})
	_, port, _ := net.SplitHostPort(n.addr)
	c := newClient(t, client.Config{ConnectTimeout: 2 * time.Second})
	for i := range 600 {
		addr := net.JoinHostPort(fmt.Sprintf("127.0.%d.%d", 1+i/200, 1+i%200), port)
		if _, err := c.Call(t.Context(), addr, request(codeEcho, "")); err != nil {
			t.Fatal(err)
		}
		if i%100 != 0 {
			c.CloseAddr(addr)
		}
	}
	if n := client.Known(c); n > 300 {
		t.Errorf("%d addresses are known", n)
	}
	if resp, err := c.Call(t.Context(), net.JoinHostPort("127.0.1.1", port), request(codeWho, "")); err != nil || resp.Remark != "a" {
		t.Errorf("%+v, %v", resp, err)
	}
}

// A dial that does not end does not hold up Close.
func TestCloseWhileDialling(t *testing.T) {
	c := client.New(client.Config{Logger: quiet, ConnectTimeout: time.Minute})
	errs := make(chan error, 1)
	// An address of the documentation range: packets to it go nowhere, or are
	// refused by the first router.
	err := c.Go("192.0.2.1:9876", request(codeEcho, ""), time.Minute, func(_ *remoting.Command, err error) { errs <- err })
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	_ = c.Close()
	if err := <-errs; err == nil {
		t.Error("answered")
	}
	if d := time.Since(begin); d > 5*time.Second {
		t.Errorf("Close took %v", d)
	}
}
