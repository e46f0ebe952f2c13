package main

import (
	"fmt"
	"net"
	"strconv"
	"time"
)

// vip measures sends on the VIP port without and with a main port that is saturated by
// pulls. Who pulls has one core, as another machine would leave the broker its own.
func (b *bench) vip(p *peer) (sample, error) {
	addr, err := vipOf(p.broker)
	if err != nil {
		return nil, err
	}
	args := []string{"produce", "--verify=false", "-t", topic, "-b", addr, "--in-flight", "1", "--connections", "1", "--duration", b.seconds.String()}
	without, err := p.load(p.brProc, args...)
	if err != nil {
		return nil, err
	}
	if err := p.fill(); err != nil {
		return nil, err
	}
	pulls, err := p.spawn("pulls", "taskset", "-c", "0", b.mqx, "bench", "consume", "-n", p.namesrv, "-t", pullTopic,
		"--in-flight", "16", "--connections", "4", "--batch", "32", "--duration", (3*b.seconds + 10*time.Second).String())
	if err != nil {
		return nil, err
	}
	defer pulls.kill()
	with, err := p.load(p.brProc, args...)
	if err != nil {
		return nil, err
	}
	select {
	case <-pulls.done:
		return nil, fmt.Errorf("the pulls ended before the sends did: see %s", pulls.log)
	default:
	}
	return sample{"p50Ms": with["p50Ms"], "p99Ms": with["p99Ms"], "p99Ratio": with["p99Ms"] / without["p99Ms"]}, nil
}

// vipOf returns the VIP address of a broker: its port less two.
func vipOf(broker string) (string, error) {
	host, port, err := net.SplitHostPort(broker)
	if err != nil {
		return "", err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(host, strconv.Itoa(n-2)), nil
}
