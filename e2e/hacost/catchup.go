package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"mqx/e2e/servers"
	"mqx/internal/fastjson"
	"mqx/remoting"
	remoteclient "mqx/remoting/client"
)

// catchUpSenders are under way while a blank slave catches up: a load that leaves it something of two cores.
const catchUpSenders = 1

// measureCatchUp fills a log and lets blank slaves take it: one while nothing else is done, one beside producers, whose p99 is
// compared with that from before.
func measureCatchUp(o *options) (err error) {
	l := levels[0]
	if o.flow > 0 {
		l.master = append([]string{"haFlowControlEnable=true", fmt.Sprintf("maxHaTransferByteInSecond=%d000000", o.flow)}, l.master...)
	}
	g, err := newGroup(o, l)
	if g != nil {
		defer func() { err = errors.Join(err, g.Close()) }()
	}
	if err != nil {
		return err
	}
	if _, err := g.bench("--in-flight", "16", "--batch", "64", "--count", strconv.Itoa(o.catchUp<<10), "--duration", "10m", "--warmup", "0s"); err != nil {
		return err
	}
	if err := servers.Wait("the slave that is there already", func() bool { n, err := g.ha(g.master, "behind"); return err == nil && n == 0 }); err != nil {
		return err
	}
	alone, err := g.follow("blank8", 8, nil)
	if err != nil {
		return err
	}
	fmt.Printf("\ncatch-up of a blank slave over %d MiB of messages of 1 KiB, nothing else under way: %s (wanted: 200 at least)\n", o.catchUp, alone)
	before, err := g.load(catchUpSenders, o.seconds)
	if err != nil {
		return err
	}
	var during figures
	beside, err := g.follow("blank9", 9, func() error {
		var err error
		during, err = g.load(catchUpSenders, o.seconds)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Printf("catch-up beside %d sender: %s; p99 of the sender %.3f ms, before it %.3f ms, %.2f times (wanted: 1.5 at most); p50 %.3f and %.3f ms\n",
		catchUpSenders, beside, during.p99, before.p99, during.p99/before.p99, during.p50, before.p50)
	return nil
}

// logEnd is where the log of a slave ends. It is asked on one connection: a process for each look would be a load of its own.
func logEnd(c *remoteclient.Client, addr string) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	resp, err := c.Call(ctx, addr, remoting.NewRequest(remoting.ReqGetBrokerHAStatus, nil))
	if err != nil {
		return 0, err
	}
	var info remoting.HARuntimeInfo
	if err := fastjson.Unmarshal(resp.Body, &info); err != nil || info.ClientRuntimeInfo == nil {
		return 0, errors.Join(err, errors.New("a slave tells no end of its log"))
	}
	return info.ClientRuntimeInfo.MaxOffset, nil
}

// follow starts a blank slave and returns how fast it takes the log, from its first byte on. beside, if given, runs meanwhile.
func (g *group) follow(name string, id int, beside func() error) (string, error) {
	end, err := g.ha(g.master, "endOffset")
	if err != nil {
		return "", err
	}
	addr, err := g.broker(name, "brokerRole=SLAVE", fmt.Sprintf("brokerId=%d", id))
	if err != nil {
		return "", err
	}
	var began time.Time
	var first, last int64
	done := make(chan error, 1)
	started := false
	c := remoteclient.New(remoteclient.Config{})
	defer func() { _ = c.Close() }()
	err = servers.Wait("a blank slave", func() bool {
		n, err := logEnd(c, addr)
		switch {
		case err != nil || n == 0:
			return false
		case began.IsZero():
			began, first = time.Now(), n
			if beside != nil {
				started = true
				go func() { done <- beside() }()
			}
		}
		last = n
		return n >= end
	})
	took := time.Since(began)
	if started {
		err = errors.Join(err, <-done)
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%.0f MB/s (%d MB in %.1f s)", float64(last-first)/1e6/took.Seconds(), (last-first)/1_000_000, took.Seconds()), nil
}
