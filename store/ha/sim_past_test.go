package ha_test

import (
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"mqx/store"
	"mqx/store/ha"
)

// Faults that were filed against Apache RocketMQ, by their numbers, as scenarios of the simulated group.
func TestSimulationPast(t *testing.T) {
	quorum := ha.Rules{Level: ha.LevelQuorum, Copies: 1, Hold: true}
	for _, s := range []struct {
		name  string
		rules ha.Rules
		play  func(*simWorld)
	}{
		{"1155 3015 bogus report", quorum, pastBogus},
		{"6728 new connection", quorum, pastReconnect},
		{"323 3388 ahead", ha.Rules{}, pastAhead},
		{"9002 part of a record", quorum, pastPart},
		{"10666 cut tail", ha.Rules{}, pastCut},
		{"8539 6344 roles change", quorum, pastFlip},
		{"7689 unconfirmed tail", quorum, pastTail},
		{"2178 the longest log is not the newest", quorum, pastLongest},
		{"9942 promotions without a write", quorum, pastQuiet},
	} {
		t.Run(s.name, func(t *testing.T) {
			for seed := range uint64(4) {
				synctest.Test(t, func(t *testing.T) {
					w := newSimWorld(t, seed, slog.New(slog.DiscardHandler))
					w.rules, w.apache, w.hello, w.flush = s.rules, false, true, store.AsyncFlush
					if w.rules.Level == "" {
						w.rules.Level = ha.LevelAsync
					}
					for _, n := range w.nodes {
						n.start(0)
					}
					w.pause(time.Second)
					s.play(w)
					w.calm()
					close(w.quit)
					w.settle()
					w.check()
				})
			}
		})
	}
}

// send puts n messages to the master, one after the other, and returns how many were acknowledged.
func (w *simWorld) send(n int) (acked int) {
	run := w.nodes[w.known(-1)].run
	for range n {
		done := make(chan *store.Put, 1)
		run.store.PutBatch([]*store.Put{w.put(run, w.r, done)})
		if p := <-done; p.Status == store.PutOK {
			acked++
		}
	}
	return acked
}

func (w *simWorld) want(ok bool, format string, args ...any) {
	if !ok {
		w.errorf(format, args...)
	}
}

// cutOff lets the links of a node carry nothing.
func (w *simWorld) cutOff(node int) {
	for other := range simNodes {
		w.net.block(node, other, true)
		w.net.block(other, node, true)
	}
}

// pastBogus: a slave that reports more than the master has, or less than before, is no copy, and is sent away.
func pastBogus(w *simWorld) {
	w.send(3)
	w.nodes[1].end()
	w.nodes[2].end()
	for _, reports := range [][]int64{{0, 1 << 40}, {100, 100, 50}} {
		c, err := w.net.dial(w.t.Context(), 1, 0)
		if err != nil {
			w.errorf("cannot dial: %v", err)
			return
		}
		for _, end := range reports {
			if _, err := c.Write(ha.AppendReport(nil, end)); err != nil {
				w.errorf("cannot report: %v", err)
			}
			w.pause(50 * time.Millisecond)
		}
		w.want(w.send(1) == 0, "a message was acknowledged by the reports %v", reports)
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		_, err = io.Copy(io.Discard, c)
		w.want(err == nil, "a slave with the reports %v was not sent away: %v", reports, err)
		_ = c.Close()
	}
}

// pastReconnect: a slave that comes anew neither moves back what consumers see, nor counts before it has looked at its log.
func pastReconnect(w *simWorld) {
	w.send(5)
	m := w.nodes[0].run.master
	w.pause(time.Second)
	shown := m.Status().Shown
	w.want(shown > 0, "nothing is shown")
	for range 3 {
		w.nodes[1].end()
		w.nodes[2].end()
		w.want(w.send(1) == 0, "a message was acknowledged without a slave")
		w.begin(w.nodes[1], 0)
		w.begin(w.nodes[2], 0)
		for range 40 {
			w.pause(20 * time.Millisecond)
			now := m.Status().Shown
			w.want(now >= shown, "consumers saw the log up to %d and now see it up to %d", shown, now)
			shown = max(shown, now)
		}
	}
}

// pastAhead: a slave with more than its master says so, and follows again once it is mended.
func pastAhead(w *simWorld) {
	w.send(5)
	w.pause(2 * time.Second)
	w.nodes[0].run.die(true, 1)
	w.reap()
	n := w.nodes[0]
	n.pending = 0 // as if the power had taken all
	w.lost(n, simLoss{time.Now(), 0})
	w.begin(n, 0)
	for range 20 {
		w.pause(200 * time.Millisecond)
	}
	for _, s := range w.nodes[1:] {
		st := s.run.follower.State()
		w.want(st.Phase == ha.PhaseAhead, "a slave with more than its master is %q (%v)", st.Phase, st.Err)
	}
	w.operate()
}

// pastPart: what has come of a record is waited for, or cut at a stop; it is no corruption.
func pastPart(w *simWorld) {
	w.net.mu.Lock()
	w.net.mu.cutting = true
	w.net.mu.Unlock()
	for range 6 {
		w.send(8)
		n := w.nodes[1+w.r.IntN(2)]
		n.end()
		w.begin(n, 0)
		if n.run != nil {
			for _, f := range n.run.store.Findings() {
				w.errorf("a slave that was stopped in order finds: %+v", f)
			}
		}
	}
}

// pastCut: what a slave has cut off its log stays away, whenever the power fails after it.
func pastCut(w *simWorld) {
	w.send(4)
	w.pause(time.Second)
	w.cutOff(0)
	w.send(10) // which only the master has
	w.nodes[0].end()
	var both [simNodes]bool
	both[1], both[2] = true, true
	w.net.heal()
	w.crown(w.nodes[1], both)
	w.send(2)
	old := w.nodes[0]
	for ops := 1; ops < 60; ops += 7 {
		w.begin(old, ops) // it dies while it starts, or soon after
		w.pause(300 * time.Millisecond)
		w.operate()
		w.pause(300 * time.Millisecond)
		w.reap()
		if old.run != nil {
			old.run.die(true, w.r.Uint64())
			w.reap()
		}
	}
}

// pastFlip: queue offsets go on without a gap and without one twice when roles change; the checks at the end see to that.
func pastFlip(w *simWorld) {
	for range 6 {
		w.send(4)
		w.change()
		w.pause(time.Second)
	}
	w.want(w.total.Switches > 0, "no change of the master")
}

// pastTail: a master that starts with a tail that nobody has confirmed does not give its queue offsets once more.
func pastTail(w *simWorld) {
	w.send(4)
	w.cutOff(0)
	w.send(4)
	w.nodes[0].run.die(false, 1)
	w.reap()
	w.begin(w.nodes[0], 0)
	w.send(4)
	w.net.heal()
	w.pause(3 * time.Second)
	w.want(w.send(4) == 4, "with both slaves back not everything is acknowledged")
}

// pastLongest: a replica with a long tail of an old epoch does not win over a shorter one of a newer epoch.
func pastLongest(w *simWorld) {
	w.send(4)
	w.pause(time.Second)
	w.cutOff(0)
	w.send(30) // a long tail without copies
	w.nodes[0].end()
	w.net.heal()
	var both [simNodes]bool
	both[1], both[2] = true, true
	w.crown(w.nodes[1], both)
	w.pause(time.Second)
	w.want(w.send(3) == 3, "the new master does not acknowledge")
	w.cutOff(0)
	w.begin(w.nodes[0], 0) // it is a slave now, with its tail
	w.nodes[1].end()
	for range 20 {
		if w.promote(); w.known(-1) != 1 {
			break
		}
	}
	w.want(w.known(-1) == 2, "node %d is the master", w.known(-1))
}

// pastQuiet: epochs that nothing was written in leave no doubt about who has which bytes.
func pastQuiet(w *simWorld) {
	w.send(3)
	w.pause(time.Second)
	for range 3 {
		w.change()
		w.pause(time.Second)
	}
	w.cutOff(w.known(-1))
	w.send(5)
	old := w.nodes[w.known(-1)]
	old.run.die(false, 1)
	w.reap()
	w.net.heal()
	for range 20 {
		if w.promote(); w.known(-1) != old.id {
			break
		}
	}
	w.pause(time.Second)
	w.want(w.send(20) == 20, "the new master does not acknowledge")
	w.begin(old, 0)
	w.pause(3 * time.Second)
	w.operate()
}
