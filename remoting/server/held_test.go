package server_test

import (
	"fmt"
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
	m.HandleTryBatch(codeTryBatch, func(rs []*server.Request) bool {
		for _, r := range rs {
			switch string(r.Body) {
			case "class":
				return false
			case "panic":
				panic("in the test")
			}
		}
		for _, r := range rs {
			r.Reply(0, fmt.Sprint(len(rs)))
		}
		return true
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
	for i := range int32(n) {
		resp := a.receive()
		if resp.Opaque != i {
			t.Fatalf("answer %d is that of %d", i, resp.Opaque)
		}
		var size int
		if _, err := fmt.Sscan(resp.Remark, &size); err != nil || size < 1 || size > 256 {
			t.Fatalf("a call of %q requests", resp.Remark)
		}
	}
}
