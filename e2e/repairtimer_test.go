package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mqx/internal/testkit"
	remoteclient "mqx/remoting/client"
	"mqx/store/inspect"
)

// A store whose timer wheel was damaged and reset by repair: Apache's broker and mqx start on it and deliver every timer
// message that was due, once, and none that was recalled.
func TestRepairedTimerDelivers(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]inspect.Target{"Apache": inspect.TargetApache55, "mqx": inspect.TargetMQX} {
		t.Run(name, func(t *testing.T) {
			root := testkit.GoldenStore(t, "delay_timer_running")
			due, cancelled := dueTimers(t, root)
			wheel := filepath.Join(root, "timerwheel")
			f, err := os.OpenFile(wheel, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.WriteAt([]byte(strings.Repeat("damaged wheel...", 5000)), 19200)
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if plan := mqx(t, "store", "repair", root, "--yes"); !strings.Contains(plan, "reset-timer") {
				t.Fatalf("the plan does not reset the timer: %s", plan)
			}
			mqx(t, "store", "verify", root)
			if len(due) < 4 || len(cancelled) == 0 {
				t.Fatalf("%d timer messages are due, %d were recalled", len(due), len(cancelled))
			}
			p, addr, started := startOther(t, jarsOf(t, target), root)
			if !started {
				t.Fatal(tail(p.log, 5))
			}
			c := remoteclient.New(remoteclient.Config{})
			defer func() { _ = c.Close() }()
			var got []string
			waitFor(t, 60*time.Second, "the timer messages that are due", func() (bool, string) {
				got = got[:0]
				for _, queue := range []string{"0", "1"} {
					for _, m := range pullAll(t, c, addr, "TimerTopic", queue) {
						if _, id, _ := strings.Cut(m, " "); !strings.HasPrefix(m, "reaches") {
							got = append(got, id)
						}
					}
				}
				missing := slices.DeleteFunc(slices.Clone(due), func(id string) bool { return slices.Contains(got, id) })
				return len(missing) == 0, "missing " + strings.Join(missing, " ")
			})
			for _, id := range due {
				if n := strings.Count(strings.Join(got, " "), id); n != 1 {
					t.Errorf("message %s was delivered %d times", id, n)
				}
			}
			for _, id := range cancelled {
				if slices.Contains(got, id) {
					t.Errorf("message %s was recalled and delivered", id)
				}
			}
			_ = p.stop(t, stopLimit) // a JVM ends with 143
			mqx(t, "store", "verify", root)
		})
	}
}

// dueTimers are the timer messages of a store whose time has come, and those that were recalled.
func dueTimers(t *testing.T, root string) (due, cancelled []string) {
	t.Helper()
	for line := range strings.Lines(mqx(t, "store", "timer", root, "-o", "template={{.due}} {{.topic}} {{.msgId}} {{.source}} {{.state}}")) {
		x := strings.Fields(line)
		if len(x) != 5 || x[1] != "TimerTopic" || x[3] != "wheel" {
			continue
		}
		at, err := time.Parse(time.RFC3339, x[0])
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case x[4] == "cancelled":
			cancelled = append(cancelled, x[2])
		case x[4] == "waits" && at.Before(time.Now()):
			due = append(due, x[2])
		}
	}
	return due, cancelled
}
