package tui

import (
	"fmt"
	"strings"
	"time"

	"mqx/internal/render"
)

// screen draws; colour is false where the terminal has none.
type screen struct{ colour bool }

func (s *screen) paint(text string, t render.Tone) string { return render.Paint(text, t, s.colour) }
func (s *screen) bold(text string) string                 { return render.Bold(text, s.colour) }

// gridLines draws a table into a height. selected is the row of the cursor, -1 for none;
// rows that do not fit are scrolled so that it is seen.
func (s *screen) gridLines(g *grid, marked map[string]bool, selected, width, height int) []string {
	if height < 2 {
		return nil
	}
	const gutter = 2 // the cursor and the mark
	widths := g.widths(width - gutter)
	line := "  "
	for i, c := range g.columns {
		if widths[i] > 0 {
			line += cut(c.title, widths[i], c.right) + "  "
		}
	}
	out := []string{s.bold(strings.TrimRight(line, " "))}
	if len(g.rows) == 0 {
		return append(out, s.paint("  "+g.empty, render.Dim))
	}
	first := 0
	if fit := height - 1; selected >= fit {
		first = selected - fit + 1
	}
	for i := first; i < len(g.rows) && len(out) < height; i++ {
		out = append(out, s.rowLine(g, &g.rows[i], widths, marked[g.rows[i].name], i == selected))
	}
	return out
}

func (s *screen) rowLine(g *grid, r *row, widths []int, marked, selected bool) string {
	front := []rune("  ")
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
		tone := c.tone
		if r.stale && tone != render.Bad {
			tone = render.Dim
		}
		text := cut(c.text, widths[i], g.columns[i].right)
		if i == len(r.cells)-1 {
			text = strings.TrimRight(text, " ")
		}
		line += s.paint(text, tone) + "  "
	}
	if selected {
		return s.bold(strings.TrimRight(line, " "))
	}
	return strings.TrimRight(line, " ")
}

// head is the first line: whose figures these are, and how old.
func (s *screen) head(r *Rated, interval, age time.Duration, paused bool, width int) string {
	up := 0
	for i := range r.Brokers {
		if r.Brokers[i].Err == "" {
			up++
		}
	}
	left := fmt.Sprintf("mqx top  %s  brokers %d/%d  in %s/s  out %s/s  lag %s", strings.Join(r.Clusters, ","), up, len(r.Brokers),
		perSecond(r.In), perSecond(r.Out), count(r.Lag))
	right := fmt.Sprintf("%s  every %s", r.At.Format(time.TimeOnly), render.FormatDuration(interval))
	if paused {
		right = r.At.Format(time.TimeOnly) + "  paused"
	}
	tone := render.Plain
	if age > 2*interval+time.Second {
		right = "figures are " + render.FormatDuration(age) + " old"
		tone = render.Bad
	}
	gap := width - len([]rune(left)) - len([]rune(right))
	if gap < 2 {
		return s.bold(cut(left, width, false))
	}
	return s.bold(left) + strings.Repeat(" ", gap) + s.paint(right, tone)
}

// tabs is the second line: the pages, the open one in brackets.
func (s *screen) tabs(v view, group string, width int) string {
	var parts []string
	for i, name := range pages {
		text := fmt.Sprintf(" %d %s ", i+1, name)
		if view(i) == v {
			text = s.bold(fmt.Sprintf("[%d %s]", i+1, name))
		}
		parts = append(parts, text)
	}
	line := strings.Join(parts, "")
	if v == queuesView {
		line += s.bold("[" + cut(group, min(len([]rune(group)), max(8, width-60)), false) + "]")
	}
	return line
}

// helpLines are the keys.
var helpLines = []string{
	"1-5        overview, brokers, topics, groups, clients",
	"Enter      queues of the group under the cursor",
	"Esc        back; takes a filter away first",
	"Up Down    move, also j and k, PgUp PgDn, g and G for the ends",
	"/          filter rows by text",
	"Shift+key  sort by the column that has the letter; again turns it round",
	"Space      mark a row",
	"p          pause, + and - change the interval, r refreshes now",
	"c          the mqx admin line for what is under the cursor",
	":          a page by its name, or q",
	"?          this page",
	"q          end",
}
