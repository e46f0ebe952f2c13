package move

import "time"

// Observation is what was seen of the cluster at one time. What could not be seen is
// named in Failed: no step is taken over it.
type Observation struct {
	At          time.Time
	Brokers     map[string]BrokerView
	NameServers []NameServerView
	// Groups are those that read a topic of the plan, online or with an offset, by topic and name.
	Groups map[string]map[string]GroupView
	// Others are brokers outside of the plan that take no messages of a topic of it, by topic and name. Looked at in SETTLED.
	Others map[string]map[string]Topic
	Failed []string
}

// BrokerView is a broker of the plan.
type BrokerView struct {
	Addr string
	// Perm is brokerPermission.
	Perm int32
	// Replicas is the number of replicas it has, InSync how many of them are in sync.
	Replicas, InSync int
	// Disk is the used share of the disk of its log, 0 to 1; negative where it does not say.
	Disk float64
	// Forwards: it hands on what is sent to sealed queues (remoting.AttrForward). Looked at before CHECKED.
	Forwards bool
	// AsksSignature: it takes only what is signed. Signs: what it hands on, it signs. Looked at before CHECKED.
	AsksSignature, Signs bool
	// LogEnd is the end of its log, Copied how much of it every replica in sync has. 0 without a replica.
	LogEnd, Copied int64
	Topics         map[string]TopicView
	// Groups are the groups that it has a configuration of.
	Groups map[string]bool
	// Modes are how groups get the messages of a topic, by topic and group, as the broker was told. They
	// are looked at before CREATED.
	Modes map[string]map[string]Mode
	// NotesUnread is how many notes of popped messages are still to be read before GroupView.InFlight is
	// known. HidesPops: the broker keeps them where nobody else can read them.
	NotesUnread int64
	HidesPops   bool
	// Pending counts messages for sealed queues of a topic that the broker holds and has not yet delivered.
	Pending map[string]Pending
	// DeadLetters counts messages in dead letter topics of the broker, by topic.
	DeadLetters map[string]int64
}

// Mode is how a group gets the messages of a topic.
type Mode struct {
	Name  string `json:"name"`            // PULL or POP
	Share int32  `json:"share,omitempty"` // clients that share a queue when they pop
}

// ModePop is the mode of a group that pops.
const ModePop = "POP"

// TopicView is a topic on a broker.
type TopicView struct {
	Config Topic
	Static bool
	Queues []Range // as many as the larger number of queues
}

// Range is the first offset of a queue and the one behind its last.
type Range struct{ Min, Max int64 }

// Pending are messages on their way to a topic.
type Pending struct{ Delayed, Timer, Half int64 }

// Total is their number.
func (p Pending) Total() int64 { return p.Delayed + p.Timer + p.Half }

// NameServerView is what one name server says.
type NameServerView struct {
	Addr string
	// Routes by topic; a topic without an entry is not routed.
	Routes map[string]Route
	// Brokers are the broker names it lists.
	Brokers map[string]bool
	// Order is the order configuration in its table, by topic, whether it hands it out or not.
	Order map[string]string
	// HandsOutOrder: it puts order configurations into routes.
	HandsOutOrder bool
}

// Route is the route of a topic at one name server.
type Route struct {
	Queues map[string]Topic // by broker: numbers and permission
	Order  *string          // the order configuration that it hands out
}

// GroupView is a group that reads a topic.
type GroupView struct {
	Online    bool
	Broadcast bool
	// Offsets are the committed offsets by broker and queue; -1 where there is none.
	Offsets map[string][]int64
	// Retry counts messages of the topic in the group's retry topics on a broker that it has not read.
	Retry map[string]int64
	// InFlight counts messages of queues that are given up on a broker, and of the group's retry topics
	// of the topic there, that were popped and are neither acknowledged nor given back.
	InFlight map[string]int64
}

// offset is the committed offset of a group, -1 where there is none.
func (g *GroupView) offset(broker string, queue int) int64 {
	if at := g.Offsets[broker]; queue < len(at) {
		return at[queue]
	}
	return -1
}
