package pop

import (
	"encoding/base64"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"strconv"

	"mqx/internal/fastjson"
)

// Checkpoint is the record of one pop of one queue: which messages were handed
// out, and until when they are invisible. It lies in the revive topic under the
// tag ck. Field order in the body is that of the JSON names.
type Checkpoint struct {
	BitMap       int32   `json:"bm"` // always 0 in records; acks are records of their own
	Broker       string  `json:"bn"` // empty: the reading broker's own (old records)
	Group        string  `json:"c"`
	Diffs        []int32 `json:"d"` // offsets of the messages, counted from Start; none: consecutive
	Invisible    int64   `json:"it"`
	Num          int32   `json:"n"`
	PopTime      int64   `json:"pt"`
	Queue        int32   `json:"q"`
	ReviveOffset int64   `json:"ro"` // 0 in records; known to the reader
	RePutTimes   string  `json:"rp,omitempty"`
	Start        int64   `json:"so"`
	Suspend      bool    `json:"sp"` // revived without counting an attempt
	Topic        string  `json:"t"`
}

// ReviveTime is when the messages become visible again, ms.
func (c *Checkpoint) ReviveTime() int64 { return After(c.PopTime, c.Invisible) }

// After is the time so many ms after another one, both ms; what cannot be
// represented is the last moment, not a time long ago.
func After(at, ms int64) int64 {
	if at > 0 && ms > math.MaxInt64-at {
		return math.MaxInt64
	}
	return at + ms
}

// DeliverTime is when the record is due in the revive topic, ms.
func (c *Checkpoint) DeliverTime() int64 { return c.ReviveTime() - AckLeadMs }

// IndexOf is the place of a message in the checkpoint, -1 when it is not in it.
func (c *Checkpoint) IndexOf(offset int64) int {
	d := offset - c.Start
	if d < 0 {
		return -1
	}
	if len(c.Diffs) == 0 {
		if d < int64(c.Num) {
			return int(d)
		}
		return -1
	}
	for i, x := range c.Diffs {
		if int64(x) == d {
			return i
		}
	}
	return -1
}

// OffsetAt is the queue offset of the message at a place of the checkpoint.
func (c *Checkpoint) OffsetAt(i int) int64 {
	if i < len(c.Diffs) {
		return c.Start + int64(c.Diffs[i])
	}
	return c.Start + int64(i)
}

// Count is the number of messages, at most MaxBatch.
func (c *Checkpoint) Count() int { return int(min(max(c.Num, 0), MaxBatch)) }

// RePuts is how often the checkpoint was written again; text that is no number
// counts as often, as in Apache.
func (c *Checkpoint) RePuts() int {
	if c.RePutTimes == "" {
		return 0
	}
	n, err := strconv.Atoi(c.RePutTimes)
	if err != nil {
		return 127
	}
	return n
}

// AppendBody appends the body of the record.
func (c *Checkpoint) AppendBody(dst []byte) []byte {
	dst = appendInt(dst, `{"bm":`, int64(c.BitMap))
	if c.Broker != "" {
		dst = appendText(dst, `,"bn":`, c.Broker)
	}
	dst = appendText(dst, `,"c":`, c.Group)
	if len(c.Diffs) > 0 {
		dst = append(dst, `,"d":[`...)
		for i, d := range c.Diffs {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendInt(dst, int64(d), 10)
		}
		dst = append(dst, ']')
	}
	dst = appendInt(dst, `,"it":`, c.Invisible)
	dst = appendInt(dst, `,"n":`, int64(c.Num))
	dst = appendInt(dst, `,"pt":`, c.PopTime)
	dst = appendInt(dst, `,"q":`, int64(c.Queue))
	dst = appendInt(dst, `,"reviveTime":`, c.ReviveTime())
	dst = appendInt(dst, `,"ro":`, c.ReviveOffset)
	if c.RePutTimes != "" {
		dst = appendText(dst, `,"rp":`, c.RePutTimes)
	}
	dst = appendInt(dst, `,"so":`, c.Start)
	dst = append(strconv.AppendBool(append(dst, `,"sp":`...), c.Suspend), `,"t":`...)
	return append(fastjson.AppendString(dst, c.Topic), '}')
}

// UniqKey is the unique key of the record.
func (c *Checkpoint) UniqKey() string {
	return uniqKey(c.Topic, c.Queue, c.Start, c.Group, c.PopTime, c.Broker, TagCheckpoint)
}

// Ack is the record of acknowledged messages of one checkpoint: one (tag ack),
// or several in Offsets (tag bAck).
type Ack struct {
	Offset  int64   `json:"ao,alt=ackOffset"` // -1 in a batch
	Offsets []int64 `json:"aol,alt=ackOffsetList"`
	Broker  string  `json:"bn,alt=brokerName"`
	Group   string  `json:"c,alt=consumerGroup"`
	PopTime int64   `json:"pt,alt=popTime"`
	Queue   int32   `json:"q,alt=queueId"`
	Start   int64   `json:"so,alt=startOffset"`
	Topic   string  `json:"t,alt=topic"`
}

// Tag is the tag under which the record lies.
func (a *Ack) Tag() string {
	if a.Offsets != nil {
		return TagBatchAck
	}
	return TagAck
}

// All are the acknowledged offsets.
func (a *Ack) All() iter.Seq[int64] {
	return func(yield func(int64) bool) {
		if a.Offsets == nil {
			yield(a.Offset)
			return
		}
		for _, off := range a.Offsets {
			if !yield(off) {
				return
			}
		}
	}
}

// AppendBody appends the body of the record.
func (a *Ack) AppendBody(dst []byte) []byte {
	dst = appendInt(dst, `{"ao":`, a.Offset)
	if a.Offsets != nil {
		dst = append(dst, `,"aol":[`...)
		for i, off := range a.Offsets {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendInt(dst, off, 10)
		}
		dst = append(dst, ']')
	}
	if a.Broker != "" {
		dst = appendText(dst, `,"bn":`, a.Broker)
	}
	dst = appendText(dst, `,"c":`, a.Group)
	dst = appendInt(dst, `,"pt":`, a.PopTime)
	dst = appendInt(dst, `,"q":`, int64(a.Queue))
	dst = appendInt(dst, `,"so":`, a.Start)
	return append(appendText(dst, `,"t":`, a.Topic), '}')
}

// UniqKey is the unique key of the record. Apache gives a batch that of a
// single ack too.
func (a *Ack) UniqKey() string {
	return uniqKey(a.Topic, a.Queue, a.Offset, a.Group, a.PopTime, a.Broker, TagAck)
}

func uniqKey(topic string, queue int32, offset int64, group string, popTime int64, broker, tag string) string {
	b := make([]byte, 0, len(topic)+len(group)+len(broker)+64)
	b = append(append(b, topic...), '@')
	b = append(strconv.AppendInt(b, int64(queue), 10), '@')
	b = append(strconv.AppendInt(b, offset, 10), '@')
	b = append(append(b, group...), '@')
	b = append(strconv.AppendInt(b, popTime, 10), '@')
	b = append(append(b, broker...), '@')
	return string(append(b, tag...))
}

func appendInt(dst []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(dst, name...), n, 10)
}

func appendText(dst []byte, name, text string) []byte {
	return fastjson.AppendString(append(dst, name...), text)
}

// Record is one record of the revive topic: a checkpoint or an ack.
type Record struct {
	Checkpoint *Checkpoint
	Ack        *Ack
}

// ParseRecord reads the body of a record by its tag. A record of another tag
// has neither part and no error: Apache passes over it.
func ParseRecord(tag string, body []byte) (Record, error) {
	switch tag {
	case TagCheckpoint:
		c := &Checkpoint{}
		if err := fastjson.Unmarshal(body, c); err != nil {
			return Record{}, fmt.Errorf("cannot read the checkpoint %.200q: %w", body, err)
		}
		if len(c.Diffs) > 0 && c.Count() > len(c.Diffs) {
			return Record{}, fmt.Errorf("the checkpoint %.200q names %d messages and has %d offsets", body, c.Num, len(c.Diffs))
		}
		return Record{Checkpoint: c}, nil
	case TagAck, TagBatchAck:
		a := &Ack{}
		if err := fastjson.Unmarshal(body, a); err != nil {
			return Record{}, fmt.Errorf("cannot read the ack %.200q: %w", body, err)
		}
		if tag == TagAck {
			a.Offsets = nil
		} else if a.Offsets == nil {
			a.Offsets = []int64{}
		}
		return Record{Ack: a}, nil
	default:
		return Record{}, nil
	}
}

// maxBits bounds the bits of a batch ack: more than a client can have popped.
const maxBits = 1 << 16

// ParseBits reads the bit set of a batch ack: base64 of 64-bit little-endian
// words without their zero end. It returns the places of the bits in order.
func ParseBits(text string) ([]int64, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("cannot read the bit set %.100q: %w", text, err)
	}
	if len(raw) > maxBits/8 {
		return nil, fmt.Errorf("the bit set has %d bytes, the limit is %d", len(raw), maxBits/8)
	}
	var out []int64
	for i, b := range raw {
		for ; b != 0; b &= b - 1 {
			out = append(out, int64(i*8+bits.TrailingZeros8(b)))
		}
	}
	return out, nil
}
