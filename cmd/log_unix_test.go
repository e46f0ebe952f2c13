//go:build unix

package cmd

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// soon waits until something is so.
func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never came that %s", what)
		}
	}
}

// Servers log text to a terminal and JSON to a pipe, unless they are told what.
func TestLogForms(t *testing.T) {
	for _, tt := range []struct {
		form string
		tty  bool
		json bool
	}{{"auto", true, false}, {"auto", false, true}, {"text", false, false}, {"json", true, true}} {
		var out bytes.Buffer
		o := logFlags{format: tt.form, level: "info", size: 1, count: 1}
		log, _, end, err := o.open(t.Context(), &app{Streams: Streams{Err: &out, ErrTTY: tt.tty}})
		if err != nil {
			t.Fatal(err)
		}
		log.Info("started", "addr", "127.0.0.1:1")
		log.Debug("not said")
		end()
		if got := strings.HasPrefix(out.String(), `{"time":`); got != tt.json || strings.Count(out.String(), "\n") != 1 {
			t.Errorf("%s, terminal %v: %s", tt.form, tt.tty, out.String())
		}
	}
}

// A log file is begun anew at its size, old ones are bounded, SIGHUP opens it where it was,
// and SIGUSR1 turns debug on and off.
func TestLogFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "broker.log")
	o := logFlags{file: path, format: "auto", level: "warn", size: 1, count: 2}
	log, level, end, err := o.open(t.Context(), &app{Streams: Streams{Err: os.Stderr, ErrTTY: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	line := strings.Repeat("x", 100<<10)
	full := func() []string {
		list, err := filepath.Glob(filepath.Join(dir, "broker-*.log"))
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	for i := range 50 { // five files of ten lines; their names tell milliseconds
		log.Warn("line", "n", i, "text", line)
		time.Sleep(time.Millisecond)
	}
	soon(t, "two full files are left", func() bool { return len(full()) == 2 })
	if s, err := os.Stat(path); err != nil || s.Size() > 1<<20 {
		t.Errorf("the file that is written: %v %v", s, err)
	}

	if err := os.Rename(path, filepath.Join(dir, "moved")); err != nil {
		t.Fatal(err)
	}
	signalSelf(t, syscall.SIGHUP)
	n := 0
	soon(t, "the file is there again", func() bool {
		n++
		log.Warn("again", "n", n)
		_, err := os.Stat(path)
		return err == nil
	})

	signalSelf(t, syscall.SIGUSR1)
	soon(t, "debug is on", func() bool { return level.Level() == slog.LevelDebug })
	if !log.Enabled(context.Background(), slog.LevelDebug) {
		t.Error("debug is not logged")
	}
	signalSelf(t, syscall.SIGUSR1)
	soon(t, "it is off", func() bool { return level.Level() == slog.LevelWarn })
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(text), `{"time":`) {
		t.Errorf("%s %v", text, err)
	}
}

func signalSelf(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), s); err != nil {
		t.Fatal(err)
	}
}
