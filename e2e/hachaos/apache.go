package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"mqx/remoting"
	remoteclient "mqx/remoting/client"
)

// Brokers of Apache have neither a promotion nor a way to mend a slave: what is done here is what their operators do by
// hand. The slave with the longest log is restarted as the master, the old master as its slave; a slave that does not
// come to its master's log is emptied.

// apacheFailover restarts a slave as the master.
func (r *round) apacheFailover(s step, old *node) error {
	g := r.g
	switch s.kind {
	case promotePlanned:
		r.l.paused.Store(true)
		time.Sleep(time.Second)
		if err := old.proc.stop(time.Minute); err != nil {
			r.find("broker %d: %v", old.no, err)
		}
		r.l.paused.Store(false)
	case promoteStopped:
		old.proc.signal(syscall.SIGSTOP)
	case promoteDegraded:
		r.links(hole, g.slaves()...)
		time.Sleep(s.long)
		old.proc.kill()
	default:
		time.Sleep(s.long / 4)
		old.proc.kill()
	}
	r.links(whole, g.nodes[:]...)
	var best *node
	most := int64(-1)
	for _, n := range g.slaves() {
		if err := n.start(); err != nil {
			return err
		}
		files, err := logFiles(n.store())
		if err != nil {
			return err
		}
		end := int64(0)
		for name, data := range files {
			var at int64
			if _, err := fmt.Sscanf(name, "%d", &at); err != nil {
				return err
			}
			end = max(end, at+int64(len(data)))
		}
		if end > most {
			best, most = n, end
		}
	}
	if err := best.proc.stop(time.Minute); err != nil {
		r.find("broker %d: %v", best.no, err)
	}
	if err := best.configure(true); err != nil {
		return err
	}
	if err := best.start(); err != nil {
		return err
	}
	g.lead(best)
	r.l.master.Store(best)
	r.say("broker %d is the master, its log ends at %d", best.no, most)
	time.Sleep(s.long)
	old.proc.signal(syscall.SIGCONT)
	if old.proc.alive() {
		time.Sleep(2 * time.Second) // until its operator has seen it
	}
	old.proc.kill()
	if err := old.configure(false); err != nil {
		return err
	}
	return old.start()
}

// mendApache waits until the slaves have their master's log, and empties those that do not come to it.
func (r *round) mendApache() error {
	g := r.g
	if r.l != nil {
		r.l.paused.Store(true)
		defer r.l.paused.Store(false)
	}
	for _, n := range g.slaves() {
		follow := func(limit time.Duration) error {
			return g.wait(fmt.Sprintf("slave %d to have the log", n.no), limit, func() (bool, string) {
				if diff := differ(g.master.store(), n.store(), true); diff != "" || r.l == nil {
					return diff == "", diff
				}
				// Tables come once a minute; a slave that is promoted before has no topics.
				text, err := os.ReadFile(n.file(filepath.Join("config", "topics.json")))
				return bytes.Contains(text, []byte(topic)), fmt.Sprint("no topic at the slave ", err)
			})
		}
		err := follow(75 * time.Second)
		if err == nil {
			continue
		}
		r.say("broker %d is emptied: %v", n.no, err)
		r.t.rebuilt++
		n.proc.kill()
		if err := n.empty(); err != nil {
			return err
		}
		if err := n.start(); err != nil {
			return err
		}
		if err := follow(120 * time.Second); err != nil {
			return err
		}
	}
	return nil
}

// tellMaster tells a slave of Apache where its master's replication port is: haMasterAddress is read by 5.5 before there is
// anything that it could be told to, and only keeps it from being overwritten.
func (n *node) tellMaster() error {
	conn := remoteclient.New(remoteclient.Config{})
	defer func() { _ = conn.Close() }()
	return n.g.wait(fmt.Sprintf("broker %d to take its master's address", n.no), 30*time.Second, func() (bool, string) {
		ctx, cancel := context.WithTimeout(n.g.ctx, 3*time.Second)
		defer cancel()
		resp, err := conn.Call(ctx, n.addr(), remoting.NewRequest(remoting.ReqExchangeBrokerHAInfo, &remoting.ExchangeBrokerHAInfoHeader{
			MasterHAAddress: n.link.addr, MasterAddress: n.g.master.addr(),
		}))
		return err == nil && resp.Code == remoting.RespSuccess, fmt.Sprint(resp, err)
	})
}
