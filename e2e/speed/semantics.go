package main

import (
	"context"
	"fmt"
	"time"

	"mqx/remoting"
	remoteclient "mqx/remoting/client"
)

// Topics of the rows of this file.
const (
	delayedTopic = "SPEED_DELAYED"
	timerTopic   = "SPEED_TIMER"
	txTopic      = "SPEED_TX"
)

// semanticRows are rows of messages that the broker does more with than store them.
func (b *bench) semanticRows() []row {
	twice := []floor{atLeast("perSecond", 2), atMost("cpu", 1.0/2)}
	return []row{
		{
			id: "delayed", title: "1 KiB delayed by a second, 64 in flight: sent and delivered", group: "async", floors: twice,
			command: "mqx bench produce --delay-level 1 --in-flight 64, until all are in their topic",
			measure: func(p *peer) (sample, error) { return b.delayed(p, delayedTopic, "--delay-level", "1") },
		},
		{
			id: "timer", title: "1 KiB timer messages of 1 s, 64 in flight: sent and delivered", group: "async", floors: twice,
			command: "mqx bench produce --delay 1s --in-flight 64, until all are in their topic",
			measure: func(p *peer) (sample, error) { return b.delayed(p, timerTopic, "--delay", "1s") },
		},
		{
			id: "timer-pending", title: "1,000,000 timer messages of 256 bytes wait for an hour", group: "async", once: true, long: true,
			floors:  []floor{under("anonMiB", 200)},
			command: "mqx bench produce --delay 1h --count 1000000 --size 256 --in-flight 64, then RssAnon",
			measure: b.timersPending,
		},
		b.produceRow("async", "transaction", "1 KiB in transactions, 10 % rolled back, 64 in flight", twice,
			"-t", txTopic, "--transaction", "--rollback-share", "10", "--in-flight", "64", "--connections", "4"),
		{
			id: "pop-32", title: "pop and acknowledge 1 KiB messages, 32 a request, 16 in flight", group: "async", floors: twice,
			command: "mqx bench consume --pop --in-flight 16 --batch 32", measure: b.pop,
		},
	}
}

// deliveryLimit is how long delayed messages may take behind the last send.
const deliveryLimit = 5 * time.Minute

// delayed sends delayed messages and waits until they are delivered: the rate is that of both.
func (b *bench) delayed(p *peer, topic string, delay ...string) (sample, error) {
	before, err := p.messagesIn(topic)
	if err != nil {
		return nil, err
	}
	cpu, err := cpuOf(p.brProc.pid())
	if err != nil {
		return nil, err
	}
	began := time.Now()
	load, err := p.load(p.brProc, append([]string{"produce", "--verify=false", "-t", topic, "--in-flight", "64", "--connections", "4", "--duration", b.seconds.String()}, delay...)...)
	if err != nil {
		return nil, err
	}
	sent := load["messages"]
	for deadline := time.Now().Add(deliveryLimit); ; time.Sleep(10 * time.Millisecond) {
		now, err := p.messagesIn(topic)
		if err != nil {
			return nil, err
		}
		if float64(now-before) >= sent {
			break
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%d of %.0f delayed messages were delivered within %v", now-before, sent, deliveryLimit)
		}
	}
	took := time.Since(began)
	after, err := cpuOf(p.brProc.pid())
	if err != nil {
		return nil, err
	}
	return sample{
		"perSecond": sent / took.Seconds(), "sentPerSecond": load["perSecond"], "p50Ms": load["p50Ms"], "p99Ms": load["p99Ms"],
		"cpu": (after - cpu).Seconds() / sent * 1e5,
	}, nil
}

// timersPending is what a broker takes while a million timer messages wait.
func (b *bench) timersPending(p *peer) (sample, error) {
	s, err := p.load(p.brProc, "produce", "--verify=false", "-t", timerTopic, "--delay", "1h", "--count", "1000000", "--size", "256", "--in-flight", "64", "--connections", "4", "--duration", "0s")
	if err != nil {
		return nil, err
	}
	time.Sleep(5 * time.Second) // they are taken up and flushed
	s["anonMiB"], err = statusOf(p.brProc.pid(), "RssAnon")
	return s, err
}

// messagesIn is how many messages came to a topic.
func (p *peer) messagesIn(topic string) (n int64, err error) {
	c := remoteclient.New(remoteclient.Config{ConnectTimeout: 5 * time.Second})
	defer c.Close()
	ctx, cancel := context.WithTimeout(p.b.ctx, time.Minute)
	defer cancel()
	for q := range int32(queues) {
		resp, err := c.Call(ctx, p.broker, remoting.NewRequest(remoting.ReqGetMaxOffset, &remoting.GetMaxOffsetHeader{Topic: topic, QueueID: q}))
		if err != nil {
			return 0, err
		}
		off, ok, err := resp.Fields.Int64("offset")
		if err != nil || !ok {
			return 0, fmt.Errorf("cannot read the end of queue %d of %s: %s", q, topic, resp.Remark)
		}
		n += off
	}
	return n, nil
}

// pop pops a topic that was filled before the first measurement, as a group of its own.
func (b *bench) pop(p *peer) (sample, error) {
	if err := p.fill(); err != nil {
		return nil, err
	}
	args := []string{"consume", "--pop", "-t", pullTopic, "--in-flight", "16", "--connections", "4", "--batch", "32", "--duration", b.seconds.String()}
	if p.make == makeApache && !p.popped { // the JIT has not seen pops yet
		if _, err := p.load(p.brProc, args...); err != nil {
			return nil, err
		}
		p.popped = true
	}
	return p.load(p.brProc, args...)
}
