// Package pop is the pure core of pop consumption: receipts (the extra info of
// a popped message), the records of the revive topic (checkpoints and acks),
// the buffer that merges them in memory, the decisions of revival, the state of
// ordered consumption and the assignment of queues to clients.
//
// Everything here takes bytes and times (milliseconds since 1970) and returns
// decisions: no clock, no I/O, no goroutine, and nothing is safe to share
// unless it says so. The bytes are Apache RocketMQ 5.5.0's; docs/format/pop.md
// describes them.
package pop

import (
	"fmt"
	"strings"

	"mqx/message"
)

// Names that Apache gives to what belongs to pop consumption.
const (
	// ReviveGroup consumes the revive topic; its committed offset is that of the
	// last checkpoint that was dealt with, not of the next record to read.
	ReviveGroup = message.SystemGroupPrefix + "REVIVE_GROUP"
	// OrderQueue stands in receipts for "no revive queue": an ordered pop.
	OrderQueue int32 = 999

	TagCheckpoint = "ck"
	TagAck        = "ack"
	TagBatchAck   = "bAck"
)

// AckLeadMs is how long before its revive time a checkpoint is delivered to the
// revive topic; acks are delivered at it, so that they come later.
const AckLeadMs = 1000

// MaxBatch is the most messages that one checkpoint may hold: its marks are 32 bits.
const MaxBatch = 32

// Kinds of a topic as receipts name them.
const (
	KindNormal  = "0"
	KindRetryV1 = "1"
	KindRetryV2 = "2"
)

// ReviveTopic is the revive topic of a cluster.
func ReviveTopic(cluster string) string { return message.TopicReviveLogPrefix + cluster }

// Kind says what kind of topic a message was popped from.
func Kind(topic string) string {
	switch {
	case !message.IsRetry(topic):
		return KindNormal
	case strings.IndexByte(topic, '+') >= 0:
		return KindRetryV2
	default:
		return KindRetryV1
	}
}

// RealTopic is the topic that a kind means for a topic and a group.
func RealTopic(topic, group, kind string) (string, error) {
	switch kind {
	case KindNormal:
		return topic, nil
	case KindRetryV1:
		return message.PopRetryTopic(group, topic, false), nil
	case KindRetryV2:
		return message.PopRetryTopic(group, topic, true), nil
	default:
		return "", fmt.Errorf("the kind of topic %q is not 0, 1 or 2", kind)
	}
}

// NormalTopic is the topic whose messages a pop retry topic of a group holds;
// any other topic is its own.
func NormalTopic(topic, group string) string {
	for _, sep := range []string{"+", "_"} {
		if rest, ok := strings.CutPrefix(topic, message.RetryTopicPrefix+group+sep); ok {
			return rest
		}
	}
	return topic
}
