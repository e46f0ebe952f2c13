package tui

import (
	"cmp"
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

// Want says what a refresh is to read beside what every one reads: brokers, topics and
// where the groups stand. What costs requests by the row is read a part at a time, that
// of the rows that are seen first.
type Want struct {
	Group   string   // opened: its owners and ages, all of it each time
	Groups  []string // seen: their members, ages and losses come first
	Topics  []string // seen: what they hold comes first
	Brokers bool     // replication and connections of the brokers
	Clients bool     // all clients
	All     bool     // everything that is asked for at once, without a bound
}

// Source reads a cluster.
type Source interface {
	// Read gives what is known now. A broker that does not answer is in the snapshot
	// with the reason; an error means that nothing at all was found out.
	Read(ctx context.Context, want Want) (*Snapshot, error)
	// Message reads one message.
	Message(ctx context.Context, ref MessageRef) (*Message, error)
}

// Snapshot is a cluster at a moment.
type Snapshot struct {
	At       time.Time
	Took     time.Duration
	Requests int64 // sent to find it out
	Bound    int64 // and at most that many are; 0: no bound
	Clusters []string
	Brokers  []Broker
	Topics   []Topic
	Groups   []Group // sorted by name, their queues by topic, broker and id
	Clients  []Client
	// ClientsOf is how many groups had told their members by now, Whole that all had.
	ClientsOf int
	Whole     bool
	Errors    []Failure
	Missing   []string // brokers that did not say where the groups stand: their rows are kept as they were
	Part      bool     // one of them has never said it: how far groups are behind altogether is not known
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
	At                           time.Time // when it said so; zero: it never did
	Err                          string    // why it does not answer: the figures are those of At

	Puts, Gets   Num // messages since its last midnight
	PutMax       Num // ms, the longest put
	PutP99       Num // ms, what 99 of 100 puts took at most
	Disk         Num // how full the volume of the log is, from 0 to 1
	FlushBehind  string
	SendWaiting  Num  // requests
	SendWait     Num  // ms that the first of them waits
	LockHeld     Num  // ms that an append has held the log
	DispatchLeft Num  // bytes
	HAGap        Num  // bytes that the replica that is furthest behind has not got
	HADegraded   bool // it acknowledges with fewer copies than its level says
	HALevel      string
	HAState      string // of a replica: what it is doing; "fenced" of a master that is none any more; empty where it is not known
	Replicas     Num    // that are connected
	Conns        Num    // clients, by address
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
	End     Num // sum of the ends of its queues
	Stored  Num // messages that its queues hold
	EndAt   time.Time
	SizeAt  time.Time // of Stored; zero: not looked up yet
	Stale   bool      // a part of it lies at a broker that does not answer
}

// Group is a consumer group over all brokers.
type Group struct {
	Name   string
	Lag    Num
	Retry  Num       // lag of its retry topics
	Done   Num       // sum of the committed offsets
	TPS    Num       // messages a second that brokers gave it over the last minute, as they say
	At     time.Time // of the oldest part of these
	Stale  bool      // a part of it lies at a broker that does not answer
	Queues []Queue
	Topics []string

	// What follows was found out at DetailAt; zero: not yet.
	DetailAt time.Time
	Online   bool
	Model    string // CLUSTERING, BROADCASTING
	Type     string // CONSUME_PASSIVELY, …
	Members  int
	Flight   Num
	Age      time.Duration // of the oldest message that is not read; 0: not asked or none
	Expires  string        // whether retention deletes it first: yes, no, unknown
	Lost     int64         // messages that were deleted before it had read them
	Marks    []string
}

// Looked reports whether members and ages are known at all.
func (g *Group) Looked() bool { return !g.DetailAt.IsZero() }

// Queue is where a group stands in a queue.
type Queue struct {
	Topic, Broker       string
	ID                  int32
	Retry               bool
	Stale               bool // its broker does not answer
	At                  time.Time
	Committed, End, Lag Num
	Flight              Num
	Owner               string
	Age                 time.Duration
	Marks               []string
}

// Key names the queue among those of a group.
func (q *Queue) Key() string { return q.Topic + "/" + q.Broker + "/" + itoa(int64(q.ID)) }

func (q *Queue) compare(o *Queue) int {
	return cmp.Or(cmp.Compare(q.Topic, o.Topic), cmp.Compare(q.Broker, o.Broker), cmp.Compare(q.ID, o.ID))
}

// Client is a client of an application.
type Client struct {
	ID, Language, Version string
	Addrs                 []string // that it connects from
	Brokers               []string // that it is connected to
	Consumes, Produces    []string
	Seen                  time.Time // its last heartbeat, where brokers tell
	At                    time.Time // when the brokers last named it
}

// MessageRef is a message by its id, or by its place.
type MessageRef struct {
	ID            string
	Topic, Broker string
	Queue         int32
	Offset        int64
}

// Message is one message as it is shown.
type Message struct {
	Ref                 MessageRef // its place
	ID, OffsetID        string
	Tags, Keys          string
	Born, Stored        time.Time
	BornHost, StoreHost string
	Size                int
	Reconsumed          int
	Properties          [][2]string // the others, sorted
	Body                []byte      // the beginning
	BodySize            int
	Others              int // records that have the same id
}
