// Hacost measures what replication costs on this machine: for each level and ack mode the
// throughput and the latency of sends at 1, 16 and 64 requests under way, and how fast a
// blank slave catches up with the log that this leaves:
//
//	cd e2e && go run ./hacost MQX
//	cd e2e && go run ./hacost -seconds 1 -senders 1,16 -levels 'async|semi-sync' MQX
//
// MQX is a binary of mqx. Master, slave, name server and load share the machine. Everything
// lives in a temporary directory, on free ports; only own processes are signalled.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// level is a row of the table.
type level struct {
	name   string
	master []string // lines of the master's broker.conf
	slave  bool
}

var levels = []level{
	{"none", nil, false},
	{"async", []string{"replicationLevel=async"}, true},
	{"semi-sync", []string{"replicationLevel=semi-sync"}, true},
	{"sync", []string{"replicationLevel=sync", "minInSyncReplicas=2"}, true},
	{"quorum", []string{"replicationLevel=quorum", "totalReplicas=2"}, true},
	{"semi-sync flushed", []string{"replicationLevel=semi-sync", "haAckMode=flushed"}, true},
	{"sync flushed", []string{"replicationLevel=sync", "minInSyncReplicas=2", "haAckMode=flushed"}, true},
	{"sync flushed, SYNC_FLUSH", []string{"replicationLevel=sync", "minInSyncReplicas=2", "haAckMode=flushed", "flushDiskType=SYNC_FLUSH"}, true},
}

type options struct {
	mqx     string
	senders []int
	levels  *regexp.Regexp
	seconds float64
}

func main() {
	o := options{}
	senders := flag.String("senders", "1,16,64", "requests under way, commas between the numbers")
	pattern := flag.String("levels", "", "regular expression: levels to measure")
	flag.Float64Var(&o.seconds, "seconds", 6, "length of a load")
	flag.Parse()
	var err error
	if o.levels, err = regexp.Compile(*pattern); err == nil {
		for s := range strings.SplitSeq(*senders, ",") {
			n, convErr := strconv.Atoi(s)
			o.senders, err = append(o.senders, n), errors.Join(err, convErr)
		}
	}
	if flag.NArg() != 1 {
		err = errors.Join(err, errors.New("usage: go run ./hacost [-seconds N] [-senders 1,16,64] [-levels PATTERN] MQX"))
	}
	if o.mqx = flag.Arg(0); err == nil {
		err = measure(&o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func measure(o *options) error {
	fmt.Printf("| level | senders | messages/s | p50 ms | p99 ms | catch-up MB/s |\n|---|---|---|---|---|---|\n")
	for _, l := range levels {
		if !o.levels.MatchString(l.name) {
			continue
		}
		if err := measureLevel(o, l); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	return nil
}

// group is a name server, a master and its slaves.
type group struct {
	o       *options
	dir     string
	ctx     context.Context //nolint:containedctx // of its processes
	servers []*exec.Cmd
	namesrv string
	master  string
}

func measureLevel(o *options, l level) (err error) {
	dir, err := os.MkdirTemp("", "hacost")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	g := &group{o: o, dir: dir, ctx: ctx}
	defer func() {
		cancel()
		for _, s := range g.servers {
			_ = s.Wait() // ended by a signal
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	if g.namesrv, err = freePort(); err != nil {
		return err
	}
	conf := filepath.Join(dir, "namesrv.conf")
	if err := os.WriteFile(conf, []byte("kvConfigPath="+filepath.Join(dir, "kv.json")+"\n"), 0o600); err != nil {
		return err
	}
	if err := g.start("nameserver", "start", "-c", conf, "--listen", g.namesrv, "--metrics", "off"); err != nil {
		return err
	}
	if g.master, err = g.broker("master", l.master...); err != nil {
		return err
	}
	if l.slave {
		if _, err := g.broker("slave1", "brokerRole=SLAVE", "brokerId=1"); err != nil {
			return err
		}
		if err := g.wait("a slave in sync", func() bool { n, _ := g.ha("inSync"); return n >= 1 }); err != nil {
			return err
		}
	}
	if err := g.wait("the topic", func() bool {
		_, err := g.admin("topic", "create", "HACOST", "-b", g.master, "--queues", "8", "--yes")
		return err == nil
	}); err != nil {
		return err
	}
	for i, n := range o.senders {
		rate, p50, p99, err := g.load(n)
		if err != nil {
			return err
		}
		catchUp := ""
		if i == len(o.senders)-1 {
			if catchUp, err = g.catchUp(); err != nil {
				return err
			}
		}
		fmt.Printf("| %s | %d | %.0f | %.3f | %.3f | %s |\n", l.name, n, rate, p50, p99, catchUp)
	}
	return nil
}

func (g *group) start(args ...string) error {
	s := exec.CommandContext(g.ctx, g.o.mqx, args...)
	s.Cancel = func() error { return s.Process.Signal(syscall.SIGTERM) }
	s.Env = append(os.Environ(), "XDG_STATE_HOME="+g.dir, "XDG_CONFIG_HOME="+g.dir)
	g.servers = append(g.servers, s)
	return s.Start()
}

// broker starts a broker of the group and returns its address.
func (g *group) broker(name string, lines ...string) (string, error) {
	addr, err := freePort()
	if err != nil {
		return "", err
	}
	conf := filepath.Join(g.dir, name+".conf")
	text := "brokerName=hacost\nbrokerIP1=127.0.0.1\nbrokerIP2=127.0.0.1\ndiskMaxUsedSpaceRatio=95\n" + strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return "", err
	}
	return addr, g.start("broker", "start", "-c", conf, "-n", g.namesrv, "--listen", addr, "--store", filepath.Join(g.dir, name), "--metrics", "off")
}

func (g *group) admin(args ...string) (string, error) {
	c := exec.CommandContext(g.ctx, g.o.mqx, append(append([]string{"admin"}, args...), "-n", g.namesrv)...)
	c.Env = append(os.Environ(), "XDG_STATE_HOME="+g.dir, "XDG_CONFIG_HOME="+g.dir)
	text, err := c.Output()
	return string(text), err
}

// ha is a number of the master's part of ha status, the largest of its lines.
func (g *group) ha(field string) (most int64, err error) {
	text, err := g.admin("ha", "status", g.master, "-o", "ndjson")
	for line := range strings.Lines(text) {
		var m map[string]any
		if json.Unmarshal([]byte(line), &m) != nil || m["role"] != "master" {
			continue
		}
		if v, ok := m[field].(float64); ok {
			most = max(most, int64(v))
		}
	}
	return most, err
}

func (g *group) wait(what string, ok func() bool) error {
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("waited in vain for %s", what)
		}
	}
	return nil
}

// load sends with n requests under way.
func (g *group) load(n int) (rate, p50, p99 float64, err error) {
	c := exec.CommandContext(g.ctx, g.o.mqx, "bench", "produce", "-t", "HACOST", "-n", g.namesrv, "--in-flight", strconv.Itoa(n), "--connections",
		strconv.Itoa(min(n, 4)), "--duration", fmt.Sprintf("%.1fs", g.o.seconds), "--verify=false", "-o", "ndjson")
	c.Stderr = os.Stderr
	text, err := c.Output()
	if err != nil {
		return 0, 0, 0, fmt.Errorf("mqx bench produce: %w", err)
	}
	var m map[string]any
	if err := json.Unmarshal([]byte(strings.TrimSpace(string(text))), &m); err != nil {
		return 0, 0, 0, fmt.Errorf("cannot read what mqx bench says: %w: %s", err, text)
	}
	get := func(name string) float64 {
		v, ok := m[name].(float64)
		if !ok {
			err = errors.Join(err, fmt.Errorf("mqx bench says no %s: %s", name, text))
		}
		return v
	}
	rate, p50, p99 = get(benchRate), get(benchP50), get(benchP99)
	return rate, p50, p99, err
}

// Fields of mqx bench.
const (
	benchRate = "perSecond"
	benchP50  = "p50Ms"
	benchP99  = "p99Ms"
)

// catchUp is how fast a blank slave takes the whole log.
func (g *group) catchUp() (string, error) {
	end, err := g.ha("endOffset")
	if err != nil {
		return "", err
	}
	began := time.Now()
	addr, err := g.broker("blank", "brokerRole=SLAVE", "brokerId=9")
	if err != nil {
		return "", err
	}
	if err := g.wait("the blank slave", func() bool {
		text, err := g.admin("ha", "status", addr, "-o", "ndjson")
		var m map[string]any
		if err != nil || json.Unmarshal([]byte(strings.TrimSpace(text)), &m) != nil {
			return false
		}
		v, ok := m["endOffset"].(float64)
		return ok && int64(v) >= end
	}); err != nil {
		return "", err
	}
	return fmt.Sprintf("%.0f (%d MB, start of the process included)", float64(end)/1e6/time.Since(began).Seconds(), end/1_000_000), nil
}

// freePort is an address whose neighbours above and two below are free as well.
func freePort() (string, error) {
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		port := l.Addr().(*net.TCPAddr).Port
		err = l.Close()
		for _, p := range []int{port - 2, port, port + 1} {
			l, listenErr := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
			if err = errors.Join(err, listenErr); listenErr == nil {
				err = errors.Join(err, l.Close())
			}
		}
		if err == nil {
			return fmt.Sprintf("127.0.0.1:%d", port), nil
		}
	}
	return "", errors.New("no free ports")
}
