package render

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/olekukonko/tablewriter/pkg/twwidth"
)

// columns are the indexes of the fields that a table or tab-separated text has.
func (w *Writer) columns() []int {
	var out []int
	for i, f := range w.schema.Fields {
		if !f.Wide || w.o.Form != FormTable {
			out = append(out, i)
		}
	}
	return out
}

// lineHeader prints the one header line of the forms that print a line a record.
func (w *Writer) lineHeader() error {
	if w.o.NoHeaders {
		return nil
	}
	switch w.o.Form {
	case FormTable, FormWide:
		if w.o.TTY {
			return w.plainLine(func(f Field, _ int) (string, Tone) { return f.title(), Plain })
		}
		names := make([]string, 0, len(w.schema.Fields))
		for _, i := range w.columns() {
			names = append(names, w.schema.Fields[i].Name)
		}
		return w.text(strings.Join(names, "\t") + "\n")
	case FormCSV:
		return w.csv(w.schema.names())
	case FormJSON, FormNDJSON, FormYAML, FormName, FormTemplate, FormHelp:
	}
	return nil
}

// line prints one record of the forms that print a line a record.
func (w *Writer) line(row []any) error {
	switch w.o.Form {
	case FormNDJSON:
		return w.writeNDJSON(row)
	case FormCSV:
		cells := make([]string, len(row))
		for i, v := range row {
			cells[i] = full(v)
		}
		return w.csv(cells)
	case FormName:
		return w.text(escapeTabs(full(row[max(0, w.schema.index(w.schema.Name))])) + "\n")
	case FormTemplate:
		return w.template(row)
	case FormTable, FormWide, FormJSON, FormYAML, FormHelp:
	}
	if w.o.TTY {
		return w.streamRow(row)
	}
	return w.text(w.tabLine(row))
}

// tabLine is a line of tab-separated text.
func (w *Writer) tabLine(row []any) string {
	cells := make([]string, 0, len(row))
	for _, i := range w.columns() {
		cell := full(row[i])
		if row[i] == nil {
			cell = "-"
		}
		cells = append(cells, escapeTabs(cell))
	}
	return strings.Join(cells, "\t") + "\n"
}

// streamWidth is how far a column of a kind reaches while a table has no end
// and so no known width; a wider cell pushes the rest of its line.
func (w *Writer) streamWidth(i int) int {
	f := w.schema.Fields[i]
	n := twwidth.Width(f.title())
	switch f.Kind {
	case Text:
		if f.Whole {
			return max(n, wholeStream)
		}
		return max(n, 12)
	case List, Object, Series:
		return max(n, 12)
	case Time:
		return max(n, 9)
	case Int, Float, Bool, Duration, Size:
		return max(n, 6)
	}
	return n
}

// streamGrid is the layout of a table that is written as it comes. The last
// column takes what is left of the line.
func (w *Writer) streamGrid() grid {
	if w.layout != nil {
		return *w.layout
	}
	columns := w.columns()
	widths := make([]int, len(columns))
	for k, i := range columns {
		widths[k] = w.streamWidth(i)
	}
	total := w.o.Width
	if w.o.Form == FormWide {
		total = 0
	}
	g := w.fit(columns, widths, slices.Clone(widths), total)
	w.layout = &g
	return g
}

// plainLine prints one line of a table on a terminal that is written as it comes:
// cell gives the text and the tone of a field.
func (w *Writer) plainLine(cell func(f Field, i int) (string, Tone)) error {
	g := w.streamGrid()
	texts, tones := make([]string, len(g.columns)), make([]Tone, len(g.columns))
	for k, i := range g.columns {
		texts[k], tones[k] = cell(w.schema.Fields[i], i)
	}
	if w.o.Form == FormTable && w.o.Width > 0 {
		w.squeeze(&g, texts)
	}
	var b strings.Builder
	for k, i := range g.columns {
		pad := ""
		if n := g.widths[k] - twwidth.Width(texts[k]); n > 0 {
			pad = strings.Repeat(" ", n)
		}
		text := Paint(texts[k], tones[k], w.o.Color)
		last := k == len(g.columns)-1
		switch {
		case w.schema.Fields[i].right():
			b.WriteString(pad + text)
		case last:
			b.WriteString(text)
		default:
			b.WriteString(text + pad)
		}
		if !last {
			b.WriteString("  ")
		}
	}
	return w.text(b.String() + "\n")
}

// squeeze makes the texts of a line fit: the columns keep their widths, and the
// last one what is left of the terminal. Ids and names stay whole.
func (w *Writer) squeeze(g *grid, texts []string) {
	line := 2 * (len(texts) - 1)
	for k := range texts {
		line += max(g.widths[k], twwidth.Width(texts[k]))
	}
	for k, i := range g.columns {
		over := twwidth.Width(texts[k]) - g.widths[k]
		if line <= w.o.Width || over <= 0 || w.whole(i) {
			continue
		}
		keep := g.widths[k]
		if k == len(g.columns)-1 {
			keep = max(keep, g.widths[k]+over-(line-w.o.Width))
		}
		line -= twwidth.Width(texts[k]) - keep
		texts[k] = cutTo(texts[k], keep)
	}
}

// streamRow prints a record and the ids that have a line of their own.
func (w *Writer) streamRow(row []any) error {
	err := w.plainLine(func(f Field, i int) (string, Tone) {
		return short(f, row[i], w.o.Now, w.o.Form == FormWide), w.tone(i, row[i])
	})
	for _, line := range w.under(w.streamGrid().below, row) {
		if err == nil {
			err = w.text(line + "\n")
		}
	}
	return err
}

func (w *Writer) csv(cells []string) error {
	if w.csvOut == nil {
		w.csvOut = csv.NewWriter(w.out)
	}
	c := w.csvOut
	if err := c.Write(cells); err != nil {
		return fmt.Errorf("cannot write output: %w", err)
	}
	c.Flush()
	if err := c.Error(); err != nil {
		return fmt.Errorf("cannot write output: %w", err)
	}
	return nil
}

// template runs the user's template on the record; a text that does not end a
// line gets a line end.
func (w *Writer) template(row []any) error {
	record := make(map[string]any, len(row))
	for i, f := range w.schema.Fields {
		switch v := row[i].(type) {
		case nil:
			record[f.Name] = ""
		default:
			record[f.Name] = machine(v)
		}
	}
	var b strings.Builder
	if err := w.tmpl.Execute(&b, record); err != nil {
		return fmt.Errorf("cannot fill output template (the fields are %s): %w", strings.Join(w.schema.names(), ", "), err)
	}
	if !strings.HasSuffix(b.String(), "\n") {
		b.WriteByte('\n')
	}
	return w.text(b.String())
}

func (w *Writer) text(s string) error {
	if _, err := io.WriteString(w.out, s); err != nil {
		return fmt.Errorf("cannot write output: %w", err)
	}
	return nil
}
