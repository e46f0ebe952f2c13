package transaction

import (
	"strconv"
	"time"

	"mqx/message"
)

// OpTag is the tag of op messages.
const OpTag = "d"

// opProperties are all the properties of an op message.
var opProperties = []byte(message.PropWait + "\x01true\x02" + message.PropTags + "\x01" + OpTag + "\x02")

// Batch collects half offsets until they fill an op message or have waited long
// enough.
type Batch struct {
	waiting []int64
	bytes   int
	since   time.Time // of the oldest
}

// Add adds the half offsets of an end.
func (b *Batch) Add(now time.Time, offs ...int64) {
	if len(offs) == 0 {
		return
	}
	if len(b.waiting) == 0 {
		b.since = now
	}
	for _, off := range offs {
		b.bytes += offsetLen(off)
	}
	b.waiting = append(b.waiting, offs...)
}

// Len is the number of half offsets that wait.
func (b *Batch) Len() int { return len(b.waiting) }

// Full reports whether what waits fills an op message.
func (b *Batch) Full(limit int) bool { return b.bytes >= limit }

// Due is when the next op message is to be written; ok is false when nothing
// waits.
func (b *Batch) Due(limit int, interval time.Duration) (at time.Time, ok bool) {
	switch {
	case len(b.waiting) == 0:
		return time.Time{}, false
	case b.bytes >= limit:
		return b.since, true
	default:
		return b.since.Add(interval), true
	}
}

// Take returns the body of an op message of at most limit bytes (one offset at
// least) with the half offsets in it, nil when nothing waits.
func (b *Batch) Take(now time.Time, limit int) (body []byte, offs []int64) {
	n := 0
	for n < len(b.waiting) {
		size := offsetLen(b.waiting[n])
		if n > 0 && len(body)+size > limit {
			break
		}
		body = append(strconv.AppendInt(body, b.waiting[n], 10), ',')
		n++
	}
	offs = append(offs, b.waiting[:n]...)
	b.waiting = append(b.waiting[:0], b.waiting[n:]...)
	b.bytes -= len(body)
	b.since = now
	return body, offs
}

// Return puts half offsets back whose op message could not be stored.
func (b *Batch) Return(now time.Time, offs []int64) {
	b.waiting = append(append(make([]int64, 0, len(offs)+len(b.waiting)), offs...), b.waiting...)
	for _, off := range offs {
		b.bytes += offsetLen(off)
	}
	b.since = now
}

func offsetLen(off int64) int {
	n := 2 // a digit and the comma
	for ; off >= 10; off /= 10 {
		n++
	}
	return n
}

// OpRecord is the op message with a body.
func OpRecord(body []byte, nowMs int64) message.Record {
	return message.Record{Topic: opTopic, BornTimestamp: nowMs, Body: body, Properties: opProperties}
}
