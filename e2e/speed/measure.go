package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// measure goes through the rows that are asked for.
func (b *bench) measure(rep *report) error {
	var inGroups, alone []row
	for _, r := range b.rowList() {
		switch {
		case !b.rows.MatchString(r.id) || r.long && !b.long:
		case r.group != "":
			inGroups = append(inGroups, r)
		default:
			alone = append(alone, r)
		}
	}
	for _, group := range []string{"async", "sync"} {
		rows := slices.DeleteFunc(slices.Clone(inGroups), func(r row) bool { return r.group != group })
		if len(rows) == 0 {
			continue
		}
		if err := b.measureGroup(rep, group, rows); err != nil {
			return err
		}
		b.endAll()
	}
	for _, r := range alone {
		if err := b.measureRow(rep, r, nil); err != nil {
			return err
		}
		b.endAll()
	}
	return nil
}

// makes are those to measure, in turn.
func (b *bench) makes() []string {
	if b.only != "" {
		return []string{b.only}
	}
	return []string{makeMQX, makeApache}
}

func (b *bench) measureGroup(rep *report, group string, rows []row) error {
	var peers []*peer
	for _, kind := range b.makes() {
		p, err := b.newPeer(kind, group, groups[group]...)
		if err != nil {
			return err
		}
		peers = append(peers, p)
		if err := p.topics(rows); err != nil {
			return err
		}
		p.pause()
	}
	for _, r := range rows {
		if err := b.measureRow(rep, r, peers); err != nil {
			return err
		}
	}
	return nil
}

// topics makes what the rows send to.
func (p *peer) topics(rows []row) error {
	for _, t := range []string{topic, pullTopic, pushTopic, delayedTopic, timerTopic, txTopic} {
		if err := p.createTopic(t); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(rows, func(r row) bool { return r.id == "topics-1000" }) {
		if _, err := createTopics(p, numbered, 1000, 4); err != nil {
			return err
		}
	}
	return nil
}

// measureRow measures a row in turns. A row without servers of its group brings its own.
func (b *bench) measureRow(rep *report, r row, peers []*peer) error {
	res := rep.add(r)
	rounds := b.rounds
	if r.once {
		rounds = 1
	}
	for round := range rounds {
		for i, kind := range b.makes() {
			if b.ctx.Err() != nil {
				return b.ctx.Err()
			}
			p := &peer{b: b, make: kind}
			if peers != nil {
				p = peers[i]
				if err := p.ready(); err != nil {
					return err
				}
			}
			if err := b.cache.fill(); err != nil {
				return err
			}
			s, err := r.measure(p)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", r.id, kind, err)
			}
			res.take(kind, s)
			note("%-14s %-6s %d/%d %s", r.id, kind, round+1, rounds, s)
			if peers != nil {
				p.pause()
			}
		}
	}
	return nil
}

// maxStore is the size of a store above which its broker starts anew with an empty one.
const maxStore = 6 << 30

// ready resumes the peer, warms it up, and starts it anew when its store is large.
func (p *peer) ready() error {
	p.resume()
	if size := diskUse(p.store()); size > maxStore && !(p.filled && p.make == makeApache) {
		if _, err := p.stopBroker(); err != nil {
			return err
		}
		if err := p.forgetMessages(); err != nil {
			return err
		}
		if err := p.startBroker(); err != nil {
			return err
		}
	}
	if err := p.waitRegistered(); err != nil {
		return err
	}
	warm := 2 * time.Second
	if p.make == makeApache {
		warm = p.b.warm
	}
	if p.warmed >= warm {
		return nil
	}
	note("warming up %s", p.make)
	for _, inFlight := range []string{"64", "1", "256"} {
		if _, err := p.load(p.brProc, "produce", "--verify=false", "-t", topic, "--in-flight", inFlight, "--duration", (warm / 3).String()); err != nil {
			return err
		}
	}
	p.warmed = warm
	return nil
}

// forgetMessages removes the messages of a stopped broker, not its topics.
func (p *peer) forgetMessages() error {
	p.filled, p.pulled, p.popped = false, false, false
	for _, name := range []string{"commitlog", "consumequeue", "index", "checkpoint"} {
		if err := os.RemoveAll(filepath.Join(p.store(), name)); err != nil {
			return err
		}
	}
	return nil
}

// diskUse sums up the sizes of files.
func diskUse(dir string) (size int64) {
	_ = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				size += info.Size()
			}
		}
		return nil // what goes away meanwhile does not count
	})
	return size
}
