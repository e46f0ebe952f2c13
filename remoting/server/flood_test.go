//go:build linux

package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mqx/remoting"
	"mqx/remoting/client"
	"mqx/remoting/server"
)

const childEnv = "MQX_TEST_CHILD"

// child is the server process of a flood test: few descriptors, commands on
// its input.
func child() bool {
	if os.Getenv(childEnv) == "" {
		return false
	}
	limit := syscall.Rlimit{Cur: 96, Max: 96}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		fmt.Println("error", err)
		return true
	}
	m := server.NewMux()
	m.HandleInline(codeInline, echo)
	s, err := server.New(server.Config{Addr: "127.0.0.1:0", Logger: quiet}, m)
	if err == nil {
		err = s.Start(context.Background())
	}
	if err != nil {
		fmt.Println("error", err)
		return true
	}
	fmt.Println(s.Addr())
	var eaten []*os.File
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch in.Text() {
		case "eat": // as a store might that opens files without end
			for {
				f, err := os.Open(os.DevNull)
				if err != nil {
					break
				}
				eaten = append(eaten, f)
			}
			fmt.Println("full", len(eaten))
		case "free":
			for _, f := range eaten {
				_ = f.Close()
			}
			eaten = nil
			fmt.Println("freed")
		case "stats":
			st := s.Stats()
			fmt.Println(st.Refused[server.ReasonMaxTotal], st.Refused[server.ReasonMaxPerIP], st.Refused[server.ReasonDescriptors])
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	fmt.Println("stopped", s.Stop(ctx))
	return true
}

// childServer is the process seen from the test.
type childServer struct {
	t    *testing.T
	in   io.WriteCloser
	out  *bufio.Reader
	addr string
}

func startChild(t *testing.T) *childServer {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=1")
	cmd.Stderr = os.Stderr
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &childServer{t: t, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		_ = in.Close()
		if s := c.line(); s != "stopped <nil>" {
			t.Errorf("the server ended with %q", s)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	c.addr = c.line()
	return c
}

func (c *childServer) line() string {
	c.t.Helper()
	s, err := c.out.ReadString('\n')
	if err != nil {
		c.t.Errorf("the server process is gone: %v", err)
	}
	return strings.TrimSpace(s)
}

func (c *childServer) do(cmd string) string {
	c.t.Helper()
	_, _ = fmt.Fprintln(c.in, cmd)
	return c.line()
}

// N104: more connections than descriptors leave the server up and those it has
// served.
func TestFloodPastDescriptors(t *testing.T) {
	c := startChild(t)
	first := dialAddr(t, c.addr)
	alive := func(when string) {
		t.Helper()
		first.send(request(codeInline, 1, when))
		if resp := first.receive(); string(resp.Body) != when {
			t.Errorf("%s: %+v", when, resp)
		}
	}
	alive("before")
	var flood []net.Conn
	defer func() {
		for _, nc := range flood {
			_ = nc.Close()
		}
	}()
	for range 1000 {
		nc, err := net.DialTimeout("tcp", c.addr, patience)
		if err != nil {
			break // the backlog is full too
		}
		flood = append(flood, nc)
	}
	alive("during")
	var total, perIP, fds int
	eventually(t, "some refused", func() bool {
		_, _ = fmt.Sscan(c.do("stats"), &total, &perIP, &fds)
		return total+perIP+fds > 100
	})
	if fds != 0 {
		t.Errorf("%d connections found no descriptor: the limit leaves too few", fds)
	}
	last := flood[len(flood)-1]
	_ = last.SetDeadline(time.Now().Add(patience))
	if resp, err := (&peer{last, t}).tryReceive(); err != nil || resp.Code != remoting.RespSystemBusy {
		t.Errorf("the last of the flood is told %+v, %v", resp, err)
	}
	for _, nc := range flood {
		_ = nc.Close()
	}
	eventually(t, "served again", func() bool { return served(c.addr) })
	alive("after")
}

func served(addr string) bool {
	nc, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return false
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(patience))
	b, _ := request(codeInline, 3, "x").AppendFrame(nil, remoting.SerializeJSON)
	if _, err := nc.Write(b); err != nil {
		return false
	}
	resp, err := (&peer{Conn: nc}).tryReceive()
	return err == nil && resp.Code == 0 && resp.Opaque == 3
}

// Somebody else has taken all descriptors: accept fails with EMFILE. The
// server tells who comes, serves who is there, and recovers.
func TestAcceptWithoutDescriptors(t *testing.T) {
	c := startChild(t)
	first := dialAddr(t, c.addr)
	first.send(request(codeInline, 1, ""))
	first.receive()
	if s := c.do("eat"); !strings.HasPrefix(s, "full") {
		t.Fatal(s)
	}
	for range 3 {
		p := dialAddr(t, c.addr)
		resp, err := p.tryReceive()
		if err != nil || resp.Code != remoting.RespSystemBusy || !strings.Contains(resp.Remark, server.ReasonDescriptors) {
			t.Errorf("without descriptors a client is told %+v, %v", resp, err)
		}
	}
	first.send(request(codeInline, 2, "still"))
	if resp := first.receive(); string(resp.Body) != "still" {
		t.Errorf("answer %+v", resp)
	}
	if s := c.do("free"); s != "freed" {
		t.Fatal(s)
	}
	eventually(t, "served again", func() bool { return served(c.addr) })
}

// Plain and TLS connections on one port leave no descriptor behind.
func TestTLSLeavesNoDescriptor(t *testing.T) {
	s := start(t, server.Config{TLS: server.TLSConfig{TestMode: true}}, echoMux(t))
	conf := clientTLS(t, client.TLSOptions{TestMode: true})
	count := func() int {
		d, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(d)
	}
	before := count()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 10 {
				cfg := client.Config{Logger: quiet}
				if i%2 == 0 {
					cfg.TLS = conf
				}
				c := client.New(cfg)
				if got, err := callBody(t, c, s.Addr().String(), "x"); err != nil || got != "x" {
					t.Errorf("%q, %v", got, err)
				}
				_ = c.Close()
			}
		})
	}
	wg.Wait()
	eventually(t, "descriptors closed", func() bool { return count() <= before })
}
