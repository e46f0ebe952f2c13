package render

import (
	"fmt"
	"io"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/pkg/twwidth"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// minColumn is the width below which a column is not cut to make a table fit.
const minColumn = 8

// writeTable prints the aligned table of a terminal.
func (w *Writer) writeTable() error {
	columns := w.columns()
	header := make([]string, len(columns))
	align := make([]tw.Align, len(columns))
	for k, i := range columns {
		f := w.schema.Fields[i]
		header[k] = f.title()
		align[k] = tw.AlignLeft
		if f.right() {
			align[k] = tw.AlignRight
		}
	}
	cells := make([][]string, len(w.rows))
	for r, row := range w.rows {
		cells[r] = make([]string, len(columns))
		for k, i := range columns {
			cells[r][k] = short(w.schema.Fields[i], row[i], w.o.Now, w.o.Form == FormWide)
		}
	}
	if w.o.Width > 0 && w.o.Form == FormTable {
		fit(header, cells, w.o.Width)
	}
	if w.o.NoHeaders {
		header = nil
	}
	return drawTable(w.out, header, cells, align, w.o.Color)
}

// fit cuts the widest columns until the table is no wider than width.
func fit(header []string, cells [][]string, width int) {
	widths := make([]int, len(header))
	for k, h := range header {
		widths[k] = twwidth.Width(h)
		for _, row := range cells {
			widths[k] = max(widths[k], twwidth.Width(row[k]))
		}
	}
	total := 2 * (len(header) - 1)
	for _, n := range widths {
		total += n
	}
	cut := make([]bool, len(header))
	for total > width {
		widest := 0
		for k := range widths {
			if widths[k] > widths[widest] {
				widest = k
			}
		}
		if widths[widest] <= minColumn {
			return
		}
		widths[widest]--
		cut[widest] = true
		total--
	}
	for k := range header {
		if !cut[k] {
			continue
		}
		header[k] = cutTo(header[k], widths[k])
		for _, row := range cells {
			row[k] = cutTo(row[k], widths[k])
		}
	}
}

// cutTo shortens s to width columns, the last of them an ellipsis.
func cutTo(s string, width int) string {
	if twwidth.Width(s) <= width {
		return s
	}
	return twwidth.Truncate(s, width, "…")
}

func drawTable(out io.Writer, header []string, cells [][]string, align []tw.Align, color bool) error {
	var text strings.Builder
	table := tablewriter.NewTable(&text,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders:  tw.BorderNone,
			Symbols:  tw.NewSymbols(tw.StyleNone),
			Settings: tw.Settings{Separators: tw.SeparatorsNone, Lines: tw.LinesNone},
		})),
		tablewriter.WithPadding(tw.Padding{Right: "  ", Overwrite: true}),
		tablewriter.WithTrimSpace(tw.Off),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithAlignment(align),
	)
	if header != nil {
		table.Header(header)
	}
	for _, row := range cells {
		if err := table.Append(row); err != nil {
			return fmt.Errorf("cannot lay out table: %w", err)
		}
	}
	if header == nil && len(cells) == 0 {
		return nil
	}
	if err := table.Render(); err != nil {
		return fmt.Errorf("cannot lay out table: %w", err)
	}
	bold := lipgloss.NewStyle().Bold(true)
	for n, line := range strings.Split(strings.TrimRight(text.String(), "\n"), "\n") {
		line = strings.TrimRight(line, " ")
		if n == 0 && header != nil && color {
			line = bold.Render(line)
		}
		if _, err := io.WriteString(out, line+"\n"); err != nil {
			return fmt.Errorf("cannot write output: %w", err)
		}
	}
	return nil
}

// WriteHelp lists the fields of a schema: what -o help prints.
func WriteHelp(out io.Writer, s Schema) error {
	cells := make([][]string, len(s.Fields))
	for i, f := range s.Fields {
		cells[i] = []string{f.Name, f.Kind.String(), f.Doc}
	}
	return drawTable(out, []string{"FIELD", "TYPE", "MEANING"}, cells, []tw.Align{tw.AlignLeft, tw.AlignLeft, tw.AlignLeft}, false)
}

// String is the name of the kind in -o help.
func (k Kind) String() string {
	names := [...]string{"text", "integer", "number", "bool", "time", "milliseconds", "size in bytes", "list", "object"}
	if k < 0 || int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}
