package tui

import (
	"bytes"
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"
)

// Every theme in full colours, in sixteen and in none, as the terminal gets it.
func TestThemes(t *testing.T) {
	for _, th := range ThemeNames() {
		b := newBench(t, 0, 80, 24)
		b.m.o.Colour = true
		b.refresh(20)
		b.keys("4 : t h e m e space " + strings.Join(strings.Split(th, ""), " ") + " enter")
		for name, p := range map[string]colorprofile.Profile{"true": colorprofile.TrueColor, "16": colorprofile.ANSI, "none": colorprofile.Ascii} {
			var out bytes.Buffer
			w := colorprofile.Writer{Forward: &out, Profile: p}
			if _, err := w.WriteString(b.m.Screen()); err != nil {
				t.Fatal(err)
			}
			b.compare("theme-"+th+"-"+name, strings.ReplaceAll(out.String(), "\x1b", "␛")+"\n")
		}
	}
	b := newBench(t, 0, 80, 24)
	b.refresh(2)
	b.keys("4 t")
	if s := b.m.Screen(); strings.Contains(s, "\x1b") || !strings.Contains(s, "no colours") {
		t.Errorf("without colours: %q", s)
	}
}

// What a message brings does not steer the terminal.
func TestPrintable(t *testing.T) {
	if got := printable("a\x1b[2Jb\tc\r客"); got != "a·[2Jb c·客" {
		t.Errorf("%q", got)
	}
	if got := bodyLines([]byte{0xff, 0xfe, 0x1b}, 80); len(got) != 1 || !strings.HasPrefix(got[0], "00000000  ff fe 1b") {
		t.Errorf("%q", got)
	}
	if got := bodyLines([]byte("客户张三"), 5); len(got) != 2 || got[0] != "客户" {
		t.Errorf("%q", got)
	}
}
