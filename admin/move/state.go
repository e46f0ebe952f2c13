package move

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"mqx/internal/words"
)

// Phase is how far a plan has come.
type Phase string

// The phases, in their order, and those of the way back.
const (
	Planned  Phase = "PLANNED"  // written down, nothing looked at
	Checked  Phase = "CHECKED"  // every precondition holds
	Created  Phase = "CREATED"  // the targets have groups, topic and offsets
	Visible  Phase = "VISIBLE"  // every name server shows the targets, and clients have had the time to see them
	Sealed   Phase = "SEALED"   // the source is taken out of the choice of producers
	Draining Phase = "DRAINING" // nothing is written to the source any more; groups read what is left
	Drained  Phase = "DRAINED"  // every group that counts has read the source
	Opened   Phase = "OPENED"   // the targets may be read (they always could where order does not matter)
	Settled  Phase = "SETTLED"  // clients have had the time to let the source go
	Removed  Phase = "REMOVED"  // the source no longer has the topic
	Done     Phase = "DONE"

	Reopened     Phase = "REOPENED"      // going back: the source is written again, the targets are not
	DrainingBack Phase = "DRAINING_BACK" // going back: groups read what the targets got
	RolledBack   Phase = "ROLLED_BACK"
)

// forward is the order of the phases.
var forward = []Phase{Planned, Checked, Created, Visible, Sealed, Draining, Drained, Opened, Settled, Removed, Done}

// Phases are the phases of the way forward, in their order.
func Phases() []Phase { return slices.Clone(forward) }

// Before reports whether p comes before other on the way forward.
func (p Phase) Before(other Phase) bool {
	return slices.Index(forward, p) < slices.Index(forward, other)
}

// Back reports whether p is a phase of the way back.
func (p Phase) Back() bool { return p == Reopened || p == DrainingBack || p == RolledBack }

// Ended reports whether nothing follows p.
func (p Phase) Ended() bool { return p == Done || p == RolledBack }

// Kind is what a plan is for.
type Kind string

// The kinds of plan.
const (
	Migrate Kind = "migrate" // a topic leaves a broker for others
	Drain   Kind = "drain"   // a topic is no longer written on a broker, and read to its end
	Resize  Kind = "resize"  // a topic gets another number of queues
	Retire  Kind = "retire"  // a broker gives all its topics up
	// Rebalance moves topics between the brokers of a cluster, each like a Migrate; all are in the same phase.
	Rebalance Kind = "rebalance"
)

// Topic is the configuration of a topic on one broker, or its part in a route.
type Topic struct {
	Read       int32             `json:"read"`  // queues
	Write      int32             `json:"write"` // queues
	Perm       int32             `json:"perm"`  // 4 read, 2 write, 1 inherit
	Order      bool              `json:"order,omitempty"`
	SysFlag    int32             `json:"sysFlag,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
}

// Permission bits of a Topic and of a broker.
const (
	PermWrite = 2
	PermRead  = 4
)

// String is the configuration in short: queues to read and write, permission.
func (t *Topic) String() string {
	if t == nil {
		return "absent"
	}
	perm := ""
	if t.Perm&PermRead != 0 {
		perm += "r"
	}
	if t.Perm&PermWrite != 0 {
		perm += "w"
	}
	if perm == "" {
		perm = "-"
	}
	s := fmt.Sprintf("%d/%d %s", t.Read, t.Write, perm)
	if f := t.forward(); f != nil {
		s += " (sends go to " + f.Targets() + ")"
	}
	if t.Order {
		s += " ordered"
	}
	return s
}

// Same reports whether two configurations are one; both may be nil. Order does not count:
// brokers set it by themselves, after the order configuration of the name servers.
func (t *Topic) Same(o *Topic) bool {
	if t == nil || o == nil {
		return t == o
	}
	return t.Read == o.Read && t.Write == o.Write && t.Perm == o.Perm &&
		t.SysFlag == o.SysFlag && maps.Equal(t.Attributes, o.Attributes)
}

func (t *Topic) with(perm int32) *Topic {
	c := *t
	c.Perm = perm
	return &c
}

// Offline says what becomes of groups that are not there to read.
type Offline string

// The policies for groups without a member online.
const (
	OfflineWait       Offline = "wait"       // they count like any other
	OfflineCheckpoint Offline = "checkpoint" // they do not hold the move up; the source stays readable until they have read it
)

// Policy is what a plan waits for.
type Policy struct {
	Offline Offline  `json:"offline"`
	Ignore  []string `json:"ignore,omitempty"` // groups that are not waited for at all
	// LeavePending does not wait for delayed, timer, half and retry messages that the source
	// holds. The source must then be kept: they are delivered there.
	LeavePending bool `json:"leavePending,omitempty"`
	// Remove deletes what was moved from the source at the end. Without it the source stays
	// readable until its messages expire.
	Remove bool `json:"remove,omitempty"`
	// RouteInterval is how often clients ask for routes; every wait follows from it.
	RouteInterval time.Duration `json:"routeInterval"`
	// RemapKeys allows another number of queues for an ordered topic: keys go to other queues.
	RemapKeys bool `json:"remapKeys,omitempty"`
}

// DefaultRouteInterval is how often the official clients ask for routes.
const DefaultRouteInterval = 30 * time.Second

// Spec is what was asked for.
type Spec struct {
	Kind   Kind   `json:"kind"`
	Name   string `json:"name"` // topic; broker of a Retire; cluster of a Rebalance
	Policy Policy `json:"policy"`
}

// Target is a broker that gets queues.
type Target struct {
	Broker string `json:"broker"`
	Was    *Topic `json:"was,omitempty"` // nil: the broker does not have the topic
	To     *Topic `json:"to"`
	// ReadFirst: new queues are readable for a while before they are written. Clients that
	// broadcast keep their offsets themselves and may begin a queue that they see for the first
	// time at its end: it must be empty then.
	ReadFirst bool `json:"readFirst,omitempty"`
}

// isNew reports whether the plan makes the topic there.
func (t *Target) isNew() bool { return t.Was == nil }

// hold is what a new target is at first: written and not read, or the other way round.
func (t *Target) hold() *Topic {
	if t.ReadFirst {
		return t.To.with(PermRead)
	}
	return t.To.with(PermWrite)
}

// Part is one topic on one source broker.
type Part struct {
	Topic  string `json:"topic"`
	Source string `json:"source"` // broker
	// Was, Grown, Sealed and Final are the configuration of the source before the plan,
	// from CREATED, from SEALED and from REMOVED on. Final nil: the topic is deleted.
	Was    Topic  `json:"was"`
	Grown  Topic  `json:"grown"`
	Sealed Topic  `json:"sealed"`
	Final  *Topic `json:"final,omitempty"`
	// Shut is what an ordered source becomes in DRAINED and stays until it goes, where its broker hands nothing on: Sealed
	// without queues. nil: that is not needed.
	Shut *Topic `json:"shut,omitempty"`
	// From is the first queue that is sealed; those below it are written on.
	From    int32    `json:"from"`
	Targets []Target `json:"targets,omitempty"`
	// Ordered: the targets must not be read before the source is drained, and every key
	// keeps its queue. OrderWas, OrderSame and OrderTo are the order configuration at the
	// name servers before, written out without a change of meaning, and after the seal.
	Ordered   bool    `json:"ordered,omitempty"`
	OrderWas  *string `json:"orderWas,omitempty"`
	OrderSame *string `json:"orderSame,omitempty"`
	OrderTo   *string `json:"orderTo,omitempty"`
	// ReadFirst: a group broadcasts the topic, and new queues are shown for as long as consumers
	// take to adopt them before they are written.
	ReadFirst bool `json:"readFirst,omitempty"`
	// Opened: the targets of an ordered topic have been readable.
	Opened bool `json:"opened,omitempty"`
	// Last is the last seen end of each queue of the source, FlatSince when the ends that are
	// sealed last moved; SealedMax are those ends once they stand still.
	Last      []int64   `json:"last,omitempty"`
	FlatSince time.Time `json:"flatSince,omitzero"`
	SealedMax []int64   `json:"sealedMax,omitempty"`
	// Back are the ends of new targets on the way back, by broker.
	Back map[string][]int64 `json:"back,omitempty"`
	// Groups are those that were seen to read the topic. A group counts from then on.
	Groups []string `json:"groups,omitempty"`
	// Broadcasts are those of them that were seen to broadcast. They have no offsets at the broker,
	// and look like any other group while they are offline.
	Broadcasts []string `json:"broadcasts,omitempty"`
	// Floor are the smallest offsets a group may have on the source, by group and queue;
	// -1 where it had none.
	Floor map[string][]int64 `json:"floor,omitempty"`
}

// State is a plan and how far it has come. It is what the journal holds.
type State struct {
	ID     string    `json:"id"`
	Spec   Spec      `json:"spec"`
	Phase  Phase     `json:"phase"`
	Since  time.Time `json:"since"` // when the phase began
	Paused bool      `json:"paused,omitempty"`
	// Rollback: the way back was asked for.
	Rollback bool `json:"rollback,omitempty"`
	// Stopped is the violation that ended all steps, until somebody resumes.
	Stopped string `json:"stopped,omitempty"`
	Parts   []Part `json:"parts"`
	// Broker permission of the source of a Retire before and after the seal; 0 for others.
	BrokerWas    int32 `json:"brokerWas,omitempty"`
	BrokerSealed int32 `json:"brokerSealed,omitempty"`
	// Replicated are the brokers of the plan that had a replica in sync when it was checked.
	Replicated []string `json:"replicated,omitempty"`
	// LogEnds are the ends of the logs of sources with replicas when nothing was written to sealed queues any more: what lies
	// before them must have been copied before the plan goes on.
	LogEnds map[string]int64 `json:"logEnds,omitempty"`
	// Agreed is when the name servers began to say what the phase waits for; zero while they do not.
	Agreed time.Time `json:"agreed,omitzero"`
	// Rests is the journal offset up to which everything of the plan is part of this state.
	Rests int64 `json:"rests"`
	// Seq counts the records of the plan, Owner wrote the last one.
	Seq   int64  `json:"seq"`
	Owner string `json:"owner,omitempty"`
}

// Clone is a deep copy.
func (s *State) Clone() State {
	out := *s
	out.Parts = slices.Clone(s.Parts)
	for i := range out.Parts {
		p := &out.Parts[i]
		p.Targets = slices.Clone(p.Targets)
		p.Last, p.SealedMax, p.Groups = slices.Clone(p.Last), slices.Clone(p.SealedMax), slices.Clone(p.Groups)
		p.Broadcasts = slices.Clone(p.Broadcasts)
		p.Back, p.Floor = maps.Clone(p.Back), maps.Clone(p.Floor)
		for k, v := range p.Floor {
			p.Floor[k] = slices.Clone(v)
		}
	}
	out.Replicated = slices.Clone(s.Replicated)
	out.LogEnds = maps.Clone(s.LogEnds)
	return out
}

// Brokers are the names of all brokers of the plan, sorted.
func (s *State) Brokers() []string {
	names := map[string]bool{}
	for i := range s.Parts {
		names[s.Parts[i].Source] = true
		for _, t := range s.Parts[i].Targets {
			names[t.Broker] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Asks reports whether a broker must answer in the present phase: one that is retired is
// stopped at the end.
func (s *State) Asks(broker string) bool {
	return s.Spec.Kind != Retire || s.Phase != Removed || broker != s.Spec.Name
}

// GivenUp are the queues of a broker that the plan takes away, by topic the first of them: those that
// are sealed or, on the way back, those that were made.
func (s *State) GivenUp(broker string) map[string]int32 {
	out := map[string]int32{}
	for i := range s.Parts {
		p := &s.Parts[i]
		if s.Phase.Back() || s.Rollback {
			if from, ok := p.added()[broker]; ok {
				out[p.Topic] = from
			}
			continue
		}
		if p.Source == broker && p.seals() {
			out[p.Topic] = p.From
		}
	}
	return out
}

// Topics are the names of all topics of the plan, sorted.
func (s *State) Topics() []string {
	names := map[string]bool{}
	for i := range s.Parts {
		names[s.Parts[i].Topic] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// Sources are the names of the source brokers, sorted.
func (s *State) Sources() []string {
	names := map[string]bool{}
	for i := range s.Parts {
		names[s.Parts[i].Source] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// Overlaps reports whether two plans touch the same topic or retire the same broker.
func (s *State) Overlaps(o *State) bool {
	mine := s.Topics()
	return slices.ContainsFunc(o.Topics(), func(t string) bool { return slices.Contains(mine, t) }) ||
		s.Spec.Kind == Retire && o.Spec.Kind == Retire && s.Spec.Name == o.Spec.Name
}

// MaxRecordBytes bounds a record of the journal: brokers take messages of any client's size up to a
// limit that may have been lowered, and this is far below every one.
const MaxRecordBytes = 64 << 10

// plainBytes is the size above which a state is written compressed.
const plainBytes = 16 << 10

// maxStateBytes bounds what a compressed record may grow to.
const maxStateBytes = 16 << 20

// ErrTooLarge says that a plan does not fit into one record of the journal.
var ErrTooLarge = errors.New("the plan is too large for one record: move fewer topics at a time")

// Encode writes a state for the journal: JSON, or 'z' and the same deflated when it is long.
func (s *State) Encode() ([]byte, error) {
	b, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("cannot write plan %q: %w", s.ID, err)
	}
	if len(b) > plainBytes {
		var z bytes.Buffer
		z.WriteByte('z')
		w, err := flate.NewWriter(&z, flate.DefaultCompression)
		if err != nil {
			return nil, fmt.Errorf("cannot write plan %q: %w", s.ID, err)
		}
		if _, err := w.Write(b); err != nil {
			return nil, fmt.Errorf("cannot write plan %q: %w", s.ID, err)
		}
		if err := w.Close(); err != nil {
			return nil, fmt.Errorf("cannot write plan %q: %w", s.ID, err)
		}
		b = z.Bytes()
	}
	if len(b) >= MaxRecordBytes {
		return nil, fmt.Errorf("cannot write plan %q: %w", s.ID, ErrTooLarge)
	}
	return b, nil
}

// Decode reads what Encode wrote.
func Decode(b []byte) (*State, error) {
	if len(b) > 0 && b[0] == 'z' {
		plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(b[1:])), maxStateBytes+1))
		if err != nil {
			return nil, fmt.Errorf("cannot read plan: %w", err)
		}
		if len(plain) > maxStateBytes {
			return nil, fmt.Errorf("cannot read plan: it has more than %s", words.Count(maxStateBytes, "byte"))
		}
		b = plain
	}
	s := &State{}
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("cannot read plan: %w", err)
	}
	if !slices.Contains(forward, s.Phase) && !s.Phase.Back() {
		return nil, fmt.Errorf("cannot read plan: there is no phase %q", s.Phase)
	}
	if s.ID == "" || strings.TrimSpace(s.Spec.Name) == "" {
		return nil, errors.New("cannot read plan: it has no id or no name")
	}
	return s, nil
}
