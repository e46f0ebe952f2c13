package render

import "strings"

// Kind says what the values of a field are and so how they are printed.
type Kind int

// The kinds and the Go types of their values. Any of them may be nil: unknown.
const (
	Text     Kind = iota // string
	Int                  // any integer type; doubled as text by Options.Strings
	Float                // float64
	Bool                 // bool
	Time                 // time.Time, zero is unknown; RFC 3339 in UTC for machines, an age on a terminal
	Duration             // time.Duration; milliseconds for machines
	Size                 // any integer type, bytes; with a unit on a terminal
	List                 // []string
	Object               // anything encoding/json writes; compact JSON in a cell, its String on a terminal
	Series               // []float64, a history from old to new; a sparkline on a terminal
)

// Field is one member of a record.
type Field struct {
	// Name is the stable name: the JSON member, the CSV column, what --sort and
	// --match and templates use. The unit stands at its end (waitMs).
	Name string
	// Title heads the column on a terminal; "" makes one from Name.
	Title string
	Kind  Kind
	// Wide keeps the field out of the plain table; every other form has it.
	Wide bool
	// Whole keeps the value from being cut on a narrow terminal, as ids must be; the
	// field Schema.Name names is whole as well.
	Whole bool
	// Tone colours known values on a terminal; nil leaves them as they are.
	Tone func(v any) Tone
	// Doc is one line for -o help and docs/output.md.
	Doc string
}

func (f Field) title() string {
	if f.Title != "" {
		return f.Title
	}
	var b strings.Builder
	for i, r := range f.Name {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}

func (f Field) right() bool {
	switch f.Kind {
	case Int, Float, Size, Duration:
		return true
	default:
		return false
	}
}

// Schema is what the records of a command are.
type Schema struct {
	// Kind is the document's kind, for example TopicList.
	Kind string
	// Name is the field that -o name prints.
	Name   string
	Fields []Field
}

func (s *Schema) index(name string) int {
	for i, f := range s.Fields {
		if f.Name == name {
			return i
		}
	}
	return -1
}

func (s *Schema) names() []string {
	names := make([]string, len(s.Fields))
	for i, f := range s.Fields {
		names[i] = f.Name
	}
	return names
}
