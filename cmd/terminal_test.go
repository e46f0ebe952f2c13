package cmd

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
)

// onTerminal runs mqx as on a terminal of 80 columns.
func onTerminal(t *testing.T, args ...string) (out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	Execute(t.Context(), append([]string{"mqx"}, args...), Streams{In: strings.NewReader(""), Out: &o, Err: &e, OutTTY: true, ErrTTY: true, Width: 80})
	return o.String(), e.String()
}

// Colour is there on a terminal, and NO_COLOR, TERM=dumb and --color rule it, on
// both streams.
func TestColorIsRuled(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		want bool
	}{
		"terminal":                 {want: true},
		"NO_COLOR":                 {env: map[string]string{"NO_COLOR": "1"}},
		"an empty NO_COLOR":        {env: map[string]string{"NO_COLOR": ""}, want: true},
		"dumb":                     {env: map[string]string{"TERM": "dumb"}},
		"never":                    {args: []string{"--color", "never"}},
		"always, despite NO_COLOR": {env: map[string]string{"NO_COLOR": "1"}, args: []string{"--color=always"}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TERM", "xterm")
			t.Setenv("NO_COLOR", "")
			t.Setenv("XDG_CONFIG_HOME", t.TempDir())
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			out, _ := onTerminal(t, append([]string{"version"}, c.args...)...)
			if got := strings.Contains(out, "\x1b["); got != c.want {
				t.Errorf("colour on stdout: %v, want %v: %q", got, c.want, out)
			}
			_, errOut := onTerminal(t, append([]string{"version", "--no-such-flag"}, c.args...)...)
			if got := strings.Contains(errOut, "\x1b["); len(c.args) == 0 && got != c.want { // a flag behind a mistake is not read
				t.Errorf("colour on stderr: %v, want %v: %q", got, c.want, errOut)
			}
			if out := run(t, "version"); strings.Contains(out, "\x1b[") {
				t.Errorf("colour on a pipe: %q", out)
			}
		})
	}
}

// A table on a terminal is no wider than it is, East Asian text counted as two
// columns, and a name is whole.
func TestTableFitsTheTerminal(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("NO_COLOR", "1")
	name := "a-context-with-a-long-name"
	run(t, "context", "add", name, "-n", "a-name-server.example.com:9876;another-name-server.example.com:9876", "--store", "/数据/存储/目录/"+strings.Repeat("长", 20))
	out, _ := onTerminal(t, "context", "ls")
	if !strings.Contains(out, name) || !strings.Contains(out, "…") {
		t.Errorf("got:\n%s", out)
	}
	for line := range strings.Lines(out) {
		n := 0
		for _, r := range strings.TrimRight(line, "\n") {
			n++
			if unicode.Is(unicode.Han, r) {
				n++
			}
		}
		if n > 80 {
			t.Errorf("a line of %d columns: %q", n, line)
		}
	}
}
