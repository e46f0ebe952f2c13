// Topspeed measures what mqx top costs and how quick it is, on a name server and 8 brokers
// of mqx with 1,000 topics and 500 groups, on a terminal that tmux holds:
//
//	cd e2e && go run ./topspeed MQX [lag]
//
// MQX is a binary of mqx. It first prints how long full lag tables take, start of the process
// included, the median of 7 runs; with "lag" nothing else. Then the time to the first screen, the time of a refresh and
// its requests, the share of one core and the memory over half a minute, and the time from a
// key until mqx has written the page that it opens (and until tmux shows it, which is not
// bounded); each beside its bound, and exits with 1 when one is not met.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mqx/e2e/servers"
	"mqx/remoting"
)

const (
	brokers = 8
	topics  = 1000
	groups  = 500
	queues  = 4
	keys    = 15
	watched = 30 * time.Second
)

func main() {
	lagOnly := len(os.Args) == 3 && os.Args[2] == "lag"
	if len(os.Args) != 2 && !lagOnly {
		fmt.Fprintln(os.Stderr, "usage: go run ./topspeed MQX [lag]")
		os.Exit(2)
	}
	if err := measure(os.Args[1], lagOnly); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func measure(mqx string, lagOnly bool) (err error) {
	if mqx, err = filepath.Abs(mqx); err != nil {
		return err
	}
	set, err := servers.New(mqx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	if err := startServers(set); err != nil {
		return err
	}
	if err := set.Registered(brokers); err != nil {
		return err
	}
	if err := lagTables(mqx, set.NameServers); err != nil || lagOnly {
		return err
	}
	return look(mqx, set.Dir, set.NameServers)
}

// lagRuns is how often a table is made.
const lagRuns = 7

// lagTables measures full tables of lag: of every queue, topic and group.
func lagTables(mqx, ns string) error {
	var failed error
	for _, by := range []struct {
		what string
		rows int
	}{{"queue", groups * queues * brokers}, {"topic", groups}, {"group", groups}} {
		var took []time.Duration
		var kib int64
		for range lagRuns {
			c := exec.Command(mqx, "admin", "lag", "get", "--by", by.what, "-n", ns, "-o", "ndjson")
			began := time.Now()
			text, err := c.Output()
			if err != nil {
				return fmt.Errorf("cannot get the lag by %s: %w", by.what, err)
			}
			took = append(took, time.Since(began))
			if rows := strings.Count(string(text), "\n"); rows != by.rows {
				return fmt.Errorf("the lag by %s has %d rows, not %d", by.what, rows, by.rows)
			}
			if use, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
				kib = max(kib, use.Maxrss)
			}
		}
		slices.Sort(took)
		failed = errors.Join(failed, bound("lag by "+by.what, took[lagRuns/2].Seconds()*1000, 1000, "ms"))
		fmt.Printf("  %d rows, %.0f MiB at most\n", by.rows, float64(kib)/1024)
	}
	return failed
}

// startServers starts the name server and the brokers, whose tables stand in their stores.
func startServers(set *servers.Set) error {
	if err := set.NameServer(); err != nil {
		return err
	}
	for i := range brokers {
		name := fmt.Sprintf("broker-%d", i)
		if err := tables(filepath.Join(set.Store(name), "config")); err != nil {
			return err
		}
		if _, err := set.Broker(name, "brokerName="+name, "mappedFileSizeCommitLog=1048576"); err != nil {
			return err
		}
	}
	return nil
}

// tables writes topics, groups and offsets as a broker keeps them.
func tables(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	t, g, o := map[string]any{}, map[string]any{}, map[string]any{}
	for i := range topics {
		c := remoting.NewTopicConfig(fmt.Sprintf("TOPIC_%04d", i))
		c.ReadQueueNums, c.WriteQueueNums = queues, queues
		t[c.TopicName] = c
	}
	for i := range groups {
		name := fmt.Sprintf("group-%03d", i)
		g[name] = remoting.NewSubscriptionGroupConfig(name)
		offsets := map[string]int64{}
		for q := range queues {
			offsets[strconv.Itoa(q)] = 0
		}
		o[fmt.Sprintf("TOPIC_%04d@%s", 2*i, name)] = offsets
	}
	version := map[string]any{"counter": 1, "stateVersion": 0, "timestamp": 1}
	for file, v := range map[string]any{
		"topics.json":            map[string]any{"dataVersion": version, "topicConfigTable": t},
		"subscriptionGroup.json": map[string]any{"dataVersion": version, "subscriptionGroupTable": g},
		"consumerOffset.json":    map[string]any{"dataVersion": version, "offsetTable": o},
	} {
		b, err := json.Marshal(v)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), b, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// terminal is mqx top on tmux.
type terminal struct{ socket string }

func (t *terminal) tmux(args ...string) (string, error) {
	out, err := exec.Command("tmux", append([]string{"-f", "/dev/null", "-S", t.socket}, args...)...).Output()
	return string(out), err
}

// until looks at the screen until it has a part, and says how long that took.
func (t *terminal) until(part string, began time.Time) (time.Duration, error) {
	for {
		text, err := t.tmux("capture-pane", "-p")
		if err != nil {
			return 0, err
		}
		took := time.Since(began)
		if strings.Contains(text, part) {
			return took, nil
		}
		if took > 30*time.Second {
			return 0, fmt.Errorf("no %q on the screen:\n%s", part, text)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func look(mqx, dir, ns string) error {
	t := &terminal{filepath.Join(dir, "tmux")}
	// The server of tmux is there before the time is taken.
	if _, err := t.tmux("new-session", "-d", "-x", "140", "-y", "40", "-s", "wait", "sleep 600"); err != nil {
		return err
	}
	defer func() { _, _ = t.tmux("kill-server") }()
	began := time.Now()
	command := fmt.Sprintf("exec env TERM=tmux-256color XDG_CONFIG_HOME=%s XDG_STATE_HOME=%s %s top -n %s", dir, dir, mqx, ns)
	if _, err := t.tmux("respawn-pane", "-k", command); err != nil {
		return err
	}
	first, err := t.until(fmt.Sprintf("brokers %d/%d", brokers, brokers), began)
	if err != nil {
		return err
	}
	pane, err := t.tmux("display-message", "-p", "#{pane_pid}")
	if err != nil {
		return err
	}
	pid := strings.TrimSpace(pane)
	if _, err := t.tmux("send-keys", "4"); err != nil {
		return err
	}
	time.Sleep(5 * time.Second) // what the start has cost is not part of it
	cpu, err := cpuTime(pid)
	if err != nil {
		return err
	}
	time.Sleep(watched)
	later, err := cpuTime(pid)
	if err != nil {
		return err
	}
	kib, err := memory(pid)
	if err != nil {
		return err
	}
	text, err := t.tmux("capture-pane", "-p")
	if err != nil {
		return err
	}
	cost := regexp.MustCompile(`([\d,]+) requests of at most ([\d,]+) in (\S+)`).FindStringSubmatch(text)
	if cost == nil {
		return fmt.Errorf("no cost on the screen:\n%s", text)
	}
	refresh, err := time.ParseDuration(cost[3])
	if err != nil {
		return err
	}
	press, err := t.press()
	if err != nil {
		return err
	}
	if _, err := t.tmux("respawn-pane", "-k", "sleep 600"); err != nil {
		return err
	}
	own, err := ownPress(mqx, dir, ns)
	if err != nil {
		return err
	}
	fmt.Printf("a refresh: %s requests of at most %s\n", cost[1], cost[2])
	fmt.Printf("key to screen, with the time of tmux and of looking at it: %.1f ms\n", press.Seconds()*1000)
	return errors.Join(
		bound("first screen", first.Seconds()*1000, 1000, "ms"), bound("refresh", float64(refresh.Milliseconds()), 2000, "ms"),
		bound("share of a core", 100*(later-cpu).Seconds()/watched.Seconds(), 5, "%"), bound("memory", float64(kib)/1024, 60, "MiB"),
		bound("key to screen, median", own.Seconds()*1000, 50, "ms"),
	)
}

// press measures the time from a key to the screen that it opens, tmux included.
func (t *terminal) press() (time.Duration, error) {
	var took []time.Duration
	for i := range keys {
		key, part := "3", "[3 topics]"
		if i%2 == 1 {
			key, part = "4", "[4 groups]"
		}
		began := time.Now()
		if _, err := t.tmux("send-keys", key); err != nil {
			return 0, err
		}
		d, err := t.until(part, began)
		if err != nil {
			return 0, err
		}
		took = append(took, d)
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

func bound(what string, got, most float64, unit string) error {
	fmt.Printf("%-22s %8.1f %-3s (at most %.0f)\n", what, got, unit, most)
	if got > most {
		return fmt.Errorf("%s: %.1f %s, at most %.0f", what, got, unit, most)
	}
	return nil
}

// cpuTime is what a process has used, from /proc/PID/stat: in hundredths of a second.
func cpuTime(pid string) (time.Duration, error) {
	b, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0, fmt.Errorf("cannot read %q", b)
	}
	user, err1 := strconv.ParseInt(f[11], 10, 64)
	system, err2 := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond, errors.Join(err1, err2)
}

// memory is the largest resident size of a process in KiB.
func memory(pid string) (int64, error) {
	b, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	if err != nil {
		return 0, err
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(b)
	if m == nil {
		return 0, errors.New("no VmHWM in the status of the process")
	}
	return strconv.ParseInt(string(m[1]), 10, 64)
}
