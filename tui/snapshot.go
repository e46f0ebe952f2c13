package tui

import (
	"context"
	"time"
)

// Num is a number that may be unknown: unknown is never zero.
type Num struct {
	V  float64
	OK bool
}

// Known is a number that is known.
func Known[T int | int32 | int64 | float64](v T) Num { return Num{float64(v), true} }

// Add is the sum; with an unknown part it is unknown.
func (n Num) Add(o Num) Num { return Num{n.V + o.V, n.OK && o.OK} }

// Want says what a refresh is to read beside what every one reads.
type Want struct {
	Group   string // its members, and the ages of what it has not read
	Clients bool   // all clients
}

// Source reads a cluster.
type Source interface {
	// Read gives what is known now. A broker that does not answer is in the snapshot
	// with the reason; an error means that nothing at all was found out.
	Read(ctx context.Context, want Want) (*Snapshot, error)
}

// Snapshot is a cluster at a moment.
type Snapshot struct {
	At       time.Time
	Took     time.Duration
	Requests int64 // sent to find it out
	Clusters []string
	Brokers  []Broker
	Topics   []Topic
	Groups   []Group
	Clients  []Client
	Errors   []Failure
}

// Failure is what could not be read.
type Failure struct {
	Who  string // broker, or the address of one whose name is not known
	Addr string
	Why  string
}

// Broker is a broker process.
type Broker struct {
	Cluster, Name, Addr, Version string
	ID                           int64
	Err                          string // why it did not answer; its figures are unknown then

	Puts, Gets   Num // messages since its last midnight
	PutMax       Num // ms, the longest put
	Disk         Num // how full the volume of the log is, from 0 to 1
	FlushBehind  string
	SendWaiting  Num // requests
	SendWait     Num // ms that the first of them waits
	LockHeld     Num // ms that an append has held the log
	DispatchLeft Num // bytes
	Started      time.Time
}

// Key tells brokers apart.
func (b *Broker) Key() string { return b.Cluster + "/" + b.Name + "/" + b.Addr }

// Topic is a topic over all brokers.
type Topic struct {
	Name    string
	Kind    string
	Brokers int
	Queues  int // for writing
	Groups  int // that read it, as far as it is known
	End     Num // sum of the ends of its queues: unknown where no group reads it
}

// Group is a consumer group over all brokers.
type Group struct {
	Name    string
	Online  bool
	Model   string // CLUSTERING, BROADCASTING
	Type    string // CONSUME_PASSIVELY, …
	Members int
	Lag     Num
	Retry   Num // lag of its retry topics
	Done    Num // sum of the committed offsets
	Flight  Num
	Age     time.Duration // of the oldest message that is not read; 0: not asked or none
	Expires string        // whether retention deletes it first: yes, no, unknown
	Lost    int64         // messages that were deleted before it had read them
	Marks   []string
	Queues  []Queue
	Topics  []string
}

// Queue is where a group stands in a queue.
type Queue struct {
	Topic, Broker       string
	ID                  int32
	Retry               bool
	Committed, End, Lag Num
	Flight              Num
	Owner               string
	Age                 time.Duration
	Marks               []string
}

// Key tells the queues of a group apart.
func (q *Queue) Key() string { return q.Topic + "/" + q.Broker + "/" + itoa(int64(q.ID)) }

// Client is a client of an application.
type Client struct {
	ID, Addr, Language, Version string
	Consumes, Produces          []string
	Seen                        time.Time
}
