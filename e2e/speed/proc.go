package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the length of the unit in which Linux counts CPU time for programs.
const clockTick = 10 * time.Millisecond

// cpuOf returns the CPU time that a process has used, in user and in kernel mode.
func cpuOf(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 13 {
		return 0, fmt.Errorf("cannot read the state of process %d", pid)
	}
	user, err := strconv.ParseInt(f[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(f[12], 10, 64)
	if err != nil {
		return 0, err
	}
	return time.Duration(user+system) * clockTick, nil
}

// statusOf returns a size of /proc/PID/status in MiB.
func statusOf(pid int, field string) (float64, error) {
	return sizeIn(fmt.Sprintf("/proc/%d/status", pid), field)
}

// sizeIn returns the size that a file of /proc names, in MiB.
func sizeIn(path, field string) (float64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		if rest, ok := strings.CutPrefix(s.Text(), field+":"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			return kib / 1024, err
		}
	}
	return 0, fmt.Errorf("%s has no %s", path, field)
}

// descriptorsOf counts the open files of a process.
func descriptorsOf(pid int) (int, error) {
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(all), err
}

// freePort returns a loopback port whose neighbours are free as well: a broker takes
// the one two below and the one above. It lies below the range of outgoing connections.
func freePort(from int) (int, error) {
	for port := from; port < 32000; port += 5 {
		free := true
		for p := port - 2; p <= port+2 && free; p++ {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
			free = err == nil && l.Close() == nil
		}
		if free {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free ports above %d", from)
}

// waitPort waits until something listens.
func waitPort(addr string, limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			return c.Close()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("nothing listens at %s after %v: %w", addr, limit, err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// pageCache fills the memory that nobody uses with clean pages of a file of holes. In
// a virtual machine the first touch of a page of free memory goes to the host and costs
// ten times a copy of that page; a page that the cache gives back is touched already, as
// all are on a broker that has run for a while.
type pageCache struct{ path string }

// kept stays free, in MiB.
const keptFree = 700

func (c *pageCache) fill() error {
	f, err := os.OpenFile(c.path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	total, err := sizeIn("/proc/meminfo", "MemTotal")
	if err != nil {
		return err
	}
	if err := f.Truncate(int64(total) << 20); err != nil {
		return err
	}
	buf := make([]byte, 1<<20)
	for range int(total) {
		free, err := sizeIn("/proc/meminfo", "MemFree")
		if err != nil || free < keptFree {
			return err
		}
		for range 64 {
			if _, err := f.Read(buf); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}
