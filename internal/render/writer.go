package render

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"text/template"
)

// Problem is a part of the answer that is missing and why: an entry of the
// document's errors.
type Problem struct {
	Target  string `json:"target" yaml:"target"` // the broker or name server
	Addr    string `json:"addr,omitempty" yaml:"addr,omitempty"`
	Message string `json:"message" yaml:"message"`
	// Why and Try are for people: they stand in no document.
	Why string `json:"-" yaml:"-"`
	Try string `json:"-" yaml:"-"`
}

// Writer prints the records of one command. Rows are given to Row, and Close
// prints what was held back. It is not safe for concurrent use.
type Writer struct {
	out    io.Writer
	schema Schema
	o      Options
	match  *Match
	tmpl   *template.Template

	rows     [][]any // canonical values, held back until Close
	problems []Problem
	written  int   // rows printed or held back
	started  bool  // the header line is out, or what begins a document
	items    int   // of a document, that are out
	layout   *grid // of a table that is written as it comes
	csvOut   *csv.Writer
	closed   bool
}

// New checks the options against the schema. An error is a mistake of the user:
// an unknown field, a template that does not parse.
func New(out io.Writer, s Schema, o Options) (*Writer, error) {
	if err := o.check(&s); err != nil {
		return nil, err
	}
	w := &Writer{out: out, schema: s, o: o}
	var err error
	if o.Match != "" {
		if w.match, err = ParseMatch(o.Match, &w.schema); err != nil {
			return nil, err
		}
	}
	if o.Form == FormTemplate {
		if w.tmpl, err = parseTemplate(o.Template, &w.schema); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// Help says that the -o help was asked for: print WriteHelp and fetch nothing.
func (w *Writer) Help() bool { return w.o.Form == FormHelp }

// Lean says that the values of wide fields are not looked at: they may be left nil where they cost something.
func (w *Writer) Lean() bool {
	return w.o.Form == FormTable && !w.o.Records && w.match == nil && w.o.Sort == "" && !w.o.TTY
}

// Full says that Limit rows have been taken and further ones are not printed.
// With a Sort it is never true: the order is known only at the end.
func (w *Writer) Full() bool { return w.o.Limit > 0 && w.o.Sort == "" && w.written >= w.o.Limit }

// Row takes one record, its values in the order of the schema's fields. A value
// of another type than its field's kind panics.
func (w *Writer) Row(values ...any) error {
	if len(values) != len(w.schema.Fields) {
		panic(fmt.Sprintf("render: %d values for the %d fields of %s", len(values), len(w.schema.Fields), w.schema.Kind))
	}
	row := make([]any, len(values))
	for i, v := range values {
		row[i] = known(w.schema.Fields[i], v)
	}
	if w.match != nil && !w.match.row(row) {
		return nil
	}
	if w.Full() {
		return nil
	}
	w.written++
	if w.o.Stream {
		return w.stream(row)
	}
	w.rows = append(w.rows, row)
	return nil
}

// Problem adds a missing part. Only documents carry it; the command also says
// it on stderr.
func (w *Writer) Problem(p Problem) { w.problems = append(w.problems, p) }

// stream prints one row at once.
func (w *Writer) stream(row []any) error {
	if err := w.start(); err != nil {
		return err
	}
	var err error
	switch w.o.Form {
	case FormJSON:
		err = w.jsonItem(row)
	case FormYAML:
		err = w.yamlItem(row)
	default:
		return w.line(row)
	}
	w.items++
	return err
}

// start prints what comes before the first row.
func (w *Writer) start() error {
	if w.started {
		return nil
	}
	w.started = true
	switch w.o.Form {
	case FormJSON:
		return w.jsonHead()
	case FormYAML:
		return w.yamlHead()
	}
	return w.lineHeader()
}

// end prints what comes behind the last row.
func (w *Writer) end() error {
	if err := w.start(); err != nil {
		return err
	}
	switch w.o.Form {
	case FormJSON:
		return w.jsonTail()
	case FormYAML:
		return w.yamlTail()
	}
	return nil
}

// Close prints the rows held back and the end of the document. It is idempotent.
func (w *Writer) Close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	if w.o.Form == FormHelp {
		return WriteHelp(w.out, w.schema)
	}
	if w.o.Stream {
		return w.end()
	}
	if w.o.Sort != "" {
		w.sortRows()
	}
	switch {
	case w.o.Records && (w.o.Form == FormTable || w.o.Form == FormWide):
		return w.writeRecords()
	case w.o.TTY && (w.o.Form == FormTable || w.o.Form == FormWide):
		return w.writeTable()
	}
	return w.flushed(func() error {
		for _, row := range w.rows {
			if err := w.stream(row); err != nil {
				return err
			}
		}
		return w.end()
	})
}

// flushed calls write and hands on what it wrote in large pieces: a system call a row
// costs more than making the row.
func (w *Writer) flushed(write func() error) error {
	whole, b := w.out, bufio.NewWriterSize(w.out, 16<<10)
	w.out = b
	err := write()
	w.out = whole
	if flushErr := b.Flush(); err == nil && flushErr != nil {
		err = fmt.Errorf("cannot write output: %w", flushErr)
	}
	return err
}
