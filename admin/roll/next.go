package roll

import (
	"fmt"
	"time"
)

// Act is what the caller has to do.
type Act string

// Acts.
const (
	Wait    Act = "wait"     // look again in a moment
	SetPerm Act = "set-perm" // set brokerPermission to Decision.Perm and read it back
	Restart Act = "restart"  // ask for the restart of the broker
	Stop    Act = "stop"     // the state says why
	Proceed Act = "proceed"  // nothing: the next decision follows at once
)

// Decision is the outcome of Next. State is the state to note before Act is done; it is
// made so that doing the act twice does no harm.
type Decision struct {
	Act   Act
	Perm  int
	State State
}

// permWrite is the bit of brokerPermission that lets clients write.
const permWrite = 2

// Next says what to do now. st is not changed.
func Next(st State, o *Observation, now time.Time) Decision {
	st.Brokers = append([]Broker(nil), st.Brokers...)
	m := &machine{st: &st, o: o, now: now, b: st.Current()}
	if st.Status != Running {
		return Decision{Act: Stop, State: st}
	}
	if m.b == nil {
		st.Status, st.Why, st.At = Finished, "", now
		return Decision{Act: Stop, State: st}
	}
	step := map[Phase]func() Decision{Pending: m.pending, Draining: m.draining, Restarting: m.restarting, Returning: m.returning, Opening: m.opening}[m.b.Phase]
	if step == nil {
		return m.abort(fmt.Sprintf("phase %q of broker %s is not known here", m.b.Phase, m.b.Name))
	}
	if m.b.Since.IsZero() {
		m.b.Since = now
	}
	return step()
}

// machine is one call of Next.
type machine struct {
	st  *State
	o   *Observation
	b   *Broker
	now time.Time
}

func (m *machine) decide(act Act, why string) Decision {
	m.st.Why = why
	m.st.At = m.now
	return Decision{Act: act, State: *m.st}
}

// enter begins a phase of the broker.
func (m *machine) enter(p Phase) {
	m.b.Phase, m.b.Since, m.b.Healthy = p, m.now, time.Time{}
}

func (m *machine) name() string {
	return fmt.Sprintf("broker %s (id %d, %s)", m.b.Name, m.b.ID, m.b.Addr)
}

// wait waits for a gate, and aborts when it stays closed for longer than limit.
func (m *machine) wait(limit time.Duration, why string) Decision {
	if m.now.Sub(m.b.Since) > limit {
		return m.abort(fmt.Sprintf("%s: %s, for %s", m.name(), why, limit))
	}
	return m.decide(Wait, m.name()+": "+why)
}

// abort ends the roll. A permission that was taken before the restart is given back.
func (m *machine) abort(why string) Decision {
	m.st.Status = Aborted
	if m.b != nil && m.b.Phase == Draining {
		m.enter(Pending)
		d := m.decide(SetPerm, why)
		d.Perm = m.b.Perm
		return d
	}
	return m.decide(Stop, why)
}

// pending waits until the name is healthy: nothing is touched before.
func (m *machine) pending() Decision {
	if why := m.o.sick(m.b.Replicas); why != "" {
		return m.wait(m.st.Settings.Gate, why)
	}
	if m.o.BootMs <= 0 {
		return m.wait(m.st.Settings.Gate, "it does not tell when it was started, so that its restart could not be seen")
	}
	m.b.BootMs = m.o.BootMs
	if !m.b.Drain {
		m.enter(Restarting)
		return m.decide(Restart, m.name()+" is restarted")
	}
	m.enter(Draining)
	m.b.Puts, m.b.PutsAt = m.o.Puts, m.now
	d := m.decide(SetPerm, m.name()+" becomes read-only")
	d.Perm = m.b.Perm &^ permWrite
	return d
}

// draining waits until clients know that the broker is read-only and nobody writes any more.
func (m *machine) draining() Decision {
	s := m.st.Settings
	limit := 2*s.RouteInterval + s.Gate
	if m.o.Perm >= 0 && m.o.Perm&permWrite != 0 { // the act was not done, or somebody undid it
		if m.now.Sub(m.b.Since) > limit {
			return m.wait(limit, "it is not read-only")
		}
		d := m.decide(SetPerm, m.name()+" becomes read-only")
		d.Perm = m.b.Perm &^ permWrite
		return d
	}
	if m.o.Puts != m.b.Puts || m.o.Puts < 0 {
		m.b.Puts, m.b.PutsAt = m.o.Puts, m.now
	}
	switch why := m.o.sick(m.b.Replicas); {
	case why != "":
		return m.wait(limit, why)
	case m.now.Sub(m.b.Since) < 2*s.RouteInterval:
		return m.wait(limit, fmt.Sprintf("clients ask for routes every %s", s.RouteInterval))
	case m.now.Sub(m.b.PutsAt) < s.Settle:
		return m.wait(limit, "messages are still written to it")
	}
	m.b.BootMs = m.o.BootMs
	m.enter(Restarting)
	return m.decide(Restart, m.name()+" is restarted")
}

// restarting waits for a start that is newer than the one before. Whether the restart
// was asked for is not known after a kill: it is asked for again while the broker is up
// and has not started anew; the caller asks once for each run of its own.
func (m *machine) restarting() Decision {
	if m.o.Reachable && m.o.BootMs > m.b.BootMs {
		m.enter(Returning)
		return m.decide(Proceed, m.name()+" has started anew")
	}
	if m.o.Reachable {
		if m.now.Sub(m.b.Since) > m.st.Settings.Gate {
			return m.abort(m.name() + ": it has not started anew, for " + m.st.Settings.Gate.String())
		}
		return m.decide(Restart, m.name()+" is up and has not started anew yet")
	}
	return m.wait(m.st.Settings.Gate, "it is down")
}

// returning waits until the broker has been healthy for a while.
func (m *machine) returning() Decision {
	if why := m.o.sick(m.b.Replicas); why != "" {
		m.b.Healthy = time.Time{}
		return m.wait(m.st.Settings.Gate, why)
	}
	if m.b.Healthy.IsZero() {
		m.b.Healthy = m.now
	}
	if m.now.Sub(m.b.Healthy) < m.st.Settings.Settle {
		return m.decide(Wait, fmt.Sprintf("%s: it is healthy, and has to stay so for %s", m.name(), m.st.Settings.Settle))
	}
	if !m.b.Drain {
		m.enter(Done)
		return m.decide(Proceed, m.name()+" is done")
	}
	m.enter(Opening)
	d := m.decide(SetPerm, m.name()+" may be written again")
	d.Perm = m.b.Perm
	return d
}

// opening waits until the permission is read back.
func (m *machine) opening() Decision {
	if m.o.Perm == m.b.Perm {
		m.enter(Done)
		return m.decide(Proceed, m.name()+" is done")
	}
	if m.now.Sub(m.b.Since) > m.st.Settings.Gate {
		return m.abort(fmt.Sprintf("%s: brokerPermission is %d, not %d, for %s", m.name(), m.o.Perm, m.b.Perm, m.st.Settings.Gate))
	}
	d := m.decide(SetPerm, m.name()+" may be written again")
	d.Perm = m.b.Perm
	return d
}
