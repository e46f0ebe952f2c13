package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"
)

const exampleTopic = "SPEED_EXAMPLE"

// exampleBenchmark loads with Apache's own benchmark: its producer with 64 threads and its consumer, side by side. The
// throughput is bound by their JVMs; the CPU of the broker and the latency are its.
func (b *bench) exampleBenchmark(p *peer) (sample, error) {
	q, err := b.newPeer(p.make, "example")
	if err != nil {
		return nil, err
	}
	defer q.end()
	if err := q.createTopic(exampleTopic); err != nil {
		return nil, err
	}
	const pkg = "org.apache.rocketmq.example.benchmark."
	consumer, err := q.spawn("consumer", "java", q.java("512m", pkg+"Consumer", "-t", exampleTopic, "-n", q.namesrv, "-ri", "1000")...)
	if err != nil {
		return nil, err
	}
	defer consumer.kill()
	producer, err := q.spawn("producer", "java", q.java("512m", pkg+"Producer", "-t", exampleTopic, "-n", q.namesrv, "-w", "64", "-s", "1024", "-ri", "1000")...)
	if err != nil {
		return nil, err
	}
	defer producer.kill()
	time.Sleep(b.warm) // three JVMs, or two, have compiled what is hot
	before, err := q.messagesIn(exampleTopic)
	if err != nil {
		return nil, err
	}
	cpu, err := cpuOf(q.brProc.pid())
	if err != nil {
		return nil, err
	}
	began := time.Now()
	time.Sleep(b.seconds)
	after, err := q.messagesIn(exampleTopic)
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	now, err := cpuOf(q.brProc.pid())
	if err != nil {
		return nil, err
	}
	average, err := lastReports(producer.log, `Average RT\(ms\): *([0-9.]+)`, int(b.seconds/time.Second))
	if err != nil {
		return nil, err
	}
	sent := float64(after - before)
	return sample{"perSecond": sent / took.Seconds(), "cpu": (now - cpu).Seconds() / sent * 1e5, "meanMs": average}, nil
}

// lastReports is the median of the last n figures that a program has logged.
func lastReports(log, pattern string, n int) (float64, error) {
	text, err := os.ReadFile(log)
	if err != nil {
		return 0, err
	}
	all := regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1)
	if len(all) == 0 {
		return 0, fmt.Errorf("%s has no line like %q", log, pattern)
	}
	var values []float64
	for _, m := range all[max(len(all)-n, 0):] {
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return 0, err
		}
		values = append(values, v)
	}
	slices.Sort(values)
	return values[len(values)/2], nil
}
