package transaction

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"mqx/message"
)

// Half is what the rules need to know of a stored half message. Its byte slices
// alias the record.
type Half struct {
	QueueOffset int64 // in the half queue
	Phys        int64
	Born, Store int64 // ms

	Group     []byte // producer group, whom to ask
	RealTopic []byte
	RealQueue int32
	UniqKey   []byte
	Checks    int // check-backs so far
	// Immunity is the message's own time before the first check, -1 when it has none.
	Immunity time.Duration
	// Origin is the queue offset of the half message that this one is a copy
	// of, -1 when it is none or the copy does not say.
	Origin int64
}

// ErrNoHalf says that a record of the half topic is not a half message: nobody
// can be asked about it and there is no topic to deliver it to.
var ErrNoHalf = errors.New("no half message")

// ParseHalf reads a record of the half topic.
func ParseHalf(rec message.View) (Half, error) {
	h := Half{
		QueueOffset: rec.QueueOffset(), Phys: rec.PhysicalOffset(), Born: rec.BornTimestamp(), Store: rec.StoreTimestamp(),
		Immunity: -1, Origin: -1, RealQueue: -1,
	}
	message.EachProperty(rec.Properties(), func(name, value []byte) bool {
		switch string(name) {
		case message.PropRealTopic:
			h.RealTopic = value
		case message.PropRealQueueID:
			h.RealQueue = int32(number(value, 32))
		case message.PropProducerGroup:
			h.Group = value
		case message.PropUniqKey:
			h.UniqKey = value
		case message.PropTransactionCheckTimes:
			h.Checks = int(number(value, 32))
		case message.PropCheckImmunityTime:
			h.Immunity = immunity(value)
		case message.PropTranPreparedQueueOffset:
			h.Origin = number(value, 64)
		}
		return true
	})
	if len(h.RealTopic) == 0 || h.RealQueue < 0 {
		return h, fmt.Errorf("%w: half queue offset %d has the topic %q and the queue %d", ErrNoHalf, h.QueueOffset, h.RealTopic, h.RealQueue)
	}
	return h, nil
}

// number is a decimal number, -1 for anything else, as Apache reads it.
func number(v []byte, bits int) int64 {
	n, err := strconv.ParseInt(string(v), 10, bits)
	if err != nil {
		return -1
	}
	return n
}

// maxImmunitySeconds bounds what a message may ask for: a longer time is not a
// duration any more.
const maxImmunitySeconds = int64(1<<63-1) / int64(time.Second)

// immunity is the message's own time, -1 for a text that is no number: then the
// broker's applies.
func immunity(v []byte) time.Duration {
	n := number(v, 64)
	if n == -1 {
		return -1
	}
	return time.Duration(max(0, min(n, maxImmunitySeconds))) * time.Second
}

// AppendHalfProperties appends the properties of a half message: those that
// were sent, its transaction id, and where it is to go.
func AppendHalfProperties(dst, sent, uniqKey []byte, topic string, queue int32) []byte {
	var room [512]byte
	p := append(room[:0], sent...)
	if len(uniqKey) > 0 {
		p = setProperty(p, message.PropTransactionID, string(uniqKey))
	}
	p = setProperty(p, message.PropRealTopic, topic)
	p = setProperty(p, message.PropRealQueueID, strconv.Itoa(int(queue)))
	return message.AppendJavaOrder(dst, p)
}

func setProperty(p []byte, name, value string) []byte {
	if n := len(p); n > 0 && p[n-1] != message.PropertySeparator {
		p = append(p, message.PropertySeparator)
	}
	return message.AppendProperty(p, name, value) // the last one counts
}

// HalfRecord turns a message into its half message: it keeps everything but
// topic, queue and transaction bits.
func HalfRecord(r *message.Record, props []byte) {
	r.Topic, r.QueueID = halfTopic, 0
	r.SysFlag &^= message.FlagTransactionMask
	r.Properties = props
}

var (
	halfTopic    = []byte(message.TopicHalf)
	opTopic      = []byte(message.TopicHalfOp)
	discardTopic = []byte(message.TopicTransCheckMaxTime)
)

// copyOf is a record with the fields of a stored half message.
func copyOf(rec message.View) message.Record {
	return message.Record{
		Flag: rec.Flag(), SysFlag: rec.SysFlag() &^ message.FlagTransactionMask, BornTimestamp: rec.BornTimestamp(),
		BornHost: rec.BornHost(), StoreHost: rec.StoreHost(), ReconsumeTimes: rec.ReconsumeTimes(), Body: rec.Body(),
	}
}

// marks are the properties that only the broker needs. TRAN_MSG, PGROUP and
// __transactionId__ stay: consumers derive the transaction id from them.
func internalMark(name []byte) bool {
	switch string(name) {
	case message.PropRealTopic, message.PropRealQueueID, message.PropTransactionCheckTimes, message.PropTranPreparedQueueOffset:
		return true
	}
	return false
}

// CommitRecord is the message that consumers get of a half message. Its body
// aliases rec.
func CommitRecord(rec message.View, h *Half) message.Record {
	r := copyOf(rec)
	r.Topic, r.QueueID = h.RealTopic, h.RealQueue
	r.SysFlag |= message.TransactionCommit
	r.PreparedTransactionOffset = h.Phys
	raw := rec.Properties()
	p := make([]byte, 0, len(raw))
	message.EachProperty(raw, func(name, value []byte) bool {
		if !internalMark(name) {
			p = append(p, name...)
			p = append(p, message.NameValueSeparator)
			p = append(p, value...)
			p = append(p, message.PropertySeparator)
		}
		return true
	})
	r.Properties = p
	return r
}

// CheckedRecord is the copy that takes a half message's place in the half queue
// when its producer is asked: it counts the check.
func CheckedRecord(rec message.View, h *Half) message.Record {
	r := copyOf(rec)
	r.Topic, r.QueueID = halfTopic, rec.QueueID()
	r.Properties = withProperty(rec.Properties(), message.PropTransactionCheckTimes, strconv.Itoa(max(h.Checks, 0)+1))
	return r
}

// WaitingRecord is the copy that takes a half message's place while its own
// time of immunity lasts: it says which half message its producer will end.
// (Apache counts a check here although it asks nobody.)
func WaitingRecord(rec message.View, h *Half) message.Record {
	r := copyOf(rec)
	r.Topic, r.QueueID = halfTopic, rec.QueueID()
	origin := h.Origin
	if origin < 0 {
		origin = h.QueueOffset
	}
	r.Properties = withProperty(rec.Properties(), message.PropTranPreparedQueueOffset, strconv.FormatInt(origin, 10))
	return r
}

// DiscardRecord is the copy of a half message that is given up.
func DiscardRecord(rec message.View) message.Record {
	r := copyOf(rec)
	r.Topic, r.QueueID = discardTopic, 0
	r.Properties = append([]byte(nil), rec.Properties()...)
	return r
}

func withProperty(raw []byte, name, value string) []byte {
	p := make([]byte, 0, len(raw)+len(name)+len(value)+3)
	return message.AppendJavaOrder(nil, setProperty(append(p, raw...), name, value))
}

// ResumedRecord is a copy of a half message, or of one that was given up, that
// has not been checked yet.
func ResumedRecord(rec message.View) message.Record {
	r := copyOf(rec)
	r.Topic, r.QueueID = halfTopic, 0
	r.Properties = withProperty(rec.Properties(), message.PropTransactionCheckTimes, "0")
	return r
}

// CheckBody is the body of the question to a producer: the copy that stands in
// the half queue now, as a record with the topic and queue that it is meant for
// and the store time of the original.
func CheckBody(copied *message.Record, h *Half, queueOffset, phys int64) []byte {
	r := *copied
	r.Topic, r.QueueID = h.RealTopic, h.RealQueue
	r.QueueOffset, r.PhysicalOffset, r.StoreTimestamp = queueOffset, phys, h.Store
	return r.Append(nil, false)
}
