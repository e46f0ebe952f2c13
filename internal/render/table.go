package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/pkg/twwidth"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// minTitle is what is left of a title at least.
const minTitle = 4

// writeTable prints the aligned table of a terminal.
func (w *Writer) writeTable() error {
	wide := w.o.Form == FormWide
	columns := w.columns()
	widths, numbers := make([]int, len(columns)), make([]int, len(columns))
	for k, i := range columns {
		f := w.schema.Fields[i]
		for _, row := range w.rows {
			numbers[k] = max(numbers[k], twwidth.Width(short(f, row[i], w.o.Now, wide)))
		}
		numbers[k] = max(numbers[k], minTitle)
		widths[k] = max(twwidth.Width(f.title()), numbers[k])
	}
	total := w.o.Width
	if wide {
		total = 0
	}
	g := w.fit(columns, widths, numbers, total)
	header := make([]string, len(g.columns))
	align := make([]tw.Align, len(g.columns))
	for k, i := range g.columns {
		f := w.schema.Fields[i]
		header[k] = cutTo(f.title(), g.widths[k])
		align[k] = tw.AlignLeft
		if f.right() {
			align[k] = tw.AlignRight
		}
	}
	cells := make([][]string, len(w.rows))
	below := make([][]string, len(w.rows))
	for r, row := range w.rows {
		cells[r] = make([]string, len(g.columns))
		for k, i := range g.columns {
			text := cutTo(short(w.schema.Fields[i], row[i], w.o.Now, wide), g.widths[k])
			cells[r][k] = Paint(text, w.tone(i, row[i]), w.o.Color)
		}
		below[r] = w.under(g.below, row)
	}
	if w.o.NoHeaders {
		header = nil
	}
	return drawTable(w.out, header, cells, below, align, w.o.Color)
}

// drawTable lays cells out in aligned columns; below are the lines that follow
// each record, nil for none.
func drawTable(out io.Writer, header []string, cells, below [][]string, align []tw.Align, color bool) error {
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
	first := 0
	if header != nil {
		first = 1
	}
	for n, line := range strings.Split(strings.TrimRight(text.String(), "\n"), "\n") {
		line = trimEnd(line)
		if n < first {
			line = Bold(line, color)
		}
		if r := n - first; r >= 0 && r < len(below) {
			line = strings.Join(append([]string{line}, below[r]...), "\n")
		}
		if _, err := io.WriteString(out, line+"\n"); err != nil {
			return fmt.Errorf("cannot write output: %w", err)
		}
	}
	return nil
}

// trimEnd takes the blanks off the end of a line, and the resets that tablewriter
// puts between them where cells have a colour.
func trimEnd(line string) string {
	for {
		line = strings.TrimRight(line, " ")
		rest, ok := strings.CutSuffix(line, "\x1b[0m")
		if !ok {
			return line
		}
		line = rest
	}
}

// WriteHelp lists the fields of a schema: what -o help prints.
func WriteHelp(out io.Writer, s Schema) error {
	cells := make([][]string, len(s.Fields))
	for i, f := range s.Fields {
		cells[i] = []string{f.Name, f.Kind.String(), f.Doc}
	}
	return drawTable(out, []string{"FIELD", "TYPE", "MEANING"}, cells, nil, []tw.Align{tw.AlignLeft, tw.AlignLeft, tw.AlignLeft}, false)
}

// String is the name of the kind in -o help.
func (k Kind) String() string {
	names := [...]string{"text", "integer", "number", "bool", "time", "milliseconds", "size in bytes", "list", "object", "numbers"}
	if k < 0 || int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}
