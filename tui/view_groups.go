package tui

import (
	"slices"
	"strings"
	"time"

	"mqx/internal/render"
)

func (f *frame) groups() *grid {
	g := &grid{empty: "no group", columns: []column{
		{title: "GROUP", sort: 'G'},
		{title: "STATE", sort: 'S'},
		{title: "LAG", sort: 'L', right: true},
		{title: "LAG/s", sort: 'V', right: true},
		{title: "AGE", sort: 'A', right: true, drop: 1},
		{title: "HISTORY", drop: 7, grows: true, spark: true},
		{title: "OUT/s", sort: 'O', right: true},
		{title: "DRAINS IN", sort: 'D', right: true, drop: 3},
		{title: "LOST", sort: 'X', right: true, drop: 5},
		{title: "RETRY", sort: 'R', right: true, drop: 6},
		{title: "MODEL", sort: 'M', drop: 8},
		{title: "MARKS", sort: 'K', drop: 4, marks: true},
	}}
	for i := range f.r.Groups {
		grp := &f.r.Groups[i]
		g.rows = append(g.rows, row{name: grp.Name, id: grp.Name, stale: grp.Stale, old: f.old(grp.Stale, grp.At), cells: f.groupCells(grp)})
	}
	return g
}

func (f *frame) groupCells(g *Group) []cell {
	lag := number(g.Lag, count(g.Lag))
	growth := f.r.GroupLagging[g.Name]
	if g.Lag.OK && g.Lag.V > 0 {
		lag.tone = render.Warn
		if growth.OK && growth.V > 0 {
			lag.tone = render.Bad
		}
	}
	out := f.r.GroupOut[g.Name]
	return []cell{
		toned(text(g.Name), render.Accent), f.stateCell(g), lag, number(growth, signed(growth)), f.ageCell(g), spark("group lag " + g.Name),
		number(out, perSecond(out)), f.drainCell(g), f.lostCell(g), number(g.Retry, count(g.Retry)), f.aged(text(orDash(strings.ToLower(g.Model))), g.DetailAt),
		toned(text(strings.Join(f.marks(g), ", ")), render.Warn),
	}
}

func (f *frame) stateCell(g *Group) cell {
	c := toned(number(Known(g.Members), itoa(int64(g.Members))+" online"), render.Good)
	if !g.Online {
		c = toned(number(Known(0), "offline"), render.Dim)
	}
	return f.aged(c, g.DetailAt)
}

// ageCell is how old the oldest message is that the group has not read, and whether
// retention deletes it before its turn comes.
func (f *frame) ageCell(g *Group) cell {
	if g.Lag.OK && g.Lag.V == 0 {
		return number(Known(0), unknown)
	}
	age := g.Age
	if age > 0 { // it grows older while nobody reads it; one that is read has another oldest
		c := number(Num{float64(age), true}, span(age))
		if g.Expires == "yes" {
			c.text, c.tone = c.text+" goes", render.Bad
		}
		return f.aged(c, g.DetailAt)
	}
	return f.aged(text(unknown), g.DetailAt)
}

func (f *frame) drainCell(g *Group) cell {
	growth := f.r.GroupLagging[g.Name]
	switch d, ok := f.r.Drain(g); {
	case ok:
		return number(Known(int64(d)), span(d))
	case g.Lag.OK && g.Lag.V == 0:
		return number(Known(0), "now")
	case growth.OK:
		return cell{text: "never", num: Known(int64(1) << 62), tone: render.Bad}
	}
	return text(unknown)
}

func (f *frame) lostCell(g *Group) cell {
	c := number(Known(g.Lost), count(Known(g.Lost)))
	if g.Lost > 0 {
		c.tone = render.Bad
	}
	return f.aged(c, g.DetailAt)
}

// marks are what is odd about a group: what was looked up, and what has been seen.
func (f *frame) marks(g *Group) []string {
	marks := slices.Clone(g.Marks)
	if g.Lost > 0 {
		marks = append(marks, "deleted unread")
	}
	return append(marks, f.h.groupMarks(g, f.now)...)
}

func (f *frame) queues() *grid {
	g := &grid{empty: "group " + f.group + " reads no queue", columns: []column{
		{title: "TOPIC", sort: 'T'},
		{title: "BROKER", sort: 'B'},
		{title: "QUEUE", sort: 'Q', right: true},
		{title: "COMMITTED", sort: 'C', right: true, drop: 4},
		{title: "END", sort: 'E', right: true, drop: 5},
		{title: "LAG", sort: 'L', right: true},
		{title: "AGE", sort: 'A', right: true, drop: 3},
		{title: "IN FLIGHT", sort: 'F', right: true, drop: 6},
		{title: "OWNER", sort: 'O', drop: 2, grows: true},
		{title: "MARKS", sort: 'M', drop: 1, marks: true},
	}}
	if f.group == "" {
		g.empty = "no group is opened: Enter on a group does"
		return g
	}
	grp := f.r.group(f.group)
	if grp == nil {
		g.empty = "group " + f.group + " is not there"
		return g
	}
	for i := range grp.Queues {
		q := &grp.Queues[i]
		marks := append(slices.Clone(q.Marks), f.h.queueMarks(f.group, q, grp.Online, f.now)...)
		at := q.At
		if at.IsZero() {
			at = grp.At
		}
		g.rows = append(g.rows, row{name: q.Key(), id: q.Key(), stale: q.Stale, old: f.old(q.Stale, at), cells: []cell{
			toned(text(q.Topic), render.Accent), text(q.Broker), number(Known(q.ID), itoa(int64(q.ID))), number(q.Committed, count(q.Committed)), number(q.End, count(q.End)),
			number(q.Lag, count(q.Lag)), f.queueAge(grp, q), number(q.Flight, count(q.Flight)), f.owner(grp, q),
			toned(text(strings.Join(marks, ", ")), render.Warn),
		}})
	}
	return g
}

func (f *frame) queueAge(g *Group, q *Queue) cell {
	if q.Age <= 0 {
		return text(unknown)
	}
	return f.aged(number(Num{float64(q.Age), true}, span(q.Age)), g.DetailAt)
}

func (f *frame) owner(g *Group, q *Queue) cell {
	if q.Owner == "" {
		return text(unknown)
	}
	return f.aged(text(q.Owner), g.DetailAt)
}

// since is a time as a difference, empty where it is not known.
func (f *frame) since(at time.Time) string {
	if at.IsZero() {
		return unknown
	}
	return render.FormatDuration(max(0, f.now.Sub(at)))
}
