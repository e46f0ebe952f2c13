package render

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Form is a form of output.
type Form string

// The forms. Help lists the fields instead of printing records.
const (
	FormTable    Form = "table"
	FormWide     Form = "wide"
	FormJSON     Form = "json"
	FormNDJSON   Form = "ndjson"
	FormYAML     Form = "yaml"
	FormCSV      Form = "csv"
	FormName     Form = "name"
	FormTemplate Form = "template"
	FormHelp     Form = "help"
)

// Forms lists the values of an -o flag, for help and completion.
func Forms() []string {
	return []string{"table", "wide", "json", "ndjson", "yaml", "csv", "name", "template=TEXT", "help"}
}

// Options say how to print. The zero value prints a table as for a pipe.
type Options struct {
	Form     Form
	Template string // for FormTemplate

	TTY   bool // the output is a terminal
	Width int  // its columns; 0 means unknown, nothing is cut
	Color bool

	NoHeaders bool
	// Strings doubles every integer as a text member <name>String in documents.
	Strings bool

	// Match, Sort and Limit choose the rows; see ParseMatch and sortRows.
	Match string
	Sort  string
	Limit int

	// Records prints a table with a line for each field, for records that stand alone.
	Records bool

	// Stream prints each row as it comes, for output that is long or without an
	// end. It does not go with Sort. A document (json, yaml) is whole with Close.
	Stream bool

	// Now is the time of the records (asOf), and what ages are counted from.
	Now time.Time
}

// ParseForm takes the value of an -o flag; "" is a table.
func ParseForm(value string) (form Form, text string, err error) {
	if value == "" {
		return FormTable, "", nil
	}
	if rest, ok := strings.CutPrefix(value, "template="); ok {
		if rest == "" {
			return "", "", errors.New("cannot use output form template=: the text after = is missing")
		}
		return FormTemplate, rest, nil
	}
	for _, f := range []Form{FormTable, FormWide, FormJSON, FormNDJSON, FormYAML, FormCSV, FormName, FormHelp} {
		if string(f) == value {
			return f, "", nil
		}
	}
	return "", "", fmt.Errorf("cannot use output form %q: one of %s", value, strings.Join(Forms(), ", "))
}

// check refuses options that no output can follow.
func (o *Options) check(s *Schema) error {
	if o.Form == "" {
		o.Form = FormTable
	}
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	if o.Limit < 0 {
		return fmt.Errorf("cannot use limit %d: it must not be negative", o.Limit)
	}
	if o.Sort != "" {
		if o.Stream {
			return errors.New("cannot sort output that has no end")
		}
		if name := strings.TrimPrefix(o.Sort, "-"); s.index(name) < 0 {
			return unknownField("sort by", name, s)
		}
	}
	return nil
}

func unknownField(verb, name string, s *Schema) error {
	names := slices.Sorted(slices.Values(s.names()))
	return fmt.Errorf("cannot %s field %q: the fields are %s", verb, name, strings.Join(names, ", "))
}
