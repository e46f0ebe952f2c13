package exporter

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"mqx/admin"
	"mqx/internal/clock"
)

// Options say what is read and how often. Zero values mean the defaults.
type Options struct {
	Client *admin.Client
	Target admin.Target
	// Interval is the time between the starts of two readings, 15 s by default. A broker
	// whose reading takes longer is read again when it has ended.
	Interval time.Duration
	// NoAges leaves out how old is what groups have not read: two requests less for each
	// group and topic with a lag.
	NoAges bool
	// Queues adds series of each queue of each group.
	Queues bool
	// RocketMQExporter adds the series of rocketmq-exporter, which cost up to five more
	// requests for each topic and group, and one for each member.
	RocketMQExporter bool
	Logger           *slog.Logger
	Clock            clock.Clock
}

// Bounds of Options and of a reading.
const (
	DefaultInterval = 15 * time.Second
	MinInterval     = time.Second
	MaxInterval     = time.Hour
	// maxBrokers is how many brokers are read at a time.
	maxBrokers = 16
	// goneFor is how long a broker that is registered no more is shown as down, and
	// maxGone how many of them.
	goneFor = time.Hour
	maxGone = 1000
)

// Exporter reads a cluster and writes its series. It is safe to share.
type Exporter struct {
	o       Options
	started time.Time
	slots   chan struct{}
	ready   chan struct{}
	readers sync.WaitGroup

	mu struct {
		sync.Mutex
		brokers map[broker]*state
		rounds  uint64
		listed  time.Time // when the name servers last gave the brokers
		listErr error
	}
}

// broker is a broker process.
type broker struct {
	cluster, name, addr string
	id                  int64
}

// state is what is known of a broker. The mutex of the exporter guards it; count belongs
// to the reading under way.
type state struct {
	primary bool // it speaks for its name
	busy    bool
	gone    time.Time // registered no more since; zero: it is
	asked   time.Time
	err     error // of the last reading; nil before the first
	figures *figures
	count   counters
}

// New checks o. It asks nobody yet.
func New(o Options) (*Exporter, error) {
	if o.Client == nil {
		return nil, errors.New("cannot export: no cluster is given")
	}
	o.Interval = cmp.Or(o.Interval, DefaultInterval)
	if o.Interval < MinInterval || o.Interval > MaxInterval {
		return nil, errors.New("cannot export every " + o.Interval.String() + ": the interval goes from " + MinInterval.String() + " to " + MaxInterval.String())
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = clock.System
	}
	e := &Exporter{o: o, started: o.Clock.Now(), slots: make(chan struct{}, maxBrokers), ready: make(chan struct{})}
	e.mu.brokers = map[broker]*state{}
	return e, nil
}

// Ready is closed when Run has asked for the brokers the first time, whatever came of it.
func (e *Exporter) Ready() <-chan struct{} { return e.ready }

// Run reads the cluster at the interval until ctx ends. It is called once.
func (e *Exporter) Run(ctx context.Context) error {
	defer e.readers.Wait()
	tick := time.NewTicker(e.o.Interval)
	defer tick.Stop()
	for first := true; ; first = false {
		e.start(ctx)
		if first {
			close(e.ready)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Round reads all brokers once and returns when each has answered or failed.
func (e *Exporter) Round(ctx context.Context) {
	e.start(ctx)
	e.readers.Wait()
}

// start lists the brokers and begins to read each that is not being read.
func (e *Exporter) start(ctx context.Context) {
	listed, err := e.o.Client.Cluster(ctx)
	if ctx.Err() != nil {
		return
	}
	now := e.o.Clock.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.rounds++
	if err != nil {
		if e.mu.listErr == nil {
			e.o.Logger.Warn("cannot list brokers; those that are known are asked", "error", err)
		}
	} else {
		if e.mu.listErr != nil {
			e.o.Logger.Info("name servers list brokers again")
		}
		e.take(listed, now)
	}
	e.mu.listErr = err
	for b, s := range e.mu.brokers {
		if s.busy || !s.gone.IsZero() {
			continue
		}
		s.busy = true
		primary, before := s.primary, s.count
		e.readers.Go(func() {
			e.slots <- struct{}{}
			defer func() { <-e.slots }()
			e.read(ctx, b, s, primary, before)
		})
	}
}

// take notes which brokers are registered. The mutex is held.
func (e *Exporter) take(listed []admin.Broker, now time.Time) {
	e.mu.listed = now
	seen := map[broker]bool{}
	speaks := map[[2]string]bool{}
	for _, l := range listed {
		if t := e.o.Target; t.Cluster != "" && t.Cluster != l.Cluster || t.Broker != "" && t.Broker != l.Name && t.Broker != l.Addr {
			continue
		}
		b := broker{l.Cluster, l.Name, l.Addr, l.ID}
		s := e.mu.brokers[b]
		if s == nil {
			s = &state{asked: now}
			e.mu.brokers[b] = s
		}
		// The first of a name has the smallest id.
		name := [2]string{l.Cluster, l.Name}
		s.primary, s.gone, seen[b] = !speaks[name], time.Time{}, true
		speaks[name] = true
	}
	left := 0
	for b, s := range e.mu.brokers {
		if seen[b] {
			continue
		}
		if s.gone.IsZero() {
			s.gone, s.figures = now, nil
		}
		if left++; !s.busy && (now.Sub(s.gone) > goneFor || left > maxGone) {
			delete(e.mu.brokers, b)
		}
	}
}

// read reads one broker and keeps what it said.
func (e *Exporter) read(ctx context.Context, b broker, s *state, primary bool, before counters) {
	ctx, cancel := context.WithTimeout(ctx, max(4*e.o.Interval, time.Minute))
	defer cancel()
	r := &reading{o: &e.o, b: b, primary: primary, before: before}
	err := r.run(ctx)
	now := e.o.Clock.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	s.busy, s.asked = false, now
	if ctx.Err() != nil && err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return // it ends
	}
	if err != nil && s.err == nil {
		e.o.Logger.Warn("a broker does not answer", "broker", b.name, "addr", b.addr, "error", err)
	}
	if err == nil && s.err != nil {
		e.o.Logger.Info("a broker answers again", "broker", b.name, "addr", b.addr)
	}
	s.err = err
	if err != nil || !s.gone.IsZero() {
		s.figures = nil
		return
	}
	r.told(s.figures)
	r.figures.at = now
	s.figures, s.count = r.figures, r.after
}
