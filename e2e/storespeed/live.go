package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"mqx/e2e/pagecache"
)

// beside measures the p99 of sends to a broker on the store, with and without verify beside it, in turns.
func (b *bench) beside() error {
	ns, err := b.serve("nameserver", "start", "--listen", "127.0.0.1:29876")
	if err != nil {
		return err
	}
	defer ns.stop()
	conf := filepath.Join(b.work, "broker.conf")
	if err := os.WriteFile(conf, []byte("brokerName=speed\nbrokerIP1=127.0.0.1\nflushDiskType=ASYNC_FLUSH\n"), 0o644); err != nil {
		return err
	}
	br, err := b.serve("broker", "start", "-c", conf, "-n", "127.0.0.1:29876", "--listen", "127.0.0.1:20911", "--store", b.store)
	if err != nil {
		return err
	}
	defer br.stop()
	if err := waitPort(b.ctx, "127.0.0.1:20911"); err != nil {
		return err
	}
	if _, err := b.load(2); err != nil { // makes the topic and warms up
		return err
	}
	all, _, err := b.filesIn()
	if err != nil {
		return err
	}
	var without, with, ratio []float64
	for range b.rounds {
		p, err := b.load(b.seconds)
		if err != nil {
			return err
		}
		without = append(without, p)
		before, err := pagecache.Share(all...)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(b.ctx)
		done := make(chan error, 1)
		go func() { done <- b.verifyOver(ctx) }()
		p, err = b.load(b.seconds)
		cancel()
		if err = errors.Join(err, <-done); err != nil {
			return err
		}
		after, err := pagecache.Share(all...)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "page cache holds %.0f %% of the store before, %.0f %% after verify\n", 100*before, 100*after)
		with, ratio = append(with, p), append(ratio, p/without[len(without)-1])
	}
	fmt.Printf("| p99 beside a broker, %s in flight | %.2f ms | %.2f ms without | %.2f (%.2f–%.2f) | | |\n",
		b.inFlight, median(with), median(without), median(ratio), slices.Min(ratio), slices.Max(ratio))
	return nil
}

// verifyOver runs verify over and over until the context ends.
func (b *bench) verifyOver(ctx context.Context) error {
	args := []string{"store", "verify", b.store, "-o", "csv"}
	if b.pace > 0 {
		args = append(args, "--pace", strconv.Itoa(b.pace))
	}
	for ctx.Err() == nil {
		c := exec.CommandContext(ctx, b.binary, args...)
		c.Stderr = os.Stderr
		if err := c.Run(); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// load sends for some seconds and returns the p99 in ms.
func (b *bench) load(seconds float64) (float64, error) {
	c := exec.CommandContext(b.ctx, b.binary, "bench", "produce", "-n", "127.0.0.1:29876", "--in-flight", b.inFlight,
		"--duration", time.Duration(seconds*float64(time.Second)).String(), "--verify=false", "-o", "json")
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return 0, fmt.Errorf("bench produce: %w", err)
	}
	var doc struct {
		Items []struct {
			P99 float64 `json:"p99Ms"`
		} `json:"items"`
	}
	if err := json.Unmarshal(out, &doc); err != nil || len(doc.Items) == 0 {
		return 0, fmt.Errorf("bench produce: %w: %s", err, out)
	}
	return doc.Items[0].P99, nil
}

// server is a process of mqx that was started.
type server struct{ c *exec.Cmd }

func (b *bench) serve(args ...string) (*server, error) {
	c := exec.CommandContext(b.ctx, b.binary, args...)
	log, err := os.Create(filepath.Join(b.work, args[0]+".log"))
	if err != nil {
		return nil, err
	}
	c.Stderr = log
	if err := errors.Join(c.Start(), log.Close()); err != nil {
		return nil, err
	}
	return &server{c}, nil
}

func (s *server) stop() {
	_ = s.c.Process.Signal(syscall.SIGTERM)
	_ = s.c.Wait()
}

func waitPort(ctx context.Context, addr string) error {
	for range 600 {
		d := net.Dialer{Timeout: time.Second}
		if c, err := d.DialContext(ctx, "tcp", addr); err == nil {
			return c.Close()
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("nothing listens on %s", addr)
}
