package render

import (
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
	below   []int // fields that have a line of their own under each record
}

// fit makes widths (one a column) fit into total columns of the terminal: the
// widest columns that may be cut are made smaller, and when that is not enough the
// last ones that may not be cut go below.
func (w *Writer) fit(columns, widths []int, total int) grid {
	g := grid{columns: columns, widths: widths}
	if total <= 0 {
		return g
	}
	for {
		for g.width() > total {
			k := g.widest(w)
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
func (g *grid) widest(w *Writer) int {
	widest := -1
	for k, i := range g.columns {
		if !w.whole(i) && g.widths[k] > minColumn && (widest < 0 || g.widths[k] > g.widths[widest]) {
			widest = k
		}
	}
	return widest
}

// lower moves the last column that may not be cut below; the first stays.
func (g *grid) lower(w *Writer) bool {
	for k := len(g.columns) - 1; k > 0; k-- {
		i := g.columns[k]
		if !w.whole(i) {
			continue
		}
		g.below = append([]int{i}, g.below...)
		g.columns = append(append([]int(nil), g.columns[:k]...), g.columns[k+1:]...)
		g.widths = append(append([]int(nil), g.widths[:k]...), g.widths[k+1:]...)
		return true
	}
	return false
}

// under is the text of a field that has a line of its own.
func (w *Writer) under(i int, row []any) string {
	f := w.schema.Fields[i]
	value := short(f, row[i], w.o.Now, w.o.Form == FormWide)
	return "    " + Paint(strings.ToLower(f.title())+": ", Dim, w.o.Color) + Paint(value, w.tone(i, row[i]), w.o.Color)
}

// cutTo shortens s to width columns, the last of them an ellipsis.
func cutTo(s string, width int) string {
	if twwidth.Width(s) <= width {
		return s
	}
	return twwidth.Truncate(s, width, "…")
}
