package tui

import (
	"fmt"
	"strings"
	"time"

	"mqx/internal/render"
)

// screen draws, in the colours of a theme.
type screen struct{ theme *Theme }

func (s *screen) paint(text string, t render.Tone) string { return s.theme.paint(text, t) }
func (s *screen) bold(text string) string                 { return s.theme.strong(text) }

// gutter is for the cursor and the mark, in front of a row.
const gutter = 2

// gridLines draws a table into a height. selected is the row of the cursor, -1 for none;
// rows that do not fit are scrolled so that it is seen.
func (s *screen) gridLines(g *grid, h *History, marked map[string]bool, selected, width, height int) []string {
	if height < 2 {
		return nil
	}
	widths := g.widths(width - gutter)
	line := "  "
	for i, c := range g.columns {
		if widths[i] > 0 {
			line += cut(c.title, widths[i], c.right) + "  "
		}
	}
	out := []string{s.bold(strings.TrimRight(line, " "))}
	if len(g.rows) == 0 {
		return append(out, s.paint(cut("  "+g.empty, width, false), render.Dim))
	}
	first := g.first(selected, height)
	for i := first; i < len(g.rows) && len(out) < height; i++ {
		out = append(out, s.rowLine(g, h, &g.rows[i], widths, marked[g.rows[i].name], i == selected))
	}
	return out
}

// first is the first row that is seen of a table with a head in a height.
func (g *grid) first(selected, height int) int {
	if fit := height - 1; selected >= fit && fit > 0 {
		return selected - fit + 1
	}
	return 0
}

// odd: something is odd about a row, and there is no room to say what.
func (g *grid) odd(r *row, widths []int) bool {
	for i, c := range g.columns {
		if c.marks && widths[i] == 0 && r.cells[i].text != "" {
			return true
		}
	}
	return false
}

func (s *screen) rowLine(g *grid, h *History, r *row, widths []int, marked, selected bool) string {
	front := []rune("  ")
	if g.odd(r, widths) {
		front[1] = '!'
	}
	if selected {
		front[0] = '>'
	}
	if marked {
		front[1] = '*'
	}
	line := string(front)
	for i, c := range r.cells {
		if widths[i] == 0 {
			continue
		}
		if c.series != "" {
			c.text = render.Sparkline(h.tail(c.series, widths[i]), widths[i])
		}
		if r.stale && c.tone != render.Bad {
			c.tone = render.Dim
		}
		text := cut(c.text, widths[i], g.columns[i].right)
		if i == 0 && r.old != "" { // the age stays when the name has to be cut
			mark := " " + r.old
			text = cut(cut(c.text, max(1, min(textWidth(c.text), widths[0]-textWidth(mark))), false)+mark, widths[0], false)
		}
		if i == len(r.cells)-1 {
			text = strings.TrimRight(text, " ")
		}
		line += s.paint(text, c.tone) + "  "
	}
	if selected {
		return s.bold(strings.TrimRight(line, " "))
	}
	return strings.TrimRight(line, " ")
}

// tail are the newest values of a series.
func (h *History) tail(key string, width int) []float64 {
	values := h.of(key)
	return values[max(0, len(values)-width):]
}

// head is the first line: whose figures these are, and how old.
func (s *screen) head(r *Rated, interval, age time.Duration, paused, readOnly bool, width int) string {
	up := 0
	for i := range r.Brokers {
		if r.Brokers[i].Err == "" {
			up++
		}
	}
	figures := fmt.Sprintf("brokers %d/%d  in %s/s  out %s/s  lag %s", up, len(r.Brokers), perSecond(r.In), perSecond(r.Out), count(r.Lag))
	if readOnly {
		figures += "  read-only"
	}
	right := fmt.Sprintf("%s  every %s", r.At.Format(time.TimeOnly), render.FormatDuration(interval))
	tone := render.Plain
	if age > 2*interval+time.Second {
		right = "figures are " + render.FormatDuration(age) + " old"
		tone = render.Bad
	}
	if paused {
		right, tone = "paused "+render.FormatDuration(age)+" ago", render.Warn
	}
	// What says how old the figures are is the last to go, what says whose they are the first.
	keep := max(0, width-textWidth(right)-2)
	left := figures
	for _, front := range []string{"mqx top  " + strings.Join(r.Clusters, ",") + "  ", strings.Join(r.Clusters, ",") + "  "} {
		if textWidth(front+figures) <= keep {
			left = front + figures
			break
		}
	}
	left = cut(left, keep, false)
	return s.bold(left) + "  " + s.paint(cut(right, max(1, width-keep-2), false), tone)
}

// tabs is the second line: the pages, the open one in brackets.
func (s *screen) tabs(v view, group string, width int) string {
	line, used := "", 0
	for i, name := range pages {
		if view(i) == queuesView && group != "" && v == queuesView {
			name = "queues of " + cut(group, min(textWidth(group), max(8, width-80)), false)
		}
		text := fmt.Sprintf(" %d %s ", i+1, name)
		if view(i) == v {
			text = fmt.Sprintf("[%d %s]", i+1, name)
		}
		if used += textWidth(text); used > width {
			break
		}
		if view(i) == v {
			text = s.bold(text)
		}
		line += text
	}
	return line
}

// tabAt is the page whose name stands at a column of the second line.
func tabAt(v view, group string, width, x int) (view, bool) {
	at := 0
	for i, name := range pages {
		if view(i) == queuesView && group != "" && v == queuesView {
			name = "queues of " + cut(group, min(textWidth(group), max(8, width-80)), false)
		}
		at += textWidth(name) + 4
		if x < at {
			return view(i), true
		}
	}
	return 0, false
}

// helpLines are the keys.
var helpLines = []string{
	"1-7        overview, brokers, topics, groups, clients, queues, message",
	"Enter      queues of the group under the cursor; first unread message of the queue",
	"Esc        back; takes marks and a filter away first",
	"Up Down    move, also j and k, PgUp PgDn, g and G for the ends",
	"< >        in a message: the one before and the one behind it",
	"/          filter rows by text; !text leaves those with it out",
	"Shift+key  sort by the column that has the letter; again turns it round",
	"Space      mark a row; actions are for the marked rows, else for the one under the cursor",
	"a          what can be done; each is a line of mqx admin, which asks before it does it",
	"c          the line of mqx admin that says more",
	"p          pause",
	"+ -        interval; r refreshes now",
	"t          next theme: terminal, dark, light, colorblind, mono",
	"m          mouse on or off",
	"w          save layout: view, sorting, interval, theme, mouse",
	":          a page, m MESSAGE, every 5s, theme NAME, sort LETTER, save, q",
	"! in front something is odd about the row; MARKS on a wider screen says what",
	"?          this page",
	"q          end",
}
