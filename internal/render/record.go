package render

import (
	"strings"

	"github.com/olekukonko/tablewriter/tw"
)

// writeRecords prints a table of records that stand alone: a line for each field, FIELD and VALUE, on a terminal aligned.
// Wide fields come with -o wide, as columns do.
func (w *Writer) writeRecords() error {
	for n, row := range w.rows {
		if n > 0 {
			if err := w.text("\n"); err != nil {
				return err
			}
		}
		if w.o.TTY {
			var cells [][]string
			for _, i := range w.columns() {
				f := w.schema.Fields[i]
				text := short(f, row[i], w.o.Now, true)
				cells = append(cells, []string{f.title(), Paint(text, w.tone(i, row[i]), w.o.Color)})
			}
			if err := drawTable(w.out, nil, cells, make([][]string, len(cells)), []tw.Align{tw.AlignLeft, tw.AlignLeft}, w.o.Color); err != nil {
				return err
			}
			continue
		}
		var b strings.Builder
		if n == 0 && !w.o.NoHeaders {
			b.WriteString("field\tvalue\n")
		}
		for _, i := range w.columns() {
			cell := escapeTabs(full(row[i]))
			if row[i] == nil {
				cell = "-"
			}
			b.WriteString(w.schema.Fields[i].Name + "\t" + cell + "\n")
		}
		if err := w.text(b.String()); err != nil {
			return err
		}
	}
	return nil
}
