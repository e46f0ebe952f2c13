package filter

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"mqx/message"
)

// FuzzCompile: every text compiles or is refused with a place in it; what compiles says the same of a message in all
// forms, and its rest has no part in that.
func FuzzCompile(f *testing.F) {
	j := readJudged(f)
	for _, line := range j.list {
		f.Add(line[0])
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Compile(text)
		if err != nil {
			var se *SyntaxError
			if !errors.As(err, &se) || se.Pos < 0 || se.Pos > len(text) || se.Reason == "" {
				t.Fatalf("%q: %#v", text, err)
			}
			if line, column := se.Position(); line < 1 || column < 1 || line > strings.Count(text, "\n")+1 || utf8.ValidString(text) && column > utf8.RuneCountInString(text)+1 {
				t.Fatalf("%q: line %d, column %d", text, line, column)
			}
			return
		}
		if !strings.HasSuffix(text, e.Rest()) || e.String() != text {
			t.Fatalf("%q: rest %q", text, e.Rest())
		}
		alone, err := Compile(strings.TrimSuffix(text, e.Rest()))
		if err != nil || alone.Rest() != "" {
			t.Fatalf("%q without its rest %q: %v", text, e.Rest(), err)
		}
		for _, set := range j.sets {
			raw := message.FormatProperties(set)
			got := e.MatchProperties(raw)
			if got != e.MatchMap(set) || got != alone.MatchProperties(raw) {
				t.Fatalf("%q with %v: no form agrees with another", text, set)
			}
		}
	})
}
