//go:build unix

package server_test

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mqx/remoting"
	"mqx/remoting/server"
)

// Peers of all kinds come and go at random moments, some in the middle of a
// frame or an answer, while others want right answers; then the server stops
// under load. Every request ends, every body is released, nothing is counted
// any more (start checks that).
func TestTorture(t *testing.T) {
	forBoth(t, func(t *testing.T, cfg server.Config) {
		released, bodies := new(atomic.Int32), new(atomic.Int32)
		m := server.NewMux()
		parts := partsHandler(released)
		pull := startClass(t, server.ClassConfig{Name: "pull", Workers: 4, Queue: 300, MaxWait: 50 * time.Millisecond})
		m.Handle(2, pull, func(r *server.Request) { bodies.Add(1); parts(r) })
		m.HandleInline(3, echo)
		m.HandleBatch(4, startClass(t, server.ClassConfig{Name: "send", Workers: 2, Queue: 300, MaxBatch: 20}), func(rs []*server.Request) {
			for i, r := range rs {
				if i%3 == 0 {
					go echo(r) // answered later, by somebody else
					continue
				}
				echo(r)
			}
		})
		cfg.TLS = server.TLSConfig{TestMode: true}
		cfg.SendBuffer = 16 << 10
		cfg.OutboundSoft, cfg.OutboundHard, cfg.OutboundTotal = 50_000, 400_000, 2_000_000
		s := start(t, cfg, m)
		end := time.Now().Add(1500 * time.Millisecond)
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(uint64(i), 99))
				for time.Now().Before(end) {
					tortureOnce(t, s.Addr().String(), rnd)
				}
			})
		}
		right := 0
		wg.Go(func() {
			for time.Now().Before(end) {
				p := dial(t, s)
				for k := range int32(20) {
					p.send(request(3, k, "right"))
					if resp := p.receive(); resp.Opaque != k || string(resp.Body) != "right" {
						t.Errorf("answer %+v", resp)
					}
					right++
				}
				_ = p.Close()
			}
		})
		wg.Wait()
		if right < 20 {
			t.Errorf("only %d requests of the good peer were served", right)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Fatal(err)
		}
		eventually(t, "all ended", func() bool {
			st := s.Stats()
			return st.Inbound == 0 && st.Outbound == 0 && released.Load() == bodies.Load()
		})
		st := s.Stats()
		if st.Panics != 0 || st.DoubleReplies != 0 {
			t.Errorf("%d panics, %d double replies", st.Panics, st.DoubleReplies)
		}
		for state, n := range st.Connections[:server.StateClosed] {
			if n != 0 {
				t.Errorf("%d connections are still %v", n, server.State(state))
			}
		}
		t.Logf("%d requests, closed: %v", st.Requests, st.Closed)
	})
}

// tortureOnce is one peer's life.
func tortureOnce(t *testing.T, addr string, rnd *rand.Rand) {
	raw, err := net.Dial("tcp", addr)
	if err != nil {
		return // the backlog is full
	}
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(time.Duration(20+rnd.IntN(200)) * time.Millisecond))
	nc := raw
	if rnd.IntN(4) == 0 {
		nc = tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
	}
	var b []byte
	for k := range int32(1 + rnd.IntN(60)) {
		var cmd *remoting.Command
		switch rnd.IntN(3) {
		case 0:
			cmd = partsRequest(2, k, 1+rnd.IntN(60), 1+rnd.IntN(2000))
		case 1:
			cmd = request(3, k, "inline")
		default:
			cmd = request(4, k, "batch")
		}
		if rnd.IntN(8) == 0 {
			cmd.Flag |= remoting.FlagOneway
		}
		b = append(b, frameOf(t, cmd)...)
	}
	switch rnd.IntN(5) {
	case 0:
		b = b[:rnd.IntN(len(b))] // ends in the middle of a frame
	case 1:
		b = append(b, 0xff, 0xff, 0xff, 0xff)
	}
	for len(b) > 0 {
		n := min(1+rnd.IntN(5000), len(b))
		if _, err := nc.Write(b[:n]); err != nil {
			return
		}
		b = b[n:]
	}
	p := &peer{nc, t}
	for range rnd.IntN(40) {
		if _, err := p.tryReceive(); err != nil {
			return
		}
	}
	if rnd.IntN(3) == 0 {
		_ = raw.(*net.TCPConn).SetLinger(0)
	}
}
