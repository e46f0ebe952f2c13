package render

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Match is a parsed --match expression: which rows of a list to keep.
//
//	name=ORDERS            equal (also ==); != not equal
//	name~^ORD              matches the regular expression; !~ does not
//	queues>=8              < <= > >= for numbers, times (RFC 3339) and durations (5s)
//	a=1 && b=2 || c=3      && binds closer than ||
//	ORD                    a word alone: the text occurs in any field
//
// A value with blanks or && in it stands in single or double quotes. An unknown
// value matches nothing but !=, !~ and "field=" with nothing behind it.
type Match struct {
	any [][]condition // or of ands
}

type condition struct {
	field int // -1: any field
	op    string
	text  string
	re    *regexp.Regexp
	kind  Kind
	value any // text as a value of the field's kind, for comparisons
}

var matchOps = []string{"==", "!=", "!~", "<=", ">=", "=", "~", "<", ">"}

// ParseMatch parses an expression over the fields of s.
func ParseMatch(text string, s *Schema) (*Match, error) {
	m := &Match{}
	for _, part := range splitOutside(text, "||") {
		var all []condition
		for _, term := range splitOutside(part, "&&") {
			c, err := parseCondition(strings.TrimSpace(term), s)
			if err != nil {
				return nil, fmt.Errorf("cannot parse match %q: %w", text, err)
			}
			all = append(all, c)
		}
		m.any = append(m.any, all)
	}
	return m, nil
}

// splitOutside splits at sep where it does not stand in quotes.
func splitOutside(text, sep string) []string {
	var out []string
	var quote byte
	start := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case strings.HasPrefix(text[i:], sep):
			out = append(out, text[start:i])
			start = i + len(sep)
			i += len(sep) - 1
		}
	}
	return append(out, text[start:])
}

func parseCondition(term string, s *Schema) (condition, error) {
	if term == "" {
		return condition{}, errors.New("a condition is empty")
	}
	at := strings.IndexAny(term, "=!~<>")
	if at < 0 || term[0] == '\'' || term[0] == '"' {
		return condition{field: -1, op: "has", text: unquote(term)}, nil
	}
	name := strings.TrimSpace(term[:at])
	c := condition{field: s.index(name)}
	if c.field < 0 {
		return c, unknownField("match", name, s)
	}
	for _, op := range matchOps {
		if rest, ok := strings.CutPrefix(term[at:], op); ok {
			c.op, c.text = op, unquote(strings.TrimSpace(rest))
			break
		}
	}
	if c.op == "" {
		return c, fmt.Errorf("no operator in %q: one of %s", term, strings.Join(matchOps, " "))
	}
	c.kind = s.Fields[c.field].Kind
	return c, c.prepare()
}

func (c *condition) prepare() error {
	var err error
	switch c.op {
	case "~", "!~":
		c.re, err = regexp.Compile(c.text)
		return err
	}
	if c.text == "" {
		return nil
	}
	c.value, err = parseValue(c.kind, c.text)
	return err
}

// parseValue reads text as a value of a kind, as it is printed by full.
func parseValue(k Kind, text string) (any, error) {
	switch k {
	case Int, Size:
		return strconv.ParseInt(text, 10, 64)
	case Float:
		return strconv.ParseFloat(text, 64)
	case Bool:
		return strconv.ParseBool(text)
	case Time:
		return time.Parse(time.RFC3339, text)
	case Duration:
		if ms, err := strconv.ParseFloat(text, 64); err == nil {
			return time.Duration(ms * float64(time.Millisecond)), nil
		}
		return time.ParseDuration(text)
	case Text, List, Object, Series:
	}
	return text, nil
}

func unquote(s string) string {
	if len(s) >= 2 && (s[0] == '\'' || s[0] == '"') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

func (m *Match) row(row []any) bool {
	for _, all := range m.any {
		ok := true
		for i := range all {
			ok = ok && all[i].row(row)
		}
		if ok {
			return true
		}
	}
	return false
}

func (c *condition) row(row []any) bool {
	if c.field < 0 {
		for _, v := range row {
			if strings.Contains(full(v), c.text) {
				return true
			}
		}
		return false
	}
	v := row[c.field]
	switch c.op {
	case "=", "==":
		return c.equal(v)
	case "!=":
		return !c.equal(v)
	case "~":
		return v != nil && c.re.MatchString(full(v))
	case "!~":
		return v == nil || !c.re.MatchString(full(v))
	}
	if v == nil || c.value == nil {
		return false
	}
	order := 0
	switch c.kind {
	case Text, List, Object, Series:
		order = strings.Compare(full(v), c.text)
	case Int, Float, Bool, Time, Duration, Size:
		order = compareValues(v, c.value)
	}
	switch c.op {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	default:
		return order >= 0
	}
}

func (c *condition) equal(v any) bool {
	if v == nil || c.value == nil {
		return v == nil && c.text == "" || v != nil && full(v) == c.text
	}
	switch x := v.(type) {
	case []string:
		for _, s := range x {
			if s == c.text {
				return true
			}
		}
		return full(v) == c.text
	case string:
		return x == c.text
	case int64, float64, bool, time.Time, time.Duration:
		return compareValues(v, c.value) == 0
	default:
		return full(v) == c.text
	}
}
