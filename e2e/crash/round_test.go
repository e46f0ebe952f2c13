package crash

import (
	"context"
	"strings"
	"time"

	"mqx/internal/storecheck"
)

// step is one round: start, look, load, die, look at what is left.
func (s *life) step() {
	s.total.rounds++
	if s.total.endings == nil {
		s.total.endings, s.total.died = map[ending]int{}, map[string]int{}
	}
	s.writeConf(s.plan.sync)
	if s.plan.end == atStart {
		s.dieAtStart()
	}
	if s.broker == nil {
		s.start(s.pointOfLife())
	}
	s.checkServed()
	l := s.startLoad()
	clean := false
	switch s.plan.end {
	case killed, atStart:
		s.wait(s.plan.after)
		s.kill()
	case atPoint:
		if s.gone(pointLimit) {
			s.died()
		} else {
			s.total.missed++
			s.kill()
		}
	case atStop, stopped:
		s.wait(s.plan.after)
		l.stop()
		clean = s.stop()
	}
	at := time.Now()
	l.stop()
	s.total.endings[s.plan.end]++
	s.broker = nil
	if clean {
		s.afterStop()
	} else {
		s.afterDeath(at, true)
	}
}

// pointOfLife is the point for the process that takes the load.
func (s *life) pointOfLife() string {
	if s.plan.end == atPoint || s.plan.end == atStop {
		return s.plan.point
	}
	return ""
}

// start starts a broker and waits until it serves. One that dies at its point before that is started again without.
func (s *life) start(point string) {
	s.broker = startChild(s.t, s.dir, s.conf, point)
	select {
	case <-s.broker.ready:
		s.total.starts = append(s.total.starts, s.broker.took)
	case <-s.broker.done:
		if point == "" {
			s.failf("the broker did not start: %v", s.broker.cmd.ProcessState)
		}
		s.died()
		s.broker = nil
		s.afterDeath(time.Now(), false)
		s.plan.point = ""
		s.plan.end = killed
		s.start("")
	case <-time.After(startLimit):
		s.failf("the broker did not start within %s", startLimit)
	}
}

// dieAtStart starts a broker that is to die before it serves. One that serves has not passed the point and stays.
func (s *life) dieAtStart() {
	if s.plan.tear {
		s.tear()
	}
	c := startChild(s.t, s.dir, s.conf, s.plan.point)
	select {
	case <-c.ready:
		s.total.missed++
		s.total.starts = append(s.total.starts, c.took)
		s.broker = c
	case <-c.done:
		s.broker = c
		s.died()
		s.broker = nil
		s.afterDeath(time.Now(), false)
	case <-time.After(startLimit):
		c.kill()
		s.failf("the broker did not start within %s", startLimit)
	}
}

// died counts a death at a point: it must have been one.
func (s *life) died() {
	if s.plan.point == "" || !s.broker.killed() {
		s.failf("the broker ended by itself: %v", s.broker.cmd.ProcessState)
	}
	name, _, _ := strings.Cut(s.plan.point, ":")
	s.total.died[name]++
}

// kill ends the broker, which must have lived until then.
func (s *life) kill() {
	s.broker.kill()
	if !s.broker.killed() {
		s.failf("the broker ended before it was killed: %v", s.broker.cmd.ProcessState)
	}
}

// wait lets the load run for a while. The broker must live so long, unless it is to die at a point.
func (s *life) wait(d time.Duration) {
	if s.gone(d) && s.plan.end != atStop {
		s.failf("the broker ended under load: %v", s.broker.cmd.ProcessState)
	}
}

func (s *life) gone(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-s.broker.done:
		return true
	case <-timer.C:
		return false
	}
}

// stop ends the broker in order, if it is to, and reports whether it did.
func (s *life) stop() bool {
	if s.broker.gone() { // it passed its point before the stop
		s.died()
		return false
	}
	s.offsets.drained(s)
	err := s.broker.stop(stopLimit)
	if err == nil {
		if s.plan.end == atStop {
			s.total.missed++
		}
		return true
	}
	if s.plan.end != atStop || !s.broker.killed() {
		s.failf("%v", err)
	}
	s.died()
	return false
}

// settle proves that a clean start and stop, and another one, change nothing.
func (s *life) settle() {
	s.writeConf(s.r.IntN(2) == 0)
	s.start("")
	s.checkServed()
	s.readEverything(context.Background())
	if !s.stopInOrder() {
		return
	}
	s.afterStop()
	before := s.contents()
	s.start("")
	s.checkServed()
	if !s.stopInOrder() {
		return
	}
	s.compare(before, s.contents())
	s.check(s.root)
}

func (s *life) stopInOrder() bool {
	s.offsets.drained(s)
	if err := s.broker.stop(stopLimit); err != nil {
		s.failf("%v", err)
	}
	s.broker = nil
	return true
}

// options are what the independent reader has to know.
func (s *life) options() storecheck.Options {
	return storecheck.Options{Slots: indexSlots, Journal: s.journal, Gone: func(topic string) bool { _, gone := s.removed[topic]; return gone }}
}
