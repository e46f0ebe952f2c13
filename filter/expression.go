package filter

import (
	"fmt"
	"strings"

	"mqx/message"
)

// Limits of an expression. Apache has neither: its parser ends at the depth of its thread's stack.
const (
	// MaxLength is the longest text that is compiled, in bytes.
	MaxLength = 64 << 10
	// MaxDepth is how deep brackets, signs, NOT and chains of = may nest.
	MaxDepth = 1000
)

// Expression is a compiled SQL92 expression. It is immutable and safe to share.
type Expression struct {
	text string
	rest string
	root condition
}

// Compile parses and checks an expression, which must give a truth value. The error is a *SyntaxError. As in Apache, text
// behind a whole expression is not looked at: `a = 1 b` is `a = 1`. Rest returns it for callers that would rather refuse.
func Compile(text string) (*Expression, error) {
	if len(text) > MaxLength {
		return nil, &SyntaxError{Text: text, Pos: MaxLength, Reason: fmt.Sprintf("an expression has at most %d bytes, this one has %d", MaxLength, len(text))}
	}
	p := parser{lex: lexer{text: text}}
	t, err := p.or()
	if err == nil {
		var root condition
		if root, err = p.condition(t); err == nil {
			return &Expression{text: text, rest: p.rest(), root: root}, nil
		}
	}
	return nil, err
}

// String returns the text that was compiled.
func (e *Expression) String() string { return e.text }

// Rest returns what stands behind the expression and has no meaning; it is empty for a text that was used whole. A line
// comment at the end of the text, which for Apache ends in nothing, is not counted.
func (e *Expression) Rest() string { return e.rest }

// Match reports whether a message fulfils the expression. lookup returns the value of a property; no such property, and
// one with an empty value, is ok = false. The value is used before lookup is called again or Match returns. An expression
// that is unknown for the message, or that would compare text that is no number with a number, is not fulfilled.
func (e *Expression) Match(lookup func(name string) (value []byte, ok bool)) bool {
	src := source{lookup: lookup}
	return e.root.truth(src) == yes
}

// MatchProperties is Match over the raw property text of a record (message.View.Properties). It does not allocate, but for
// property values of more than 32 characters that are compared with a fractional number.
func (e *Expression) MatchProperties(raw []byte) bool {
	src := source{raw: raw}
	return e.root.truth(src) == yes
}

// MatchMap is Match over decoded properties.
func (e *Expression) MatchMap(props map[string]string) bool {
	return e.Match(func(name string) ([]byte, bool) {
		v, ok := props[name]
		return []byte(v), ok && v != ""
	})
}

// source is where the properties of one message are found.
type source struct {
	raw    []byte
	lookup func(string) ([]byte, bool)
}

func (s source) property(name string) ([]byte, bool) {
	if s.lookup != nil {
		return s.lookup(name)
	}
	return message.Property(s.raw, name)
}

// SyntaxError says where an expression cannot be understood, and why.
type SyntaxError struct {
	Text   string
	Pos    int    // in bytes from 0
	Reason string // what is wrong there
}

// Error gives the line and the column in characters, both from 1, and what stands there.
func (e *SyntaxError) Error() string {
	line, column := e.Position()
	return fmt.Sprintf("cannot parse the SQL92 expression: line %d, column %d: %s", line, column, e.Reason)
}

// Position returns the line and the column of the error, from 1, the column in characters.
func (e *SyntaxError) Position() (line, column int) {
	before := e.Text[:min(e.Pos, len(e.Text))]
	line = strings.Count(before, "\n") + 1
	column = len([]rune(before[strings.LastIndexByte(before, '\n')+1:])) + 1
	return line, column
}
