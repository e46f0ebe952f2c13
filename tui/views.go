package tui

import (
	"fmt"
	"strings"
	"time"

	"mqx/internal/render"
)

// view is one of the pages.
type view int

const (
	overview view = iota
	brokersView
	topicsView
	groupsView
	clientsView
	queuesView // of the group that was entered
)

// pages are the views that a digit opens, in that order.
var pages = []string{"overview", "brokers", "topics", "groups", "clients"}

func (v view) String() string {
	if int(v) < len(pages) {
		return pages[v]
	}
	return "queues"
}

// firstOrder is how a view is sorted before anybody says otherwise.
var firstOrder = map[view]order{
	brokersView: {0, false}, topicsView: {1, true}, groupsView: {2, true}, clientsView: {0, false}, queuesView: {5, true},
}

// sparkWidth is the least width of a history.
const sparkWidth = 10

func (h *History) spark(key string, width int) cell {
	values := h.of(key)
	if len(values) > width {
		values = values[len(values)-width:]
	}
	return toned(text(render.Sparkline(values, width)), render.Good)
}

// gridOf is a view as a table. now is the time that ages are told from.
func gridOf(v view, r *Rated, h *History, group string, now time.Time) *grid {
	switch v {
	case brokersView:
		return brokersGrid(r, h, now)
	case topicsView:
		return topicsGrid(r, h)
	case clientsView:
		return clientsGrid(r, now)
	case queuesView:
		return queuesGrid(r, h, group)
	default:
		return groupsGrid(r, h)
	}
}

// watermark is the tone of a disk that is so full: Apache's lines are at 75, 85 and 90 %.
func watermark(n Num) render.Tone {
	switch {
	case !n.OK:
		return render.Dim
	case n.V >= 0.85:
		return render.Bad
	case n.V >= 0.75:
		return render.Warn
	}
	return render.Plain
}

func brokersGrid(r *Rated, h *History, now time.Time) *grid {
	g := &grid{empty: "no broker is registered", columns: []column{
		{title: "BROKER", sort: 'B'},
		{title: "ID", right: true, drop: 3},
		{title: "IN/s", sort: 'I', right: true},
		{title: "OUT/s", sort: 'O', right: true},
		{title: "HISTORY", drop: 5, grows: true},
		{title: "DISK", sort: 'D', right: true},
		{title: "QUEUED", sort: 'Q', right: true, drop: 4},
		{title: "PUT MAX", sort: 'P', right: true, drop: 6},
		{title: "FLUSH BEHIND", right: true, drop: 7},
		{title: "ADDRESS", drop: 8},
		{title: "VERSION", drop: 9},
		{title: "STATE", sort: 'S'},
	}}
	for i := range r.Brokers {
		b := &r.Brokers[i]
		state := toned(text("up"), render.Good)
		if b.Err != "" {
			since := "never answered"
			if at, ok := h.seen[b.Key()]; ok {
				since = "silent for " + span(now.Sub(at))
			}
			state = toned(text(since), render.Bad)
		}
		role := "master"
		if b.ID != 0 {
			role = itoa(b.ID)
		}
		g.rows = append(g.rows, row{name: b.Name, stale: b.Err != "", cells: []cell{
			toned(text(b.Name), render.Accent), text(role), number(r.BrokerIn[b.Key()], perSecond(r.BrokerIn[b.Key()])),
			number(r.BrokerOut[b.Key()], perSecond(r.BrokerOut[b.Key()])), h.spark("broker in "+b.Key(), sparkWidth),
			toned(number(b.Disk, percent(b.Disk)), watermark(b.Disk)), number(b.SendWaiting, count(b.SendWaiting)), number(b.PutMax, millis(b.PutMax)),
			text(orDash(b.FlushBehind)), text(b.Addr), text(orDash(b.Version)), state,
		}})
	}
	return g
}

func topicsGrid(r *Rated, h *History) *grid {
	g := &grid{empty: "no topic", columns: []column{
		{title: "TOPIC", sort: 'T'},
		{title: "IN/s", sort: 'I', right: true},
		{title: "HISTORY", drop: 5, grows: true},
		{title: "GROUPS", sort: 'G', right: true},
		{title: "QUEUES", sort: 'Q', right: true, drop: 3},
		{title: "BROKERS", sort: 'B', right: true, drop: 4},
		{title: "KIND", sort: 'K', drop: 6},
	}}
	for i := range r.Topics {
		t := &r.Topics[i]
		in := r.TopicIn[t.Name]
		g.rows = append(g.rows, row{name: t.Name, cells: []cell{
			toned(text(t.Name), render.Accent), number(in, perSecond(in)), h.spark("topic in "+t.Name, sparkWidth), number(Known(t.Groups), itoa(int64(t.Groups))),
			number(Known(t.Queues), itoa(int64(t.Queues))), number(Known(t.Brokers), itoa(int64(t.Brokers))), text(t.Kind),
		}})
	}
	return g
}

func groupsGrid(r *Rated, h *History) *grid {
	g := &grid{empty: "no group", columns: []column{
		{title: "GROUP", sort: 'G'},
		{title: "STATE", sort: 'S'},
		{title: "LAG", sort: 'L', right: true},
		{title: "LAG/s", sort: 'V', right: true},
		{title: "HISTORY", drop: 6, grows: true},
		{title: "OUT/s", sort: 'O', right: true},
		{title: "DRAINS IN", sort: 'D', right: true, drop: 3},
		{title: "RETRY", sort: 'R', right: true, drop: 4},
		{title: "MODEL", drop: 7},
		{title: "MARKS", sort: 'M', drop: 2},
	}}
	for i := range r.Groups {
		grp := &r.Groups[i]
		g.rows = append(g.rows, row{name: grp.Name, cells: groupCells(r, h, grp)})
	}
	return g
}

func groupCells(r *Rated, h *History, g *Group) []cell {
	state := toned(text(fmt.Sprintf("%d online", g.Members)), render.Good)
	if !g.Online {
		state = toned(text("offline"), render.Dim)
	}
	lag := number(g.Lag, count(g.Lag))
	growth := r.GroupLagging[g.Name]
	if g.Lag.OK && g.Lag.V > 0 {
		lag.tone = render.Warn
		if growth.OK && growth.V > 0 {
			lag.tone = render.Bad
		}
	}
	drains := text(unknown)
	switch d, ok := r.Drain(g); {
	case ok:
		drains = number(Known(int64(d)), span(d))
	case g.Lag.OK && g.Lag.V == 0:
		drains = number(Known(0), "now")
	case growth.OK:
		drains = cell{text: "never", num: Known(int64(1) << 62), tone: render.Bad}
	}
	marks := append([]string(nil), g.Marks...)
	if g.Lost > 0 {
		marks = append(marks, fmt.Sprintf("%d deleted unread", g.Lost))
	}
	for i := range g.Queues {
		key := g.Name + "/" + g.Queues[i].Key()
		if h.still[key] >= stuckAfter && g.Online {
			marks = append(marks, "stuck")
			break
		}
	}
	for i := range g.Queues {
		if h.back[g.Name+"/"+g.Queues[i].Key()] {
			marks = append(marks, "went back")
			break
		}
	}
	return []cell{
		toned(text(g.Name), render.Accent), state, lag, number(growth, signed(growth)), h.spark("group lag "+g.Name, sparkWidth),
		number(r.GroupOut[g.Name], perSecond(r.GroupOut[g.Name])), drains, number(g.Retry, count(g.Retry)), text(orDash(strings.ToLower(g.Model))),
		toned(text(strings.Join(marks, ", ")), render.Warn),
	}
}

func signed(n Num) string {
	s := perSecond(n)
	if n.OK && n.V > 0 {
		return "+" + s
	}
	return s
}

func queuesGrid(r *Rated, h *History, group string) *grid {
	g := &grid{empty: "group " + group + " reads no queue", columns: []column{
		{title: "TOPIC", sort: 'T'},
		{title: "BROKER", sort: 'B'},
		{title: "QUEUE", sort: 'Q', right: true},
		{title: "COMMITTED", sort: 'C', right: true, drop: 4},
		{title: "END", sort: 'E', right: true, drop: 5},
		{title: "LAG", sort: 'L', right: true},
		{title: "AGE", sort: 'A', right: true, drop: 3},
		{title: "IN FLIGHT", sort: 'F', right: true, drop: 6},
		{title: "OWNER", sort: 'O', drop: 2, grows: true},
		{title: "MARKS", sort: 'M', drop: 1},
	}}
	grp := r.group(group)
	if grp == nil {
		return g
	}
	for i := range grp.Queues {
		q := &grp.Queues[i]
		key := group + "/" + q.Key()
		marks := append([]string(nil), q.Marks...)
		if h.still[key] >= stuckAfter && grp.Online {
			marks = append(marks, "stuck")
		}
		if h.back[key] {
			marks = append(marks, "went back")
		}
		g.rows = append(g.rows, row{name: q.Key(), cells: []cell{
			toned(text(q.Topic), render.Accent), text(q.Broker), number(Known(q.ID), itoa(int64(q.ID))), number(q.Committed, count(q.Committed)), number(q.End, count(q.End)),
			number(q.Lag, count(q.Lag)), number(Num{float64(q.Age), q.Age > 0}, span(q.Age)), number(q.Flight, count(q.Flight)), text(orDash(q.Owner)),
			toned(text(strings.Join(marks, ", ")), render.Warn),
		}})
	}
	return g
}

func clientsGrid(r *Rated, now time.Time) *grid {
	g := &grid{empty: "no client is connected", columns: []column{
		{title: "CLIENT", sort: 'C'},
		{title: "ADDRESS", sort: 'A', drop: 4},
		{title: "LANGUAGE", sort: 'L', drop: 3},
		{title: "VERSION", sort: 'V', drop: 5},
		{title: "CONSUMES", sort: 'G', grows: true},
		{title: "PRODUCES", sort: 'P', drop: 2},
		{title: "SEEN", sort: 'S', right: true, drop: 6},
	}}
	for i := range r.Clients {
		c := &r.Clients[i]
		seen := text(unknown)
		if !c.Seen.IsZero() {
			ago := max(0, now.Sub(c.Seen))
			seen = number(Num{float64(ago), true}, render.FormatDuration(ago))
		}
		g.rows = append(g.rows, row{name: c.ID, cells: []cell{
			toned(text(c.ID), render.Accent), text(c.Addr), text(strings.ToLower(c.Language)), text(c.Version), text(orDash(strings.Join(c.Consumes, ", "))),
			text(orDash(strings.Join(c.Produces, ", "))), seen,
		}})
	}
	return g
}

func orDash(s string) string {
	if s == "" {
		return unknown
	}
	return s
}
