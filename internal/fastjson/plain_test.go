package fastjson

import (
	"strings"
	"testing"
)

// A byte is escaped, or not, wherever it stands in the text.
func TestAppendStringAnywhere(t *testing.T) {
	for c := range 0x80 {
		alone := string(AppendString(nil, string(rune(c))))
		alone = alone[1 : len(alone)-1]
		for n := range 20 {
			for at := range n + 1 {
				text := strings.Repeat("a", at) + string(rune(c)) + strings.Repeat("z", n-at)
				want := `"` + strings.Repeat("a", at) + alone + strings.Repeat("z", n-at) + `"`
				if got := string(AppendString(nil, text)); got != want {
					t.Fatalf("%q: %s, want %s", text, got, want)
				}
				if got := string(AppendString(nil, []byte(text+"é"))); got != want[:len(want)-1]+`é"` {
					t.Fatalf("%q and é: %s", text, got)
				}
			}
		}
	}
}
