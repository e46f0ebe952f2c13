package server

import "time"

const (
	sweepEvery    = time.Second
	minSweepEvery = 20 * time.Millisecond
	stuckEvery    = 100 * time.Millisecond
	// crowdedHalfFrame is how long a frame may take to come as a whole while frames like it hold more than half of the
	// memory for them: those who hold their ends back keep everybody's large requests out.
	crowdedHalfFrame = 10 * time.Second
)

// sweep closes connections that are silent for too long.
func (s *Server) sweep() {
	every := sweepEvery
	for _, d := range []time.Duration{s.cfg.IdleTimeout, s.cfg.FirstByteTimeout, s.cfg.HandshakeTimeout} {
		if d > 0 {
			every = min(every, d/4)
		}
	}
	t := time.NewTicker(max(every, minSweepEvery))
	defer t.Stop()
	var all []*Conn
	for {
		select {
		case <-s.quit:
			return
		case now := <-t.C:
			all = s.everyConn(all[:0])
			for i, c := range all {
				if late := c.overdue(s.since(now)); late != nil {
					c.fail(late)
				}
				all[i] = nil
			}
		}
	}
}

// overdue returns why a connection has been silent for too long, or nil. It is
// called by the sweeper only.
func (c *Conn) overdue(now int64) error {
	cfg := &c.srv.cfg
	part := c.partSince.Load()
	if State(c.state.Load()) == StateAccepted {
		switch {
		case part != 0 && now-part > int64(cfg.HandshakeTimeout):
			return &CloseError{Reason: ReasonHandshake}
		case part == 0 && cfg.FirstByteTimeout > 0 && now-c.lastAlive > int64(cfg.FirstByteTimeout):
			return &CloseError{Reason: ReasonFirstByte}
		}
		return nil
	}
	if part != 0 && now-part > int64(cfg.crowded) && c.in.partial.Load() > c.in.limit/2 {
		return &CloseError{Reason: ReasonHalfFrame}
	}
	if cfg.IdleTimeout < 0 {
		return nil
	}
	if part != 0 && now-part > int64(cfg.IdleTimeout) {
		return &CloseError{Reason: ReasonHalfFrame}
	}
	if c.alive.Swap(false) {
		c.lastAlive = now
		return nil
	}
	if now-c.lastAlive > int64(cfg.IdleTimeout) {
		return &CloseError{Reason: ReasonIdle}
	}
	return nil
}

// stick notes that the peer of c does not take what is sent, so that it is
// looked after: gnet tells nobody when its buffer has been written.
func (s *Server) stick(c *Conn) {
	s.stuck.Lock()
	defer s.stuck.Unlock()
	if s.stuck.ended {
		return
	}
	if len(s.stuck.m) == 0 {
		if s.stuck.timer == nil {
			s.stuck.timer = time.AfterFunc(stuckEvery, s.lookAfter)
		} else {
			s.stuck.timer.Reset(stuckEvery)
		}
	}
	s.stuck.m[c] = struct{}{}
}

func (s *Server) unstick(c *Conn) {
	s.stuck.Lock()
	delete(s.stuck.m, c)
	s.stuck.Unlock()
}

// lookAfter lets the loops of slow readers see what has been taken. It runs
// only while there are any.
func (s *Server) lookAfter() {
	s.stuck.Lock()
	var all []*Conn
	for c := range s.stuck.m {
		all = append(all, c)
	}
	if len(all) > 0 && !s.stuck.ended {
		s.stuck.timer.Reset(stuckEvery)
	}
	s.stuck.Unlock()
	for _, c := range all {
		c.tr.nudge(c)
	}
}

func (s *Server) endStuck() {
	s.stuck.Lock()
	defer s.stuck.Unlock()
	s.stuck.ended = true
	if s.stuck.timer != nil {
		s.stuck.timer.Stop()
	}
}
