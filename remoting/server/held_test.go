package server_test

import (
	"fmt"
	"net"
	"testing"

	"mqx/remoting/server"
)

// heldServer is a server of one loop whose codeInline stops the loop until the test lets it go on, and whose codeTryBatch
// answers with the number of requests of its call, or in the class when one of them has the body "class", or panics at
// "panic".
func heldServer(t *testing.T) (s *server.Server, stopped, goOn chan struct{}) {
	stopped, goOn = make(chan struct{}), make(chan struct{})
	m := server.NewMux()
	m.HandleInline(codeInline, func(r *server.Request) {
		stopped <- struct{}{}
		<-goOn
		r.Reply(0, "")
	})
	m.HandleTryBatch(codeTryBatch, func(rs []*server.Request) []*server.Request {
		for _, r := range rs {
			switch string(r.Body) {
			case "class":
				return rs
			case "panic":
				panic("in the test")
			}
		}
		for _, r := range rs {
			r.Reply(0, fmt.Sprint(len(rs)))
		}
		return nil
	}, startClass(t, server.ClassConfig{Name: "try", Workers: 1, Queue: 10000}), func(rs []*server.Request) {
		for _, r := range rs {
			r.Reply(0, "class")
		}
	})
	return start(t, server.Config{Loops: 1}, m), stopped, goOn
}

// What several connections send while a loop is busy is served in one call, in the order of each.
func TestHeldOfSeveralConnections(t *testing.T) {
	for _, body := range []string{"", "class", "panic"} {
		t.Run("body "+body, func(t *testing.T) {
			s, stopped, goOn := heldServer(t)
			first, a, b := dial(t, s), dial(t, s), dial(t, s)
			for _, p := range []*peer{a, b} { // the loop knows them
				p.send(request(codeTryBatch, 0, ""))
				p.receive()
			}
			first.send(request(codeInline, 1, ""))
			<-stopped
			a.send(request(codeTryBatch, 1, ""), request(codeTryBatch, 2, ""))
			b.send(request(codeTryBatch, 1, ""), request(codeTryBatch, 2, body))
			goOn <- struct{}{}
			first.receive()
			want := map[string]string{"": "4", "class": "class", "panic": "fault while serving the request: in the test"}[body]
			for _, p := range []*peer{a, b} {
				for i := range int32(2) {
					if resp := p.receive(); resp.Opaque != i+1 || resp.Remark != want {
						t.Errorf("answer %d is %d %q, want %q", i+1, resp.Opaque, resp.Remark, want)
					}
				}
			}
			// The loop goes on afterwards.
			a.send(request(codeTryBatch, 3, ""))
			if resp := a.receive(); resp.Remark != "1" {
				t.Errorf("a lone request afterwards is answered %q", resp.Remark)
			}
			if st := s.Stats(); body == "panic" && st.Panics != 1 || body != "panic" && st.Panics != 0 {
				t.Errorf("%d panics are counted", st.Panics)
			}
		})
	}
}

// More than a loop may hold back is served in several calls; nothing is lost.
func TestHeldIsBounded(t *testing.T) {
	s, stopped, goOn := heldServer(t)
	first, a := dial(t, s), dial(t, s)
	first.send(request(codeInline, 1, ""))
	<-stopped
	const n = 1000
	for i := range int32(n) {
		a.send(request(codeTryBatch, i, ""))
	}
	goOn <- struct{}{}
	first.receive()
	most := 0
	for i := range int32(n) {
		resp := a.receive()
		if resp.Opaque != i {
			t.Fatalf("answer %d is that of %d", i, resp.Opaque)
		}
		var size int
		if _, err := fmt.Sscan(resp.Remark, &size); err != nil || size < 1 || size > 256 {
			t.Fatalf("a call of %q requests", resp.Remark)
		}
		most = max(most, size)
	}
	if most < 2 {
		t.Error("each request had a call of its own")
	}
}

// What a connection sends stays in order, also when it comes mixed with requests of another handler of the class, and
// when the class has some already.
func TestHeldKeepsOrder(t *testing.T) {
	class := startClass(t, server.ClassConfig{Name: "try", Workers: 1, Queue: 10000})
	stopped, goOn := make(chan struct{}), make(chan struct{})
	m := server.NewMux()
	block := func(r *server.Request) {
		stopped <- struct{}{}
		<-goOn
		r.Reply(0, "")
	}
	m.HandleInline(codeInline, block)
	m.Handle(codeClass, class, func(r *server.Request) {
		if string(r.Body) == "block" {
			block(r)
			return
		}
		r.Reply(0, "class")
	})
	m.HandleTryBatch(codeTryBatch, func(rs []*server.Request) []*server.Request {
		left := rs[:0]
		for i, r := range rs {
			if len(left) > 0 || string(r.Body) == "leave" {
				left = append(left, rs[i])
				continue
			}
			r.Reply(0, "loop")
		}
		return left
	}, class, func(rs []*server.Request) {
		for _, r := range rs {
			r.Reply(0, "worker")
		}
	})
	s := start(t, server.Config{Loops: 1}, m)
	p := dial(t, s)
	expect := func(n int) {
		t.Helper()
		for i := range int32(n) {
			if resp := p.receive(); resp.Opaque != i {
				t.Fatalf("answer %d is that of request %d (%q)", i, resp.Opaque, resp.Remark)
			}
		}
	}
	// Mixed, and one that is left to the workers.
	p.send(request(codeTryBatch, 0, ""), request(codeTryBatch, 1, ""))
	p.send(request(codeTryBatch, 2, ""), request(codeClass, 3, ""), request(codeTryBatch, 4, ""))
	p.send(request(codeTryBatch, 5, ""), request(codeTryBatch, 6, "leave"), request(codeTryBatch, 7, ""))
	p.send(request(codeTryBatch, 8, "leave"))
	p.send(request(codeTryBatch, 9, ""))
	expect(10)
	// Behind a worker that is stopped for longer than the loop waits.
	p.send(request(codeClass, 0, "block"))
	<-stopped
	p.send(request(codeTryBatch, 1, ""), request(codeTryBatch, 2, ""))
	p.send(request(codeTryBatch, 3, ""))
	q := dial(t, s)
	q.send(request(codeInline, 0, ""))
	<-stopped // the loop has read what came before, at least the first part of it
	goOn <- struct{}{}
	goOn <- struct{}{}
	q.receive()
	expect(4)
	p.send(request(codeTryBatch, 0, ""))
	expect(1)
	eventually(t, "something served on the loop", func() bool { return s.Stats().Prompt > 0 })
}

// A server that stops while requests are held gives their memory back (start looks at the gauges).
func TestStopWithHeldRequests(t *testing.T) {
	s, stopped, goOn := heldServer(t)
	first, a := dial(t, s), dial(t, s)
	a.send(request(codeTryBatch, 0, ""))
	a.receive()
	first.send(request(codeInline, 1, ""))
	<-stopped
	a.send(request(codeTryBatch, 1, ""), request(codeTryBatch, 2, ""))
	ended := make(chan error, 1)
	go func() { ended <- s.Stop(t.Context()) }()
	eventually(t, "no new connections", func() bool {
		nc, err := net.Dial("tcp", first.RemoteAddr().String())
		if err == nil {
			_ = nc.Close()
		}
		return err != nil
	})
	goOn <- struct{}{}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
