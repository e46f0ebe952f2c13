package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"mqx/admin/move"
	"mqx/internal/fastjson"
	"mqx/message"
	"mqx/remoting"
)

// maxLeftovers bounds the records that are read to count what is on its way to a topic.
const maxLeftovers = 20_000

// errTooManyLeft says that what a broker holds back is too much to be counted.
var errTooManyLeft = fmt.Errorf("it holds more than %d delayed, half or retried messages, too many to see which are for the topic: wait, or leave them pending", maxLeftovers)

// leftovers counts what a source holds for the sealed queues of its topics and has not
// delivered yet: delayed, timer and half messages, and notes of popped ones.
func (l *looker) leftovers(ctx context.Context, b Broker, v *move.BrokerView, offsets *offsetTable, cluster string) error {
	if l.st.Spec.Kind == move.Retire && l.st.Phase == move.Settled && b.Name == l.st.Spec.Name && !l.st.Spec.Policy.LeavePending {
		if err := l.deadLetters(ctx, b, v); err != nil {
			return err
		}
	}
	given := l.st.GivenUp(b.Name)
	back := l.st.Phase.Back() || l.st.Rollback
	if len(given) == 0 || !l.late() && !back {
		return nil
	}
	if err := l.popped(ctx, b, v, offsets, cluster, given); err != nil {
		return fmt.Errorf("cannot see what is popped: %w", err)
	}
	if l.st.Spec.Policy.LeavePending && !back {
		return nil
	}
	budget := maxLeftovers
	delayed, err := l.c.delayedFor(ctx, b, given, &budget)
	if err != nil {
		return fmt.Errorf("cannot count delayed messages: %w", err)
	}
	half, err := l.c.halvesFor(ctx, b, offsets, given, &budget)
	if err != nil {
		return fmt.Errorf("cannot count half messages: %w", err)
	}
	timer, err := l.c.timersFor(ctx, b, given, &budget)
	if err != nil {
		return fmt.Errorf("cannot count timer messages: %w", err)
	}
	for topic := range given {
		v.Pending[topic] = move.Pending{Delayed: delayed[topic], Half: half[topic], Timer: timer[topic]}
	}
	return nil
}

// popped notes which messages of queues that are given up are handed out and not settled.
func (l *looker) popped(ctx context.Context, b Broker, v *move.BrokerView, offsets *offsetTable, cluster string, given map[string]int32) error {
	topics := map[string]bool{}
	for _, topic := range l.st.Topics() {
		topics[topic] = true
	}
	open, unread, err := l.c.popsOpen(ctx, l.c.pops.get(l.st.ID, b.Name), b, offsets, cluster, topics)
	if err != nil {
		return err
	}
	v.NotesUnread = unread
	inFlight := map[string]int64{} // by topic and group
	for _, n := range open {
		// A retry topic goes with its topic, and stays with it.
		if from, ok := given[n.topic]; ok && (n.queue >= from || n.queue < 0 && from == 0) {
			inFlight[offsetKey(n.topic, n.group)] += n.messages
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.inFlight[b.Name] = inFlight
	return nil
}

// deadLetters counts the dead letters on a broker.
func (l *looker) deadLetters(ctx context.Context, b Broker, v *move.BrokerView) error {
	table, err := l.c.topicTable(ctx, b.Addr)
	if err != nil {
		return err
	}
	v.DeadLetters = map[string]int64{}
	for _, topic := range slices.Sorted(maps.Keys(table)) {
		if !message.IsDLQ(topic) {
			continue
		}
		ranges, err := l.c.rangesOn(ctx, b, topic)
		if err != nil {
			return err
		}
		for _, r := range ranges {
			v.DeadLetters[topic] += r.Max - r.Min
		}
	}
	return nil
}

// rangesOn are the queues of a topic on a broker; none when it does not have the topic.
func (c *Client) rangesOn(ctx context.Context, b Broker, topic string) (map[int32]move.Range, error) {
	stats, err := c.topicStats(ctx, b.Addr, topic)
	if hasCode(err, remoting.RespTopicNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := map[int32]move.Range{}
	for q, o := range stats.OffsetTable {
		if out[q.QueueID], err = moveRange(q.QueueID, o.MinOffset, o.MaxOffset); err != nil {
			return nil, fmt.Errorf("topic %s: %w", topic, err)
		}
	}
	return out, nil
}

// pullAt reads what a queue holds from an offset on, beside any group; next is where to go
// on, which is the offset itself at the end of the queue.
func (c *Client) pullAt(ctx context.Context, b Broker, topic string, queue int32, from int64) (ms []message.Received, next int64, err error) {
	return c.pullTagged(ctx, b, topic, queue, from, "*")
}

// pullTagged is pullAt for messages of some tags; where there are none the broker may say to go on behind those it looked at.
func (c *Client) pullTagged(ctx context.Context, b Broker, topic string, queue int32, from int64, tags string) (ms []message.Received, next int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.BrokerTimeout)
	defer cancel()
	req := remoting.NewRequest(remoting.ReqPullMessage, &remoting.PullMessageHeader{
		ConsumerGroup: message.GroupTools, Topic: topic, QueueID: queue, QueueOffset: from, MaxMsgNums: 32,
		SysFlag: 4, Subscription: tags, ExpressionType: "TAG", // 4: the subscription is in the request
	})
	resp, err := c.conn.Call(ctx, b.Addr, req)
	if err != nil {
		return nil, from, err
	}
	switch resp.Code {
	case remoting.RespSuccess, remoting.RespPullNotFound, remoting.RespPullRetryImmediately, remoting.RespPullOffsetMoved:
	default:
		return nil, from, responseError(b.Addr, req, resp)
	}
	var h remoting.PullMessageResponseHeader
	if err := remoting.DecodeHeader(resp.Fields, &h); err != nil {
		return nil, from, fmt.Errorf("cannot read answer to a pull: %w", err)
	}
	if resp.Code != remoting.RespSuccess {
		if resp.Code == remoting.RespPullNotFound {
			return nil, from, nil
		}
		return nil, h.NextBeginOffset, nil
	}
	for m, err := range message.DecodeMessages(resp.Body, message.ReceiveOptions{KeepBatches: true}) {
		if err != nil {
			return nil, from, fmt.Errorf("cannot read messages of topic %q: %w", topic, err)
		}
		ms = append(ms, m)
	}
	return ms, h.NextBeginOffset, nil
}

// eachIn calls f for the messages of a range of a queue until f says stop; budget is what
// may be read in all.
func (c *Client) eachIn(ctx context.Context, b Broker, topic string, queue int32, from, to int64, budget *int, f func(m *message.Received) bool) error {
	for from < to {
		ms, next, err := c.pullAt(ctx, b, topic, queue, from)
		if err != nil {
			return err
		}
		for i := range ms {
			if ms[i].QueueOffset >= to {
				return nil
			}
			if *budget--; *budget < 0 {
				return errTooManyLeft
			}
			if !f(&ms[i]) {
				return nil
			}
		}
		if next <= from {
			return nil
		}
		from = next
	}
	return nil
}

// isFor reports whether a message that is held back goes to a sealed queue, and of which topic.
func isFor(m *message.Received, sealed map[string]int32) (topic string, ok bool) {
	topic = m.Property(message.PropRealTopic)
	if message.IsRetry(topic) {
		origin := m.Property(message.PropRetryTopic)
		from, ok := sealed[origin]
		return origin, ok && from == 0 // else the topic stays, and with it what is to be retried
	}
	from, ok := sealed[topic]
	if !ok {
		return topic, false
	}
	queue, err := strconv.ParseInt(m.Property(message.PropRealQueueID), 10, 32)
	return topic, err != nil || int32(queue) >= from
}

// delayedFor counts delayed messages for sealed queues: retries that wait among them.
func (c *Client) delayedFor(ctx context.Context, b Broker, sealed map[string]int32, budget *int) (map[string]int64, error) {
	t, err := askBody[remoting.DelayOffsets](ctx, c, b.Addr, remoting.NewRequest(remoting.ReqGetAllDelayOffset, nil))
	if err != nil {
		return nil, err
	}
	ranges, err := c.rangesOn(ctx, b, message.TopicSchedule)
	if err != nil {
		return nil, err
	}
	out := map[string]int64{}
	for queue, r := range ranges {
		from := max(r.Min, t.OffsetTable[queue+1])
		if err := c.eachIn(ctx, b, message.TopicSchedule, queue, from, r.Max, budget, func(m *message.Received) bool {
			if topic, ok := isFor(m, sealed); ok {
				out[topic]++
			}
			return true
		}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// halvesFor counts half messages that are neither committed nor rolled back.
func (c *Client) halvesFor(ctx context.Context, b Broker, offsets *offsetTable, sealed map[string]int32, budget *int) (map[string]int64, error) {
	ranges, err := c.rangesOn(ctx, b, message.TopicHalf)
	if err != nil || len(ranges) == 0 {
		return nil, err
	}
	start := func(topic string, r move.Range) int64 {
		return max(r.Min, offsets.committed[offsetKey(topic, message.GroupTransaction)][0])
	}
	open := map[int64]string{}
	half := ranges[0]
	err = c.eachIn(ctx, b, message.TopicHalf, 0, start(message.TopicHalf, half), half.Max, budget, func(m *message.Received) bool {
		if topic, ok := isFor(m, sealed); ok {
			open[m.QueueOffset] = topic
		}
		return true
	})
	if err != nil || len(open) == 0 {
		return nil, err
	}
	ops, err := c.rangesOn(ctx, b, message.TopicHalfOp)
	if err != nil {
		return nil, err
	}
	if r, ok := ops[0]; ok {
		if err := c.eachIn(ctx, b, message.TopicHalfOp, 0, start(message.TopicHalfOp, r), r.Max, budget, func(m *message.Received) bool {
			for text := range strings.SplitSeq(string(m.Body), ",") {
				if at, err := strconv.ParseInt(text, 10, 64); err == nil {
					delete(open, at)
				}
			}
			return true
		}); err != nil {
			return nil, err
		}
	}
	out := map[string]int64{}
	for _, topic := range open {
		out[topic]++
	}
	return out, nil
}

// timersFor counts timer messages for queues that are given up. A broker without a timer has none. The end of the timer's topic is asked for
// first, then how far the timer is with it, then what it has taken up: what comes or is taken up in between is counted twice and not missed.
func (c *Client) timersFor(ctx context.Context, b Broker, given map[string]int32, budget *int) (map[string]int64, error) {
	ranges, err := c.rangesOn(ctx, b, message.TopicTimer)
	if err != nil {
		return nil, err
	}
	info, err := c.RuntimeInfo(ctx, b.Addr)
	if err != nil {
		return nil, err
	}
	waiting, err := c.timerCounts(ctx, b)
	if err != nil || waiting == nil {
		return nil, err
	}
	at, err := timerState(info)
	if err != nil {
		return nil, err
	}
	out := map[string]int64{}
	some := false // of a topic that keeps queues: the counts are of the whole topic
	for topic, from := range given {
		if from == 0 {
			out[topic] = waiting[topic]
		}
		some = some || from > 0 && waiting[topic] > 0
	}
	r := ranges[0]
	if r.Max == 0 || at.behind <= 0 && !some {
		return out, nil
	}
	counted := max(r.Min, r.Max-at.behind) // up to there they are in the counts
	start := counted
	if some {
		start = r.Min
	}
	return out, c.eachIn(ctx, b, message.TopicTimer, 0, start, r.Max, budget, func(m *message.Received) bool {
		topic, ok := isFor(m, given)
		due, err := strconv.ParseInt(m.Property(message.PropTimerOutMs), 10, 64)
		if ok && m.Property(message.PropTimerDelUniqKey) == "" && (m.QueueOffset >= counted || given[topic] > 0 && (err != nil || due >= at.passed)) {
			out[topic]++
		}
		return true
	})
}

// timerCounts are the timer messages that a broker has taken up, by topic; nil where it has no timer.
func (c *Client) timerCounts(ctx context.Context, b Broker) (map[string]int64, error) {
	resp, err := c.ask(ctx, b.Addr, remoting.NewRequest(remoting.ReqGetTimerMetrics, nil))
	var re *remoting.ResponseError
	if errors.As(err, &re) { // it is switched off, or older than timer messages
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var body struct {
		TimingCount map[string]struct {
			Count int64 `json:"count"`
		} `json:"timingCount"`
	}
	if err := fastjson.Unmarshal(resp.Body, &body); err != nil {
		return nil, fmt.Errorf("cannot read timer metrics: %w", err)
	}
	out := map[string]int64{}
	for topic, n := range body.TimingCount {
		out[topic] = n.Count
	}
	return out, nil
}

// hasRetryTopic: groups of the system have names of their own.
func hasRetryTopic(group string) bool { return message.ValidateGroup(group) == nil }

// retriesOf counts messages of a topic that wait in a group's retry topics on a broker.
func (c *Client) retriesOf(ctx context.Context, b Broker, offsets *offsetTable, topic, group string) (n int64, err error) {
	if !hasRetryTopic(group) {
		return 0, nil
	}
	pops := []string{message.PopRetryTopic(group, topic, false), message.PopRetryTopic(group, topic, true)}
	budget := maxLeftovers
	for _, retry := range append([]string{message.RetryTopicPrefix + group}, pops...) {
		ranges, err := c.rangesOn(ctx, b, retry)
		if err != nil {
			return 0, err
		}
		for queue, r := range ranges {
			from := r.Min
			if at, ok := offsets.committed[offsetKey(retry, group)][queue]; ok {
				from = max(from, at)
			}
			if slices.Contains(pops, retry) {
				n += max(0, r.Max-from)
				continue
			}
			if err := c.eachIn(ctx, b, retry, queue, from, r.Max, &budget, func(m *message.Received) bool {
				if m.Property(message.PropRetryTopic) == topic {
					n++
				}
				return true
			}); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}
