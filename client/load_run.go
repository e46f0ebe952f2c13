package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// loadRun drives the connections of a load through warm-up and measuring.
type loadRun struct {
	cfg     *LoadConfig
	kind    string
	conns   []*loadConn
	left    int // slots still to be given to connections
	began   time.Time
	startMs int64

	from, to time.Duration // measured: [from, to)
	ended    atomic.Bool
	limited  bool
	quota    atomic.Int64 // requests that may still be sent, when limited
}

func newLoadRun(cfg *LoadConfig, kind string) *loadRun {
	return &loadRun{cfg: cfg, kind: kind, left: cfg.InFlight}
}

// add opens connections to a server; InFlight is shared out evenly over all.
func (r *loadRun) add(addr string, servers int, source func(slots int) (loadSource, error)) error {
	each := max(min(r.cfg.Connections, r.cfg.InFlight/servers), 1)
	total := each * servers
	for range each {
		slots := max((r.cfg.InFlight+total-1-len(r.conns))/total, 1)
		s, err := source(slots)
		if err != nil {
			return err
		}
		r.conns = append(r.conns, newLoadConn(r, addr, s, slots))
	}
	return nil
}

// now is the time since the run began.
func (r *loadRun) now() time.Duration { return time.Since(r.began) }

func (r *loadRun) over() bool { return r.ended.Load() }

func (r *loadRun) measures(now time.Duration) bool { return now >= r.from && now < r.to }

// takeOne reports whether one more request may be sent.
func (r *loadRun) takeOne() bool {
	if r.limited && r.now() >= r.from && r.quota.Add(-1) < 0 {
		return false
	}
	return true
}

func (r *loadRun) giveBack() {
	if r.limited && r.now() >= r.from {
		r.quota.Add(1)
	}
}

// do runs all connections and reports.
func (r *loadRun) do(ctx context.Context) (*LoadReport, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.from, r.to = r.cfg.Warmup, 1<<62
	if r.cfg.Duration > 0 {
		r.to = r.from + r.cfg.Duration
	}
	if r.cfg.Count > 0 && !r.cfg.Transaction { // transactions are counted by their sources
		r.limited = true
		per := int64(1)
		if r.kind == kindProduce || r.kind == kindConsume {
			per = int64(r.cfg.Batch)
		}
		r.quota.Store((r.cfg.Count + per - 1) / per)
	}
	r.began = time.Now()
	r.startMs = r.began.UnixMilli()
	var wg sync.WaitGroup
	errs := make([]error, len(r.conns))
	finished := make(chan struct{})
	for i, c := range r.conns {
		wg.Go(func() { errs[i] = c.work(ctx) })
	}
	go func() {
		wg.Wait()
		close(finished)
	}()
	cpu, took := r.watch(ctx, finished)
	<-finished
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("cannot finish load: %w", err)
	}
	report := r.report(took)
	if report.Messages > 0 {
		report.CPUPer100k = cpu.Seconds() / float64(report.Messages) * 100_000
	}
	return report, r.verdict(report)
}

// watch waits for the phases to pass and measures the CPU time of the process between
// them; it reports progress meanwhile.
func (r *loadRun) watch(ctx context.Context, finished <-chan struct{}) (cpu, took time.Duration) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var cpu0 time.Duration
	start := r.from
	if r.from == 0 {
		cpu0 = ownCPU()
	}
	phase := time.NewTimer(r.from)
	defer phase.Stop()
	started := r.from == 0
	if started {
		phase.Reset(min(r.to, 1<<61))
	}
	for {
		select {
		case <-phase.C:
			if !started {
				started, cpu0 = true, ownCPU()
				phase.Reset(min(r.to-r.from, 1<<61))
				continue
			}
			r.ended.Store(true)
			return ownCPU() - cpu0, r.to - start
		case <-finished:
			r.ended.Store(true)
			return ownCPU() - cpu0, min(r.now(), r.to) - start
		case <-ctx.Done():
			r.ended.Store(true)
			return 0, r.now()
		case <-tick.C:
			if r.cfg.Progress != nil {
				r.cfg.Progress(r.progress())
			}
		}
	}
}

func (r *loadRun) progress() LoadProgress {
	p := LoadProgress{Elapsed: r.now(), Warmup: r.now() < r.from}
	for _, c := range r.conns {
		p.Messages += c.totalMessages.Load()
		p.Errors += c.totalErrors.Load()
	}
	return p
}

func (r *loadRun) report(took time.Duration) *LoadReport {
	rep := &LoadReport{Kind: r.kind, Elapsed: took, ErrorKinds: map[string]int64{}}
	all := hdrhistogram.New(1, histMax, 3)
	for _, c := range r.conns {
		rep.Requests += c.counted.requests
		rep.Messages += c.counted.messages
		rep.Bytes += c.counted.bytes
		all.Merge(c.hist)
		for text, n := range c.errors {
			rep.ErrorKinds[text] += n
			rep.Errors += n
		}
	}
	if took > 0 {
		rep.PerSecond = float64(rep.Messages) / took.Seconds()
	}
	us := func(v int64) time.Duration { return time.Duration(v) * time.Microsecond }
	rep.Latency = Latency{
		P50: us(all.ValueAtQuantile(50)), P90: us(all.ValueAtQuantile(90)), P99: us(all.ValueAtQuantile(99)),
		P999: us(all.ValueAtQuantile(99.9)), Max: us(all.Max()), Mean: time.Duration(all.Mean() * 1000),
	}
	return rep
}

// verdict is an error for a run in which nothing worked.
func (r *loadRun) verdict(rep *LoadReport) error {
	var total int64
	for _, c := range r.conns {
		total += c.totalMessages.Load()
	}
	if total > 0 || rep.Errors == 0 {
		return nil
	}
	for text := range rep.ErrorKinds {
		return fmt.Errorf("cannot load: all of %d requests failed, for example: %s", rep.Errors, text)
	}
	return nil
}
