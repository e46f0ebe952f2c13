package e2e

import (
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// screen is mqx top on a terminal that tmux holds, with a server of its own.
type screen struct {
	t      *testing.T
	socket string
}

// tmux runs a command of it.
func (s *screen) tmux(args ...string) string {
	s.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-f", "/dev/null", "-S", s.socket}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (s *screen) text() string { return s.tmux("capture-pane", "-p") }
func (s *screen) keys(keys ...string) {
	s.tmux(append([]string{"send-keys"}, keys...)...)
}

// openTop starts it. Where there is no tmux, the test is skipped.
func openTop(t *testing.T, namesrv string) *screen {
	t.Helper()
	dir := t.TempDir() // t.TempDir is short enough for a socket
	s := &screen{t, filepath.Join(dir, "t")}
	command := fmt.Sprintf("env TERM=tmux-256color XDG_CONFIG_HOME=%s XDG_STATE_HOME=%s %s top -n %s --interval 1s", dir, dir, mqxBinary, namesrv)
	s.tmux("new-session", "-d", "-x", "140", "-y", "40", command)
	t.Cleanup(func() {
		if t.Failed() {
			if out, err := exec.Command("tmux", "-S", s.socket, "capture-pane", "-p").Output(); err == nil {
				t.Logf("the screen:\n%s", out)
			}
		}
		_ = exec.Command("tmux", "-S", s.socket, "kill-server").Run()
	})
	return s
}

// row are the cells of a row by the titles of their columns, nil where there is none.
func (s *screen) row(name string) map[string]string {
	lines := strings.Split(s.text(), "\n")
	at := slices.IndexFunc(lines, func(l string) bool {
		return strings.HasPrefix(l, "  GROUP ") || strings.HasPrefix(l, "  TOPIC ") || strings.HasPrefix(l, "  BROKER ")
	})
	if at < 0 {
		return nil
	}
	titles := regexp.MustCompile(` {2,}`).Split(strings.TrimSpace(lines[at]), -1)
	for _, l := range lines[at+1:] {
		cells := regexp.MustCompile(` {2,}`).Split(strings.TrimSpace(strings.TrimPrefix(l, ">")), -1)
		if cells[0] != name {
			continue
		}
		out := map[string]string{}
		for i, c := range cells[:min(len(cells), len(titles))] {
			out[titles[i]] = c
		}
		return out
	}
	return nil
}

func (s *screen) number(name, title string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.ReplaceAll(s.row(name)[title], ",", ""), 64)
	return v, err == nil
}

// until waits until a figure is what it should be.
func (s *screen) until(name, title string, want float64) {
	s.t.Helper()
	waitFor(s.t, 60*time.Second, fmt.Sprintf("%s of %s is %v", title, name, want), func() (bool, string) {
		v, ok := s.number(name, title)
		return ok && v == want, fmt.Sprint(s.row(name))
	})
}

// stays looks several times that a figure does not move.
func (s *screen) stays(name, title string, want float64) {
	s.t.Helper()
	for range 5 {
		if v, ok := s.number(name, title); !ok || v != want {
			s.t.Fatalf("%s of %s is %v, not %v: %v", title, name, v, want, s.row(name))
		}
		time.Sleep(300 * time.Millisecond) // between two looks at a screen that is drawn all the while
	}
}

// load writes lines to a command at a rate by the clock, until stop is called.
func load(t *testing.T, perSecond int, args ...string) (stop func()) {
	t.Helper()
	cmd := exec.Command(mqxBinary, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		began, sent := time.Now(), 0
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case now := <-tick.C:
				for due := int(now.Sub(began).Seconds() * float64(perSecond)); sent < due; sent++ {
					if _, err := fmt.Fprintf(in, "message %d\n", sent); err != nil {
						return
					}
				}
			}
		}
	}()
	once := false
	stop = func() {
		if once {
			return
		}
		once = true
		close(ended)
		<-done
		_ = in.Close()
		_ = cmd.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// produceLines sends n messages.
func produceLines(t *testing.T, namesrv, topic string, n int) {
	t.Helper()
	cmd := exec.Command(mqxBinary, "produce", topic, "-n", namesrv, "-o", "name")
	cmd.Stdin = io.LimitReader(strings.NewReader(strings.Repeat("x\n", n)), int64(2*n))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// median of what a figure shows in n looks.
func (s *screen) median(name, title string, n int, every time.Duration) float64 {
	var seen []float64
	for range n {
		if v, ok := s.number(name, title); ok {
			seen = append(seen, v)
		}
		time.Sleep(every)
	}
	if len(seen) == 0 {
		s.t.Fatalf("%s of %s is not shown", title, name)
	}
	slices.Sort(seen)
	return seen[len(seen)/2]
}

// topOn looks with mqx top at a cluster whose figures are known.
func topOn(t *testing.T, c cluster, broker *process) {
	const topic, group = "TOP", "top-group"
	produceLines(t, c.namesrv, topic, 200)
	mqx(t, "consume", topic, "-n", c.namesrv, "-g", group, "--commit", "--count", "200", "-o", "name", "--timeout", "60s")
	s := openTop(t, c.namesrv)
	waitFor(t, 60*time.Second, "the first screen", func() (bool, string) { x := s.text(); return strings.Contains(x, "[1 overview]"), x })
	s.keys("4")
	s.until(group, "LAG", 0)
	s.stays(group, "LAG", 0)
	produceLines(t, c.namesrv, topic, 50)
	s.until(group, "LAG", 50)
	s.stays(group, "LAG", 50)

	const rate = 200
	stop := load(t, rate, "produce", topic, "-n", c.namesrv, "-o", "name")
	s.keys("3")
	waitFor(t, 60*time.Second, "the load", func() (bool, string) {
		v, ok := s.number(topic, "IN/s")
		return ok && v > rate/2, fmt.Sprint(s.row(topic))
	})
	if got := s.median(topic, "IN/s", 9, 400*time.Millisecond); math.Abs(got-rate) > rate*0.05 {
		t.Errorf("%v messages a second, the load is %d", got, rate)
	}
	s.keys("2")
	waitFor(t, 30*time.Second, "the broker", func() (bool, string) { return s.row(brokerName) != nil, s.text() })
	if got := s.median(brokerName, "IN/s", 7, 400*time.Millisecond); math.Abs(got-rate) > rate*0.05 {
		t.Errorf("the broker takes %v messages a second, the load is %d", got, rate)
	}
	stop()
	s.act(group)
	s.dies(broker)
	s.keys("q")
}

// act resets the offsets of the group with what the menu offers: the question of mqx
// admin is answered on the same terminal.
func (s *screen) act(group string) {
	s.t.Helper()
	s.keys("4")
	waitFor(s.t, 30*time.Second, "the group", func() (bool, string) { return s.row(group) != nil, s.text() })
	s.keys("a")
	s.keys("r")
	s.sees("mqx admin offset reset -g " + group + " --all --to end -n")
	s.keys("Enter")
	s.sees("[y/N]")
	s.keys("y", "Enter")
	s.sees("Enter goes back to mqx top")
	s.keys("Enter")
	s.until(group, "LAG", 0)
}

func (s *screen) sees(part string) {
	s.t.Helper()
	waitFor(s.t, 60*time.Second, fmt.Sprintf("%q on the screen", part), func() (bool, string) {
		x := s.text()
		return strings.Contains(strings.ReplaceAll(x, "\n", ""), part), x
	})
}

// dies stops the broker: its rows stay and say how old they are, keys go on, and they are
// fresh again when it answers.
func (s *screen) dies(broker *process) {
	s.t.Helper()
	if err := broker.signal(syscall.SIGSTOP); err != nil {
		s.t.Fatal(err)
	}
	s.keys("2")
	s.sees("silent for ")
	s.keys("4")
	s.sees(" old ")
	if err := broker.signal(syscall.SIGCONT); err != nil {
		s.t.Fatal(err)
	}
	s.keys("2")
	waitFor(s.t, 60*time.Second, "the broker is up again", func() (bool, string) { return s.row(brokerName)["STATE"] == "up", s.text() })
}

func needTmux(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed")
	}
}

// The real program on a real terminal: lag is exact at rest, rates are those of the
// load, actions ask as mqx admin does, and a broker that stops is told.
func TestTopOnATerminal(t *testing.T) {
	t.Parallel()
	needTmux(t)
	ns, br := freePort(t), freePort(t)
	mqxNameserver(t, ns).cleanup(t)
	b := mqxBroker(t, brokerSpec{port: br, namesrv: loopback(ns), store: filepath.Join(testDir(t, "store"), "store")})
	b.cleanup(t)
	waitRegistered(t, loopback(ns))
	topOn(t, cluster{loopback(ns), loopback(br)}, b)
}

// The same at Apache's servers.
func TestTopOnApache(t *testing.T) {
	if os.Getenv("MQX_E2E_ALL") == "" {
		t.Skip("MQX_E2E_ALL=1 runs it")
	}
	needTmux(t)
	ns, br := freePort(t), freePort(t)
	apacheNameserver(t, ns).cleanup(t)
	b := apacheBroker(t, brokerSpec{port: br, namesrv: loopback(ns), store: filepath.Join(testDir(t, "store"), "store")})
	b.cleanup(t)
	waitRegistered(t, loopback(ns))
	topOn(t, cluster{loopback(ns), loopback(br)}, b)
}
