//go:build linux || darwin

package cmd

import (
	"errors"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// runningServer is a server that a script started.
type runningServer struct {
	cmd  *exec.Cmd
	done chan error
	log  string
	once sync.Once
	err  error
}

// servers are the running ones by the absolute path of their log.
var servers sync.Map

// stop ends the server in order and remembers how it ended.
func (s *runningServer) stop() error { return s.end(syscall.SIGTERM) }

func (s *runningServer) end(how os.Signal) error {
	s.once.Do(func() {
		_ = s.cmd.Process.Signal(how)
		_ = s.cmd.Process.Signal(syscall.SIGCONT) // it may be frozen
		select {
		case s.err = <-s.done:
		case <-time.After(60 * time.Second):
			_ = s.cmd.Process.Kill()
			s.err = <-s.done
		}
	})
	return s.err
}

func serverNamed(ts *testscript.TestScript, name string) *runningServer {
	v, ok := servers.Load(ts.MkAbs(name))
	if !ok {
		ts.Fatalf("no server %q", name)
	}
	return v.(*runningServer)
}

func stopServer(ts *testscript.TestScript, name string) {
	s := serverNamed(ts, name)
	if err := s.stop(); err != nil {
		text, _ := os.ReadFile(s.log)
		ts.Fatalf("the server ended with %v, want exit code 0:\n%s", err, text)
	}
}

// interruptServer sends what Ctrl-C sends.
func interruptServer(ts *testscript.TestScript, name string) {
	s := serverNamed(ts, name)
	err := s.end(syscall.SIGINT)
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != int(ExitInterrupted) {
		text, _ := os.ReadFile(s.log)
		ts.Fatalf("the command ended with %v, want exit code %d:\n%s", err, ExitInterrupted, text)
	}
}
