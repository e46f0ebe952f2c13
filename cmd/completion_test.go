package cmd

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Completion answers within half a second, whoever hangs: a name server that takes
// connections and says nothing, or a command that does not give its secret. Without
// its bound each of them takes 3 s or more; a busy machine may need longer than half a
// second all the same.
func TestCompletionIsQuick(t *testing.T) {
	var lc net.ListenConfig
	silent, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	const limit = 2 * time.Second
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	for name, args := range map[string][]string{
		"topics":         {"consume", "-n", silent.Addr().String(), ""},
		"groups":         {"admin", "group", "get", "-n", silent.Addr().String(), ""},
		"brokers":        {"consume", "T", "-n", silent.Addr().String(), "-b", ""},
		"a slow command": {"consume", "-n", silent.Addr().String(), "--access-key", "text:a", "--secret-key", "cmd:sleep 5; echo x", ""},
		"two servers":    {"consume", "-n", silent.Addr().String() + ";127.0.0.1:1", ""},
	} {
		best := time.Hour
		for range 3 { // the machine may be busy
			var out, errOut bytes.Buffer
			began := time.Now()
			code := Execute(t.Context(), append([]string{"mqx", "__complete"}, args...), Streams{In: strings.NewReader(""), Out: &out, Err: &errOut})
			best = min(best, time.Since(began))
			if code != ExitOK || !strings.HasPrefix(out.String(), ":") {
				t.Errorf("%s: exit code %d, %q %q", name, code, out.String(), errOut.String())
			}
			if best < limit {
				break
			}
		}
		if best >= limit {
			t.Errorf("%s: the quickest of three answers took %v", name, best)
		}
	}
}

// Every command that does something shows how, and every flag and argument that takes
// the name of a topic, group, broker or cluster completes it.
func TestNamesAreCompleted(t *testing.T) {
	a := &app{env: func(string) string { return "" }}
	root := newRootCmd(a)
	completeNames(a, root)
	names := 0
	eachCommand(root, func(c *cobra.Command) {
		if isGroup(c) || c.Hidden || !strings.HasPrefix(c.CommandPath(), "mqx admin ") && !strings.HasPrefix(c.CommandPath(), "mqx wait ") {
			return
		}
		if !c.HasExample() {
			t.Errorf("%q has no example", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			if !strings.Contains(line, "mqx ") {
				t.Errorf("%q: an example without mqx: %q", c.CommandPath(), line)
			}
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if nameOfFlag(f) == noName {
				return
			}
			names++
			if _, ok := c.GetFlagCompletionFunc(f.Name); !ok {
				t.Errorf("%q: --%s is not completed", c.CommandPath(), f.Name)
			}
		})
		if len(nameOfArgs(c)) > 0 && c.ValidArgsFunction == nil {
			t.Errorf("%q: its arguments are not completed", c.CommandPath())
		}
	})
	if names < 10 {
		t.Fatalf("only %d flags looked at", names)
	}
}
