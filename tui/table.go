package tui

import (
	"cmp"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"

	"mqx/internal/render"
)

// column is a column of a view. Those of the largest drop go first where there is no room.
type column struct {
	title string
	sort  byte // upper-case letter that sorts by it, 0 for none
	right bool
	drop  int // 0: it stays
	grows bool
}

// cell is a value: as it is drawn, and as it is sorted.
type cell struct {
	text string
	num  Num // numbers sort by it, texts by their text
	tone render.Tone
}

func text(s string) cell               { return cell{text: s} }
func number(n Num, s string) cell      { return cell{text: s, num: n} }
func toned(c cell, t render.Tone) cell { c.tone = t; return c }
func (c cell) less(o cell) int {
	if c.num.OK || o.num.OK {
		if c.num.OK != o.num.OK {
			return boolCompare(c.num.OK, o.num.OK) // unknown is least
		}
		return cmp.Compare(c.num.V, o.num.V)
	}
	return cmp.Compare(strings.ToLower(c.text), strings.ToLower(o.text))
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// row is a line of a view; name is what it is of.
type row struct {
	name  string
	cells []cell
	stale bool
}

// grid is a view as a table.
type grid struct {
	columns []column
	rows    []row
	empty   string // what is said where there is no row
}

// order says by what column, and which way, rows are sorted.
type order struct {
	column int
	down   bool
}

// arrange filters and sorts the rows. Equal ones go by name.
func (g *grid) arrange(filter string, o order) {
	if filter != "" {
		want := strings.ToLower(filter)
		g.rows = slices.DeleteFunc(g.rows, func(r row) bool {
			return !slices.ContainsFunc(r.cells, func(c cell) bool { return strings.Contains(strings.ToLower(c.text), want) })
		})
		g.empty = "nothing matches " + filter
	}
	slices.SortStableFunc(g.rows, func(a, b row) int {
		d := a.cells[o.column].less(b.cells[o.column])
		if o.down {
			d = -d
		}
		return cmp.Or(d, cmp.Compare(a.name, b.name))
	})
}

// widths are those of the columns that fit into a width; 0 for one that is left out.
func (g *grid) widths(total int) []int {
	out := make([]int, len(g.columns))
	for i, c := range g.columns {
		out[i] = lipgloss.Width(c.title)
		for _, r := range g.rows {
			out[i] = max(out[i], lipgloss.Width(r.cells[i].text))
		}
	}
	for used(out) > total {
		last := -1
		for i, c := range g.columns {
			if out[i] > 0 && c.drop > 0 && (last < 0 || c.drop > g.columns[last].drop) {
				last = i
			}
		}
		if last < 0 {
			break
		}
		out[last] = 0
	}
	// The first column, a name, gives what is still missing, and takes what is over.
	if over := used(out) - total; over > 0 {
		out[0] = max(8, out[0]-over)
	} else if over < 0 {
		grow := 0
		for i, c := range g.columns {
			if c.grows && out[i] > 0 {
				grow = i
			}
		}
		out[grow] -= over
	}
	return out
}

func used(widths []int) int {
	n := 0
	for _, w := range widths {
		if w > 0 {
			n += w + 2
		}
	}
	return n - 2
}

// cut is text in a width: cut with a mark, or filled with blanks on one side.
func cut(text string, width int, right bool) string {
	w := lipgloss.Width(text)
	if w > width {
		out, n := "", 0
		for _, r := range text {
			rw := lipgloss.Width(string(r))
			if n+rw > width-1 {
				break
			}
			out, n = out+string(r), n+rw
		}
		text, w = out+"…", n+1
	}
	blanks := strings.Repeat(" ", max(0, width-w))
	if right {
		return blanks + text
	}
	return text + blanks
}
