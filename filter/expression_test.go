package filter

import (
	"errors"
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	props := map[string]string{"a": "5", "b": "hello", "t": "true", "f": "2.5", "$x_1": "it's"}
	tests := []struct {
		expr string
		want bool
	}{
		{"a = 5", true},
		{"a > 3 AND b = 'hello'", true},
		{"a between 5 and 7", true},
		{"a not between 5 and 7", false},
		{"b in ('x', 'hello')", true},
		{"b not in ('x')", true},
		{"missing is null and a is not null", true},
		{"missing = 1", false},
		{"not (missing = 1)", false},
		{"missing = 1 or a = 5", true},
		{"b contains 'ell' and b startswith 'he' and b endswith 'lo'", true},
		{"b not contains 'x'", true},
		{"missing not contains 'x'", false},
		{"t = TRUE", true},
		{"$x_1 = 'it''s'", true},
		{"b > 3 or a = 5", false}, // what is no number fails
		{"a = 5 -- not more\n and b = 'hello' /* really */", true},
		{"-a is null", true},
		{"f > -2.5e0", true},
		{"a", false},
		{"not a", true},
		{"TRUE", true},
		{"NULL", false},
	}
	for _, tc := range tests {
		e, err := Compile(tc.expr)
		if err != nil {
			t.Errorf("%s: %v", tc.expr, err)
			continue
		}
		if got := e.MatchMap(props); got != tc.want {
			t.Errorf("%s: got %v", tc.expr, got)
		}
	}
}

func TestErrorsHavePlaces(t *testing.T) {
	tests := []struct {
		expr         string
		line, column int
	}{
		{"", 1, 1},
		{"a = ", 1, 5},
		{"a =\n 'é' AND", 2, 9},
		{"a > 'x'", 1, 5},
		{"a = 'x", 1, 5},
		{"a != 1", 1, 3},
		{`"a" = 1`, 1, 1},
		{"a between 3 and 2", 1, 11},
		{"5", 1, 1},
		{"a in (1)", 1, 7},
		{"a = 1 and 2", 1, 11},
	}
	for _, tc := range tests {
		_, err := Compile(tc.expr)
		var se *SyntaxError
		if !errors.As(err, &se) {
			t.Errorf("%q: got %v", tc.expr, err)
			continue
		}
		if line, column := se.Position(); line != tc.line || column != tc.column {
			t.Errorf("%q: %v", tc.expr, err)
		}
	}
}

// A name that cannot be written is told with its place and what to do.
func TestForeignNames(t *testing.T) { // N051
	for text, want := range map[string]string{
		"a/b = 1":      "line 1, column 2: a property name has letters a-z, digits, _ and $ only, so '/' ends it, and names cannot be quoted",
		"x = 1 OR a.b": "line 1, column 11: a property name has letters",
		"`a/b` = 1":    "line 1, column 1: names are not quoted",
		"5/b = 1":      "line 1, column 2: nothing begins with '/'",
	} {
		if _, err := Compile(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestLimits(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("(", MaxDepth+1) + "a = 1" + strings.Repeat(")", MaxDepth+1),
		strings.Repeat("NOT ", MaxDepth+1) + "a",
		strings.Repeat("-", MaxDepth+1) + "a = 1",
		"a" + strings.Repeat(" = 1", MaxDepth+1),
		"a" + strings.Repeat(" IS NULL", MaxDepth+1),
		"a = '" + strings.Repeat("x", MaxLength) + "'",
	} {
		if _, err := Compile(text); err == nil {
			t.Errorf("%.20q was taken", text)
		}
	}
	for _, text := range []string{
		strings.Repeat("(", MaxDepth) + "a = 1" + strings.Repeat(")", MaxDepth),
		"a = 1" + strings.Repeat(" OR a = 1", 5000),
	} {
		e, err := Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		if !e.MatchMap(map[string]string{"a": "1"}) {
			t.Errorf("%.20q does not match", text)
		}
	}
}

func TestMatchDoesNotAllocate(t *testing.T) {
	e, err := Compile("a > 3 AND b = 'hello' AND f < 7.25 AND b IN ('1','2','3','4','5','6','7','8','9','hello') AND z IS NULL AND (a = 5) = t")
	if err != nil {
		t.Fatal(err)
	}
	raw := []byte("a\x015\x02b\x01hello\x02f\x012.5\x02t\x01true\x02")
	e2, err := Compile("a > 3 AND b = 'hello' AND f < 7.25 AND b IN ('1','2','3','4','5','6','7','8','9','hello') AND z IS NULL")
	if err != nil {
		t.Fatal(err)
	}
	if e.MatchProperties(raw) || !e2.MatchProperties(raw) {
		t.Fatal("wrong outcome")
	}
	if n := testing.AllocsPerRun(100, func() { e.MatchProperties(raw); e2.MatchProperties(raw) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
