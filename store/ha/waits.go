package ha

import (
	"context"
	"net"
	"slices"
	"time"
)

// tickEvery is how often a master that waits for slaves looks at the time.
const tickEvery = 250 * time.Millisecond

// SetRules puts rules in force; epoch goes into the intervals that begin from now on.
func (m *Master) SetRules(r Rules, epoch int64) {
	m.event(func(g *Group, now time.Time) { g.SetRules(r, epoch, now) })
}

// Admit tells why nothing may be appended that waits for copies (a *NotEnoughError); nil where it may.
func (m *Master) Admit() error {
	if e := m.inSync.Load(); e != nil {
		return e
	}
	return nil
}

// Waits reports whether anybody waits for slaves.
func (m *Master) Waits() bool { return m.waits.Load() }

// Wait calls done(true) once the slaves that the rules ask for have the log up to end, done(false) after timeout or when the
// master is closed. It is called exactly once, maybe before Wait returns, and must not block.
func (m *Master) Wait(end int64, timeout time.Duration, done func(ok bool)) {
	m.mu.Lock()
	if m.mu.closed {
		waits := m.waits.Load()
		m.mu.Unlock()
		done(!waits)
		return
	}
	now := time.Now()
	m.mu.group.Wait(&Waiter{End: end, Deadline: now.Add(timeout), Done: done}, now)
	ws := m.decide()
	m.mu.Unlock()
	m.finish(ws)
}

// event lets the group have something happen, and does what it decides.
func (m *Master) event(f func(g *Group, now time.Time)) {
	m.mu.Lock()
	m.mu.group.Appended(m.cfg.Log.LogEnd())
	f(m.mu.group, time.Now())
	ws := m.decide()
	m.mu.Unlock()
	m.finish(ws)
}

// decide does what the group has decided, but for those who need not wait any longer. Needs mu.
func (m *Master) decide() []*Waiter {
	g := m.mu.group
	d := g.Take()
	m.inSync.Store(g.notEnough())
	m.waits.Store(g.rules.Waits())
	if gate := m.cfg.Gate; gate != nil {
		switch {
		case d.Open && m.mu.gated:
			gate.Ungate()
		case !d.Open && !m.mu.gated:
			gate.Gate()
		}
		if m.mu.gated = !d.Open; m.mu.gated {
			gate.Confirm(d.Shown)
		}
	}
	if d.Record != nil {
		m.mu.record = &d
		select {
		case m.kick <- struct{}{}:
		default:
		}
	}
	if !m.mu.closed && m.mu.timer == nil && !d.Next.IsZero() {
		m.mu.timer = time.AfterFunc(time.Until(d.Next), m.expire)
	}
	return d.Done
}

// expire tells those whose time is up, and comes again when the next one's is.
func (m *Master) expire() {
	m.mu.Lock()
	m.mu.timer = nil
	m.mu.group.Tick(time.Now())
	ws := m.decide()
	m.mu.Unlock()
	m.finish(ws)
}

// finish tells waiters what became of their copies.
func (m *Master) finish(ws []*Waiter) {
	if len(ws) == 0 {
		return
	}
	m.cfg.Together(func() {
		for _, w := range ws {
			w.Done(w.OK)
		}
	})
}

// tick tells the group the time until ctx ends.
func (m *Master) tick(ctx context.Context) {
	t := time.NewTicker(tickEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if m.waits.Load() {
				m.event(func(g *Group, now time.Time) { g.Tick(now) })
			}
		}
	}
}

// recorder makes intervals durable until ctx ends. What could not be is tried again: until then no fewer copies do.
func (m *Master) recorder(ctx context.Context) {
	told := lastInterval(m.cfg.Recorded)
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.kick:
		}
		m.mu.Lock()
		d := m.mu.record
		m.mu.record = nil
		m.mu.Unlock()
		if d == nil {
			continue
		}
		if m.cfg.Record != nil {
			if err := m.cfg.Record(d.Record); err != nil {
				m.cfg.Logger.Error("a time of fewer copies cannot be recorded; messages wait for their copies until it is", "err", err)
				if sleep(ctx, time.Second) != nil {
					return
				}
				m.event(func(g *Group, _ time.Time) { g.Retry() })
				continue
			}
		}
		m.tell(told, lastInterval(d.Record))
		told = lastInterval(d.Record)
		m.event(func(g *Group, now time.Time) { g.Recorded(*d, now) })
	}
}

// Reopened are the intervals that were recorded, as they are for a log that ends at end: a power cut may have taken the part
// of it in which the open one begins, and what is put there next is acknowledged with fewer copies as well. changed asks to
// make them durable before anything is.
func Reopened(before []Interval, end int64) (list []Interval, changed bool) {
	n := len(before)
	if n == 0 || !before[n-1].Open() || before[n-1].From <= end {
		return before, false
	}
	list = slices.Clone(before)
	list[n-1].From = end
	return list, true
}

// lastInterval is the newest of a list, the zero Interval where there is none.
func lastInterval(list []Interval) (i Interval) {
	if n := len(list); n > 0 {
		i = list[n-1]
	}
	return i
}

// tell logs how the level has changed since it was told that was is the newest interval: only what differs from that.
func (m *Master) tell(was, i Interval) {
	switch {
	case i == was:
	case i.Began != 0 && i.Open():
		m.cfg.Logger.Error("messages are acknowledged with fewer copies than the level asks for", "why", i.Why, "from", i.From, "epoch", i.Epoch)
	case i.Began < was.Began || i.From < was.From: // that one was taken back
		m.cfg.Logger.Info("messages have the copies again that the level asks for; none was acknowledged with fewer", "from", was.From, "epoch", was.Epoch)
	default:
		m.cfg.Logger.Info("messages have the copies again that the level asks for", "from", i.From, "to", i.To, "epoch", i.Epoch)
	}
}

// Status tells how the master stands.
func (m *Master) Status() (s Status) {
	m.event(func(g *Group, now time.Time) {
		g.Tick(now)
		s = g.Status()
	})
	return s
}

// Replicas are the slaves that follow, by id.
func (m *Master) Replicas() []Replica {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.group.Replicas()
}

// hello is what a slave has told of a connection that it has opened and not yet reported on.
type hello struct {
	who Peer
	at  time.Time
}

// Bounds of what slaves have told, and of what is remembered of those that were refused.
const (
	maxHellos   = 256
	helloKept   = time.Minute
	maxRefused  = 16
	refusedKept = 24 * time.Hour
)

// Hello notes who has opened the connection from the address peer. It is told before the first report on it. It reports
// whether there is room to note it.
func (m *Master) Hello(peer string, who Peer) bool {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	for p, h := range m.mu.hellos {
		if now.Sub(h.at) > helloKept {
			delete(m.mu.hellos, p)
		}
	}
	if len(m.mu.hellos) >= maxHellos {
		return false
	}
	m.mu.hellos[peer] = hello{who, now}
	return true
}

// whoIs is who has opened a connection, as far as it was told.
func (m *Master) whoIs(peer string) Peer {
	m.mu.Lock()
	h := m.mu.hellos[peer]
	delete(m.mu.hellos, peer)
	m.mu.Unlock()
	who := h.who
	who.Host = peer
	if host, _, err := net.SplitHostPort(peer); err == nil {
		who.Host = host
	}
	if m.cfg.Async != nil {
		who.Async = who.Async || m.cfg.Async(who)
	}
	return who
}

// Refused is a slave that was not served.
type Refused struct {
	Peer, ID, Why string
	At            time.Time
}

// refuse remembers why a slave is not served; of each only the last time.
func (m *Master) refuse(who Peer, peer string, err error) {
	now := time.Now()
	host := peer
	if h, _, err := net.SplitHostPort(peer); err == nil {
		host = h
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.refused = slices.DeleteFunc(m.mu.refused, func(r Refused) bool {
		h, _, _ := net.SplitHostPort(r.Peer)
		return now.Sub(r.At) > refusedKept || r.ID == who.ID && h == host
	})
	m.mu.refused = append(m.mu.refused, Refused{Peer: peer, ID: who.ID, Why: err.Error(), At: now})
	m.mu.refused = slices.Delete(m.mu.refused, 0, max(0, len(m.mu.refused)-maxRefused))
}

// Refused are the slaves that were not served in the last day and do not follow now.
func (m *Master) Refused() []Refused {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.mu.refused), func(r Refused) bool {
		h, _, _ := net.SplitHostPort(r.Peer)
		return slices.ContainsFunc(m.mu.group.all, func(x Replica) bool { return x.ID == r.ID || r.ID == "" && x.ID == h })
	})
}
