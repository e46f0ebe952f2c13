package tui

import (
	"cmp"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"

	"mqx/internal/render"
	"mqx/internal/sorted"
)

// column is a column of a view. Those of the largest drop go first where there is no room.
type column struct {
	title string
	sort  byte // upper-case letter that sorts by it, 0 for none
	right bool
	drop  int // 0: it stays
	grows bool
	spark bool // its cells are histories, drawn as wide as it is
	marks bool // what is odd about a row: where there is no room for it, the row begins with !
}

// cell is a value: as it is drawn, and as it is sorted.
type cell struct {
	text   string
	num    Num // numbers sort by it, texts by their text
	tone   render.Tone
	series string // the history that is drawn in it
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

// row is a line of a view.
type row struct {
	name  string // what it is of
	id    string // tells rows apart
	cells []cell
	stale bool   // its figures are not of now
	old   string // what is said of that beside the name
}

// label is the text of the first cell, which says how old a row is.
func (r *row) label() string {
	if r.old == "" {
		return r.cells[0].text
	}
	return r.cells[0].text + " " + r.old
}

// grid is a view as a table.
type grid struct {
	columns []column
	rows    []row
	empty   string // what is said where there is no row
}

// order says by what column, named by its letter, and which way, rows are sorted.
type order struct {
	letter byte
	down   bool
}

// sorted is the column that is sorted by; the first where there is none of that letter.
func (g *grid) sorted(o order) int {
	for i, c := range g.columns {
		if c.sort == o.letter && o.letter != 0 {
			return i
		}
	}
	return 0
}

// arrange filters and sorts the rows. Equal ones go by name.
func (g *grid) arrange(filter string, o order) {
	if filter != "" {
		want, not := strings.CutPrefix(strings.ToLower(filter), "!")
		g.rows = slices.DeleteFunc(g.rows, func(r row) bool {
			return not == slices.ContainsFunc(r.cells, func(c cell) bool { return strings.Contains(strings.ToLower(c.text), want) })
		})
		g.empty = "nothing matches " + filter
	}
	by := g.sorted(o)
	sorted.Stably(g.rows, func(a, b row) int {
		d := a.cells[by].less(b.cells[by])
		if o.down {
			d = -d
		}
		return cmp.Or(d, cmp.Compare(a.name, b.name), cmp.Compare(a.id, b.id))
	})
}

// widths are those of the columns that fit into a width; 0 for one that is left out.
func (g *grid) widths(total int) []int {
	out := make([]int, len(g.columns))
	for i, c := range g.columns {
		out[i] = lipgloss.Width(c.title)
		if c.spark {
			out[i] = max(out[i], sparkWidth)
			continue
		}
		for j := range g.rows {
			text := g.rows[j].cells[i].text
			if i == 0 {
				text = g.rows[j].label()
			}
			out[i] = max(out[i], textWidth(text))
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

// sparkWidth is the least width of a history.
const sparkWidth = 10

// textWidth is the width of a text on a terminal.
func textWidth(s string) int {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return lipgloss.Width(s)
		}
	}
	return len(s)
}

// wrap breaks a text into lines of a width.
func wrap(text string, width int) (out []string) {
	line, n := "", 0
	for _, r := range text {
		w := lipgloss.Width(string(r))
		if n+w > width {
			out = append(out, line)
			line, n = "", 0
		}
		line, n = line+string(r), n+w
	}
	return append(out, line)
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
	w := textWidth(text)
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
