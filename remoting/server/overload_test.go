package server_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mqx/remoting"
	"mqx/remoting/server"
)

// newGate returns a channel that is closed by the caller or with the test.
func newGate(t *testing.T) (gate chan struct{}, open func()) {
	gate = make(chan struct{})
	open = sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open)
	return gate, open
}

// gated returns a handler that waits for the gate and tells what entered.
func gated(gate chan struct{}, entered *atomic.Int32) func(*server.Request) {
	return func(r *server.Request) {
		entered.Add(1)
		<-gate
		echo(r)
	}
}

func TestQueueFull(t *testing.T) {
	class := startClass(t, server.ClassConfig{Name: "send", Workers: 1, Queue: 3})
	gate, open := newGate(t)
	entered := new(atomic.Int32)
	m := server.NewMux()
	m.Handle(10, class, gated(gate, entered))
	s := start(t, server.Config{}, m)
	p := dial(t, s)
	p.send(request(10, 0, "running"))
	eventually(t, "one runs", func() bool { return entered.Load() == 1 })
	var cmds []*remoting.Command
	for i := range int32(5) {
		cmds = append(cmds, request(10, 1+i, "x"))
	}
	p.send(cmds...)
	text := regexp.MustCompile(`^\[OVERLOAD\]system busy, start flow control for a while, stage: send, wait: \d+ms$`)
	for range 2 {
		resp := p.receive()
		if resp.Code != remoting.RespSystemBusy || !text.MatchString(resp.Remark) || resp.Opaque < 4 {
			t.Errorf("answer %d with code %d: %q", resp.Opaque, resp.Code, resp.Remark)
		}
	}
	open()
	for range 4 {
		if resp := p.receive(); resp.Code != 0 || resp.Opaque > 3 {
			t.Errorf("answer %d with code %d", resp.Opaque, resp.Code)
		}
	}
	if st := s.Stats(); st.Overloaded != 2 || class.Stats().Overloaded != 2 {
		t.Errorf("%d and %d overloads counted", st.Overloaded, class.Stats().Overloaded)
	}
}

// N131, N133: a request that waits too long is answered although the only
// worker is stuck; the text says where and how long; one that has begun is not.
func TestLateInQueue(t *testing.T) {
	class := startClass(t, server.ClassConfig{Name: "send", Workers: 1, Queue: 100, MaxWait: 60 * time.Millisecond})
	gate, open := newGate(t)
	entered := new(atomic.Int32)
	m := server.NewMux()
	m.Handle(10, class, gated(gate, entered))
	s := start(t, server.Config{}, m)
	p := dial(t, s)
	p.send(request(10, 0, "stuck"))
	eventually(t, "one runs", func() bool { return entered.Load() == 1 })
	sent := time.Now()
	p.send(request(10, 1, "a"), request(10, 2, "b"), request(10, 3, "c"))
	for i := range 3 {
		resp := p.receive()
		var ms, size int
		_, err := fmt.Sscanf(resp.Remark, "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: %dms, size of queue: %d, stage: send", &ms, &size)
		if err != nil || resp.Code != remoting.RespSystemBusy {
			t.Fatalf("answer %d: %q", resp.Code, resp.Remark)
		}
		if ms < 60 || time.Duration(ms)*time.Millisecond > time.Since(sent)+time.Millisecond || size != 2-i {
			t.Errorf("remark %q after %v", resp.Remark, time.Since(sent))
		}
	}
	if d := time.Since(sent); d > 2*time.Second {
		t.Errorf("late requests were answered after %v", d)
	}
	open()
	if resp := p.receive(); resp.Code != 0 || string(resp.Body) != "stuck" {
		t.Errorf("the request that had begun: %+v", resp)
	}
	if n := entered.Load(); n != 1 {
		t.Errorf("%d requests began", n)
	}
	if n := class.Stats().Late; n != 3 {
		t.Errorf("%d late requests counted", n)
	}
	// The cleaner runs again for what comes later.
	p.send(request(10, 9, "again"))
	if resp := p.receive(); string(resp.Body) != "again" {
		t.Errorf("afterwards: %+v", resp)
	}
}

func TestInboundMemory(t *testing.T) {
	m := server.NewMux()
	class := startClass(t, server.ClassConfig{Name: "send", Workers: 1, Queue: 1000})
	gate, open := newGate(t)
	m.Handle(10, class, gated(gate, new(atomic.Int32)))
	m.HandleInline(30, echo)
	s := start(t, server.Config{InboundTotal: 1 << 20, MaxFrame: 1 << 20}, m)
	p := dial(t, s)
	for i := range int32(20) {
		p.send(request(10, i, strings.Repeat("x", 100_000)))
	}
	busy := 0
	for busy == 0 {
		resp := p.receive()
		if resp.Code != remoting.RespSystemBusy || !strings.Contains(resp.Remark, "stage: inbound memory") {
			t.Fatalf("answer %+v", resp)
		}
		busy++
	}
	p2 := dial(t, s)
	p2.send(request(30, 1, "inline"))
	if resp := p2.receive(); string(resp.Body) != "inline" {
		t.Errorf("a request on the loop was answered %+v", resp)
	}
	if in := s.Stats().Inbound; in > 2<<20 {
		t.Errorf("%d bytes are held", in)
	}
	open()
}

// Connections that ask for more than is answered leave room for the others, however many they are.
func TestInboundMemoryIsShared(t *testing.T) {
	m := server.NewMux()
	slow := startClass(t, server.ClassConfig{Name: "slow", Workers: 1, Queue: 100_000})
	gate, open := newGate(t)
	m.Handle(10, slow, gated(gate, new(atomic.Int32)))
	m.Handle(20, startClass(t, server.ClassConfig{Name: "quick", Workers: 1, Queue: 100}), echo)
	s := start(t, server.Config{InboundTotal: 4 << 20, MaxFrame: 1 << 20}, m)
	for range 8 {
		p := dial(t, s)
		for _, size := range []int{50_000, 1000, 0} { // as much as it gets, to the last byte
			for busy := false; !busy; {
				p.send(request(10, 1, strings.Repeat("x", size)))
				_ = p.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
				n, _ := p.Read(make([]byte, 4096))
				busy = n > 0
			}
		}
	}
	good := dial(t, s)
	for i := range int32(100) {
		good.send(request(20, i, "quick"))
		if resp := good.receive(); string(resp.Body) != "quick" {
			t.Fatalf("beside those that ask too much: %+v with %d bytes in all", resp, s.Stats().Inbound)
		}
	}
	open()
}

func TestClassClose(t *testing.T) {
	gate, open := newGate(t)
	entered := new(atomic.Int32)
	class := server.NewClass(server.ClassConfig{Name: "send", Workers: 1, Queue: 100})
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- class.Run(ctx) }()
	m := server.NewMux()
	m.Handle(10, class, gated(gate, entered))
	never := server.NewClass(server.ClassConfig{Name: "never", Workers: 1, Queue: 100})
	t.Cleanup(never.Close)
	m.Handle(11, never, echo)
	s := start(t, server.Config{}, m)
	p := dial(t, s)
	p.send(request(10, 1, "runs"), request(10, 2, "waits"), request(11, 3, "never"))
	eventually(t, "one runs, one waits", func() bool {
		return entered.Load() == 1 && class.Stats().Waiting == 1 && never.Stats().Waiting == 1
	})
	cancel()
	eventually(t, "closed for new requests", func() bool { return class.Stats().Closed })
	p.send(request(10, 4, "refused"))
	if resp := p.receive(); resp.Opaque != 4 || resp.Code != remoting.RespSystemBusy {
		t.Errorf("a closed class answered %+v", resp)
	}
	open()
	got := map[string]bool{}
	for range 2 {
		got[string(p.receive().Body)] = true
	}
	if !got["runs"] || !got["waits"] {
		t.Errorf("answers %v", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	class.Close()
	class.Close()
	never.Close()
	if resp := p.receive(); resp.Opaque != 3 || resp.Code != remoting.RespSystemBusy {
		t.Errorf("a request of a class that never ran: %+v", resp)
	}
	if err := class.Run(t.Context()); err == nil {
		t.Error("a class ran twice")
	}
}

// One slow handler of a class does not hold up the others that wait.
func TestSlowSingleDoesNotBlockOthers(t *testing.T) {
	m := server.NewMux()
	class := startClass(t, server.ClassConfig{Name: "pull", Workers: 2, Queue: 100})
	gate, open := newGate(t)
	entered := new(atomic.Int32)
	m.Handle(1, class, gated(gate, entered))
	m.Handle(2, class, echo)
	p := dial(t, start(t, server.Config{}, m))
	p.send(request(1, 0, "slow"), request(2, 1, "quick"), request(2, 2, "quick"))
	for range 2 {
		if resp := p.receive(); string(resp.Body) != "quick" {
			t.Errorf("answer %+v", resp)
		}
	}
	open()
	p.receive()
}

// Requests whose bodies find no room are answered, and their connections go on.
func TestIncompleteFrames(t *testing.T) {
	m := server.NewMux()
	class := startClass(t, server.ClassConfig{Name: "send", Workers: 1, Queue: 1000})
	m.Handle(10, class, echo)
	s := start(t, server.Config{InboundTotal: 2 << 20, MaxFrame: 1 << 20}, m)
	whole := frameOf(t, request(10, 1, strings.Repeat("x", 900_000)))
	write := func(p *peer, b []byte) {
		if _, err := p.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	var holders []*peer
	for range 8 {
		p := dial(t, s)
		write(p, whole[:len(whole)-1])
		holders = append(holders, p)
	}
	eventually(t, "memory for incomplete frames is full", func() bool { return s.Stats().BytesIn >= uint64(8*(len(whole)-1)) })
	busy, served := 0, 0
	for _, p := range holders {
		write(p, whole[len(whole)-1:])
		switch resp := p.receive(); {
		case resp.Code == remoting.RespSystemBusy && strings.Contains(resp.Remark, "stage: inbound memory") && resp.Opaque == 1:
			busy++
		case resp.Code == remoting.RespSuccess && len(resp.Body) == 900_000:
			served++
		default:
			t.Errorf("answer %d %q", resp.Code, resp.Remark)
		}
		p.send(request(10, 2, "small"))
		if resp := p.receive(); string(resp.Body) != "small" {
			t.Errorf("the connection answers %+v", resp)
		}
	}
	if busy == 0 || served == 0 {
		t.Errorf("%d are told that memory is full, %d are served", busy, served)
	}
}

// A peer that asks for more and more and reads nothing is closed, before it has taken what there is for everybody.
func TestPeersThatDoNotRead(t *testing.T) {
	forBoth(t, func(t *testing.T, cfg server.Config) {
		m := server.NewMux()
		m.HandleInline(10, func(r *server.Request) { r.Reply(0, strings.Repeat("x", 6000)) })
		cfg.OutboundSoft, cfg.OutboundHard = 100_000, 1<<30
		cfg.OutboundTotal = 1 << 31
		s := start(t, cfg, m)
		p := dial(t, s)
		few := make([]byte, 0, 1<<20)
		for i := range int32(1000) {
			few = append(few, frameOf(t, request(10, i, ""))...)
		}
		for sent := 0; ; sent++ {
			_ = p.SetWriteDeadline(time.Now().Add(patience))
			if _, err := p.Write(few); err != nil {
				break
			}
			if sent > 100 {
				t.Fatal("it is read for ever")
			}
		}
		eventually(t, "closed", func() bool { return s.Stats().Closed[server.ReasonFlood] == 1 })
		// One that reads may ask for as much.
		p = dial(t, s)
		for range 6 {
			if _, err := p.Write(few); err != nil {
				t.Fatal(err)
			}
			for range 1000 {
				_ = p.SetDeadline(time.Now().Add(patience))
				p.receive()
			}
		}
	})
}

// A peer that reads slowly, and always has more to read than it should, may ask for as much as it likes.
func TestPeersThatReadSlowly(t *testing.T) {
	forBoth(t, func(t *testing.T, cfg server.Config) {
		m := server.NewMux()
		m.HandleInline(10, func(r *server.Request) { r.Reply(0, strings.Repeat("x", 10_000)) })
		cfg.OutboundSoft, cfg.OutboundHard, cfg.OutboundTotal = 1, 1<<30, 1<<31
		s := start(t, cfg, m)
		p := dial(t, s)
		const ahead, all = 1200, 7000
		for i := range int32(all) {
			p.send(request(10, i, ""))
			if i >= ahead {
				_ = p.SetDeadline(time.Now().Add(patience))
				p.receive()
			}
		}
		if n := s.Stats().Closed[server.ReasonFlood]; n != 0 {
			t.Errorf("%d were closed", n)
		}
	})
}
