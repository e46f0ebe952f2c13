package e2e

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a child with its own process group, so that a test can stop, pause
// or kill it and whatever it started.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string

	once sync.Once
	done chan struct{}
	err  error
}

// children are all processes of this run: main ends those that a test left.
var children struct {
	sync.Mutex
	all []*process
}

// start runs a command; what it prints goes to a file that is shown when the
// test fails. env is added to the environment.
func start(t *testing.T, name, dir string, env []string, command string, args ...string) *process {
	t.Helper()
	p := &process{name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(command, args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("cannot start %s: %v", name, err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	p.register()
	return p
}

func (p *process) register() {
	children.Lock()
	children.all = append(children.all, p)
	children.Unlock()
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
}

// cleanup ends the process with the test and shows its log when that failed.
func (p *process) cleanup(t *testing.T) {
	t.Cleanup(func() {
		p.kill()
		if t.Failed() && p.log != "" {
			t.Logf("--- end of the log of %s:\n%s", p.name, tail(p.log, 40))
		}
	})
}

func (p *process) signal(sig syscall.Signal) error { return syscall.Kill(-p.cmd.Process.Pid, sig) }

// kill ends the process at once, as a crash does.
func (p *process) kill() {
	p.once.Do(func() {
		_ = p.signal(syscall.SIGCONT) // a paused process takes no signal
		_ = p.signal(syscall.SIGKILL)
	})
	<-p.done
}

// stop asks the process to end in order and returns how it ended.
func (p *process) stop(t *testing.T, limit time.Duration) error {
	t.Helper()
	if err := p.signal(syscall.SIGTERM); err != nil {
		t.Fatalf("cannot signal %s: %v", p.name, err)
	}
	select {
	case <-p.done:
		return p.err
	case <-time.After(limit):
		p.kill()
		t.Fatalf("%s did not end within %s of SIGTERM; end of its log:\n%s", p.name, limit, tail(p.log, 40))
		return nil
	}
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func killChildren() {
	children.Lock()
	defer children.Unlock()
	for _, p := range children.all {
		if !p.ended() {
			p.kill()
		}
	}
}

func tail(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(bytes.ToValidUTF8(text, []byte("?"))), "\n"), "\n")
	all = slices.DeleteFunc(all, func(line string) bool { return strings.Contains(line, "|-INFO in") }) // logback about itself
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// waitFor polls until ok says yes; what says what was waited for.
func waitFor(t *testing.T, limit time.Duration, what string, ok func() (bool, string)) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		yes, state := ok()
		if yes {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited %s in vain for %s; last seen: %s", limit, what, state)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// waitPort waits until something listens at addr, or the process ends.
func waitPort(t *testing.T, p *process, addr string) {
	t.Helper()
	waitFor(t, 90*time.Second, p.name+" to listen at "+addr, func() (bool, string) {
		if p.ended() {
			t.Fatalf("%s ended: %v; end of its log:\n%s", p.name, p.err, tail(p.log, 40))
		}
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			return false, err.Error()
		}
		return conn.Close() == nil, ""
	})
}

// ports hands out loopback ports below the range the system takes for outgoing
// connections, so that nobody gets one between the check and the start.
var ports struct {
	sync.Mutex
	next int
}

// freePort returns a port whose neighbours -2 to +2 are free as well: a broker
// takes three of them.
func freePort(t *testing.T) int {
	t.Helper()
	ports.Lock()
	defer ports.Unlock()
	if ports.next == 0 {
		ports.next = 21000 + os.Getpid()%1000*5
	}
	for range 2000 {
		ports.next += 5
		if ports.next > 31000 {
			ports.next = 21000
		}
		free := true
		for p := ports.next - 2; p <= ports.next+2 && free; p++ {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
			if err != nil {
				free = false
				continue
			}
			free = l.Close() == nil
		}
		if free {
			return ports.next
		}
	}
	t.Fatal("no free ports")
	return 0
}
