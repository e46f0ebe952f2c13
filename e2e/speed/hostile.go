package main

import (
	"fmt"
	"os"
	"slices"
	"time"
)

// attackRows are a row for each kind of attack: p99 of senders beside it, against that without.
func (b *bench) attackRows() []row {
	kinds := make([]string, 0, len(attacks))
	for kind := range attacks {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	var rows []row
	for _, kind := range kinds {
		rows = append(rows, row{
			id: "attack-" + kind, long: true, group: "async",
			title:   "16 in flight beside an attacker on one core (" + kind + "); ratio is with/without",
			command: "mqx bench produce --in-flight 16 beside the attack", floors: []floor{under("p99Ratio", 2), under("anonOverIdleMiB", 256)},
			measure: func(p *peer) (sample, error) { return b.underAttack(p, kind) },
		})
	}
	return rows
}

func (b *bench) underAttack(p *peer, kind string) (sample, error) {
	if err := p.fill(); err != nil {
		return nil, err
	}
	send := func() (sample, error) {
		return p.load(p.brProc, "produce", "--verify=false", "-t", topic, "--in-flight", "16", "--duration", b.seconds.String())
	}
	without, err := send()
	if err != nil {
		return nil, err
	}
	idle, err := statusOf(p.brProc.pid(), "RssAnon")
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	attacker, err := p.spawn("attack-"+kind, "taskset", "-c", "0", self, attackCommand, kind, p.broker, (2*b.seconds + 10*time.Second).String())
	if err != nil {
		return nil, err
	}
	defer attacker.kill()
	time.Sleep(500 * time.Millisecond) // it is under way
	most := make(chan float64)
	stop := make(chan struct{})
	go func() { most <- p.mostMemory(stop) }()
	with, err := send()
	close(stop)
	peak := <-most
	if err != nil {
		return nil, err
	}
	select {
	case <-attacker.done:
		return nil, fmt.Errorf("the attack ended before the sends did: see %s", attacker.log)
	default:
	}
	return sample{
		"perSecond": with["perSecond"], "p99Ms": with["p99Ms"], "p99Ratio": with["p99Ms"] / without["p99Ms"],
		"anonOverIdleMiB": max(peak-idle, 0), "errors": with["errors"],
	}, nil
}

// mostMemory is the highest RssAnon of the broker until stop is closed, in MiB.
func (p *peer) mostMemory(stop <-chan struct{}) (most float64) {
	t := time.NewTicker(20 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return most
		case <-t.C:
			if now, err := statusOf(p.brProc.pid(), "RssAnon"); err == nil {
				most = max(most, now)
			}
		}
	}
}
