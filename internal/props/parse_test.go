package props

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	tests := []struct {
		name, in string
		want     []Entry
	}{
		{"plain", "a=1\nb = 2\n", []Entry{{"a", "1", 1}, {"b", "2", 2}}},
		{"separators", "a:1\nb 2\nc\t=\t3\nd   :   4\ne = = 5\nf : : 6\n", []Entry{
			{"a", "1", 1}, {"b", "2", 2}, {"c", "3", 3}, {"d", "4", 4}, {"e", "= 5", 5}, {"f", ": 6", 6},
		}},
		{"comments and blank lines", "# c\n! d\n\n  # e\n \t \na=1\n", []Entry{{"a", "1", 6}}},
		{"no value", "a\nb=\nc = \n", []Entry{{"a", "", 1}, {"b", "", 2}, {"c", "", 3}}},
		{"continuation", "a=1, \\\n    2, \\\n    3\nb=4\n", []Entry{{"a", "1, 2, 3", 1}, {"b", "4", 4}}},
		{"even backslashes do not continue", "a=x\\\\\nb=2\n", []Entry{{"a", `x\`, 1}, {"b", "2", 2}}},
		{"odd backslashes do", "a=x\\\\\\\ny\nb=2\n", []Entry{{"a", `x\y`, 1}, {"b", "2", 3}}},
		{"a comment is not continued", "# c \\\na=1\n", []Entry{{"a", "1", 2}}},
		{"escapes", `a=\t\n\r\f\q\\` + "\n" + `b\ c=1` + "\n" + `d\=e\:f=2` + "\n", []Entry{
			{"a", "\t\n\r\fq\\", 1}, {"b c", "1", 2}, {"d=e:f", "2", 3},
		}},
		{"unicode", `a=\u00e4\u4e2d\uD83D\uDE00` + "\n", []Entry{{"a", "ä中😀", 1}}},
		{"ISO-8859-1", "a=\xe4\xf6\n", []Entry{{"a", "äö", 1}}},
		{"line ends", "a=1\r\nb=2\rc=3", []Entry{{"a", "1", 1}, {"b", "2", 2}, {"c", "3", 3}}},
		{"the last of several counts", "a=1\nb=2\na=3\n", []Entry{{"b", "2", 2}, {"a", "3", 3}}},
		{"a comment does not follow a value", "a=1 # one\n", []Entry{{"a", "1 # one", 1}}},
		{"blanks at the end stay", "a=1  \n", []Entry{{"a", "1  ", 1}}},
		{"backslash at the end", `a=1\`, []Entry{{"a", "1", 1}}},
		{"empty", "", nil},
		{"tls and rocketmq keys", "namesrvAddr=10.0.0.1:9876;10.0.0.2:9876\n", []Entry{{"namesrvAddr", "10.0.0.1:9876;10.0.0.2:9876", 1}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := Parse("f", []byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, f.Entries()); d != "" {
				t.Error(d)
			}
			if got := string(f.Bytes()); got != tt.in {
				t.Errorf("the text changed by reading: %q", got)
			}
		})
	}
}

func TestParseMalformed(t *testing.T) {
	for _, in := range []string{`a=1` + "\n" + `b=\u12`, "x=y\n" + `b=\uZZZZ` + "\n"} {
		_, err := Parse("broker.conf", []byte(in))
		var se *SyntaxError
		if !errors.As(err, &se) || se.Line != 2 || !strings.HasPrefix(err.Error(), "broker.conf:2: ") {
			t.Errorf("%q: %v, want an error in line 2", in, err)
		}
	}
}

func TestOverridden(t *testing.T) {
	f, err := Parse("f", []byte("a=1\na=2\nb=3\na=4\n"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]Entry{{"a", "1", 1}, {"a", "2", 2}}, f.Overridden()); d != "" {
		t.Error(d)
	}
	if e, ok := f.Get("a"); !ok || e.Value != "4" || e.Line != 4 {
		t.Errorf("Get: %+v", e)
	}
}

// N116: changing one key leaves all other lines as they are.
func TestSet(t *testing.T) {
	tests := []struct{ name, in, key, value, want string }{
		{"in place", "# c\na = 1\nb=2 \n", "a", "9", "# c\na = 9\nb=2 \n"},
		{"other separators", "a : 1\nb\t2\n", "b", "9", "a : 1\nb\t9\n"},
		{"appended", "a=1\n", "b", "2", "a=1\nb=2\n"},
		{"appended without a line end", "a=1", "b", "2", "a=1\nb=2\n"},
		{"line ends are kept", "a=1\r\nb=2\r\n", "a", "9", "a=9\r\nb=2\r\n"},
		{"appended with the file's line ends", "a=1\r\n", "b", "2", "a=1\r\nb=2\r\n"},
		{"continuation", "a=1,\\\n  2\nb=3\n", "a", "9", "a=9\nb=3\n"},
		{"the line that counts", "a=1\na=2\n", "a", "9", "a=1\na=9\n"},
		{"no value", "a\nb=\n", "a", "9", "a=9\nb=\n"},
		{"escapes", "a=1\n", "a", " x\ty\\ä", `a=\ x\ty\\\u00E4` + "\n"},
		{"same value", "a = 1 \\\n 2\n", "a", "1 2", "a = 1 \\\n 2\n"},
		{"indented", "   a=1\n", "a", "2", "   a=2\n"},
		{"empty file", "", "a", "1", "a=1\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := Parse("f", []byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			f.Set(tt.key, tt.value)
			if got := string(f.Bytes()); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			again, err := Parse("f", f.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			if e, _ := again.Get(tt.key); e.Value != tt.value {
				t.Errorf("read back %q, want %q", e.Value, tt.value)
			}
		})
	}
}

// Whatever is set is read back, and the other keys are not touched.
func TestSetRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		keys := rapid.SliceOfNDistinct(rapid.StringN(1, 8, 20), 1, 5, rapid.ID).Draw(rt, "keys")
		f, err := Parse("f", []byte("# head\nfirst = 1\n"))
		if err != nil {
			rt.Fatal(err)
		}
		want := map[string]string{"first": "1"}
		for _, k := range keys {
			v := rapid.String().Draw(rt, "value")
			f.Set(k, v)
			want[k] = v
		}
		again, err := Parse("f", f.Bytes())
		if err != nil {
			rt.Fatal(err)
		}
		got := map[string]string{}
		for _, e := range again.Entries() {
			got[e.Key] = e.Value
		}
		if d := cmp.Diff(want, got); d != "" {
			rt.Fatalf("%s\nin %q", d, f.Bytes())
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("a=1\\\n  2\n#c\nb : \\u00e4\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse("f", data)
		if err != nil {
			return
		}
		if string(p.Bytes()) != string(data) {
			t.Fatalf("the text changed by reading: %q", p.Bytes())
		}
		p.Set("key", "value")
		again, err := Parse("f", p.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if e, _ := again.Get("key"); e.Value != "value" {
			t.Fatalf("read back %q from %q", e.Value, p.Bytes())
		}
	})
}
