package message_test

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mqx/message"
)

// parseLikeJava is the reader of Apache's MessageDecoder in its own steps, as a model to test against.
func parseLikeJava(s string) map[string]string {
	m := map[string]string{}
	for index := 0; index < len(s); {
		end := strings.IndexByte(s[index:], 0x02)
		if end < 0 {
			end = len(s)
		} else {
			end += index
		}
		if end-index >= 3 {
			sep := strings.IndexByte(s[index:], 0x01) + index
			if sep > index && sep < end-1 {
				m[s[index:sep]] = s[sep+1 : end]
			}
		}
		index = end + 1
	}
	return m
}

var propertyTexts = []struct {
	name string
	raw  string
	want map[string]string
}{
	{"nothing", "", map[string]string{}},
	{"one", "k\x01v\x02", map[string]string{"k": "v"}},
	{"no trailing separator", "k\x01v\x02l\x01w", map[string]string{"k": "v", "l": "w"}},
	{"empty value vanishes", "k\x01\x02l\x01w\x02", map[string]string{"l": "w"}},
	{"empty value at the end", "l\x01w\x02k\x01", map[string]string{"l": "w"}},
	{"empty name vanishes", "\x01v\x02l\x01w\x02", map[string]string{"l": "w"}},
	{"no name separator", "kv\x02l\x01w\x02", map[string]string{"l": "w"}},
	{"last of duplicates wins", "k\x01v\x02k\x01w\x02", map[string]string{"k": "w"}},
	{"an empty duplicate does not count", "k\x01v\x02k\x01\x02", map[string]string{"k": "v"}},
	{"separator in the value stays", "k\x01v\x01x\x02", map[string]string{"k": "v\x01x"}},
	{"glued on without a separator", "k\x01vl\x01w\x02", map[string]string{"k": "vl\x01w"}},
	{"only separators", "\x02\x01\x02\x02\x01", map[string]string{}},
	{"not UTF-8", "k\x01\xff\xfe\x02", map[string]string{"k": "\xff\xfe"}},
	{"name that ends another name", "xk\x01a\x02k\x01b\x02", map[string]string{"xk": "a", "k": "b"}},
	{"name as a value", "a\x01k\x02k\x01b\x02", map[string]string{"a": "k", "k": "b"}},
	{"name repeated in itself", "kk\x01a\x02kkk\x01b\x02", map[string]string{"kk": "a", "kkk": "b"}},
}

func TestParseProperties(t *testing.T) {
	for _, tt := range propertyTexts {
		t.Run(tt.name, func(t *testing.T) {
			raw := []byte(tt.raw)
			if d := cmp.Diff(tt.want, message.ParseProperties(raw)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.want, parseLikeJava(tt.raw)); d != "" {
				t.Errorf("model (-want +got):\n%s", d)
			}
			for _, name := range []string{"k", "l", "xk", "a", "kk", "kkk", "", "k\x01v", "v\x01x"} {
				want, wantOK := tt.want[name]
				got, ok := message.Property(raw, name)
				if string(got) != want || ok != wantOK {
					t.Errorf("%q is %q, %v, want %q, %v", name, got, ok, want, wantOK)
				}
			}
		})
	}
}

// smallText draws text of few characters, so that names collide and separators are frequent.
var smallText = rapid.StringOfN(rapid.RuneFrom([]rune("ab\x01\x02é")), 0, 24, -1)

func TestPropertiesAgreeWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := smallText.Draw(t, "raw")
		want := parseLikeJava(raw)
		if d := cmp.Diff(want, message.ParseProperties([]byte(raw))); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
		name := smallText.Draw(t, "name")
		for name := range maps.Keys(withKey(want, name)) {
			got, ok := message.Property([]byte(raw), name)
			if w, wantOK := want[name]; string(got) != w || ok != wantOK {
				t.Fatalf("%q is %q, %v, want %q, %v", name, got, ok, w, wantOK)
			}
		}
		checkChanges(t, raw, name, want)
	})
}

func withKey(m map[string]string, name string) map[string]string {
	c := maps.Clone(m)
	c[name] = ""
	return c
}

// checkChanges sets and deletes a property in any text; all others stay.
func checkChanges(t *rapid.T, raw, name string, before map[string]string) {
	want := maps.Clone(before)
	delete(want, name)
	in := []byte(raw)
	if d := cmp.Diff(want, message.ParseProperties(message.DeleteProperty(in, name))); d != "" {
		t.Fatalf("delete %q (-want +got):\n%s", name, d)
	}
	if message.ValidatePropertyText(name, "new") == nil {
		want[name] = "new"
		if d := cmp.Diff(want, message.ParseProperties(message.SetProperty(in, name, "new"))); d != "" {
			t.Fatalf("set %q (-want +got):\n%s", name, d)
		}
	}
	if string(in) != raw {
		t.Fatal("the input was changed")
	}
}

func TestFormatProperties(t *testing.T) {
	m := map[string]string{"b": "2", "a": "1", "empty": "", "": "noname", "属性": "值"}
	if got, want := string(message.FormatProperties(m)), "a\x011\x02b\x012\x02属性\x01值\x02"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[^\x01\x02]+`)
		m := rapid.MapOf(text, text).Draw(t, "m")
		if d := cmp.Diff(m, message.ParseProperties(message.FormatProperties(m))); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
	})
}

func TestAppendPropertyInsertsSeparator(t *testing.T) {
	for _, tt := range []struct{ dst, want string }{
		{"", "n\x01v\x02"},
		{"k\x01w\x02", "k\x01w\x02n\x01v\x02"},
		{"k\x01w", "k\x01w\x02n\x01v\x02"},
	} {
		if got := string(message.AppendProperty([]byte(tt.dst), "n", "v")); got != tt.want {
			t.Errorf("after %q: %q, want %q", tt.dst, got, tt.want)
		}
	}
}

func TestDeletePropertyKeepsBytes(t *testing.T) {
	for _, tt := range []struct{ raw, name, want string }{
		{"k\x01v\x02l\x01w", "k", "l\x01w"},
		{"k\x01v\x02l\x01w", "l", "k\x01v\x02"},
		{"k\x01\x02l\x01w\x02", "k", "l\x01w\x02"},
		{"k\x01v\x02k\x01w\x02", "k", ""},
		{"kk\x01v\x02", "k", "kk\x01v\x02"},
		{"k\x02k\x01v", "k", "k\x02"},
		{"k\x01v", "v", "k\x01v"},
	} {
		if got := string(message.DeleteProperty([]byte(tt.raw), tt.name)); got != tt.want {
			t.Errorf("%q without %q is %q, want %q", tt.raw, tt.name, got, tt.want)
		}
	}
	raw := []byte("k\x01v\x02")
	if got := message.DeleteProperty(raw, "x"); &got[0] != &raw[0] {
		t.Error("text without the property is copied")
	}
}

func TestEachPropertyStops(t *testing.T) {
	var seen [][]byte
	message.EachProperty([]byte("a\x011\x02b\x012\x02a\x013\x02"), func(name, value []byte) bool {
		seen = append(seen, append(bytes.Clone(name), value...))
		return len(seen) < 2
	})
	if d := cmp.Diff([][]byte{[]byte("a1"), []byte("b2")}, seen); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestValidatePropertyText(t *testing.T) {
	for _, tt := range []struct{ name, value, want string }{
		{"color", "red", ""},
		{"属性", "值", ""},
		{"", "v", `property "": name is empty, which no reader would see`},
		{"k", "", `property "k": value is empty, which no reader would see`},
		{"k\x01", "v", `property "k\x01": name has byte 0x01 at position 1, which separates properties`},
		{"k", "ab\x02c", `property "k": value has byte 0x02 at position 2, which separates properties`},
	} {
		err := message.ValidatePropertyText(tt.name, tt.value)
		got := ""
		if err != nil {
			got = err.Error()
			var e *message.PropertyTextError
			if !errors.As(err, &e) {
				t.Errorf("%q: error is a %T", tt.name, err)
			}
		}
		if got != tt.want {
			t.Errorf("%q=%q: %q, want %q", tt.name, tt.value, got, tt.want)
		}
	}
}
