package filter

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"unicode"

	"mqx/message"
)

// judged is what Apache's own evaluator says: for each expression a letter for each set of properties (t, f, n for null, x
// for a failure), or nothing when it does not compile. e2e's TestFilterJudge writes the file.
type judged struct {
	sets []map[string]string
	list [][2]string
}

func readJudged(t testing.TB) judged {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "apache.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var j judged
	in := bufio.NewScanner(f)
	in.Scan()
	if err := json.Unmarshal(in.Bytes(), &j.sets); err != nil {
		t.Fatal(err)
	}
	for in.Scan() {
		var line [2]string
		if err := json.Unmarshal(in.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		j.list = append(j.list, line)
	}
	if err := in.Err(); err != nil || len(j.list) < 1000 {
		t.Fatal(len(j.list), err)
	}
	return j
}

func TestAsApache(t *testing.T) {
	j := readJudged(t)
	letters := map[truth]byte{yes: 't', no: 'f', unknown: 'n', failed: 'x'}
	for _, line := range j.list {
		text, want := line[0], line[1]
		e, err := Compile(text)
		if err != nil {
			if want != "" {
				t.Errorf("%q: %v", text, err)
			}
			continue
		}
		if want == "" {
			t.Errorf("%q is no expression for Apache", text)
			continue
		}
		for i, set := range j.sets {
			raw := message.FormatProperties(set)
			if got := letters[e.root.truth(source{raw: raw})]; got != want[i] {
				t.Errorf("%q with %q: got %c, Apache says %c", text, raw, got, want[i])
			}
			if e.MatchMap(set) != (want[i] == 't') {
				t.Errorf("%q with %v: MatchMap differs", text, set)
			}
		}
	}
}

// Digits of all scripts within 16 bits have the value that their place in a run of ten says.
func TestDecimalDigits(t *testing.T) {
	for _, r := range unicode.Nd.R16 {
		if r.Stride != 1 || (r.Hi-r.Lo+1)%10 != 0 {
			t.Fatalf("%U-%U is no run of tens", r.Lo, r.Hi)
		}
		for c := rune(r.Lo); c <= rune(r.Hi); c++ {
			want := int(c-rune(r.Lo)) % 10
			if got, _ := decimalDigit([]byte(string(c))); got != want {
				t.Errorf("%U: got %d, want %d", c, got, want)
			}
		}
	}
}
