package broker

import (
	"sync/atomic"

	"mqx/internal/meter"
	"mqx/message"
)

// messageKind tells messages apart as Apache's metrics do.
type messageKind uint8

const (
	kindNormal messageKind = iota
	kindFIFO
	kindDelay
	kindTransaction
	messageKinds
)

var kindNames = [messageKinds]string{"normal", "fifo", "delay", "transaction"}

// kind is what a message with these properties is.
func (p *sendProps) kind() messageKind {
	switch {
	case p.prepared:
		return kindTransaction
	case p.sharded:
		return kindFIFO
	case p.delay != nil || p.timer != "" && p.timer != message.PropTimerDelUniqKey:
		return kindDelay
	}
	return kindNormal
}

// sizeBounds are the classes of message sizes in bytes, Apache's.
var sizeBounds = []int64{1 << 10, 4 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20}

// topicMeter counts what came into a topic since the start, by kind; a kind that never
// came takes no room. Safe to share.
type topicMeter [messageKinds]atomic.Pointer[kindMeter]

type kindMeter struct {
	messages, bytes atomic.Int64
	sizes           *meter.Histogram // of a request: bytes by message
}

// add counts a request of n messages that took size bytes of the log.
func (m *topicMeter) add(kind messageKind, n, size int64) {
	if m == nil {
		return
	}
	k := m[kind].Load()
	if k == nil {
		m[kind].CompareAndSwap(nil, &kindMeter{sizes: meter.New(sizeBounds)})
		k = m[kind].Load()
	}
	k.messages.Add(n)
	k.bytes.Add(size)
	k.sizes.Observe(size/max(n, 1), 1)
}
