package client

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"mqx/internal/words"
	"mqx/remoting"
)

// LoadConfig configures a load run.
type LoadConfig struct {
	Config
	// Brokers are the addresses of the brokers to load; empty takes all that the routes
	// show. An address that no route shows is loaded with Queues queues of each topic.
	Brokers []string
	// Topics to load, in turn.
	Topics []string
	// Queues is the number of queues to use of each topic and broker; 0 means all.
	Queues int
	// InFlight is the number of requests under way at a time, over all connections.
	InFlight int
	// Connections is the number of connections to each server.
	Connections int
	// BodySize is the size of a message body in bytes; below LoadHeaderLen it is that.
	BodySize int
	// Batch is the number of messages in a send request, or asked for in a pull.
	Batch int
	// Count ends the measuring after so many messages (or queries), Duration after that
	// time; whichever comes first. 0 means no such end; both 0 is an error. Count alone
	// goes without warm-up.
	Count    int64
	Duration time.Duration
	// Warmup is not measured.
	Warmup time.Duration
	// WaitStore is the WAIT property of the messages: true, as clients send it, asks for
	// an answer when the message is as safe as the broker is configured to make it.
	WaitStore bool
	// DelayLevel delays each message by a level of the broker's table, 0 by none. Reading back waits a minute longer then.
	DelayLevel int
	// Delay makes timer messages that are to come after this time, in whole milliseconds; 0 makes none. Reading back waits so much longer.
	Delay time.Duration
	// Transaction sends each message as a half message and ends it by a second request:
	// RollbackShare percent by a rollback, the others by a commit. A message counts when
	// its end is answered; latencies are those of single requests.
	Transaction   bool
	RollbackShare int
	// Verify reads back what was produced, or checks the numbers of what is consumed.
	Verify bool
	// Progress is called about once a second from one goroutine, if set.
	Progress func(LoadProgress)
}

// LoadProgress is a snapshot during a run.
type LoadProgress struct {
	Elapsed  time.Duration
	Messages int64 // or queries; of the warm-up too
	Errors   int64
	Warmup   bool
}

// Latency is a summary of request latencies.
type Latency struct{ P50, P90, P99, P999, Max, Mean time.Duration }

// LoadReport is the result of a run. Everything up to ErrorKinds is of the time
// measured; the check covers the warm-up as well.
type LoadReport struct {
	Kind      string // produce, consume, route
	Requests  int64
	Messages  int64
	Bytes     int64 // of message bodies; of answers for route
	Elapsed   time.Duration
	PerSecond float64 // messages (or queries) a second
	Latency   Latency
	Errors    int64 // requests that failed, warm-up included
	// ErrorKinds counts failures by text.
	ErrorKinds map[string]int64
	// Verified says that the counts below were taken.
	Verified bool
	// Checked messages were found. Lost ones were acknowledged and not found;
	// Duplicated ones were found more than once, OutOfOrder ones after one that the same
	// producer sent later to the same queue; Corrupt ones have another body than was sent.
	Checked             int64
	Lost, Duplicated    int64
	OutOfOrder, Corrupt int64
	// LossUnknown says that Lost could not be counted: a queue no longer starts at 0.
	LossUnknown bool
	// CPUPer100k is the generator's own CPU seconds for 100,000 messages, 0 where the
	// system does not tell.
	CPUPer100k float64
}

func (c *LoadConfig) setDefaults(kind string) error {
	if err := c.Config.setDefaults(); err != nil {
		return err
	}
	setDefault(&c.InFlight, 64)
	setDefault(&c.Connections, 4)
	setDefault(&c.Batch, map[string]int{kindConsume: 32}[kind])
	setDefault(&c.Batch, 1)
	c.BodySize = max(c.BodySize, LoadHeaderLen)
	switch {
	case len(c.Topics) == 0:
		return errors.New("no topic is given")
	case c.Count <= 0 && c.Duration <= 0:
		return errors.New("neither a count nor a duration is given")
	case c.InFlight < 1 || c.InFlight > maxInFlight:
		return fmt.Errorf("%s in flight, 1 to %d are possible", words.Count(c.InFlight, "request"), maxInFlight)
	case c.Connections < 1 || c.Connections > maxLoadConnections:
		return fmt.Errorf("%s, 1 to %d are possible", words.Count(c.Connections, "connection"), maxLoadConnections)
	case c.Batch < 1 || c.Batch > maxBatch:
		return fmt.Errorf("batch of %d, 1 to %d are possible", c.Batch, maxBatch)
	case c.DelayLevel < 0 || c.DelayLevel > 0 && c.Batch > 1:
		return fmt.Errorf("delay level %d with a batch of %d: levels begin at 1, and a batch cannot be delayed", c.DelayLevel, c.Batch)
	case c.Delay < 0 || c.Delay > 0 && (c.Batch > 1 || c.DelayLevel > 0 || c.Delay < time.Millisecond):
		return fmt.Errorf("delay of %v with a batch of %d and delay level %d: it is at least a millisecond, alone, and a batch cannot be delayed", c.Delay, c.Batch, c.DelayLevel)
	case c.Transaction && (c.Batch > 1 || c.DelayLevel > 0 || c.Delay > 0):
		return errors.New("a transaction with a batch or a delay: half messages are single, and are not delayed")
	case c.RollbackShare < 0 || c.RollbackShare > 100:
		return fmt.Errorf("%d percent of rollbacks, 0 to 100 are possible", c.RollbackShare)
	case int64(c.BodySize)*int64(c.Batch) > 15<<20 && kind == kindProduce:
		return fmt.Errorf("%s of %d bytes do not fit a frame", words.Count(c.Batch, "body"), c.BodySize)
	}
	if c.Duration <= 0 {
		c.Warmup = 0
	}
	return nil
}

// Bounds of a load.
const (
	maxInFlight        = 1 << 16
	maxLoadConnections = 1 << 10
)

const (
	kindProduce = "produce"
	kindConsume = "consume"
	kindRoute   = "route"
)

// LoadProduce sends at full speed in a closed loop and reports. With Verify it then
// reads everything back and checks it. A run that does not get a single success is an
// error.
func LoadProduce(ctx context.Context, cfg LoadConfig) (*LoadReport, error) {
	if err := cfg.setDefaults(kindProduce); err != nil {
		return nil, fmt.Errorf("cannot load: %w", err)
	}
	if cfg.Transaction {
		cfg.Serialize = remoting.SerializeJSON // where a half message stands is read out of the header
	}
	c, err := newCore(cfg.Config, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot load: %w", err)
	}
	defer func() { _ = c.close() }()
	if err := createLoadTopics(ctx, c, &cfg); err != nil {
		return nil, err
	}
	brokers, err := loadTargets(ctx, c, &cfg, true)
	if err != nil {
		return nil, err
	}
	run := newLoadRun(&cfg, kindProduce)
	book := newLedger()
	if cfg.Verify {
		if err := findEnds(ctx, c, brokers); err != nil {
			return nil, err
		}
	}
	finish, err := addProducers(&cfg, run, brokers, book)
	if err != nil {
		return nil, err
	}
	report, err := run.do(ctx)
	if err == nil {
		err = finish(ctx, c)
	}
	if err != nil || !cfg.Verify {
		return report, err
	}
	return report, readBack(ctx, c, &cfg, brokers, book, report)
}

// addProducers opens the connections of a produce load. finish ends what its sources
// left open.
func addProducers(cfg *LoadConfig, run *loadRun, brokers []*loadBroker, book *ledger) (finish func(context.Context, *core) error, err error) {
	var sources []*transactionSource
	var addrs []string
	var left *atomic.Int64
	if cfg.Transaction && cfg.Count > 0 {
		left = &atomic.Int64{}
		left.Store(cfg.Count)
	}
	for _, b := range brokers {
		err := run.add(b.addr, len(brokers), func(slots int) (loadSource, error) {
			if !cfg.Transaction {
				return newProduceSource(cfg, b, slots, book)
			}
			s, err := newTransactionSource(cfg, b, slots, book, run, left)
			sources, addrs = append(sources, s), append(addrs, b.addr)
			return s, err
		})
		if err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context, c *core) error { return rollBackOpen(ctx, c, sources, addrs) }, nil
}

// LoadConsume pulls at full speed, from the start of all queues, and reports. When the
// end of a queue is reached reading goes on at its start, except with Verify, which
// reads everything once, whatever Count and Duration say, and checks the numbers that
// LoadProduce wrote.
func LoadConsume(ctx context.Context, cfg LoadConfig) (*LoadReport, error) {
	if err := cfg.setDefaults(kindConsume); err != nil {
		return nil, fmt.Errorf("cannot load: %w", err)
	}
	c, err := newCore(cfg.Config, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot load: %w", err)
	}
	defer func() { _ = c.close() }()
	brokers, err := loadTargets(ctx, c, &cfg, false)
	if err != nil {
		return nil, err
	}
	if err := findRanges(ctx, c, brokers); err != nil {
		return nil, err
	}
	if cfg.Verify {
		cfg.Warmup, cfg.Duration, cfg.Count = 0, 0, 1<<62
	}
	run := newLoadRun(&cfg, kindConsume)
	var sources []*consumeSource
	for _, b := range brokers {
		err := run.add(b.addr, len(brokers), func(slots int) (loadSource, error) {
			s, err := newConsumeSource(&cfg, b, slots)
			if err == nil && cfg.Verify {
				s.tally = newTally()
				s.found = func(q *loadQueue, m loadMark, whole bool) { s.tally.found(q.MessageQueue, m, whole) }
				sources = append(sources, s)
			}
			return s, err
		})
		if err != nil {
			return nil, err
		}
	}
	if cfg.Verify {
		shareQueues(sources)
	}
	report, err := run.do(ctx)
	if err != nil || !cfg.Verify {
		return report, err
	}
	total := newTally()
	for _, s := range sources {
		total.merge(s.tally)
		total.corrupt += s.broken
	}
	total.report(report, brokers)
	return report, nil
}

// LoadRoute asks the name servers for routes at full speed and reports.
func LoadRoute(ctx context.Context, cfg LoadConfig) (*LoadReport, error) {
	if err := cfg.setDefaults(kindRoute); err != nil {
		return nil, fmt.Errorf("cannot load: %w", err)
	}
	run := newLoadRun(&cfg, kindRoute)
	for _, addr := range cfg.NameServers {
		if err := run.add(addr, len(cfg.NameServers), func(int) (loadSource, error) { return newRouteSource(&cfg) }); err != nil {
			return nil, err
		}
	}
	return run.do(ctx)
}
