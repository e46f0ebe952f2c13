package render

import (
	"encoding/csv"
	"fmt"
	"io"
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
			return w.plainLine(func(f Field, _ int) string { return f.title() })
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
		return w.plainLine(func(f Field, i int) string { return short(f, row[i], w.o.Now, w.o.Form == FormWide) })
	}
	cells := make([]string, 0, len(row))
	for _, i := range w.columns() {
		cell := full(row[i])
		if row[i] == nil {
			cell = "-"
		}
		cells = append(cells, escapeTabs(cell))
	}
	return w.text(strings.Join(cells, "\t") + "\n")
}

// streamWidths is how far a column of a kind reaches while a table has no end
// and so no known width; a wider cell pushes the rest of its line.
func streamWidth(f Field) int {
	n := twwidth.Width(f.title())
	switch f.Kind {
	case Text, List, Object:
		return max(n, 12)
	case Time:
		return max(n, 9)
	case Int, Float, Bool, Duration, Size:
		return max(n, 6)
	}
	return n
}

// plainLine prints one line of a table on a terminal that is written as it comes.
func (w *Writer) plainLine(cell func(f Field, i int) string) error {
	var b strings.Builder
	columns := w.columns()
	for k, i := range columns {
		f := w.schema.Fields[i]
		text := cell(f, i)
		pad := ""
		if n := streamWidth(f) - twwidth.Width(text); n > 0 {
			pad = strings.Repeat(" ", n)
		}
		switch {
		case f.right():
			b.WriteString(pad + text)
		case k < len(columns)-1:
			b.WriteString(text + pad)
		default:
			b.WriteString(text)
		}
		if k < len(columns)-1 {
			b.WriteString("  ")
		}
	}
	line := b.String()
	if w.o.Form == FormTable && w.o.Width > 0 {
		line = cutTo(line, w.o.Width)
	}
	return w.text(line + "\n")
}

func (w *Writer) csv(cells []string) error {
	c := csv.NewWriter(w.out)
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
