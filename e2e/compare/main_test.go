package main

import (
	"strings"
	"testing"
)

func TestCompare(t *testing.T) {
	lines := func(text string) func() ([]byte, error) { return func() ([]byte, error) { return []byte(text), nil } }
	const ours = `{"Action":"run","Test":"A"}
{"Action":"output","Test":"A","Output":"x"}
{"Action":"pass","Test":"A"}
{"Action":"run","Test":"B"}
{"Action":"pass","Test":"B"}
{"Action":"run","Test":"C"}
{"Action":"skip","Test":"C"}
{"Action":"run","Test":"D"}
{"Action":"fail","Test":"D"}
{"Action":"pass"}
`
	const theirs = `{"Action":"run","Test":"A"}
{"Action":"pass","Test":"A"}
{"Action":"run","Test":"B"}
{"Action":"run","Test":"D"}
{"Action":"fail","Test":"D"}
`
	var w strings.Builder
	same, all, err := compare(&w, lines(ours), lines(theirs))
	want := "B: mqx pass, Apache fail\nC: mqx skip, Apache did not run\nD: mqx fail, Apache fail\n1 of 4 tests and subtests have the same outcome\n"
	if same != 1 || all != 4 || err != nil || w.String() != want {
		t.Errorf("%d of %d, %v, %q", same, all, err, w.String())
	}
	for _, bad := range []string{"", "no test files"} {
		if _, _, err := compare(&w, lines(bad), lines(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
