package admin

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"mqx/remoting"
)

// groupTopic is a group in a topic.
type groupTopic struct {
	g     *groupAt
	topic string
}

// readAges finds, for every group and topic with a lag, how old the message at the
// offset is and at which rate the group reads.
func (r *brokerLag) readAges(ctx context.Context, groups []*groupAt) error {
	var open []groupTopic
	for _, g := range groups {
		seen := map[string]bool{}
		for i := range g.rows {
			if q := &g.rows[i]; q.Lag.Or(1) > 0 && q.Committed.OK && q.Max.OK && !seen[q.Topic] {
				seen[q.Topic] = true
				open = append(open, groupTopic{g, q.Topic})
			}
		}
	}
	if len(open) == 0 {
		return nil
	}
	retention, err := r.c.retention(ctx, r.b.Addr)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	return several(perBroker, open, func(gt groupTopic) error {
		spans, err := r.c.timeSpans(ctx, r.b.Addr, gt.g.name, gt.topic)
		if err != nil {
			return r.skips.pass(ctx, r.b, "group", gt.g.name, err)
		}
		rate, err := r.c.readRate(ctx, r.b.Addr, gt.g.name, gt.topic)
		if err != nil {
			return r.skips.pass(ctx, r.b, "group", gt.g.name, err)
		}
		mu.Lock()
		defer mu.Unlock()
		gt.apply(spans, rate, retention, time.Now())
		return nil
	})
}

// apply writes ages and what retention will do into the rows of a topic. The rate is
// that of the topic on this broker, and so is the lag that it has to work off.
func (gt groupTopic) apply(spans map[int32]remoting.QueueTimeSpan, rate remoting.Opt[float64], retention remoting.Opt[time.Duration], now time.Time) {
	var lag int64
	for i := range gt.g.rows {
		if q := &gt.g.rows[i]; q.Topic == gt.topic {
			lag += q.Lag.Or(0)
		}
	}
	for i := range gt.g.rows {
		q := &gt.g.rows[i]
		if q.Topic != gt.topic || !q.Lag.OK || q.Lag.Value == 0 {
			continue
		}
		if s, ok := spans[q.QueueID.QueueID]; ok {
			q.Age = oldestAge(&s, q, now)
		}
		q.Expires = expires(remoting.Some(lag), q.Age, retention, rate)
	}
}

// oldestAge is how long ago the oldest message that is not read was stored, by the
// clock of the broker; by that of this machine where the message at the offset is gone.
func oldestAge(s *remoting.QueueTimeSpan, q *QueueLag, now time.Time) remoting.Opt[time.Duration] {
	const century = 100 * 365 * 24 * time.Hour
	age := time.Duration(s.DelayTime) * time.Millisecond
	if q.Lost > 0 || s.DelayTime > century.Milliseconds() || s.DelayTime < 0 {
		// A time of the store that is not known was taken for 1970.
		if s.MinTimeStamp > 0 && (q.Lost > 0 || q.Min.OK && q.Committed.OK && q.Min.Value == q.Committed.Value) {
			return remoting.Some(max(0, now.Sub(time.UnixMilli(s.MinTimeStamp))))
		}
		return remoting.Opt[time.Duration]{}
	}
	if s.DelayTime == 0 && s.MaxTimeStamp <= 0 {
		return remoting.Opt[time.Duration]{}
	}
	return remoting.Some(age)
}

// timeSpans tells where a group stands in the queues of a topic, in time.
func (c *Client) timeSpans(ctx context.Context, addr, group, topic string) (map[int32]remoting.QueueTimeSpan, error) {
	body, err := askBody[remoting.QueryConsumeTimeSpanBody](ctx, c, addr, remoting.NewRequest(remoting.ReqQueryConsumeTimeSpan,
		&remoting.QueryConsumeTimeSpanHeader{Topic: topic, Group: group}))
	if hasCode(err, remoting.RespTopicNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := map[int32]remoting.QueueTimeSpan{}
	for _, s := range body.ConsumeTimeSpanSet {
		if s.MessageQueue != nil {
			out[s.MessageQueue.QueueID] = s
		}
	}
	return out, nil
}

// statGroupGets counts what groups read, by topic@group.
const statGroupGets = "GROUP_GET_NUMS"

// readRate is how many messages a second a group reads of a topic at a broker, over
// the last minute. A broker that never counted any says so with an error: 0.
func (c *Client) readRate(ctx context.Context, addr, group, topic string) (remoting.Opt[float64], error) {
	stats, err := askBody[remoting.BrokerStatsData](ctx, c, addr, remoting.NewRequest(remoting.ReqViewBrokerStatsData,
		&remoting.ViewBrokerStatsDataHeader{StatsName: statGroupGets, StatsKey: offsetKey(topic, group)}))
	switch {
	case hasCode(err, remoting.RespSystemError):
		return remoting.Some(0.0), nil
	case hasCode(err, remoting.RespNoPermission), hasCode(err, remoting.RespRequestCodeNotSupported):
		return remoting.Opt[float64]{}, nil
	case err != nil:
		return remoting.Opt[float64]{}, err
	}
	return remoting.Some(stats.StatsMinute.TPS), nil
}

// retention is how long a broker keeps files of the log: fileReservedTime. It is
// unknown where the configuration may not be read.
func (c *Client) retention(ctx context.Context, addr string) (remoting.Opt[time.Duration], error) {
	none := remoting.Opt[time.Duration]{}
	resp, err := c.ask(ctx, addr, remoting.NewRequest(remoting.ReqGetBrokerConfig, nil))
	if hasCode(err, remoting.RespNoPermission) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	hours, ok := configValue(resp.Body, "fileReservedTime")
	n, err := strconv.ParseInt(hours, 10, 32)
	if !ok || err != nil {
		return none, nil //nolint:nilerr // a value that is no number is not known
	}
	return remoting.Some(time.Duration(n) * time.Hour), nil
}

// configValue finds a key in the configuration that a broker sends.
func configValue(body []byte, key string) (string, bool) {
	for line := range strings.Lines(string(body)) {
		if k, v, ok := strings.Cut(line, "="); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v), true
		}
	}
	return "", false
}

// Retention is how long the broker at addr keeps files of its log, unknown where its
// configuration may not be read.
func (c *Client) Retention(ctx context.Context, addr string) (remoting.Opt[time.Duration], error) {
	return c.retention(ctx, addr)
}
