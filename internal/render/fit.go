package render

import (
	"slices"
	"strings"

	"github.com/olekukonko/tablewriter/pkg/twwidth"
)

// minColumn is the width below which a column is not cut to make a table fit.
const minColumn = 8

// wholeStream is the room that a stream reserves for an id.
const wholeStream = 32

// whole: the field is never cut. Ids and names are what a person copies.
func (w *Writer) whole(i int) bool {
	f := w.schema.Fields[i]
	return f.Whole || f.Name == w.schema.Name
}

// grid is where the columns of a table go.
type grid struct {
	columns []int // fields that stand side by side
	widths  []int // of each of them
	floors  []int // what each of them may be cut to
	below   []int // fields that stand under each record
}

// fit makes widths (one a column) fit into total columns of the terminal: the
// widest columns that may be cut are made smaller, and when that is not enough
// columns go below, ids first. numbers are the widths of what stands in each column
// without its title: a number is never cut.
func (w *Writer) fit(columns, widths, numbers []int, total int) grid {
	g := grid{columns: columns, widths: widths, floors: make([]int, len(columns))}
	for k, i := range columns {
		switch {
		case w.whole(i):
			g.floors[k] = widths[k]
		case w.schema.Fields[i].right():
			g.floors[k] = numbers[k]
		default:
			g.floors[k] = minColumn
		}
	}
	if total <= 0 {
		return g
	}
	for {
		for g.width() > total {
			k := g.widest()
			if k < 0 {
				break
			}
			g.widths[k]--
		}
		if g.width() <= total || !g.lower(w) {
			return g
		}
	}
}

func (g *grid) width() int {
	n := 2 * (len(g.widths) - 1)
	for _, x := range g.widths {
		n += x
	}
	return n
}

// widest is the widest column that may be made smaller, -1 when none is left.
func (g *grid) widest() int {
	widest := -1
	for k := range g.columns {
		if g.widths[k] > g.floors[k] && (widest < 0 || g.widths[k] > g.widths[widest]) {
			widest = k
		}
	}
	return widest
}

// lower moves a column below: the last id, else the last column. The first stays.
func (g *grid) lower(w *Writer) bool {
	at := len(g.columns) - 1
	for k := at; k > 0; k-- {
		if w.whole(g.columns[k]) && g.widths[k] > 2*minColumn {
			at = k
			break
		}
	}
	if at <= 0 {
		return false
	}
	g.below = append(g.below, g.columns[at])
	slices.Sort(g.below) // as in the schema
	g.columns = slices.Delete(slices.Clone(g.columns), at, at+1)
	g.widths = slices.Delete(slices.Clone(g.widths), at, at+1)
	g.floors = slices.Delete(slices.Clone(g.floors), at, at+1)
	return true
}

// under are the lines of the fields that stand under a record, as many on each as
// fit. An id is whole even when it does not.
func (w *Writer) under(below []int, row []any) []string {
	var lines []string
	line, width := "", 0
	for _, i := range below {
		f := w.schema.Fields[i]
		label, value := strings.ToLower(f.title())+": ", short(f, row[i], w.o.Now, w.o.Form == FormWide)
		if !w.whole(i) && w.o.Width > 0 {
			value = cutTo(value, max(minColumn, w.o.Width-4-twwidth.Width(label)))
		}
		n := twwidth.Width(label) + twwidth.Width(value)
		if line != "" && w.o.Width > 0 && width+2+n > w.o.Width {
			lines = append(lines, line)
			line = ""
		}
		if line == "" {
			line, width = "   ", 2
		}
		line += " " + Paint(label, Dim, w.o.Color) + Paint(value, w.tone(i, row[i]), w.o.Color) + " "
		width += 2 + n
	}
	if line != "" {
		lines = append(lines, line)
	}
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// cutTo shortens s to width columns, the last of them an ellipsis.
func cutTo(s string, width int) string {
	if twwidth.Width(s) <= width {
		return s
	}
	return twwidth.Truncate(s, width, "…")
}
