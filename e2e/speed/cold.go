package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

const (
	coldTopic = "SPEED_COLD"
	coldBytes = 4 << 30
	// fadviseDontNeed is POSIX_FADV_DONTNEED.
	fadviseDontNeed = 4
	pageBytes       = 4096
)

// cold measures sends while a consumer reads 4 GiB that no page cache holds, against sends alone.
func (b *bench) cold(p *peer) (sample, error) {
	q, err := b.newPeer(p.make, "cold")
	if err != nil {
		return nil, err
	}
	defer q.end()
	for _, t := range []string{topic, coldTopic} {
		if err := q.createTopic(t); err != nil {
			return nil, err
		}
	}
	count := fmt.Sprint(coldBytes / (4 << 10))
	if _, err := q.load(q.brProc, "produce", "--verify=false", "-t", coldTopic, "--size", "4KiB", "--count", count, "--timeout", "10m"); err != nil {
		return nil, err
	}
	send := func() (sample, error) {
		return q.load(q.brProc, "produce", "--verify=false", "-t", topic, "--in-flight", "16", "--duration", b.seconds.String())
	}
	if q.make == makeApache {
		if _, err := q.load(q.brProc, "produce", "--verify=false", "-t", topic, "--in-flight", "16", "--duration", b.warm.String()); err != nil {
			return nil, err
		}
	}
	without, err := send()
	if err != nil {
		return nil, err
	}
	resident, err := evict(filepath.Join(q.store(), "commitlog"))
	if err != nil {
		return nil, err
	}
	reader, err := q.spawn("cold", b.mqx, "bench", "consume", "-n", q.namesrv, "-t", coldTopic, "--in-flight", "4", "--connections", "1", "--warmup", "0s",
		"--count", count, "--duration", "10m")
	if err != nil {
		return nil, err
	}
	defer reader.kill()
	time.Sleep(200 * time.Millisecond)
	with, err := send()
	if err != nil {
		return nil, err
	}
	s := sample{"perSecond": with["perSecond"], "p99Ms": with["p99Ms"], "p99Ratio": with["p99Ms"] / without["p99Ms"], "residentShare": resident}
	select {
	case <-reader.done: // the sends outlived it: the ratio is of part of them
		s["readerEnded"] = 1
	default:
	}
	return s, nil
}

// evict makes the files of a directory durable, drops them from the page cache and returns the share of their pages that
// is there nevertheless.
func evict(dir string) (float64, error) {
	all, here := 0, 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return fmt.Errorf("cannot sync %s: %w", path, err)
		}
		if _, _, errno := syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, fadviseDontNeed, 0, 0); errno != 0 {
			return fmt.Errorf("cannot drop %s from the page cache: %w", path, errno)
		}
		pages, resident, err := residentPages(f)
		all, here = all+pages, here+resident
		return err
	})
	if err == nil && all == 0 {
		err = fmt.Errorf("%s holds no files", dir)
	}
	return float64(here) / float64(max(all, 1)), err
}

// residentPages counts the pages of a file and those that the page cache holds.
func residentPages(f *os.File) (pages, resident int, err error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return 0, 0, err
	}
	m, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return 0, 0, fmt.Errorf("cannot map %s: %w", f.Name(), err)
	}
	defer func() { _ = syscall.Munmap(m) }()
	vec := make([]byte, (len(m)+pageBytes-1)/pageBytes)
	if _, _, errno := syscall.Syscall(syscall.SYS_MINCORE, uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), uintptr(unsafe.Pointer(&vec[0]))); errno != 0 {
		return 0, 0, fmt.Errorf("cannot see which pages of %s are in memory: %w", f.Name(), errno)
	}
	return len(vec), strings.Count(string(vec), "\x01"), nil
}
