package hostinfo

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/prometheus/procfs"

	"mqx/internal/sorted"
)

// Process reads one process. Parts that only its owner may read are unknown to others.
func (r *Reader) Process(pid int) (*Process, error) {
	proc, err := procfs.NewFS(r.proc)
	if err != nil {
		return nil, fmt.Errorf("cannot read process %d: %w", pid, err)
	}
	p, err := proc.Proc(pid)
	if err != nil {
		return nil, fmt.Errorf("cannot read process %d: %w", pid, err)
	}
	st, err := p.Stat()
	if err != nil {
		return nil, fmt.Errorf("cannot read process %d: %w", pid, err)
	}
	out := &Process{
		PID: pid, User: float64(st.UTime) / clockTicks, System: float64(st.STime) / clockTicks, Resident: int64(st.ResidentMemory()), Threads: st.NumThreads,
	}
	if at, err := st.StartTime(); err == nil {
		out.Started = time.UnixMilli(int64(at * 1000))
	}
	if args, err := p.CmdLine(); err == nil {
		out.Command = args
	}
	if n, err := p.FileDescriptorsLen(); err == nil {
		out.Open = some(int64(n))
	}
	if l, err := p.Limits(); err == nil {
		out.MaxOpen = some(int64(min(l.OpenFiles, 1<<62)))
	}
	if n, err := countLines(filepath.Join(r.proc, strconv.Itoa(pid), "maps")); err == nil {
		out.Maps = &n
	}
	if c, err := r.container(p); err == nil {
		out.Container = c
	}
	return out, nil
}

// clockTicks is USER_HZ: 100 on every platform that Go runs on.
const clockTicks = 100

func some[T any](v T) *T { return &v }

func countLines(name string) (n int64, err error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		n++
	}
	return n, lines.Err()
}

// OpenFiles are the regular files that a process has open, by descriptor. Of the process of
// another user they are not told.
func (r *Reader) OpenFiles(pid int) ([]OpenFile, error) {
	dir := filepath.Join(r.proc, strconv.Itoa(pid), "fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot list the files that process %d has open: %w", pid, err)
	}
	var out []OpenFile
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		name := filepath.Join(dir, e.Name())
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() {
			continue // closed meanwhile, or a socket
		}
		if path, err := os.Readlink(name); err == nil {
			out = append(out, OpenFile{fd, path})
		}
	}
	sorted.By(out, func(a, b OpenFile) int { return a.FD - b.FD })
	return out, nil
}
