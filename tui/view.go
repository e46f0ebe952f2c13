package tui

import (
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
	queuesView  // of the group that was opened
	messageView // the message that was opened
)

// pages are the views that a digit opens, in that order.
var pages = []string{"overview", "brokers", "topics", "groups", "clients", "queues", "message"}

func (v view) String() string { return pages[v] }

// firstOrder is how a view is sorted before anybody says otherwise, by the letters of
// the columns.
var firstOrder = map[view]order{
	brokersView: {'B', false}, topicsView: {'I', true}, groupsView: {'L', true}, clientsView: {'C', false}, queuesView: {'L', true},
}

// frame is what a table is made of: figures, what came before, and the time that ages
// are told from.
type frame struct {
	r     *Rated
	h     *History
	now   time.Time
	every time.Duration
	group string
}

// table is a view as a table.
func (f *frame) table(v view) *grid {
	switch v {
	case brokersView:
		return f.brokers()
	case topicsView:
		return f.topics()
	case clientsView:
		return f.clients()
	case queuesView:
		return f.queues()
	default:
		return f.groups()
	}
}

// spark is a cell with a history, which is drawn as wide as its column is.
func spark(key string) cell { return cell{series: key, tone: render.Good} }

// fresh is how old a figure may be before its age is said: what is looked up by turns
// may come with every third refresh.
func (f *frame) fresh() time.Duration { return max(10*time.Second, 3*f.every) }

// aged is a cell of a figure that was found out at another time than the rest: it says
// how old it is.
func (f *frame) aged(c cell, at time.Time) cell {
	if at.IsZero() {
		return toned(text(unknown), render.Dim)
	}
	if age := f.now.Sub(at); age > f.fresh() {
		c.text, c.tone = c.text+" ·"+span(age), render.Dim
	}
	return c
}

// old is what a row says whose figures are of another time; empty: they are not.
func (f *frame) old(stale bool, at time.Time) string {
	switch {
	case !stale:
		return ""
	case at.IsZero():
		return "never answered"
	}
	return span(f.now.Sub(at)) + " old"
}

// watermark is the tone of a disk that is so full, and the line that it is above:
// Apache's are at 75, 85 and 90 %.
func watermark(n Num) (render.Tone, string) {
	switch {
	case !n.OK:
		return render.Dim, ""
	case n.V >= 0.90:
		return render.Bad, "≥90"
	case n.V >= 0.85:
		return render.Bad, "≥85"
	case n.V >= 0.75:
		return render.Warn, "≥75"
	}
	return render.Plain, ""
}

func diskCell(n Num) cell {
	tone, line := watermark(n)
	return cell{text: strings.TrimSpace(percent(n) + " " + line), num: n, tone: tone}
}

// lockHeldBusy is from when on Apache calls the page cache busy, in ms
// (osPageCacheBusyTimeOutMills); half of it is worth a look.
const lockHeldBusy = 1000

func lockCell(n Num) cell {
	c := number(n, millis(n))
	switch {
	case n.OK && n.V >= lockHeldBusy:
		c.text, c.tone = c.text+" busy", render.Bad
	case n.OK && n.V >= lockHeldBusy/2:
		c.tone = render.Warn
	}
	return c
}

func signed(n Num) string {
	s := perSecond(n)
	if n.OK && n.V > 0 {
		return "+" + s
	}
	return s
}

func orDash(s string) string {
	if s == "" {
		return unknown
	}
	return s
}
