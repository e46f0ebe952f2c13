//go:build failpoint

package failpoint

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// The test runs itself as a child that passes a point three times.
func TestPassKillsAtTheNthTime(t *testing.T) {
	const childEnv = "MQX_FAILPOINT_CHILD"
	if os.Getenv(childEnv) != "" {
		for range 3 {
			Pass(LogRoll)
			Pass(Dispatch)
		}
		os.Exit(7)
	}
	for _, c := range []struct {
		spec   string
		killed bool
		code   int
	}{
		{"", false, 7},
		{"log-roll", true, 0},
		{"log-roll:3", true, 0},
		{"log-roll:4", false, 7},
		{"json-shifted", false, 7},
		{"nonsense", false, 2},
		{"log-roll:0", false, 2},
		{"log-roll:x", false, 2},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), childEnv+"=1", Env+"="+c.spec)
		err := cmd.Run()
		ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if ws.Signaled() != c.killed || !c.killed && ws.ExitStatus() != c.code || c.killed && ws.Signal() != syscall.SIGKILL {
			t.Errorf("%s=%q: ended with %v (%v), want killed %v, else exit code %d", Env, c.spec, err, ws, c.killed, c.code)
		}
	}
}
