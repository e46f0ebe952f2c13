package client

import (
	"context"
	"errors"
	"time"
)

// LoadConfig configures a load run.
type LoadConfig struct {
	Config
	// Brokers are broker addresses to use directly; empty takes them from the routes.
	Brokers []string
	// Topics to load; messages go round them.
	Topics []string
	// Queues is the number of queues to use per topic and broker; 0 means all.
	Queues int
	// InFlight is the number of requests under way at a time over all connections.
	InFlight int
	// Connections is the number of connections to each broker.
	Connections int
	// BodySize is the size of a message body in bytes; at least LoadHeaderLen when Verify.
	BodySize int
	// Batch is the number of messages in a send request, or asked for in a pull.
	Batch int
	// Count ends the run after so many messages (or queries), Duration after that time;
	// whichever comes first, 0 means no limit.
	Count    int64
	Duration time.Duration
	// Warmup is not measured.
	Warmup time.Duration
	// WaitStore sets WAIT=true (the default of clients); false sets WAIT=false.
	WaitStore bool
	// Verify puts producer id, sequence and CRC into bodies and reads everything back.
	Verify bool
	// Progress is called about once a second from one goroutine, if set.
	Progress func(LoadProgress)
}

// LoadProgress is a snapshot during a run.
type LoadProgress struct {
	Elapsed  time.Duration
	Messages int64
	Errors   int64
	Warmup   bool
}

// Latency is a summary of request latencies.
type Latency struct{ P50, P90, P99, P999, Max, Mean time.Duration }

// LoadReport is the result of a run.
type LoadReport struct {
	Kind      string // produce, consume, route
	Requests  int64
	Messages  int64
	Bytes     int64
	Elapsed   time.Duration
	PerSecond float64 // messages (or queries) a second
	Latency   Latency
	Errors    int64
	// ErrorKinds counts failures by text.
	ErrorKinds map[string]int64
	// Verified says that the three counts below were taken.
	Verified            bool
	Checked             int64
	Lost, Duplicated    int64
	OutOfOrder, Corrupt int64
	// CPUPer100k is the generator's own CPU seconds for 100,000 messages.
	CPUPer100k float64
}

// LoadProduce sends at full speed and reports.
func LoadProduce(ctx context.Context, cfg LoadConfig) (*LoadReport, error) {
	return nil, errors.New("not built yet")
}

// LoadConsume pulls at full speed, from the start of all queues, and reports.
func LoadConsume(ctx context.Context, cfg LoadConfig) (*LoadReport, error) {
	return nil, errors.New("not built yet")
}

// LoadRoute asks the name servers for routes at full speed and reports.
func LoadRoute(ctx context.Context, cfg LoadConfig) (*LoadReport, error) {
	return nil, errors.New("not built yet")
}
