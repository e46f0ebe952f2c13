package remoting

// FieldAct is the field of ReqMqxHA that says what is asked.
const FieldAct = "act"

// What ReqMqxHA can ask for.
const (
	HAActStatus  = "status"  // HAState
	HAActFence   = "fence"   // HAFence: a master takes no messages for a while
	HAActPromote = "promote" // HAPromote: a slave becomes the master
	HAActDemote  = "demote"  // HADemote: a master becomes a slave
	HAActCompare = "compare" // HACompare -> HACommon: where the log parts from that of a master
	HAActResync  = "resync"  // HAResync: a slave cuts its log, or takes it anew
	HAActKept    = "kept"    // []HAKept: what is in the salvage directory
	HAActOffsets = "offsets" // HAOffsetsAfter, or nothing -> HAOffsets: what consumers committed to a slave and its master does not have
	HAActRead    = "read"    // HARead -> bytes of a file there
	// HAActTakeOffsets gives the master what HAActOffsets tells (HAOffsets -> HAOffsets: what was set back there since).
	HAActTakeOffsets = "take-offsets"
)

// FieldSetBackSince is the field of ReqGetAllConsumerOffset by which a slave of mqx asks for ToldOffsets: the At that it was told the
// last time, 0 at the first. Brokers of Apache pass over it.
const FieldSetBackSince = "mqxSetBackSince"

// ToldOffsets are all offsets, and what was set back or removed since a time.
type ToldOffsets struct {
	ConsumerOffsets
	// SetBack is when, in milliseconds of the epoch, by topic@group and queue. What has no offset here was removed.
	SetBack map[string]map[int32]int64 `json:"mqxSetBack,omitempty"`
	// SetBackAll is not 0 where there were too many: until then any offset may have been set back.
	SetBackAll int64 `json:"mqxSetBackAll,omitempty"`
	// At is the time at the broker, 0 of one of Apache.
	At int64 `json:"mqxAt"`
}

// HAOffsets are offsets that consumers committed to a slave while its master was away, by topic@group and queue.
type HAOffsets struct {
	OffsetTable map[string]map[int32]int64 `json:"offsetTable"`
	// CommittedAt is when, in milliseconds of the epoch, by the slave's clock; no entry where that is not known. In the answer of a
	// master, which has what stands there instead: when it was set back, by the master's clock.
	CommittedAt map[string]map[int32]int64 `json:"committedAt,omitempty"`
	// More asks for the rest; nil: this is all.
	More *HAOffsetsAfter `json:"more,omitempty"`
}

// HAOffsetsAfter asks for some of the offsets: those that come behind a queue, in the order of keys and queues. Without it a slave
// tells all of them at once, as one of an older mqx does in any case.
type HAOffsetsAfter struct {
	Key   string `json:"key,omitempty"` // empty: from the first on
	Queue int32  `json:"queue,omitempty"`
	Most  int    `json:"most"`
}

// Before reports whether a queue comes behind it.
func (a *HAOffsetsAfter) Before(key string, queue int32) bool {
	return a.Key < key || a.Key == key && a.Queue < queue
}

// HAState is what a broker of mqx says of itself in its group.
type HAState struct {
	Cluster    string `json:"cluster"`
	BrokerName string `json:"brokerName"`
	BrokerID   int64  `json:"brokerId"`
	Role       string `json:"role"`
	Number     int64  `json:"number"` // the brokerId before its first change of role
	Addr       string `json:"addr"`
	HAAddr     string `json:"haAddr"`
	// Epoch is that of the newest promotion in the group that the broker knows, 0 before the first. A master serves in it.
	Epoch   int64 `json:"epoch"`
	LogMin  int64 `json:"logMin"`
	LogEnd  int64 `json:"logEnd"`
	Flushed int64 `json:"flushed"`
	// Phase is what a slave is doing: no-master, connecting, following, parted, ahead, behind; empty of a master.
	Phase  string `json:"phase,omitempty"`
	Master string `json:"master,omitempty"` // of a slave: the address of its master
	Error  string `json:"error,omitempty"`  // why a slave does not follow
	// PartedAt is where the log of a slave that has stopped parts from its master's at the latest: what follows is not the
	// group's. nil: it does not know, or has not stopped.
	PartedAt *int64 `json:"partedAt,omitempty"`
	// Fenced is why a master takes no messages; empty where it does.
	Fenced string `json:"fenced,omitempty"`
	// FencedEpoch is the epoch of the master that has taken its place, FencedBy its address.
	FencedEpoch int64  `json:"fencedEpoch,omitempty"`
	FencedBy    string `json:"fencedBy,omitempty"`
	// Epochs are those of its log, LastEpoch that of its last bytes: before the first promotion 0; nil of a broker that does
	// not tell it.
	Epochs    []HAEpoch `json:"epochs,omitempty"`
	LastEpoch *int64    `json:"lastEpoch,omitempty"`
	Kept      int       `json:"kept"` // files in the salvage directory
}

// HAEpoch is a promotion: its epoch and where the log ended; -1 until the promoted broker has started.
type HAEpoch struct {
	Epoch int64 `json:"epoch"`
	Start int64 `json:"start"`
}

// HAFence asks a master to take no messages for some seconds; 0 lifts that.
type HAFence struct {
	Seconds int `json:"seconds"`
}

// HAPromote asks a slave to become the master.
type HAPromote struct {
	Epoch int64  `json:"epoch"` // higher than every one known in the group
	Role  string `json:"role"`  // ASYNC_MASTER or SYNC_MASTER
}

// HADemote asks a master to become a slave.
type HADemote struct {
	ID    int64 `json:"id"`    // above 0
	Epoch int64 `json:"epoch"` // that of the master that takes its place, 0: not known yet
	Cut   HACut `json:"cut"`
}

// HAResync asks a slave to cut its log.
type HAResync struct {
	Cut HACut `json:"cut"`
}

// HACut is what becomes of the log of a slave.
type HACut struct {
	To      int64 `json:"to"`      // -1: nothing is cut
	Wipe    bool  `json:"wipe"`    // the whole log goes
	Discard bool  `json:"discard"` // what goes in a wipe is not kept
}

// HACompare asks a broker to compare its log with a master's. Empty addresses are those of the master it knows.
type HACompare struct {
	Master   string `json:"master"`   // address of the broker
	MasterHA string `json:"masterHa"` // of its replication port
}

// HACommon is how the log of a broker compares with that of a master.
type HACommon struct {
	Master   string `json:"master"`
	MasterHA string `json:"masterHa"`
	Min      int64  `json:"min"`
	End      int64  `json:"end"`
	Low      int64  `json:"low"`  // of the master
	High     int64  `json:"high"` // of the master
	// Common is where the logs part, -1 where they have no record in common.
	Common int64 `json:"common"`
	// Messages are the records of the broker behind Common; -1 where they were not counted.
	Messages int64 `json:"messages"`
}

// HAKept is a piece of a log in the salvage directory.
type HAKept struct {
	Name  string `json:"name"`
	Start int64  `json:"start"` // position in the log, -1 unknown
	Bytes int64  `json:"bytes"`
	Time  int64  `json:"time"` // ms
}

// HARead asks for bytes of such a piece.
type HARead struct {
	Name string `json:"name"`
	Off  int64  `json:"off"`
	Len  int    `json:"len"`
}

// HAInfo is what mqx adds to the answer to GET_BROKER_HA_STATUS.
type HAInfo struct {
	Epoch  int64  `json:"epoch"`
	Phase  string `json:"phase,omitempty"`
	Error  string `json:"error,omitempty"`
	Fenced string `json:"fenced,omitempty"`
	// FencedEpoch is the epoch of the master that has taken its place, 0 where none has.
	FencedEpoch int64 `json:"fencedEpoch,omitempty"`
	// Epochs are those of the log of a master.
	Epochs []HAEpoch `json:"epochs,omitempty"`
	// Master is how a master counts copies; nil of a slave.
	Master *HACopies `json:"master,omitempty"`
}

// HACopies is what a master acknowledges by, and how it stands. Slaves are counted without the master.
type HACopies struct {
	Level    string       `json:"level"`    // async, semi-sync, sync, quorum
	AckMode  string       `json:"ackMode"`  // written, flushed
	Copies   int          `json:"copies"`   // slaves that are waited for: semi-sync, quorum
	Least    int          `json:"least"`    // slaves that must be in sync
	InSync   int          `json:"inSync"`   // slaves that are
	Degraded bool         `json:"degraded"` // fewer copies do now
	Acked    int64        `json:"acked"`    // byte up to which the log has its copies; its end where none are waited for
	Shown    int64        `json:"shown"`    // byte up to which consumers see it
	Waiting  int          `json:"waiting"`  // sends that wait for copies
	Times    []HAInterval `json:"times,omitempty"`
	Replicas []HAReplica  `json:"replicas,omitempty"`
	Refused  []HARefused  `json:"refused,omitempty"`
}

// HAInterval is a time in which fewer copies did than the level says.
type HAInterval struct {
	From  int64  `json:"fromOffset"`
	To    int64  `json:"toOffset"` // -1 while it lasts
	Epoch int64  `json:"epoch"`
	Began int64  `json:"fromTime"` // ms
	Ended int64  `json:"toTime"`   // ms; 0 while it lasts
	Why   string `json:"why"`
}

// HAReplica is one slave, however many connections it has.
type HAReplica struct {
	ID        string   `json:"id"`    // its broker id, or its host where it does not tell
	Known     bool     `json:"known"` // it has told its broker id
	Addrs     []string `json:"addrs"` // of its connections
	End       int64    `json:"end"`
	GapMillis int64    `json:"gapMillis"` // how old what it has not got is at most; -1: not known
	Counted   bool     `json:"counted"`   // as a copy
	InSync    bool     `json:"inSync"`
	Flushed   bool     `json:"flushed"` // it tells what is durable
	Async     bool     `json:"async"`   // nobody waits for it
}

// HARefused is a slave that was not served.
type HARefused struct {
	Peer string `json:"peer"`
	ID   string `json:"id,omitempty"`
	Why  string `json:"why"`
	Time int64  `json:"time"` // ms
}
