package admin

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"mqx/internal/words"
)

// judge turns facts into checks: no clock, no I/O. They stand in the order of the
// checks, each with its brokers sorted.
func (f *joinFacts) judge() []Check {
	var out []Check
	out = append(out, f.judgeServers()...)
	for _, one := range []func(b *brokerFacts) []Check{
		f.judgeRegistered, f.judgeClock, f.judgeServerList, f.judgePorts, f.judgeFromBrokers, f.judgeDisk, f.judgeDiskSpeed, f.judgeVersion, f.judgeJoining,
	} {
		for _, b := range f.brokers {
			out = append(out, one(b)...)
		}
	}
	return out
}

func (f *brokerFacts) check(name, verdict, evidence, try string) []Check {
	return []Check{{Name: name, Broker: cmp.Or(f.broker.Name, f.broker.Addr), Addr: f.broker.Addr, Verdict: verdict, Evidence: evidence, Try: try}}
}

// silent is the check of a broker that told nothing.
func (f *brokerFacts) silent(name string) []Check {
	return f.check(name, VerdictUnknown, "the broker does not answer: "+f.err.Error(), "")
}

// judgeServers compares the name servers with each other.
func (f *joinFacts) judgeServers() []Check {
	var out []Check
	known := map[string]bool{}
	for _, addrs := range f.servers {
		maps.Copy(known, addrs)
	}
	for _, ns := range slices.Sorted(maps.Keys(f.servers)) {
		var missing []string
		for addr := range known {
			if !f.servers[ns][addr] {
				missing = append(missing, addr)
			}
		}
		slices.Sort(missing)
		c := Check{Name: "name-server", Broker: ns, Addr: ns, Verdict: VerdictOK, Evidence: fmt.Sprintf("answers, knows %d of %d brokers", len(f.servers[ns]), len(known))}
		if len(missing) > 0 {
			c.Verdict, c.Try = VerdictFinding, "namesrvAddr of those brokers, and whether they reach this name server"
			c.Evidence += "; does not know " + strings.Join(missing, ", ")
		}
		out = append(out, c)
	}
	for _, ns := range slices.Sorted(maps.Keys(f.down)) {
		out = append(out, Check{Name: "name-server", Broker: ns, Addr: ns, Verdict: VerdictFinding, Evidence: "does not answer: " + f.down[ns].Error(), Try: "start it, or take it out of every list"})
	}
	return out
}

// judgeRegistered: a registration is also the proof that the broker reaches that name server.
func (f *joinFacts) judgeRegistered(b *brokerFacts) []Check {
	var at, not []string
	for _, ns := range slices.Sorted(maps.Keys(f.servers)) {
		if f.servers[ns][b.broker.Addr] {
			at = append(at, ns)
		} else {
			not = append(not, ns)
		}
	}
	if len(not) > 0 {
		return b.check("registered", VerdictFinding, fmt.Sprintf("at %d of %d name servers, not at %s", len(at), len(f.servers), strings.Join(not, ", ")),
			"set namesrvAddr of the broker to all name servers, and open the way there")
	}
	return b.check("registered", VerdictOK, "at "+strings.Join(at, ", ")+", which the broker therefore reaches", "")
}

func (f *joinFacts) judgeClock(b *brokerFacts) []Check {
	if b.err != nil {
		return b.silent("clock")
	}
	least, most, err := b.clock()
	if err != nil {
		return b.check("clock", VerdictUnknown, err.Error(), "")
	}
	seen := fmt.Sprintf("between %+.2f s and %+.2f s from this machine's clock (bootTimestamp + runtime)", least.Seconds(), most.Seconds())
	if least > f.opts.MaxSkew || most < -f.opts.MaxSkew {
		return b.check("clock", VerdictFinding, seen, "set the clocks of the broker and of this machine by one time server")
	}
	return b.check("clock", VerdictOK, seen, "")
}

// judgeServerList compares namesrvAddr of the broker with that of the others.
func (f *joinFacts) judgeServerList(b *brokerFacts) []Check {
	const name = "name-server-list"
	if b.err != nil {
		return b.silent(name)
	}
	list := serverList(b.config["namesrvAddr"])
	if b.config == nil || list == "" {
		why := "namesrvAddr is empty: it comes from somewhere else"
		if b.configErr != nil {
			why = "the broker does not tell its configuration: " + b.configErr.Error()
		}
		return b.check(name, VerdictUnknown, why, "")
	}
	var others []string
	for _, o := range f.brokers {
		if theirs := serverList(o.config["namesrvAddr"]); theirs != "" && theirs != list {
			others = append(others, cmp.Or(o.broker.Name, o.broker.Addr)+" has "+theirs)
		}
	}
	if len(others) > 0 {
		return b.check(name, VerdictFinding, list+"; "+strings.Join(others, ", "), "give every broker the same namesrvAddr")
	}
	return b.check(name, VerdictOK, list+", as the others have", "")
}

func (f *joinFacts) judgePorts(b *brokerFacts) []Check {
	var out []Check
	for _, name := range []string{"main", "vip", "ha"} {
		addr, there := b.portAddrs[name]
		switch err := b.ports[name]; {
		case !there && name == "ha" && b.err == nil:
			out = append(out, b.check("port-ha", VerdictUnknown, "the broker does not tell haListenPort", "")...)
		case !there:
		case err == nil:
			out = append(out, b.check("port-"+name, VerdictOK, addr+" takes connections from here", "")...)
		case name == "ha" && !f.hasReplica(b):
			out = append(out, b.check("port-ha", VerdictUnknown, addr+" takes no connection from here, and no replica is registered that would need it: "+err.Error(), "")...)
		default:
			out = append(out, b.check("port-"+name, VerdictFinding, addr+" takes no connection from here: "+err.Error(), "open the way to "+addr+", or advertise an address that is reached")...)
		}
	}
	return out
}

func (f *joinFacts) hasReplica(b *brokerFacts) bool {
	return slices.ContainsFunc(f.brokers, func(o *brokerFacts) bool {
		return o.broker.Name == b.broker.Name && o.broker.Cluster == b.broker.Cluster && o.broker.Addr != b.broker.Addr
	})
}

// judgeFromBrokers: only a replica that is connected proves a way from broker to broker.
func (f *joinFacts) judgeFromBrokers(b *brokerFacts) []Check {
	const name = "ports-from-brokers"
	switch {
	case b.err != nil:
		return b.silent(name)
	case len(b.replicas) > 0:
		var who []string
		for _, r := range b.replicas {
			who = append(who, r.Addr)
		}
		return b.check(name, VerdictOK, "replicas are connected to its HA port: "+strings.Join(who, ", "), "")
	case f.hasReplica(b) && b.broker.ID == 0 && b.replicaErr == nil:
		return b.check(name, VerdictFinding, "a replica is registered and none is connected to its HA port", "open "+b.portAddrs["ha"]+" for the replica")
	}
	return b.check(name, VerdictUnknown, "no request asks a broker to connect to another, and no replica is connected that would show it", "")
}

func (f *joinFacts) judgeDisk(b *brokerFacts) []Check {
	if b.err != nil {
		return b.silent("disk")
	}
	ratio, err := strconv.ParseFloat(b.runtime["commitLogDiskRatio"], 64)
	if err != nil || ratio < 0 {
		return b.check("disk", VerdictUnknown, fmt.Sprintf("commitLogDiskRatio is %q", b.runtime["commitLogDiskRatio"]), "")
	}
	seen := fmt.Sprintf("%.0f %% of the disk of the commit log is used; %s", ratio*100, strings.TrimSuffix(b.runtime["commitLogDirCapacity"], "."))
	if ratio > f.opts.MaxDiskRatio {
		return b.check("disk", VerdictFinding, seen, "more room, or a lower fileReservedTime: mqx admin config set -b "+cmp.Or(b.broker.Name, b.broker.Addr)+" fileReservedTime=24")
	}
	return b.check("disk", VerdictOK, seen, "")
}

func (f *joinFacts) judgeDiskSpeed(b *brokerFacts) []Check {
	if b.err != nil {
		return b.silent("disk-speed")
	}
	ms, err := strconv.ParseFloat(b.runtime["putLatency99"], 64)
	puts, putErr := strconv.ParseInt(b.runtime["putMessageTimesTotal"], 10, 64)
	switch {
	case err != nil || ms < 0 || putErr != nil:
		return b.check("disk-speed", VerdictUnknown, "the broker does not tell how long its puts took", "")
	case puts == 0 || ms == 0 && puts < 100:
		return b.check("disk-speed", VerdictUnknown, fmt.Sprintf("%s put since its start: too few", words.Count(puts, "message was", "messages were")), "")
	case ms > slowPut:
		return b.check("disk-speed", VerdictFinding, fmt.Sprintf("99 in 100 puts within %.2f ms only", ms), "look at the disk: iostat -x, and who else writes there")
	}
	return b.check("disk-speed", VerdictOK, fmt.Sprintf("99 in 100 puts within %.2f ms", ms), "")
}

// judgeVersion compares the versions; the one that most have is right.
func (f *joinFacts) judgeVersion(b *brokerFacts) []Check {
	if b.err != nil {
		return b.silent("version")
	}
	version := b.runtime["brokerVersionDesc"]
	if version == "" {
		return b.check("version", VerdictUnknown, "the broker does not tell its version", "")
	}
	count := map[string]int{}
	for _, o := range f.brokers {
		if v := o.runtime["brokerVersionDesc"]; v != "" {
			count[v]++
		}
	}
	most := version
	for _, v := range slices.Sorted(maps.Keys(count)) {
		if count[v] > count[most] {
			most = v
		}
	}
	if most != version {
		return b.check("version", VerdictFinding, version+", most others have "+most, "one version on all brokers")
	}
	return b.check("version", VerdictOK, version, "")
}

// judgeJoining looks at the broker that is to join.
func (f *joinFacts) judgeJoining(b *brokerFacts) []Check {
	if f.joining == "" || b.broker.Addr != f.joining {
		return nil
	}
	if b.err != nil {
		return b.silent("auto-create")
	}
	var out []Check
	switch auto := b.config["autoCreateTopicEnable"]; auto {
	case "false":
		out = append(out, b.check("auto-create", VerdictOK, "autoCreateTopicEnable=false", "")...)
	case "":
		out = append(out, b.check("auto-create", VerdictUnknown, "the broker does not tell autoCreateTopicEnable", "")...)
	default:
		out = append(out, b.check("auto-create", VerdictFinding, "autoCreateTopicEnable="+auto+": topics come into being here by surprise", "mqx broker start --join empty, or autoCreateTopicEnable=false")...)
	}
	if perm := b.config["brokerPermission"]; perm != "" {
		out = append(out, b.check("permission", VerdictOK, "brokerPermission="+perm, "")...)
	}
	if b.tableErr != nil {
		return append(out, b.check("groups", VerdictUnknown, b.tableErr.Error(), "")...)
	}
	seed := "mqx admin broker seed " + cmp.Or(b.broker.Name, b.broker.Addr)
	if missing := b.missingGroups(f.brokers); len(missing) > 0 {
		out = append(out, b.check("groups", VerdictFinding, fmt.Sprintf("%s not here: %s", words.Count(len(missing), "group of the cluster is", "groups of the cluster are"), shortList(missing)), seed)...)
	} else {
		out = append(out, b.check("groups", VerdictOK, fmt.Sprintf("%s, all that the others have", words.Count(len(b.groups), "group")), "")...)
	}
	if len(b.topics) > 0 {
		return append(out, b.check("topics", VerdictFinding, fmt.Sprintf("%s here already: %s", words.Count(len(b.topics), "topic is", "topics are"), shortList(b.topics)), "")...)
	}
	return append(out, b.check("topics", VerdictOK, "none", "")...)
}

// shortList is the first few names of a list.
func shortList(names []string) string {
	if len(names) > maxKnown {
		return strings.Join(names[:maxKnown], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
