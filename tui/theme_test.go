package tui

import (
	"bytes"
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
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

// Colours change nothing else: every page at every size, in every theme and depth of colour,
// with its silent broker and its alarms, is the text that it is without any.
func TestThemesKeepTheText(t *testing.T) {
	profiles := []colorprofile.Profile{colorprofile.TrueColor, colorprofile.ANSI, colorprofile.Ascii}
	for _, size := range sizes {
		b := newBench(t, 0, size[0], size[1])
		b.refresh(20)
		for _, keys := range []string{"1", "2", "3", "4", "4 g space j space", "esc 4 g enter", "g enter", "5", "4 g a", "r", "esc ?", "x : t", "esc p", "p / x enter"} {
			b.m.screen.theme = mono()
			b.keys(keys)
			plain := b.m.Screen()
			for _, th := range themes {
				b.m.screen.theme = th
				coloured := b.m.Screen()
				if got := ansi.Strip(coloured); trimLines(got) != plain {
					t.Errorf("%dx%d %q in %s:\n%s", size[0], size[1], keys, th.Name, cmp.Diff(plain, got))
				}
				for _, p := range profiles {
					var out bytes.Buffer
					w := colorprofile.Writer{Forward: &out, Profile: p}
					if _, err := w.WriteString(coloured); err != nil {
						t.Fatal(err)
					}
					if got := trimLines(ansi.Strip(out.String())); got != plain {
						t.Errorf("%dx%d %q in %s as %s:\n%s", size[0], size[1], keys, th.Name, p, cmp.Diff(plain, got))
					}
					if p != colorprofile.TrueColor && strings.Contains(out.String(), ";2;") {
						t.Errorf("%dx%d %q in %s: colours that a terminal of %s has not", size[0], size[1], keys, th.Name, p)
					}
				}
			}
		}
	}
}

// trimLines is a text without the blanks at the ends of its lines.
func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
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
