package main

import (
	"fmt"
	"slices"
	"strings"
)

// sample is what one measurement found, by name; cpu is in seconds for 100,000 messages
// (or queries), latencies are in milliseconds.
type sample map[string]float64

// floor is a ratio mqx/Apache to reach, or with absolute a value of mqx itself.
type floor struct {
	metric   string
	value    float64
	least    bool // the ratio is to be at least value, else at most
	absolute bool
}

func atLeast(metric string, v float64) floor { return floor{metric: metric, value: v, least: true} }
func atMost(metric string, v float64) floor  { return floor{metric: metric, value: v} }
func under(metric string, v float64) floor {
	return floor{metric: metric, value: v, absolute: true}
}

// row is a line of the table.
type row struct {
	id, title string
	group     string // rows of a group share their servers
	long      bool
	once      bool // measured once, whatever -rounds says
	floors    []floor
	command   string
	measure   func(*peer) (sample, error)
}

// Groups of rows whose servers run on between rows, and the configuration of each.
var groups = map[string][]string{
	"async": nil,
	"sync":  {"flushDiskType=SYNC_FLUSH"},
}

const (
	topic  = "SPEED"
	queues = 16
)

func (b *bench) produceRow(group, id, title string, floors []floor, args ...string) row {
	args = append([]string{"produce", "--verify=false", "--duration", b.seconds.String()}, args...)
	return row{
		id: id, title: title, group: group, floors: floors, command: "mqx bench " + strings.Join(args, " "),
		measure: func(p *peer) (sample, error) {
			if !slices.Contains(args, "-t") {
				return p.load(p.brProc, append(args, "-t", topic)...)
			}
			return p.load(p.brProc, args...)
		},
	}
}

// vipRow is a row of sends on the VIP port; where says who runs on which core.
func (b *bench) vipRow(id, where string, inFlight, connections int, apart bool) row {
	return row{
		id: id, group: "async", floors: []floor{under("p99Ratio", 2)},
		title:   fmt.Sprintf("%d in flight on the VIP port beside pulls that saturate the main port, %s; ratio is with/without", inFlight, where),
		command: fmt.Sprintf("mqx bench produce -b VIP --in-flight %d --connections %d beside mqx bench consume --in-flight 16", inFlight, connections),
		measure: func(p *peer) (sample, error) { return b.vip(p, inFlight, connections, apart) },
	}
}

// manyTopics are the flags that name topics of the row of 1,000 topics.
func manyTopics(n int) []string {
	var args []string
	for i := range n {
		args = append(args, "-t", numbered(i))
	}
	return args
}

func allRows() []row { return (&bench{options: &options{}}).rowList() }

func (b *bench) rowList() []row {
	six := []floor{atLeast("perSecond", 6)}
	four := []floor{atLeast("perSecond", 4)}
	many := b.produceRow("async", "topics-1000", "produce 1 KiB, async, 64 in flight over 1,000 topics of 4 queues", four,
		append([]string{"--in-flight", "64", "--connections", "4"}, manyTopics(1000)...)...)
	many.command = "mqx bench produce --in-flight 64 --connections 4 -t SPEED_00000 ... -t SPEED_00999"
	rows := []row{
		b.produceRow("async", "async-64", "produce 1 KiB, async, 64 in flight, 4 connections", []floor{atLeast("perSecond", 6), atMost("cpu", 1.0/8)}, "--in-flight", "64", "--connections", "4"),
		b.produceRow("async", "async-1", "produce 1 KiB, async, 1 in flight", []floor{atMost("p50Ms", 1.0/3), atMost("p99Ms", 1.0/2), atMost("p999Ms", 1)}, "--in-flight", "1", "--connections", "1"),
		b.produceRow("async", "async-16", "produce 1 KiB, async, 16 in flight, 4 connections", four, "--in-flight", "16", "--connections", "4"),
		b.produceRow("async", "async-128B-256", "produce 128 B, async, 256 in flight, 8 connections", six, "--in-flight", "256", "--connections", "8", "--size", "128"),
		b.produceRow("async", "async-4K-64", "produce 4 KiB, async, 64 in flight, 4 connections", four, "--in-flight", "64", "--connections", "4", "--size", "4KiB"),
		b.produceRow("async", "batch-16", "batches of 16 x 1 KiB, 16 requests in flight", []floor{atLeast("perSecond", 3), atMost("cpu", 1.0/4)}, "--in-flight", "16", "--connections", "4", "--batch", "16"),
		{
			id: "pull-32", title: "pull 1 KiB messages, 32 a request, 16 in flight", group: "async",
			floors: []floor{atLeast("perSecond", 1.5), atMost("cpu", 1.0/2)}, command: "mqx bench consume --in-flight 16 --batch 32",
			measure: b.pull,
		},
		{
			id: "route-64", title: "route query, 64 connections", group: "async",
			floors: []floor{atLeast("perSecond", 2), atMost("cpu", 1.0/4)}, command: "mqx bench route --connections 64 --in-flight 64",
			measure: func(p *peer) (sample, error) {
				return p.load(p.nsProc, "route", "-t", topic, "--connections", "64", "--in-flight", "64", "--duration", b.seconds.String())
			},
		},
		{
			id: "push", title: "send to push consumer, one at a time, end to end", group: "async",
			floors: []floor{atMost("p50Ms", 1.0/2), atMost("p99Ms", 1.0/2)}, command: "producer and consumer of package client in one process",
			measure: b.push,
		},
		{
			id: "idle-10000", title: "async-64 beside 10,000 idle connections; ratio is with/without", group: "async",
			floors: []floor{under("p99Ratio", 1.5), under("anonMiB", 400)}, command: "mqx bench produce --in-flight 64 with 10,000 connections open", measure: b.idleConnections,
		},
		b.vipRow("vip", "puller on one core, broker and sender on the other", 16, 4, true),
		b.vipRow("vip-1", "puller on one core, broker and sender on the other", 1, 1, true),
		b.vipRow("vip-shared", "puller on a core that broker and sender use too", 16, 4, false),
		many,
		b.produceRow("sync", "sync-64", "produce 1 KiB, sync flush, 64 in flight, 4 connections", []floor{atLeast("perSecond", 3), atMost("p99Ms", 1.0/3)}, "--in-flight", "64", "--connections", "4"),
		b.produceRow("sync", "sync-1", "produce 1 KiB, sync flush, 1 in flight", []floor{atMost("p50Ms", 1.0/4)}, "--in-flight", "1", "--connections", "1"),
		b.produceRow("sync", "sync-256", "produce 1 KiB, sync flush, 256 in flight, 8 connections", four, "--in-flight", "256", "--connections", "8"),
	}
	return slices.Concat(rows, b.attackRows(), b.semanticRows(), b.lifeRows())
}

// pullMessages are what the row of pulls reads.
const pullMessages = 400_000

const pullTopic = "SPEED_PULL"

// pull reads a topic that was filled before the first measurement.
func (b *bench) pull(p *peer) (sample, error) {
	if err := p.fill(); err != nil {
		return nil, err
	}
	args := []string{"consume", "-t", pullTopic, "--in-flight", "16", "--connections", "4", "--batch", "32", "--duration", b.seconds.String()}
	if p.make == makeApache && !p.pulled { // the JIT has not seen pulls yet
		if _, err := p.load(p.brProc, args...); err != nil {
			return nil, err
		}
		p.pulled = true
	}
	return p.load(p.brProc, args...)
}

// fill sends the messages that pulls read, once.
func (p *peer) fill() error {
	if p.filled {
		return nil
	}
	if _, err := p.load(p.brProc, "produce", "--verify=false", "-t", pullTopic, "--count", fmt.Sprint(pullMessages), "--timeout", "3m"); err != nil {
		return err
	}
	p.filled = true
	return nil
}
