package tui

import "time"

// Rated is a snapshot with the rates against an earlier one, in units a second.
type Rated struct {
	*Snapshot
	Every                  time.Duration // between the two; 0 for the first snapshot
	In, Out, Lag           Num           // of the cluster
	BrokerIn, BrokerOut    map[string]Num
	TopicIn                map[string]Num
	GroupOut, GroupLagging map[string]Num // what it consumes; how fast its lag grows
}

// rate compares two snapshots; before is nil for the first.
func rate(before, now *Snapshot) *Rated {
	r := &Rated{
		Snapshot: now, BrokerIn: map[string]Num{}, BrokerOut: map[string]Num{}, TopicIn: map[string]Num{},
		GroupOut: map[string]Num{}, GroupLagging: map[string]Num{}, Lag: Known(0),
	}
	for i := range now.Groups {
		if g := &now.Groups[i]; g.Lag.OK {
			r.Lag.V += g.Lag.V
		}
	}
	if before == nil {
		return r
	}
	r.Every = now.At.Sub(before.At)
	seconds := r.Every.Seconds()
	per := func(now, was Num) Num {
		if !now.OK || !was.OK || seconds <= 0 || now.V < was.V {
			return Num{}
		}
		return Num{(now.V - was.V) / seconds, true}
	}
	r.brokers(before, per)
	topics := map[string]Num{}
	for i := range before.Topics {
		topics[before.Topics[i].Name] = before.Topics[i].End
	}
	for i := range now.Topics {
		t := &now.Topics[i]
		r.TopicIn[t.Name] = per(t.End, topics[t.Name])
	}
	groups := map[string]*Group{}
	for i := range before.Groups {
		groups[before.Groups[i].Name] = &before.Groups[i]
	}
	for i := range now.Groups {
		g := &now.Groups[i]
		was := groups[g.Name]
		if was == nil {
			continue
		}
		r.GroupOut[g.Name] = per(g.Done, was.Done)
		if g.Lag.OK && was.Lag.OK && seconds > 0 {
			r.GroupLagging[g.Name] = Num{(g.Lag.V - was.Lag.V) / seconds, true}
		}
	}
	return r
}

// brokers are the rates of the brokers and of the cluster: of those that answered both
// times.
func (r *Rated) brokers(before *Snapshot, per func(now, was Num) Num) {
	was := map[string]*Broker{}
	for i := range before.Brokers {
		was[before.Brokers[i].Key()] = &before.Brokers[i]
	}
	for i := range r.Brokers {
		b := &r.Brokers[i]
		old := was[b.Key()]
		if old == nil {
			continue
		}
		in, out := per(b.Puts, old.Puts), per(b.Gets, old.Gets)
		r.BrokerIn[b.Key()], r.BrokerOut[b.Key()] = in, out
		if b.ID != 0 {
			continue
		}
		if in.OK {
			r.In = Num{r.In.V + in.V, true}
		}
		if out.OK {
			r.Out = Num{r.Out.V + out.V, true}
		}
	}
}

// Drain is how long a group needs to read what it has not, at its present rates; ok is
// false when it does not come nearer or nobody knows.
func (r *Rated) Drain(g *Group) (time.Duration, bool) {
	growth := r.GroupLagging[g.Name]
	if !g.Lag.OK || !growth.OK || growth.V >= 0 || g.Lag.V <= 0 {
		return 0, false
	}
	return time.Duration(g.Lag.V / -growth.V * float64(time.Second)), true
}
