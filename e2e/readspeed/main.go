// Readspeed measures how long the reads of mqx admin take, start of the process
// included, on 3 name servers, 2 brokers and 50 topics of mqx on this machine:
//
//	cd e2e && go run ./readspeed MQX
//
// MQX is a binary of mqx. It prints the median, the least and the most of 7 runs of each.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	runs   = 7
	topics = 50
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./readspeed MQX")
		os.Exit(2)
	}
	if err := measure(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func measure(mqx string) (err error) {
	dir, err := os.MkdirTemp("", "readspeed")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var servers []*exec.Cmd
	defer func() {
		cancel()
		for _, s := range servers {
			_ = s.Wait()
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	start := func(args ...string) error {
		s := exec.CommandContext(ctx, mqx, args...)
		s.Cancel = func() error { return s.Process.Signal(syscall.SIGTERM) }
		servers = append(servers, s)
		return s.Start()
	}
	var nameServers []string
	for i := range 3 {
		addr, err := freePort()
		if err != nil {
			return err
		}
		nameServers = append(nameServers, addr)
		conf := filepath.Join(dir, fmt.Sprintf("ns%d.conf", i))
		if err := os.WriteFile(conf, []byte("kvConfigPath="+filepath.Join(dir, fmt.Sprintf("kv%d.json", i))+"\n"), 0o600); err != nil {
			return err
		}
		if err := start("nameserver", "start", "-c", conf, "--listen", addr, "--metrics", "off"); err != nil {
			return err
		}
	}
	all := strings.Join(nameServers, ";")
	for _, name := range []string{"a", "b"} {
		addr, err := freePort()
		if err != nil {
			return err
		}
		conf := filepath.Join(dir, name+".conf")
		if err := os.WriteFile(conf, []byte("brokerName="+name+"\nbrokerIP1=127.0.0.1\nmappedFileSizeCommitLog=1048576\n"), 0o600); err != nil {
			return err
		}
		if err := start("broker", "start", "-c", conf, "-n", all, "--listen", addr, "--store", filepath.Join(dir, name), "--metrics", "off"); err != nil {
			return err
		}
	}
	run := func(args ...string) (string, time.Duration, error) {
		c := exec.Command(mqx, append(append([]string{"admin"}, args...), "-n", all)...)
		began := time.Now()
		text, err := c.Output()
		return string(text), time.Since(began), err
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if text, _, _ := run("broker", "ls", "-o", "name"); text == "a\nb\n" {
			break
		}
		if time.Now().After(deadline) {
			return errors.New("the brokers never came")
		}
	}
	for i := range topics {
		if _, _, err := run("topic", "create", fmt.Sprintf("T%02d", i), "--queues", "4", "--yes"); err != nil {
			return fmt.Errorf("cannot create topic: %w", err)
		}
	}
	return report(run)
}

func report(run func(args ...string) (string, time.Duration, error)) error {
	fmt.Printf("| read | median ms | least | most |\n|---|---|---|---|\n")
	for _, read := range []string{
		"topic ls", "topic get T01", "topic get T01 --show route", "group ls", "broker ls", "broker status", "cluster ls", "client ls", "producer ls",
		"nameserver ls", "nameserver get --show topics", "config get", "stats get", "queue get T01", "ha status", "group status",
	} {
		var took []time.Duration
		for range runs {
			_, d, err := run(strings.Fields(read)...)
			if err != nil {
				return fmt.Errorf("mqx admin %s: %w", read, err)
			}
			took = append(took, d)
		}
		slices.Sort(took)
		ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
		fmt.Printf("| %s | %.1f | %.1f | %.1f |\n", read, ms(took[runs/2]), ms(took[0]), ms(took[runs-1]))
	}
	return nil
}

// freePort is an address whose second neighbour below is free as well.
func freePort() (string, error) {
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		port := l.Addr().(*net.TCPAddr).Port
		second, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port-2))
		err = errors.Join(err, l.Close())
		if err == nil {
			err = second.Close()
		}
		if err == nil {
			return fmt.Sprintf("127.0.0.1:%d", port), nil
		}
	}
	return "", errors.New("no free port")
}
