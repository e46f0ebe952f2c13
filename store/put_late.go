package store

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"mqx/message"
	"mqx/store/commitlog"
)

// maxLightNames bounds the light queues that one message may name.
const maxLightNames = 4096

var (
	systemPrefix  = []byte(message.SystemTopicPrefix)
	halfTopicName = []byte(message.TopicHalf)
	opTopicName   = []byte(message.TopicHalfOp)
)

// lightQueues reports whether messages of a topic may belong to light queues: not while they wait somewhere else for
// their own topic.
func (s *Store) lightQueues(topic []byte) bool {
	return s.cfg.EnableLMQ && s.cfg.EnableMultiDispatch && !bytes.HasPrefix(topic, retryPrefix) &&
		!bytes.HasPrefix(topic, systemPrefix) && string(topic) != message.TopicSchedule &&
		!bytes.Equal(topic, halfTopicName) && !bytes.Equal(topic, opTopicName)
}

// LightQueues is the number of light queues that the store has.
func (s *Store) LightQueues() int { return int(s.queues.light.Load()) }

// late tells how a record is made that holds its own numbers; nil for any other.
func (w *putWork) late(p *Put) (*commitlog.Late, Status, error) {
	r := &p.Record
	var names []string
	if !p.Batch && w.s.lightQueues(r.Topic) {
		if v, ok := message.Property(r.Properties, message.PropInnerMultiDispatch); ok && len(bytes.TrimSpace(v)) > 0 {
			names = strings.Split(string(v), ",")
		}
	}
	if names == nil && p.Inner == 0 {
		return nil, PutOK, nil
	}
	late := &commitlog.Late{Count: max(1, int64(p.Inner))}
	places, status, err := w.s.lightCounters(late, names)
	if status != PutOK {
		return nil, status, err
	}
	s, rec, inner := w.s, *r, p.Inner > 0
	late.Encode = func(queueOffset int64, more []int64) ([]byte, error) {
		props := rec.Properties
		if inner {
			props = message.SetProperty(props, message.PropInnerBase, strconv.FormatInt(queueOffset, 10))
		}
		if names != nil {
			props = message.SetProperty(props, message.PropInnerMultiQueueOffset, lightOffsets(places, more))
		}
		rec.Properties = props
		if _, err := s.checkRecord(&rec, false); err != nil {
			return nil, fmt.Errorf("%w: %w", commitlog.ErrTooLarge, err)
		}
		return rec.Append(nil, s.cfg.AppendPropCRC), nil
	}
	return late, PutOK, nil
}

// lightCounters enters the counters of the queues that are named. places are, by name, the place in late.More, -1 for a
// name that is no light queue.
func (s *Store) lightCounters(late *commitlog.Late, names []string) (places []int, status Status, err error) {
	if len(names) > maxLightNames {
		return nil, MessageIllegal, fmt.Errorf("%s names %d queues, the limit is %d", message.PropInnerMultiDispatch, len(names), maxLightNames)
	}
	for _, name := range names {
		if !message.IsLMQ(name) {
			places = append(places, -1)
			continue
		}
		if err := message.ValidateTopic(name); err != nil { // it becomes the name of a directory
			return nil, MessageIllegal, fmt.Errorf("%s: %w", message.PropInnerMultiDispatch, err)
		}
		q := s.queues.get(name, 0)
		if q == nil {
			if n := s.queues.light.Load(); s.cfg.EnableLMQQuota && n >= int64(s.cfg.MaxLMQs) {
				return nil, LMQConsumeQueueNumExceeded, fmt.Errorf("there are %d light queues, the limit maxLmqConsumeQueueNum is %d", n, s.cfg.MaxLMQs)
			}
			q = s.queues.ensure([]byte(name), 0)
		}
		places = append(places, len(late.More))
		late.More = append(late.More, &q.counter)
	}
	return places, PutOK, nil
}

// lightOffsets is the text of INNER_MULTI_QUEUE_OFFSET: in the order of the names, empty for what is no light queue.
func lightOffsets(places []int, more []int64) string {
	var b []byte
	for i, place := range places {
		if i > 0 {
			b = append(b, ',')
		}
		if place >= 0 {
			b = strconv.AppendInt(b, more[place], 10)
		}
	}
	return string(b)
}
