package tui

import "mqx/internal/render"

func (f *frame) brokers() *grid {
	g := &grid{empty: "no broker is registered", columns: []column{
		{title: "BROKER", sort: 'B'},
		{title: "ROLE", sort: 'R', drop: 3},
		{title: "IN/s", sort: 'I', right: true},
		{title: "OUT/s", sort: 'O', right: true},
		{title: "HISTORY", drop: 6, grows: true, spark: true},
		{title: "DISK", sort: 'D', right: true},
		{title: "PUT P99", sort: 'P', right: true, drop: 2},
		{title: "PUT MAX", sort: 'X', right: true, drop: 11},
		{title: "LOCK", sort: 'L', right: true, drop: 4},
		{title: "FLUSH BEHIND", sort: 'F', right: true, drop: 7},
		{title: "QUEUED", sort: 'Q', right: true, drop: 5},
		{title: "HA GAP", sort: 'H', right: true, drop: 8},
		{title: "CONNS", sort: 'C', right: true, drop: 9},
		{title: "ADDRESS", sort: 'A', drop: 10},
		{title: "VERSION", sort: 'V', drop: 12},
		{title: "STATE", sort: 'S'},
	}}
	for i := range f.r.Brokers {
		b := &f.r.Brokers[i]
		state := toned(text("up"), render.Good)
		if b.Err != "" {
			since := "never answered"
			if !b.At.IsZero() {
				since = "silent for " + span(f.now.Sub(b.At))
			}
			state = toned(text(since), render.Bad)
		}
		in, out := f.r.BrokerIn[b.Key()], f.r.BrokerOut[b.Key()]
		g.rows = append(g.rows, row{name: b.Name, id: b.Key(), stale: b.Err != "", cells: []cell{
			toned(text(b.Name), render.Accent), text(roleText(b)), number(in, perSecond(in)), number(out, perSecond(out)), spark("broker in " + b.Key()),
			diskCell(b.Disk), number(b.PutP99, latency(b.PutP99)), number(b.PutMax, millis(b.PutMax)), lockCell(b.LockHeld), text(orDash(b.FlushBehind)),
			number(b.SendWaiting, count(b.SendWaiting)), gapCell(b), number(b.Conns, count(b.Conns)), text(b.Addr), text(orDash(b.Version)), state,
		}})
	}
	return g
}

func roleText(b *Broker) string {
	if b.ID == 0 {
		return "master"
	}
	return "slave " + itoa(b.ID)
}

// gapCell is gapText, marked where fewer copies do than the broker's level says, and where a replica does not follow.
func gapCell(b *Broker) cell {
	c := number(b.HAGap, gapText(b))
	switch b.HAState {
	case "", "following":
	case "connecting", "no-master":
		c = toned(c, render.Warn)
	default:
		c = toned(c, render.Bad)
	}
	if b.HADegraded {
		c.text += " degraded"
		c = toned(c, render.Bad)
	}
	return c
}

// gapText is how far the furthest replica is behind; of a replica that does not follow, what it is doing.
func gapText(b *Broker) string {
	switch {
	case b.HAState != "" && b.HAState != "following":
		return b.HAState
	case b.ID != 0 || !b.Replicas.OK:
		return unknown
	case b.Replicas.V == 0:
		return "no replica"
	}
	return size(b.HAGap)
}
