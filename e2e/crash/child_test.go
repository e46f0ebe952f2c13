package crash

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// child is a broker process.
type child struct {
	cmd   *exec.Cmd
	log   string
	ready chan struct{} // closed when it serves
	done  chan struct{} // closed when it is gone
	began time.Time
	took  time.Duration // from start to ready
	sock  *net.UnixConn
}

// children are all processes of this run: main ends those that a test left.
var children struct {
	sync.Mutex
	all []*child
}

// startChild runs `mqx broker start` with the configuration in dir. It tells when it serves by the protocol of systemd.
func startChild(t *testing.T, dir, conf, point string) *child {
	t.Helper()
	c := &child{log: filepath.Join(dir, "broker.log"), ready: make(chan struct{}), done: make(chan struct{}), began: time.Now()}
	sock := filepath.Join(dir, "notify")
	_ = os.Remove(sock)
	var err error
	if c.sock, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: sock, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(log, "--- start, point %q\n", point)
	c.cmd = exec.Command(mqxBinary, "broker", "start", "-c", conf)
	c.cmd.Stdout, c.cmd.Stderr = log, log
	c.cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+sock, "MQX_FAILPOINT="+point)
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = log.Close()
	children.Lock()
	children.all = append(children.all, c)
	children.Unlock()
	go c.wait()
	go c.listen()
	return c
}

func (c *child) wait() {
	_ = c.cmd.Wait()
	_ = c.sock.Close()
	close(c.done)
}

// listen waits for READY=1.
func (c *child) listen() {
	b := make([]byte, 4096)
	for {
		n, err := c.sock.Read(b)
		if err != nil {
			return
		}
		if bytes.Contains(b[:n], []byte("READY=1")) {
			c.took = time.Since(c.began)
			close(c.ready)
			return
		}
	}
}

func (c *child) gone() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// kill ends the process with SIGKILL; only this one is meant.
func (c *child) kill() {
	if !c.gone() {
		_ = c.cmd.Process.Signal(syscall.SIGKILL)
	}
	<-c.done
}

// killed reports whether the process, which is gone, ended by SIGKILL: its own, at its point, or that of kill.
func (c *child) killed() bool {
	ws, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL
}

// stop asks for an orderly end and reports how the process ended.
func (c *child) stop(limit time.Duration) error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) { // it passed its point
		return err
	}
	select {
	case <-c.done:
	case <-time.After(limit):
		c.kill()
		return fmt.Errorf("the broker did not end within %s of SIGTERM", limit)
	}
	if !c.cmd.ProcessState.Success() {
		return fmt.Errorf("the broker ended with %v", c.cmd.ProcessState)
	}
	return nil
}

func killChildren() {
	children.Lock()
	defer children.Unlock()
	for _, c := range children.all {
		c.kill()
	}
}

// tail is the end of a file.
func tail(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// freePort returns a port whose neighbours are free as well: a broker takes it and the one two below. Ports are below
// the range that the system gives to outgoing connections.
func freePort(t *testing.T) int {
	t.Helper()
	ports.Lock()
	defer ports.Unlock()
	if ports.next == 0 {
		ports.next = 12000 + os.Getpid()%1500*5
	}
	for range 3000 {
		if ports.next += 5; ports.next > 20500 {
			ports.next = 12000
		}
		if portFree(ports.next) && portFree(ports.next-2) {
			return ports.next
		}
	}
	t.Fatal("no free ports")
	return 0
}

var ports struct {
	sync.Mutex
	next int
}

func portFree(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	return err == nil && l.Close() == nil
}
