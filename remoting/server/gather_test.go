package server_test

import (
	"testing"

	"mqx/remoting"
	"mqx/remoting/server"
)

// Answers that are given together outside of a handler share writes; those given
// before and after go at once.
func TestGather(t *testing.T) {
	const each = 32
	kept := make(chan *server.Request, 2*each+2)
	m := server.NewMux()
	m.HandleInline(1, func(r *server.Request) { kept <- r })
	s := start(t, server.Config{}, m)
	peers := []*peer{dial(t, s), dial(t, s)}
	var g server.Gather
	alone := func(p *peer, opaque int32) {
		p.send(request(1, opaque, "x"))
		r := <-kept
		g.Add(r)
		r.Reply(remoting.RespSuccess, "")
		if resp := p.receive(); resp.Opaque != opaque {
			t.Fatalf("answer to %d, want %d", resp.Opaque, opaque)
		}
	}
	alone(peers[0], 1000)
	before := s.Stats().Writes
	for i := range int32(each) { // in turn, so that no two neighbours are of one connection
		for _, p := range peers {
			p.send(request(1, i, "x"))
		}
	}
	var all []*server.Request
	for range 2 * each {
		all = append(all, <-kept)
	}
	g.Do(func() {
		for _, r := range all {
			g.Add(r)
			r.Reply(remoting.RespSuccess, "")
		}
	})
	for _, p := range peers {
		for range each {
			p.receive()
		}
	}
	eventually(t, "writes counted", func() bool { return s.Stats().Replies == 2*each+1 })
	// The loop writes what it finds at the end of a read.
	if w := s.Stats().Writes - before; w > 8 {
		t.Errorf("%d answers to two connections took %d writes", 2*each, w)
	}
	alone(peers[1], 2000)
}
