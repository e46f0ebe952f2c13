package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"mqx/admin"
	"mqx/internal/words"
)

var brokerRules = []Rule{
	{
		ID: "config-differs", Scope: ScopeCluster, Severity: Warning, judge: judgeConfigs,
		Looks:   "Brokers of one cluster have different values of a setting that all should share.",
		Meaning: "the same topic is kept, flushed or taken otherwise on each of them",
		Mend:    "mqx admin config diff shows them; mqx admin config set -c CLUSTER <NAME>=VALUE makes them one",
	},
	{
		ID: "version-differs", Scope: ScopeCluster, Severity: Warning, judge: judgeVersions,
		Looks:   "Brokers of one cluster are of different versions.",
		Meaning: "what one serves another may refuse; all right for as long as an upgrade takes",
		Mend:    "mqx admin cluster roll plan, then start, restarts brokers one by one with the new version",
	},
	{
		ID: "clock-differs", Scope: ScopeCluster, Severity: Warning, judge: judgeClocks,
		Looks:   "The clock of a broker differs from that of another, or of this machine, by more than two seconds.",
		Meaning: "delayed messages come too early or too late, ages and searches by time are wrong by as much",
		Mend:    "set the clock of <NAME> by a time server (chronyc makestep), then mqx admin cluster join-check",
	},
	{
		ID: "address-unreachable", Scope: ScopeCluster, Severity: Critical, judge: judgeAddresses,
		Looks:   "The address that a broker advertises takes no connection from here, or from a name server's machine.",
		Meaning: "clients get this address from the name server and cannot use it: a wrong network card, a container's own address, or a firewall",
		Mend:    "mqx broker start --advertise HOST:PORT (brokerIP1) with an address that clients reach",
	},
	{
		ID: "ha-gap", Scope: ScopeCluster, Severity: Warning, judge: judgeHA,
		Looks:   "A replica is not in sync, or is further behind its master than 256 MiB, or one is registered and not connected, or refused; a master acknowledges with fewer copies than its level says, or refuses sends for want of slaves.",
		Meaning: "what the replica has not got yet is lost if the master's disk is",
		Mend:    "mqx admin ha status <NAME>, mqx admin ha degraded <NAME>; then the network and the disk of the replica",
	},
}

// ownKeys are settings that each broker has its own value of.
var ownKeys = map[string]bool{
	"brokerName": true, "brokerId": true, "brokerIP1": true, "brokerIP2": true, "listenPort": true, "haListenPort": true, "fastListenPort": true,
	"brokerRole": true, "haMasterAddress": true, "rocketmqHome": true, "metricsPromExporterPort": true, "metricsPromExporterHost": true, "namesrvAddr": true,
	"brokerConfigPath": true, "configBlackList": true, "brokerHeartbeatInterval": true, "haSlaveAddr": true, "haListenAddr": true,
}

// sharedKey: a difference of this setting is a finding. What describes the machine, as
// paths, ports and numbers of threads by its processors do, is not.
func sharedKey(key string) bool {
	lower := strings.ToLower(key)
	return !ownKeys[key] && !strings.Contains(lower, "path") && !strings.Contains(lower, "port") && !strings.Contains(lower, "threadpoolnums") &&
		!strings.Contains(lower, "threadnums") && !strings.HasSuffix(lower, "addr") && !strings.Contains(lower, "secret") && !strings.HasSuffix(lower, "timestamp")
}

func judgeConfigs(j *judgement) {
	byCluster := map[string][]*admin.BrokerSurvey{}
	for _, b := range j.masters() {
		if b.Config == nil {
			j.unknown("%s does not tell its configuration", nameOf(b))
			continue
		}
		byCluster[b.Cluster] = append(byCluster[b.Cluster], b)
	}
	for _, cluster := range slices.Sorted(maps.Keys(byCluster)) {
		brokers := byCluster[cluster]
		first := brokers[0]
		for _, key := range slices.Sorted(maps.Keys(first.Config)) {
			if !sharedKey(key) {
				continue
			}
			values, same := []string{}, true
			for _, b := range brokers {
				v, there := b.Config[key]
				if !there {
					continue // of another kind, which does not know it
				}
				same = same && v == first.Config[key]
				values = append(values, fmt.Sprintf("%s has %q", nameOf(b), v))
			}
			if !same {
				j.findMend(Warning, key, strings.ReplaceAll(strings.ReplaceAll(j.rule.Mend, "<NAME>", key), "CLUSTER", cluster), "in cluster %s %s", cluster, someOf(values))
			}
		}
	}
	j.ok("the settings that masters of one cluster share are the same")
}

func judgeVersions(j *judgement) {
	by := map[string]map[string][]string{}
	j.brokers(func(b *admin.BrokerSurvey) {
		v, ok := b.Text("brokerVersionDesc")
		if !ok || v == "" {
			j.unknown("%s does not tell its version", nameOf(b))
			return
		}
		if by[b.Cluster] == nil {
			by[b.Cluster] = map[string][]string{}
		}
		by[b.Cluster][v] = append(by[b.Cluster][v], nameOf(b))
	})
	for _, cluster := range slices.Sorted(maps.Keys(by)) {
		versions := by[cluster]
		if len(versions) < 2 {
			continue
		}
		var seen []string
		for _, v := range slices.Sorted(maps.Keys(versions)) {
			seen = append(seen, v+" on "+someOf(versions[v]))
		}
		j.find(cluster, "%s", strings.Join(seen, "; "))
	}
	j.ok("the brokers of a cluster are of one version")
}

// judgeClocks compares clocks by their bounds: only what differs whatever the answers
// took is a finding (N063).
func judgeClocks(j *judgement) {
	var seen []*admin.BrokerSurvey
	j.brokers(func(b *admin.BrokerSurvey) {
		if b.ClockErr != nil {
			j.unknown("%s: %v", nameOf(b), b.ClockErr)
			return
		}
		seen = append(seen, b)
	})
	for i, b := range seen {
		skew := beyond(b.ClockLeast, b.ClockMost, 0, 0, j.Limits.Skew)
		against := "this machine's clock"
		for _, o := range seen[:i] {
			if d := beyond(b.ClockLeast, b.ClockMost, o.ClockLeast, o.ClockMost, j.Limits.Skew); skew == 0 && d != 0 {
				skew, against = d, "the clock of "+nameOf(o)
			}
		}
		switch {
		case skew > 0:
			j.find(nameOf(b), "at least %s ahead of %s (bootTimestamp + runtime)", seconds(skew), against)
		case skew < 0:
			j.find(nameOf(b), "at least %s behind %s (bootTimestamp + runtime)", seconds(-skew), against)
		}
	}
	j.ok("the clocks of %d brokers and of this machine are within %s of each other", len(seen), j.Limits.Skew)
}

// beyond is by how much a clock is surely ahead of another (or behind, negative), 0
// within the limit. Brokers tell their time in whole seconds: least and most are bounds.
func beyond(least, most, otherLeast, otherMost, limit time.Duration) time.Duration {
	if d := least - otherMost; d > limit {
		return d
	}
	if d := most - otherLeast; d < -limit {
		return d
	}
	return 0
}

func judgeAddresses(j *judgement) {
	tried, reach := 0, map[string]bool{}
	for i := range j.Cluster.Now.Brokers {
		b := &j.Cluster.Now.Brokers[i]
		err, there := b.Ports["main"]
		if !there {
			j.unknown("the ports of %s were not tried", nameOf(b))
			continue
		}
		tried++
		for _, ns := range slices.Sorted(maps.Keys(b.Reached)) {
			if err := b.Reached[ns]; err != nil {
				j.find(nameOf(b), "%s takes no connection from name server %s: %v", b.Addr, ns, err)
			}
			reach[ns] = true
		}
		if err != nil {
			j.find(nameOf(b), "%s takes no connection from here: %v", b.PortAddrs["main"], err)
		} else if vip := b.Ports["vip"]; vip != nil {
			j.findAs(Warning, nameOf(b), "%s takes no connection from here, which clients with vipChannelEnabled use: %v", b.PortAddrs["vip"], vip)
		}
	}
	for _, ns := range j.Cluster.Now.NameServers {
		if tried > 0 && ns.Err == nil && !reach[ns.Addr] {
			j.unknown("name server %s does not tell whether it reaches the brokers, as Apache's do not: run mqx doctor on its machine", ns.Addr)
		}
	}
	j.ok("%d advertised addresses take connections from here and from %d name servers", tried, len(reach))
}

func judgeHA(j *judgement) {
	replicas := map[string]int{}
	for i := range j.Cluster.Now.Brokers {
		if b := &j.Cluster.Now.Brokers[i]; !b.IsMaster() {
			replicas[b.Cluster+"\x00"+b.Name]++
		}
	}
	pairs := 0
	for _, b := range j.masters() {
		registered := replicas[b.Cluster+"\x00"+b.Name]
		if b.HA == nil {
			if registered > 0 {
				j.unknown("%s does not tell how it replicates", nameOf(b))
			}
			continue
		}
		pairs += len(b.HA.ConnectionInfo)
		j.judgeCopies(b)
		if registered > len(b.HA.ConnectionInfo) {
			j.findAs(Critical, nameOf(b), "%s registered and %d are connected to it", words.Count(registered, "replica is", "replicas are"), len(b.HA.ConnectionInfo))
		}
		for i := range b.HA.ConnectionInfo {
			r := &b.HA.ConnectionInfo[i]
			_, known := r.Behind()
			switch rate := j.gapRate(b, r.Addr, r.Diff); {
			case !known:
				j.unknown("the position of %s at %s is not known", r.Addr, nameOf(b)) // unset, which is no gap
			case r.Diff > j.Limits.HAGap:
				j.find(nameOf(b), "%s is %s behind%s", r.Addr, size(r.Diff), rate)
			case !r.InSync:
				j.find(nameOf(b), "%s is not in sync, %s behind%s", r.Addr, size(r.Diff), rate)
			}
		}
	}
	j.ok("%s connected and in sync", words.Count(pairs, "replica is", "replicas are"))
}

// judgeCopies judges what a master of mqx acknowledges by.
func (j *judgement) judgeCopies(b *admin.BrokerSurvey) {
	if b.HA.Mqx == nil || b.HA.Mqx.Master == nil {
		return
	}
	m := b.HA.Mqx.Master
	if n := len(m.Times); m.Degraded && n > 0 {
		t := m.Times[n-1]
		j.findAs(Critical, nameOf(b), "messages are acknowledged with fewer copies than %s asks for since %s (%s); %s have too few", m.Level,
			time.UnixMilli(t.Began).UTC().Format(time.RFC3339), t.Why, size(max(0, b.HA.MasterCommitLogMaxOffset-t.From)))
	}
	if m.InSync < m.Least {
		j.findAs(Critical, nameOf(b), "%s in sync and %d must be: sends are refused", words.Count(m.InSync, "slave is", "slaves are"), m.Least)
	}
	for _, r := range m.Refused {
		j.findAs(Critical, nameOf(b), "the slave %s is not served: %s", r.Peer, r.Why)
	}
	for _, r := range m.Replicas {
		if !r.Counted && !r.Async && m.Level != "async" {
			j.find(nameOf(b), "the slave %s counts as no copy: it cannot tell what is durable (haAckMode=flushed), or another slave of its host tells its broker id and it does not", r.ID)
		}
	}
}

// gapRate is how the gap changed since the earlier survey, "" where that is not known.
func (j *judgement) gapRate(b *admin.BrokerSurvey, addr string, now int64) string {
	o := j.Cluster.earlier(b)
	if o == nil || o.HA == nil {
		return ""
	}
	for i := range o.HA.ConnectionInfo {
		r := &o.HA.ConnectionInfo[i]
		if was, known := r.Behind(); known && r.Addr == addr {
			per := float64(now-was) / j.Cluster.over().Seconds()
			return fmt.Sprintf(", %+.1f KiB/s over %s", per/1024, seconds(j.Cluster.over()))
		}
	}
	return ""
}

// size is a number of bytes as people write it.
func size(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n)/unit, 0
	for ; v >= unit && i < 4; i++ {
		v /= unit
	}
	return fmt.Sprintf("%.1f %ciB", v, "KMGTP"[i])
}
