package main

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"mqx/e2e/pagecache"
)

const (
	coldTopic = "SPEED_COLD"
	coldBytes = 4 << 30
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
	resident, err := q.evicted()
	if err != nil {
		return nil, err
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

// evicted stops the broker, since what is mapped stays, drops its log from the page cache and starts it again. It returns the share
// of the log that is there then.
func (p *peer) evicted() (float64, error) {
	if _, err := p.stopBroker(); err != nil {
		return 0, err
	}
	resident, err := evict(filepath.Join(p.store(), "commitlog"))
	if err != nil {
		return 0, err
	}
	return resident, p.startBroker()
}

// evict drops the files of a directory from the page cache and returns the share of their pages that is there nevertheless.
func evict(dir string) (float64, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s holds no files", dir)
	}
	if err == nil {
		err = pagecache.Evict(files...)
	}
	if err != nil {
		return 0, err
	}
	return pagecache.Share(files...)
}
