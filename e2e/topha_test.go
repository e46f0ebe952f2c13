package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// replica is a row of the brokers' view: those of a group have the same name.
func (s *screen) replica(role string) map[string]string {
	lines := strings.Split(s.text(), "\n")
	cells := func(l string) []string {
		return regexp.MustCompile(` {2,}`).Split(strings.TrimSpace(strings.TrimPrefix(l, ">")), -1)
	}
	var titles []string
	for _, l := range lines {
		switch row := cells(l); {
		case strings.HasPrefix(l, "  BROKER "):
			titles = row
		case titles != nil && len(row) > 1 && row[1] == role:
			out := map[string]string{}
			for i, c := range row[:min(len(row), len(titles))] {
				out[titles[i]] = c
			}
			return out
		}
	}
	return nil
}

// gap waits until the gap of a broker is shown as wanted.
func (s *screen) gap(role, want string) {
	s.t.Helper()
	waitFor(s.t, 90*time.Second, fmt.Sprintf("the gap of the %s is %q", role, want), func() (bool, string) {
		row := s.replica(role)
		return regexp.MustCompile("^(" + want + ")$").MatchString(row["HA GAP"]), fmt.Sprint(row)
	})
}

// mqx top shows how far the slave of a master is behind, and that nobody knows where nobody does: under load, with the slave
// stopped, away, back again, and dead.
func TestTopShowsReplicas(t *testing.T) {
	if reference() {
		t.Skip("the level is mqx's")
	}
	t.Parallel()
	needTmux(t)
	p := newReplicaPair(t, "top")
	p.a.extra = append(p.a.extra, "replicationLevel=semi-sync", "slaveTimeout=300", "haHousekeepingInterval=6000")
	p.b.extra = append(p.b.extra, "haSendHeartbeatInterval=1000")
	a, b := mqxBroker(t, p.a), mqxBroker(t, p.b)
	a.cleanup(t)
	b.cleanup(t)
	p.createTopic(t, p.a)
	p.standing(t, p.b, ",following,")
	load(t, 100, "produce", p.topic, "-n", p.ns, "--retries", "20", "-o", "name")
	s := openTop(t, p.ns)
	waitFor(t, 60*time.Second, "the first screen", func() (bool, string) { x := s.text(); return strings.Contains(x, "[1 overview]"), x })
	s.keys("2")
	const size = `[0-9.]+ [KMG]?i?B`
	s.gap("master", size)
	s.gap("slave 1", "-")

	if err := b.signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.gap("master", "[1-9][0-9.]* [KMG]?i?B degraded") // still connected
	s.gap("master", "no replica degraded")
	p.unknown(t, true)
	if err := b.signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	s.gap("master", size)
	b.kill()
	s.gap("master", "no replica( degraded)?")
	p.unknown(t, true)
}

// unknown wants the gap of the master to be null, and what is known not to be.
func (p *replicaPair) unknown(t *testing.T, degraded bool) {
	t.Helper()
	waitFor(t, 60*time.Second, "a master without a replica", func() (bool, string) {
		text, _ := outputEven(mqxBinary, "top", "--once", "--view", "brokers", "-n", p.ns, "-o", "json")
		var x struct {
			Items []struct {
				BrokerID             int64
				Replicas, HAGapBytes *int64
				HADegraded           *bool
				HAState              *string
			}
		}
		if err := json.Unmarshal([]byte(text), &x); err != nil {
			return false, text
		}
		for _, b := range x.Items {
			switch {
			case b.BrokerID != 0 && (b.Replicas != nil || b.HAGapBytes != nil || b.HADegraded != nil):
				t.Errorf("a slave says what a master knows: %s", text)
			case b.BrokerID == 0:
				return b.HAGapBytes == nil && b.Replicas != nil && *b.Replicas == 0 && b.HADegraded != nil && *b.HADegraded == degraded, text
			}
		}
		return false, text
	})
}
