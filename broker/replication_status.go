package broker

import (
	"time"

	"mqx/internal/metrics"
	"mqx/remoting"
	"mqx/store/ha"
)

// copies is how this master counts copies.
func (r *replication) copies() *remoting.HACopies {
	st := r.master.Status()
	c := &remoting.HACopies{
		Level: string(st.Rules.Level), AckMode: r.b.cfg().HAAckMode, Copies: st.Rules.Copies, Least: st.Rules.Least, InSync: st.InSync,
		Degraded: st.Degraded, Acked: st.Acked, Shown: st.Shown, Waiting: st.Waiting,
	}
	for _, i := range st.Intervals {
		c.Times = append(c.Times, remoting.HAInterval(i))
	}
	addrs := map[string][]string{}
	for _, x := range r.master.Conns() {
		addrs[x.Replica] = append(addrs[x.Replica], x.Peer)
	}
	now := r.b.now()
	for _, x := range r.master.Replicas() {
		c.Replicas = append(c.Replicas, remoting.HAReplica{
			ID: x.ID, Known: x.Known, Addrs: addrs[x.ID], End: x.End, GapMillis: gapMillis(&x, st.End, now),
			Counted: x.Counted, InSync: x.InSync, Flushed: x.Flushed, Async: x.Async,
		})
	}
	for _, x := range r.master.Refused() {
		c.Refused = append(c.Refused, remoting.HARefused{Peer: x.Peer, ID: x.ID, Why: x.Why, Time: x.At.UnixMilli()})
	}
	return c
}

// gapMillis is how old what a slave has not got is at most; -1: not known, since it has not caught up yet.
func gapMillis(x *ha.Replica, end int64, now time.Time) int64 {
	switch {
	case x.End >= end:
		return 0
	case x.Caught.IsZero():
		return -1
	}
	return max(0, now.Sub(x.Caught).Milliseconds())
}

// metrics are the series of replication.
func (r *replication) metrics(s *metrics.Scrape) {
	none := s.Labels()
	if r.b.slave != nil {
		st := r.b.slave.follower.State()
		following := 0.0
		if st.Phase == ha.PhaseFollowing {
			following = 1
		}
		s.Gauge("mqx_ha_following", "1 while this slave follows its master.", following, none)
		if !st.Heard.IsZero() {
			s.Gauge("mqx_ha_heard_seconds", "Time since this slave has heard from its master.", r.b.now().Sub(st.Heard).Seconds(), none)
		}
		return
	}
	st := r.master.Status()
	degraded := 0.0
	if st.Degraded {
		degraded = 1
	}
	s.Gauge("mqx_ha_level", "Always 1: the label is the level of replication in force.", 1, s.Labels("level", string(st.Rules.Level)))
	s.Gauge("mqx_ha_degraded", "1 while messages are acknowledged with fewer copies than the level asks for.", degraded, none)
	s.Gauge("mqx_ha_in_sync_slaves", "Slaves in sync.", float64(st.InSync), none)
	s.Gauge("mqx_ha_waiting", "Sends that wait for copies.", float64(st.Waiting), none)
	var times, bytes, seconds float64
	now := r.b.now().UnixMilli()
	for _, i := range st.Intervals {
		to, ended := i.To, i.Ended
		if i.Open() {
			to, ended = st.End, now
		}
		times++
		bytes += float64(max(0, to-i.From))
		seconds += float64(max(0, ended-i.Began)) / 1000
	}
	s.Gauge("mqx_ha_degraded_intervals", "Times of fewer copies that are remembered (64 at most).", times, none)
	s.Gauge("mqx_ha_degraded_bytes", "Bytes of the log that were acknowledged in them.", bytes, none)
	s.Gauge("mqx_ha_degraded_seconds", "How long they were.", seconds, none)
	at := r.b.now()
	for _, x := range r.master.Replicas() {
		l := s.Labels("slave", x.ID)
		s.Gauge("mqx_ha_slave_gap_bytes", "Bytes that the slave has not got.", float64(max(0, st.End-x.End)), l)
		if ms := gapMillis(&x, st.End, at); ms >= 0 {
			s.Gauge("mqx_ha_slave_gap_seconds", "How old what the slave has not got is at most; missing until it has caught up once.", float64(ms)/1000, l)
		}
	}
}
