package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// level is a level of replication with its ack mode.
type level struct {
	name  string
	lines []string
}

// The levels; what async may lose, semi-sync loses in recorded intervals only, the others never.
var levels = []level{
	{"async", []string{"replicationLevel=async"}},
	{"semi-sync", []string{"replicationLevel=semi-sync"}},
	{"sync", []string{"replicationLevel=sync", "minInSyncReplicas=2"}},
	{"quorum", []string{"replicationLevel=quorum", "totalReplicas=3"}},
	{"semi-sync flushed", []string{"replicationLevel=semi-sync", "haAckMode=flushed"}},
	{"sync flushed", []string{"replicationLevel=sync", "minInSyncReplicas=2", "haAckMode=flushed"}},
	{"quorum flushed", []string{"replicationLevel=quorum", "totalReplicas=3", "haAckMode=flushed"}},
}

// apacheLevels are what brokers of Apache have without a controller.
var apacheLevels = []level{{"SYNC_MASTER", []string{"totalReplicas=3", "inSyncReplicas=2"}}}

// kind is a kind of step.
type kind string

const (
	killMaster      kind = "kill-master"
	killSlave       kind = "kill-slave"
	killSlaves      kind = "kill-slaves"
	killAll         kind = "kill-all"
	stopMaster      kind = "stop-master"
	stopSlave       kind = "stop-slave"
	stopSlaves      kind = "stop-slaves"
	cutLinks        kind = "cut-links"
	slowLinks       kind = "slow-links"
	holeOne         kind = "black-hole-one"
	holeBoth        kind = "black-hole-both"
	wipeSlave       kind = "wipe-slave"
	fullSlave       kind = "full-slave"
	fullMaster      kind = "full-master"
	promoteKilled   kind = "promote-killed"
	promoteDegraded kind = "promote-degraded"
	promoteStopped  kind = "promote-stopped"
	promotePlanned  kind = "promote-planned"
)

// weights say how often a kind comes, and its longest time.
var weights = []struct {
	kind    kind
	weight  int
	longest time.Duration
}{
	{killMaster, 2, 3 * time.Second},
	{killSlave, 2, 3 * time.Second},
	{killSlaves, 1, 7 * time.Second},
	{killAll, 1, 2 * time.Second},
	{stopMaster, 2, 5 * time.Second},
	{stopSlave, 2, 6 * time.Second},
	{stopSlaves, 2, 8 * time.Second},
	{cutLinks, 3, 5 * time.Second},
	{slowLinks, 1, 4 * time.Second},
	{holeOne, 1, 6 * time.Second},
	{holeBoth, 2, 8 * time.Second},
	{wipeSlave, 2, 2 * time.Second},
	{fullSlave, 1, 5 * time.Second},
	{fullMaster, 1, 4 * time.Second},
	{promoteKilled, 5, 3 * time.Second},
	{promoteDegraded, 3, 8 * time.Second},
	{promoteStopped, 2, 4 * time.Second},
	{promotePlanned, 2, time.Second},
}

// step is one thing that happens.
type step struct {
	kind  kind
	which int           // the slave that is meant, 0 or 1 of those that there are
	long  time.Duration // how long it lasts
	after time.Duration // load before it
	cut   bool          // links are cut meanwhile
}

func (s step) String() string {
	text := fmt.Sprintf("%s %.1fs", s.kind, s.long.Seconds())
	if s.cut {
		text += " with cut links"
	}
	return text
}

// plan is a round.
type plan struct {
	seed  uint64
	level level
	sync  bool // SYNC_FLUSH
	ext4  bool // full disks are of ext4, else of tmpfs
	steps []step
}

func (p *plan) String() string {
	var steps []string
	for _, s := range p.steps {
		steps = append(steps, s.String())
	}
	flush := "ASYNC_FLUSH"
	if p.sync {
		flush = "SYNC_FLUSH"
	}
	return fmt.Sprintf("%s, %s: %s", p.level.name, flush, strings.Join(steps, ", "))
}

func newPlan(seed uint64, o *options) plan {
	r := rand.New(rand.NewPCG(seed, 9))
	p := plan{seed: seed, sync: r.IntN(4) == 0, ext4: r.IntN(2) == 0}
	all := levels
	if o.apache {
		all = apacheLevels
	}
	var some []level
	for _, l := range all {
		if o.levels.MatchString(l.name) {
			some = append(some, l)
		}
	}
	if len(some) == 0 {
		some = all
	}
	p.level = some[seed%uint64(len(some))] // consecutive seeds come to all
	if o.each {
		p.steps = eachStep(seed, o, r)
		return p
	}
	total := 0
	for _, w := range weights {
		if o.only.MatchString(string(w.kind)) {
			total += w.weight
		}
	}
	for len(p.steps) < o.steps && total > 0 {
		n := r.IntN(total)
		for _, w := range weights {
			if !o.only.MatchString(string(w.kind)) {
				continue
			}
			if n -= w.weight; n < 0 {
				p.steps = append(p.steps, newStep(w.kind, w.longest, r))
				break
			}
		}
	}
	return p
}

func newStep(k kind, longest time.Duration, r *rand.Rand) step {
	s := step{kind: k, which: r.IntN(2), long: time.Duration(r.Int64N(int64(longest))), after: 200*time.Millisecond + time.Duration(r.Int64N(int64(1500*time.Millisecond)))}
	s.cut = r.IntN(3) == 0
	if k == promoteDegraded {
		s.long = max(s.long, 6*time.Second) // long enough to be degraded
	}
	return s
}

// eachStep takes the kinds in turn, so that a row of seeds comes to all of them.
func eachStep(seed uint64, o *options, r *rand.Rand) (out []step) {
	var all []int
	for i, w := range weights {
		if o.only.MatchString(string(w.kind)) {
			all = append(all, i)
		}
	}
	for i := range min(o.steps, len(all)) {
		w := weights[all[(seed%uint64(len(all))*uint64(o.steps)+uint64(i))%uint64(len(all))]]
		out = append(out, newStep(w.kind, w.longest, r))
	}
	return out
}

// has reports whether a step of this kind comes.
func (p *plan) has(k kind) bool {
	for _, s := range p.steps {
		if s.kind == k {
			return true
		}
	}
	return false
}
