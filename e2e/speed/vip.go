package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// vip measures sends on the VIP port without and with a main port that is saturated by
// pulls. Who pulls has one core; with apart the broker, which is started for this, and
// who sends have the other, else they run where they like.
func (b *bench) vip(p *peer, inFlight, connections int, apart bool) (_ sample, err error) {
	if apart {
		if err := pin(os.Getpid(), "1"); err != nil { // children inherit it
			return nil, err
		}
		defer func() { err = errors.Join(err, pin(os.Getpid(), "0-1")) }()
	}
	q, err := b.newPeer(p.make, "vip")
	if err != nil {
		return nil, err
	}
	defer q.end()
	addr, err := vipOf(q.broker)
	if err != nil {
		return nil, err
	}
	send := func(d time.Duration) (sample, error) {
		return q.load(q.brProc, "produce", "--verify=false", "-t", topic, "-b", addr, "--in-flight", strconv.Itoa(inFlight), "--connections", strconv.Itoa(connections), "--duration", d.String())
	}
	if err := q.fill(); err != nil {
		return nil, err
	}
	if p.make == makeApache { // its JIT is cold
		if _, err := send(b.warm); err != nil {
			return nil, err
		}
	}
	without, err := send(b.seconds)
	if err != nil {
		return nil, err
	}
	pulls, err := q.spawn("pulls", "taskset", "-c", "0", b.mqx, "bench", "consume", "-n", q.namesrv, "-t", pullTopic,
		"--in-flight", "16", "--connections", "4", "--batch", "32", "--duration", (3*b.seconds + 10*time.Second).String())
	if err != nil {
		return nil, err
	}
	defer pulls.kill()
	with, err := send(b.seconds)
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

// pin binds all threads of a process to cores.
func pin(pid int, cores string) error {
	if text, err := exec.Command("taskset", "-a", "-p", "-c", cores, strconv.Itoa(pid)).CombinedOutput(); err != nil {
		return fmt.Errorf("cannot bind process %d to cores %s: %w: %s", pid, cores, err, text)
	}
	return nil
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
