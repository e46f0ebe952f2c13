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
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"mqx/e2e/servers"
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
	*servers.Set
	o      *options
	master string
}

func measureLevel(o *options, l level) (err error) {
	set, err := servers.New(o.mqx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	g := &group{Set: set, o: o}
	if err := g.NameServer(); err != nil {
		return err
	}
	if g.master, err = g.broker("master", l.master...); err != nil {
		return err
	}
	if l.slave {
		if _, err := g.broker("slave1", "brokerRole=SLAVE", "brokerId=1"); err != nil {
			return err
		}
		if err := servers.Wait("a slave in sync", func() bool { n, _ := g.ha("inSync"); return n >= 1 }); err != nil {
			return err
		}
	}
	if err := servers.Wait("the topic", func() bool {
		_, err := g.Admin("topic", "create", "HACOST", "-b", g.master, "--queues", "8", "--yes")
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

// broker starts a broker of the group and returns its address.
func (g *group) broker(file string, lines ...string) (string, error) {
	return g.Broker(file, append([]string{"brokerName=hacost"}, lines...)...)
}

// ha is a number of the master's part of ha status, the largest of its lines.
func (g *group) ha(field string) (most int64, err error) {
	text, err := g.Admin("ha", "status", g.master, "-o", "ndjson")
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

// load sends with n requests under way.
func (g *group) load(n int) (rate, p50, p99 float64, err error) {
	c := g.Command(g.o.mqx, "bench", "produce", "-t", "HACOST", "-n", g.NameServers, "--in-flight", strconv.Itoa(n), "--connections",
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
	if err := servers.Wait("the blank slave", func() bool {
		text, err := g.Admin("ha", "status", addr, "-o", "ndjson")
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
