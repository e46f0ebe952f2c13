package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// round is one group from its start to its judgement.
type round struct {
	o        *options
	p        *plan
	g        *group
	l        *load
	t        totals
	findings []string
	excused  []excuse
	small    map[*node]bool // its store is a small disk
}

// excuse is a recorded interval: what this broker acknowledged or showed in it, until then, may be lost.
type excuse struct {
	broker string
	until  time.Time
	interval
}

func runRound(ctx context.Context, o *options, p *plan) (*totals, []string) {
	r := &round{o: o, p: p, t: totals{steps: map[string]int{}}, small: map[*node]bool{}}
	dir, err := os.MkdirTemp("", "hachaos")
	if err != nil {
		return &r.t, []string{err.Error()}
	}
	err = r.run(ctx, dir)
	if ctx.Err() == nil && err != nil {
		r.find("%v", err)
	}
	if len(r.findings) > 0 && ctx.Err() == nil && o.keep != "" {
		to := filepath.Join(o.keep, fmt.Sprintf("seed-%d", p.seed))
		err := os.MkdirAll(o.keep, 0o755)
		out, copyErr := exec.Command("cp", "-a", dir, to).CombinedOutput()
		if err = errors.Join(err, copyErr); err != nil {
			r.find("cannot keep the round: %v: %s", err, out)
		} else {
			r.find("kept in %s", to)
		}
	}
	if r.g != nil {
		if err := r.g.close(); err != nil {
			r.find("%v", err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		r.find("%v", err)
	}
	return &r.t, r.findings
}

func (r *round) find(format string, args ...any) {
	r.findings = append(r.findings, fmt.Sprintf(format, args...))
}

func (r *round) say(format string, args ...any) {
	if r.o.verbose {
		fmt.Fprintf(r.o.out, "    %s %s\n", time.Now().Format("15:04:05.000"), fmt.Sprintf(format, args...))
	}
}

func (r *round) run(ctx context.Context, dir string) error {
	var err error
	if r.g, err = newGroup(ctx, r.o, r.p, dir); err != nil {
		return err
	}
	if err := r.begin(); err != nil {
		return err
	}
	r.l = startLoad(r.g)
	began := time.Now()
	defer r.l.stop()
	if err := r.g.wait("the load to begin", 90*time.Second, func() (bool, string) { return r.l.acked() >= 50, fmt.Sprint(r.l.acked()) }); err != nil {
		return err
	}
	if r.o.apache {
		if err := r.mendApache(); err != nil {
			return err
		}
	}
	for _, s := range r.p.steps {
		time.Sleep(s.after)
		r.say("%s", s)
		if err := r.step(s); err != nil {
			return fmt.Errorf("step %s: %w", s, err)
		}
		if err := r.mend(); err != nil {
			return fmt.Errorf("after step %s: %w", s, err)
		}
	}
	r.t.load = time.Since(began)
	return r.judge()
}

// begin makes small disks, starts all brokers, creates the topic and waits for the slaves.
func (r *round) begin() error {
	g := r.g
	for k, at := range map[kind]int{fullMaster: 0, fullSlave: 1} {
		if !r.p.has(k) {
			continue
		}
		if err := g.nodes[at].smallDisk(r.p.ext4); err != nil {
			r.say("%v", err)
			r.t.left = append(r.t.left, string(k))
			continue
		}
		r.small[g.nodes[at]] = true
	}
	for _, n := range g.nodes {
		if err := n.start(); err != nil {
			return err
		}
	}
	if err := g.wait("the topic", time.Minute, func() (bool, string) {
		_, err := g.admin("topic", "create", topic, "-b", g.master.addr(), "--queues", fmt.Sprint(queues), "--yes")
		return err == nil, fmt.Sprint(err)
	}); err != nil {
		return err
	}
	return r.mend()
}

// step does one thing and leaves the mending to mend.
func (r *round) step(s step) error {
	g := r.g
	r.t.steps[string(s.kind)]++
	slaves := g.slaves()
	one := slaves[s.which]
	defer r.links(whole, g.nodes[:]...)
	if s.cut {
		r.links(cut, slaves...)
	}
	pause := func(nodes ...*node) error {
		for _, n := range nodes {
			n.proc.signal(syscall.SIGSTOP)
		}
		time.Sleep(s.long)
		for _, n := range nodes {
			n.proc.signal(syscall.SIGCONT)
		}
		return nil
	}
	kill := func(nodes ...*node) error {
		for _, n := range nodes {
			n.proc.kill()
		}
		time.Sleep(s.long)
		return nil
	}
	faulty := func(m linkMode, nodes ...*node) error {
		r.links(m, nodes...)
		time.Sleep(s.long)
		return nil
	}
	switch s.kind {
	case killMaster:
		return kill(g.master)
	case killSlave:
		return kill(one)
	case killSlaves:
		return kill(slaves...)
	case killAll:
		return kill(g.nodes[:]...)
	case stopMaster:
		return pause(g.master)
	case stopSlave:
		return pause(one)
	case stopSlaves:
		return pause(slaves...)
	case cutLinks:
		return faulty(cut, slaves...)
	case slowLinks:
		return faulty(slow, slaves...)
	case holeOne:
		return faulty(hole, one)
	case holeBoth:
		return faulty(hole, slaves...)
	case wipeSlave:
		return r.wipe(one, s.long)
	case fullSlave:
		return r.full(g.nodes[1], s)
	case fullMaster:
		return r.full(g.nodes[0], s)
	default:
		return r.failover(s)
	}
}

func (r *round) links(m linkMode, nodes ...*node) {
	for _, n := range nodes {
		n.link.set(m)
	}
}

// wipe takes a slave's disk away.
func (r *round) wipe(n *node, long time.Duration) error {
	n.proc.kill()
	time.Sleep(long)
	return n.empty()
}

// empty removes all that a broker has stored.
func (n *node) empty() error {
	entries, err := os.ReadDir(n.store())
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if e.Name() != "lost+found" {
			errs = append(errs, os.RemoveAll(n.file(e.Name())))
		}
	}
	return errors.Join(errs...)
}

// full fills the small disk of a broker, which may have another role by now than at the start.
func (r *round) full(n *node, s step) error {
	if !r.small[n] {
		return nil
	}
	if err := n.fill(s.long.Milliseconds() * 128); err != nil { // up to 640 KiB are left
		return err
	}
	time.Sleep(s.long)
	if s.which == 1 {
		n.proc.kill() // and dies on it
	}
	return n.free()
}

// failover makes a slave the master.
func (r *round) failover(s step) error {
	g := r.g
	old := g.master
	r.t.promotions++
	if r.o.apache {
		return r.apacheFailover(s, old)
	}
	args := []string{"ha", "promote", groupName, "--master-gone", "--yes"}
	switch s.kind {
	case promotePlanned:
		time.Sleep(s.long)
		r.links(whole, g.nodes[:]...) // or the slave does not come to its master's end
		args = []string{"ha", "promote", groupName, "--yes"}
	case promoteStopped:
		old.proc.signal(syscall.SIGSTOP)
	case promoteDegraded:
		r.links(hole, g.slaves()...)
		time.Sleep(s.long)
		fallthrough
	default:
		if s.kind == promoteKilled {
			time.Sleep(s.long / 4)
		}
		old.proc.kill()
		if err := r.excuse(old); err != nil {
			return err
		}
	}
	if s.kind != promotePlanned {
		r.links(whole, g.nodes[:]...)
		for _, n := range g.slaves() {
			if err := n.start(); err != nil {
				return err
			}
		}
	}
	if err := g.wait("a promotion", 90*time.Second, func() (bool, string) {
		text, err := g.admin(args...)
		r.say("%v %s", err, text)
		return err == nil, fmt.Sprint(err)
	}); err != nil {
		return err
	}
	if err := r.newMaster(old); err != nil {
		return err
	}
	if s.kind == promotePlanned {
		return nil
	}
	time.Sleep(s.long)
	old.proc.signal(syscall.SIGCONT)
	if err := old.start(); err != nil {
		return err
	}
	return r.demote(old)
}

// newMaster finds who is the master now.
func (r *round) newMaster(old *node) error {
	return r.g.wait("a new master", 60*time.Second, func() (bool, string) {
		state := ""
		for _, n := range r.g.nodes {
			if n == old {
				continue
			}
			x, err := n.standing()
			if err == nil && x.Role == "master" && x.State == "master" {
				r.g.lead(n)
				r.l.master.Store(n)
				r.say("broker %d is the master", n.no)
				return true, ""
			}
			state += fmt.Sprint(x, err)
		}
		return false, state
	})
}

// demote makes an old master a slave of the new one once it has seen that it is none any more.
func (r *round) demote(old *node) error {
	if err := r.g.wait("an old master that is fenced", 60*time.Second, func() (bool, string) {
		x, err := old.standing()
		return err == nil && x.State == "fenced", fmt.Sprint(x, err)
	}); err != nil {
		return err
	}
	if err := r.excuse(old); err != nil {
		return err
	}
	return r.g.wait("a demotion", 90*time.Second, func() (bool, string) {
		text, err := r.g.admin("ha", "demote", old.addr(), "--yes")
		r.say("%v %s", err, text)
		return err == nil, fmt.Sprint(err)
	})
}

// excuse takes what a master has recorded of degraded times up to now.
func (r *round) excuse(n *node) error {
	all, err := n.intervals()
	for _, i := range all {
		r.say("broker %d recorded %+v", n.no, i)
		r.excused = append(r.excused, excuse{broker: n.addr(), until: time.Now(), interval: i})
	}
	return err
}

// mend ends all faults and waits until the group is whole again and takes messages.
func (r *round) mend() error {
	g := r.g
	r.links(whole, g.nodes[:]...)
	for _, n := range g.nodes {
		n.proc.signal(syscall.SIGCONT)
		if err := n.start(); err != nil {
			return err
		}
	}
	if r.o.apache {
		if err := r.mendApache(); err != nil {
			return err
		}
	} else if err := g.wait("a group that is whole", 90*time.Second, r.isWhole); err != nil {
		return err
	}
	if r.l == nil {
		return nil
	}
	before := r.l.acked()
	return g.wait("messages that are acknowledged", 60*time.Second, func() (bool, string) { return r.l.acked() > before, "none" })
}

func (r *round) isWhole() (bool, string) {
	for _, n := range r.g.slaves() {
		x, err := n.standing()
		switch {
		case err != nil:
			return false, err.Error()
		case x.State == "parted" || x.State == "ahead" || x.State == "behind":
			r.t.resyncs++
			text, err := r.g.admin("ha", "resync", n.addr(), "--yes")
			r.say("broker %d is %s (%s): %v %s", n.no, x.State, x.Why, err, text)
			return false, fmt.Sprint(x, err)
		case x.Role != "slave" || x.State != "following":
			return false, fmt.Sprintf("broker %d: %+v", n.no, x)
		}
	}
	m, err := r.g.master.standing()
	return err == nil && m.InSync == replicas-1, fmt.Sprintf("the master: %+v %v", m, err)
}
