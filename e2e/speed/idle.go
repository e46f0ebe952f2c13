package main

import (
	"net"
	"syscall"
)

// idleCount is the number of connections that do nothing.
const idleCount = 10_000

// idleConnections measures async-64 without and with connections that do nothing.
func (b *bench) idleConnections(p *peer) (sample, error) {
	args := []string{"produce", "--verify=false", "-t", topic, "--in-flight", "64", "--connections", "4", "--duration", b.seconds.String()}
	without, err := p.load(p.brProc, args...)
	if err != nil {
		return nil, err
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return nil, err
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return nil, err
	}
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	for range idleCount {
		c, err := net.Dial("tcp", p.broker)
		if err != nil {
			return nil, err
		}
		conns = append(conns, c)
	}
	with, err := p.load(p.brProc, args...)
	if err != nil {
		return nil, err
	}
	s := sample{"perSecond": with["perSecond"], "p99Ms": with["p99Ms"], "p99Ratio": with["p99Ms"] / without["p99Ms"]}
	s["anonMiB"], err = statusOf(p.brProc.pid(), "RssAnon")
	return s, err
}
