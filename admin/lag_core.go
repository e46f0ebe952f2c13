package admin

import (
	"slices"
	"time"

	"mqx/remoting"
)

// Marks of queues, groups and members: what is worth a look.
const (
	MarkNeverCommitted = "never-committed" // the group has no offset in the queue
	MarkAtZero         = "at-0"            // it is committed at 0 in a queue that has messages
	MarkEmpty          = "empty"           // the queue has no message
	MarkBeyondEnd      = "beyond-end"      // it is committed behind the end of the queue
	MarkBelowStart     = "below-start"     // messages went before the group had read them
	MarkNoQueue        = "no-such-queue"   // it is committed for a queue that is not there
	MarkNoOwner        = "no-owner"        // no member reads the queue
	MarkOffline        = "offline"         // the group has no member
	MarkBroadcast      = "broadcast"       // every member has offsets of its own, on its machine
	MarkDuplicateID    = "duplicate-id"    // two connections have one client id
	MarkIdle           = "no-queue"        // the member reads no queue
	MarkSubscriptions  = "subscriptions"   // members subscribe to different things
	MarkSilent         = "no-answer"       // the member did not say what it reads
)

// Will says whether something is going to happen: yes, no, or unknown.
type Will string

// The three answers.
const (
	WillYes     Will = "yes"
	WillNo      Will = "no"
	WillUnknown Will = ""
)

// behind computes how far a group is behind in a queue and what is odd about it.
// The offset that is committed must have been read before the end of the queue.
// Lag is max - max(committed, min); lost counts what went before it was read.
func behind(committed remoting.Opt[int64], r queueRange, known bool) (lag remoting.Opt[int64], lost int64, marks []string) {
	empty := r.min.OK && r.max.OK && r.min.Value == r.max.Value
	if known && empty {
		marks = append(marks, MarkEmpty)
	}
	switch {
	case !known:
		return lag, 0, []string{MarkNoQueue}
	case !committed.OK:
		marks = append(marks, MarkNeverCommitted)
		if empty {
			lag = remoting.Some[int64](0)
		}
		return lag, 0, marks
	case !r.max.OK:
		return lag, 0, marks
	case committed.Value > r.max.Value:
		return lag, 0, append(marks, MarkBeyondEnd)
	}
	from := committed.Value
	if r.min.OK && from < r.min.Value {
		lost = r.min.Value - from
		from = r.min.Value
		marks = append(marks, MarkBelowStart)
	}
	if committed.Value == 0 && !empty && lost == 0 && r.max.Value > 0 {
		marks = append(marks, MarkAtZero)
	}
	return remoting.Some(r.max.Value - from), lost, marks
}

// inFlight is how many messages were handed out and are not committed yet.
func inFlight(committed, pulled remoting.Opt[int64]) remoting.Opt[int64] {
	if !committed.OK || !pulled.OK {
		return remoting.Opt[int64]{}
	}
	return remoting.Some(max(0, pulled.Value-committed.Value))
}

// expires tells whether retention deletes a message of a backlog before it is read.
// The messages of the backlog are taken to be stored evenly since age ago and to be
// read at rate a second; the age of each when its turn comes lies between that of
// the oldest now and the time that the whole takes, so that these two decide.
func expires(lag remoting.Opt[int64], age, retention remoting.Opt[time.Duration], rate remoting.Opt[float64]) Will {
	switch {
	case lag.OK && lag.Value == 0:
		return WillNo
	case !lag.OK || !age.OK || !retention.OK:
		return WillUnknown
	case age.Value >= retention.Value:
		return WillYes // it may go at any time
	case !rate.OK:
		return WillUnknown
	case rate.Value <= 0:
		return WillYes // nobody reads
	case float64(lag.Value)/rate.Value > retention.Value.Seconds():
		return WillYes
	}
	return WillNo
}

// LagSum is the lag of several queues together.
type LagSum struct {
	Queues   int
	Lag      remoting.Opt[int64] // unknown when that of one queue is, or a broker is missing
	Known    int64               // of the queues whose lag is known
	Unknown  int                 // queues whose lag is not
	Lost     int64
	InFlight remoting.Opt[int64]         // of the queues that tell; unknown when none does
	Age      remoting.Opt[time.Duration] // of the oldest in the queues that tell
	Expires  Will
	Marks    []string
	Missing  []string // brokers that did not tell of their queues
}

// Miss notes that brokers did not tell: what lies there is not known, and so is no sum.
func (s *LagSum) Miss(brokers []string) {
	if len(brokers) == 0 {
		return
	}
	s.Missing = brokers
	s.Lag, s.InFlight = remoting.Opt[int64]{}, remoting.Opt[int64]{}
	if s.Expires != WillYes {
		s.Expires = WillUnknown
	}
}

// Add adds a queue.
func (s *LagSum) Add(q *QueueLag) {
	if s.Queues == 0 {
		s.Expires = WillNo
	}
	s.Queues++
	if q.Lag.OK {
		s.Known += q.Lag.Value
	} else {
		s.Unknown++
	}
	s.Lag = remoting.Opt[int64]{Value: s.Known, OK: s.Unknown == 0 && len(s.Missing) == 0}
	s.Lost += q.Lost
	if q.InFlight.OK {
		s.InFlight = remoting.Some(s.InFlight.Value + q.InFlight.Value)
	}
	if q.Age.OK && (!s.Age.OK || q.Age.Value > s.Age.Value) {
		s.Age = q.Age
	}
	switch {
	case q.Expires == WillYes || s.Expires == WillYes:
		s.Expires = WillYes
	case q.Expires == WillUnknown:
		s.Expires = WillUnknown
	}
	for _, m := range q.Marks {
		if m != MarkEmpty && m != MarkAtZero && !slices.Contains(s.Marks, m) {
			s.Marks = append(s.Marks, m)
		}
	}
}
