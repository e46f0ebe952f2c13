package broker

import (
	"context"
	"slices"
	"time"

	"mqx/broker/staticmap"
	"mqx/remoting"
)

// staticCleanEvery is the time between two looks for stretches that are empty. (Apache looks in the hours of deleteWhen.)
const staticCleanEvery = time.Hour

// keepStatics takes empty stretches out of the queues that this broker leads, until ctx ends.
func (b *Broker) keepStatics(ctx context.Context) {
	t := time.NewTicker(staticCleanEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			b.cleanStatics(ctx)
		}
	}
}

// cleanStatics takes the oldest stretch out of each queue led here whose messages have all been deleted, so that its broker is
// asked no more. What cannot be asked stays.
func (b *Broker) cleanStatics(ctx context.Context) {
	for topic, m := range b.statics.all() {
		var gone []int32
		for id, items := range m.Detail().HostedQueues {
			q, led := m.Led(id)
			if !led || q.Next(0) < 0 {
				continue // the only one with an offset
			}
			l := &logicalQueue{b: b, m: m, q: q, topic: topic}
			empty, err := l.oldestEmpty(ctx)
			if err != nil {
				b.quiet.Warn("it is not known whether a stretch of a static topic is empty", "topic", topic, "queue", id, "broker", items[0].BName, "error", err)
			} else if empty {
				gone = append(gone, id)
			}
		}
		if len(gone) == 0 {
			continue
		}
		slices.Sort(gone)
		err := b.statics.change([]string{topic}, func(_ string, is *staticmap.Mapping) (*staticmap.Mapping, error) {
			if is != m {
				return is, nil // it was changed meanwhile: the next time
			}
			return m.WithoutOldest(gone), nil
		})
		if err != nil {
			continue // it was logged, and is tried again
		}
		b.log.Info("empty stretches of a static topic left out", "topic", topic, "queues", gone)
		b.peers.changed(partTopics)
	}
}

// oldestEmpty reports whether the oldest stretch has no message any more, nor one to come that is stored already.
func (l *logicalQueue) oldestEmpty(ctx context.Context) (bool, error) {
	it := l.q[0]
	if l.here(0) {
		return l.b.store.NextOffset(l.topic, it.QueueID) <= max(0, l.b.store.MinOffset(l.topic, it.QueueID)), nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.b.cfg().ForwardTimeout)
	defer cancel()
	var f remoting.Fields
	f.Set("topic", l.topic)
	stats, err := l.b.elsewhere.stats(ctx, it.BName, f)
	if err != nil {
		return false, err
	}
	o, ok := stats.OffsetTable[remoting.MessageQueue{Topic: l.topic, BrokerName: it.BName, QueueID: it.QueueID}]
	return ok && (o.MaxOffset == o.MinOffset || o.MaxOffset == 0), nil
}
