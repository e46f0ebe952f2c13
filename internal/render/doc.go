// Package render prints records: the rows that a command found, in the form
// that its -o flag asks for. It is the only place that knows tablewriter, and
// the reason that every list of mqx looks and behaves alike.
//
// A command declares a Schema once, its fields in the order of the columns, and
// feeds a Writer rows. On a terminal a row becomes a line of an aligned table as
// wide as the terminal; on a pipe it becomes tab-separated text with full values.
// The machine forms (json, ndjson, yaml, csv) carry the field names of the
// schema, which do not change between releases; docs/output.md lists them.
//
// A nil value is one that nobody knows: null in a document, "-" in a table. A
// zero is never printed in its place.
package render
