package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// filesIn are the files of the store below some of its directories, all of them when none is named.
func (b *bench) filesIn(parts ...string) (names []string, bytes int64, err error) {
	if len(parts) == 0 {
		parts = []string{"."}
	}
	for _, part := range parts {
		err = errors.Join(err, filepath.WalkDir(filepath.Join(b.store, part), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			st, err := d.Info()
			if err == nil {
				names, bytes = append(names, path), bytes+st.Size()
			}
			return err
		}))
	}
	return names, bytes, err
}

// outcome is what a command took.
type outcome struct {
	took    time.Duration
	anonMiB float64 // most anonymous memory, as seen every 10 ms
	cpu     time.Duration
}

// runs starts a command and waits for its end; its output is thrown away.
func (b *bench) runs(name string, args ...string) (outcome, error) {
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Stderr = os.Stderr
	began := time.Now()
	if err := c.Start(); err != nil {
		return outcome{}, err
	}
	var o outcome
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			o.took, o.cpu = time.Since(began), c.ProcessState.UserTime()+c.ProcessState.SystemTime()
			if err != nil {
				return o, fmt.Errorf("%s %s: %w", filepath.Base(name), strings.Join(args[:min(len(args), 3)], " "), err)
			}
			return o, nil
		case <-tick.C:
			if mib, err := anonOf(c.Process.Pid); err == nil {
				o.anonMiB = max(o.anonMiB, mib)
			}
		}
	}
}

// anonOf is RssAnon of a process in MiB.
func anonOf(pid int) (float64, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "RssAnon:"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			return kib / 1024, err
		}
	}
	return 0, errors.New("no RssAnon")
}
