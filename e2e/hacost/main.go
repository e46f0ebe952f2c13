// Hacost measures what replication costs on this machine: for each level and ack mode the throughput and the latency of
// sends at 1, 16 and 64 requests under way, beside Apache's two ways, and then how fast a blank slave catches up, and what
// producers notice of that:
//
//	cd e2e && go run ./hacost -apache MQX                                      # everything, about 5 minutes
//	cd e2e && go run ./hacost -seconds 1 -senders 1,16 -levels '^(async|semi-sync)$' MQX
//	cd e2e && go run ./hacost -levels none -catchup 2048 MQX                   # only the catch-up, over 2 GiB
//	cd e2e && go run ./hacost -levels none -flow 250 MQX                       # and with a bound on what a slave gets
//
// MQX is a binary of mqx. Master, slave, name server and load share the machine. A row is measured only while the level is
// in force: a group that is degraded before it is an error, one that becomes so is marked. Everything lives in a temporary
// directory, on free ports; only own processes are signalled.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"mqx/e2e/servers"
)

// level is a group of rows.
type level struct {
	name   string
	master []string // lines of the master's broker.conf
	apache bool
}

var levels = []level{
	{"async", []string{"replicationLevel=async"}, false},
	{"semi-sync", []string{"replicationLevel=semi-sync"}, false},
	{"sync", []string{"replicationLevel=sync", "minInSyncReplicas=2"}, false},
	{"quorum", []string{"replicationLevel=quorum", "totalReplicas=2"}, false},
	{"semi-sync flushed", []string{"replicationLevel=semi-sync", "haAckMode=flushed"}, false},
	{"sync flushed", []string{"replicationLevel=sync", "minInSyncReplicas=2", "haAckMode=flushed"}, false},
	{"quorum flushed", []string{"replicationLevel=quorum", "totalReplicas=2", "haAckMode=flushed"}, false},
	{"sync flushed, SYNC_FLUSH", []string{"replicationLevel=sync", "minInSyncReplicas=2", "haAckMode=flushed", "flushDiskType=SYNC_FLUSH"}, false},
	{"Apache async", []string{"brokerRole=ASYNC_MASTER"}, true},
	{"Apache sync", []string{"brokerRole=SYNC_MASTER", "totalReplicas=2", "inSyncReplicas=2"}, true},
}

type options struct {
	mqx     string
	jars    string // of Apache; "" without it
	senders []int
	levels  *regexp.Regexp
	seconds float64
	catchUp int // MiB
	flow    int // MB/s, 0: as fast as it goes
}

func main() {
	o := options{}
	senders := flag.String("senders", "1,16,64", "requests under way, commas between the numbers")
	pattern := flag.String("levels", "", "regular expression: levels to measure")
	apache := flag.Bool("apache", false, "measure brokers of Apache 5.5.0 as well")
	flag.Float64Var(&o.seconds, "seconds", 4, "length of a load")
	flag.IntVar(&o.catchUp, "catchup", 2048, "MiB of log that a blank slave takes; 0: none")
	flag.IntVar(&o.flow, "flow", 0, "MB/s that a slave gets at most while it catches up (haFlowControlEnable); 0: no bound")
	flag.Parse()
	var err error
	if o.levels, err = regexp.Compile(*pattern); err == nil {
		for s := range strings.SplitSeq(*senders, ",") {
			n, convErr := strconv.Atoi(s)
			o.senders, err = append(o.senders, n), errors.Join(err, convErr)
		}
	}
	if flag.NArg() != 1 {
		err = errors.Join(err, errors.New("usage: go run ./hacost [-seconds N] [-senders 1,16,64] [-levels PATTERN] [-apache] [-catchup MIB] [-flow MB] MQX"))
	}
	if o.mqx = flag.Arg(0); err == nil && *apache {
		var text []byte
		text, err = exec.Command(filepath.Join("java", "fetch")).Output()
		o.jars = strings.TrimSpace(string(text))
	}
	if err == nil {
		err = measure(&o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// figures are a row.
type figures struct{ rate, p50, p99 float64 }

func measure(o *options) error {
	fmt.Printf("| level | senders | messages/s | p50 ms | p99 ms | |\n|---|---|---|---|---|---|\n")
	rows := map[string]map[int]figures{}
	for _, l := range levels {
		if !o.levels.MatchString(l.name) || l.apache && o.jars == "" {
			continue
		}
		if err := measureLevel(o, l, rows); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	for _, n := range o.senders {
		a, known := rows["async"][n]
		s, ok := rows["semi-sync"][n]
		if known && ok {
			fmt.Printf("\nsemi-sync against async, %d senders: p50 %+.3f ms (wanted: +0.1 at most), throughput %.0f %% (wanted: 50 at least)", n, s.p50-a.p50, 100*s.rate/a.rate)
		}
	}
	fmt.Println()
	if o.catchUp > 0 {
		return measureCatchUp(o)
	}
	return nil
}

// group is a name server, a master and its slaves.
type group struct {
	*servers.Set
	o      *options
	apache bool
	master string
}

func newGroup(o *options, l level) (*group, error) {
	set, err := servers.New(o.mqx)
	if err != nil {
		return nil, err
	}
	g := &group{Set: set, o: o, apache: l.apache}
	return g, errors.Join(g.NameServer(), g.begin(l))
}

// begin starts master and slave and waits until the level is in force.
func (g *group) begin(l level) (err error) {
	if g.master, err = g.broker("master", l.master...); err != nil {
		return err
	}
	if _, err = g.broker("slave1", "brokerRole=SLAVE", "brokerId=1"); err != nil {
		return err
	}
	if err := servers.Wait("the topic", func() bool {
		_, err := g.Admin("topic", "create", "HACOST", "-b", g.master, "--queues", "8", "--yes")
		return err == nil
	}); err != nil {
		return err
	}
	if g.apache {
		return servers.Wait("a slave", func() bool { n, _ := g.ha(g.master, "slaves"); return n >= 1 })
	}
	return servers.Wait("a slave in sync and a group that is not degraded", func() bool {
		n, err := g.ha(g.master, "inSync")
		degraded, err2 := g.ha(g.master, "degraded")
		return err == nil && err2 == nil && n >= 1 && degraded == 0
	})
}

func measureLevel(o *options, l level, rows map[string]map[int]figures) (err error) {
	g, err := newGroup(o, l)
	if g != nil {
		defer func() { err = errors.Join(err, g.Close()) }()
	}
	if err != nil {
		return err
	}
	rows[l.name] = map[int]figures{}
	for _, n := range o.senders {
		before, err := g.degraded()
		if err != nil {
			return err
		}
		f, err := g.load(n, o.seconds)
		if err != nil {
			return err
		}
		after, err := g.degraded()
		if err != nil {
			return err
		}
		note := ""
		if after > before {
			note = "degraded meanwhile: not what the level costs"
		}
		rows[l.name][n] = f
		fmt.Printf("| %s | %d | %.0f | %.3f | %.3f | %s |\n", l.name, n, f.rate, f.p50, f.p99, note)
	}
	return nil
}

// degraded is how often the master was degraded so far.
func (g *group) degraded() (int, error) {
	if g.apache {
		return 0, nil
	}
	text, err := g.Admin("ha", "degraded", g.master, "-o", "ndjson")
	return strings.Count(text, "\n"), err
}

// broker starts a broker of the group and returns its address.
func (g *group) broker(file string, lines ...string) (string, error) {
	lines = append([]string{"brokerName=hacost", "autoCreateTopicEnable=false"}, lines...)
	if g.apache {
		return g.Apache(g.o.jars, file, lines...)
	}
	return g.Broker(file, lines...)
}

// ha is a number of what a broker tells in ha status, the largest of its lines; true is 1.
func (g *group) ha(addr, field string) (most int64, err error) {
	text, err := g.Admin("ha", "status", addr, "-o", "ndjson")
	for line := range strings.Lines(text) {
		var m map[string]any
		if json.Unmarshal([]byte(line), &m) != nil {
			continue
		}
		switch v := m[field].(type) {
		case float64:
			most = max(most, int64(v))
		case bool:
			if v {
				most = 1
			}
		}
	}
	return most, err
}

// bench runs a load of mqx bench and returns what it says.
func (g *group) bench(args ...string) (map[string]any, error) {
	c := g.Command(g.o.mqx, append([]string{"bench", "produce", "-t", "HACOST", "-n", g.NameServers, "--verify=false", "-o", "ndjson"}, args...)...)
	c.Stderr = os.Stderr
	text, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("mqx bench produce: %w", err)
	}
	var m map[string]any
	if err := json.Unmarshal([]byte(strings.TrimSpace(string(text))), &m); err != nil {
		return nil, fmt.Errorf("cannot read what mqx bench says: %w: %s", err, text)
	}
	return m, nil
}

// load sends with n requests under way.
func (g *group) load(n int, seconds float64) (f figures, err error) {
	warm := "1s"
	if g.apache {
		warm = "4s" // a JVM compiles first
	}
	m, err := g.bench("--in-flight", strconv.Itoa(n), "--connections", strconv.Itoa(min(n, 4)), "--duration", fmt.Sprintf("%.1fs", seconds), "--warmup", warm)
	if err != nil {
		return f, err
	}
	get := func(name string) float64 {
		v, ok := m[name].(float64)
		if !ok {
			err = errors.Join(err, fmt.Errorf("mqx bench says no %s: %v", name, m))
		}
		return v
	}
	f = figures{get("perSecond"), get("p50Ms"), get("p99Ms")}
	return f, err
}
