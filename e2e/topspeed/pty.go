package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pagePart is how much of a page has come when it is taken to be there: the clock of the
// screen writes less.
const pagePart = 400

// ownPress measures the time from a key until mqx top has written the page that it opens, on
// a terminal that nobody else reads: no program that draws it has a part in it.
func ownPress(mqx, dir, ns string) (_ time.Duration, err error) {
	master, slave, err := openPTY()
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := exec.CommandContext(ctx, mqx, "top", "-n", ns)
	c.Env = append(os.Environ(), "TERM=xterm-256color", "XDG_CONFIG_HOME="+dir, "XDG_STATE_HOME="+dir)
	c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		cancel()
		return 0, errors.Join(err, master.Close(), slave.Close())
	}
	defer func() {
		cancel()
		_ = c.Wait()
		err = errors.Join(err, master.Close(), slave.Close())
	}()
	buf := make([]byte, 64<<10)
	// read takes what comes until there were n bytes or no more time.
	read := func(n int, until time.Time) (int, error) {
		got := 0
		if err := master.SetReadDeadline(until); err != nil {
			return 0, err
		}
		for got < n {
			k, err := master.Read(buf)
			got += k
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return got, nil
			}
			if err != nil {
				return got, err
			}
		}
		return got, nil
	}
	quiet := func(d time.Duration) error { _, err := read(1<<30, time.Now().Add(d)); return err }
	if err := quiet(5 * time.Second); err != nil { // the first screens
		return 0, err
	}
	var took []time.Duration
	for i := range keys {
		// What the last page asked for is answered: the brokers take the same processors.
		if err := quiet(time.Second); err != nil {
			return 0, err
		}
		began := time.Now()
		if _, err := master.WriteString([]string{"3", "4"}[i%2]); err != nil {
			return 0, err
		}
		n, err := read(pagePart, began.Add(30*time.Second))
		if err != nil {
			return 0, err
		}
		if n < pagePart {
			return 0, fmt.Errorf("a key brought %d bytes", n)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// openPTY opens a terminal of 140x40.
func openPTY() (master, slave *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot open a terminal: %w", err)
	}
	master = os.NewFile(uintptr(fd), "ptmx")
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	err = errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0), unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 140}))
	if err == nil {
		slave, err = os.OpenFile(filepath.Join("/dev/pts", strconv.Itoa(n)), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("cannot open a terminal: %w", err), master.Close())
	}
	return master, slave, nil
}
