package inspect

import (
	"context"
	"errors"
	"io/fs"
)

// LagState says what is to be thought of a committed offset.
type LagState string

// States.
const (
	LagOK       LagState = "ok"
	LagNegative LagState = "negative"  // below 0
	LagBelow    LagState = "below-min" // the messages it stands at have expired
	LagBeyond   LagState = "beyond"    // above the maximum: messages to come would be skipped
	LagNoQueue  LagState = "no-queue"  // the topic has no such queue on disk
	LagNoTopic  LagState = "no-topic"  // nothing of the topic is there
	LagBadEntry LagState = "bad-entry" // the entry does not name a topic and a group
)

// Lag is a committed offset against its queue.
type Lag struct {
	GroupOffset
	Min, Max   int64 // of the queue; they count where HasQueue is set
	HasQueue   bool
	Lag        int64 // messages not consumed: from the offset, or the minimum if that is higher, to the maximum
	State      LagState
	Configured bool // the group is in subscriptionGroup.json
}

// Lags are the committed offsets of all groups against the queues.
func (d *Dir) Lags(ctx context.Context) ([]Lag, error) {
	offsets, err := d.Offsets()
	if err != nil {
		return nil, err
	}
	groups, err := d.Groups()
	if err != nil {
		return nil, err
	}
	keys, err := d.Queues()
	if err != nil {
		return nil, err
	}
	topics, queues := map[string]bool{}, map[QueueKey]QueueKey{}
	for _, k := range keys {
		topics[k.Topic] = true
		queues[QueueKey{Topic: k.Topic, ID: k.ID}] = k
	}
	configs, err := d.Topics()
	if err != nil {
		return nil, err
	}
	ends := map[QueueKey]Ends{}
	var out []Lag
	for _, o := range offsets {
		_, configured := groups[o.Group]
		l := Lag{GroupOffset: o, State: LagOK, Configured: configured}
		k, there := queues[QueueKey{Topic: o.Topic, ID: o.Queue}]
		cfg, known := configs[o.Topic]
		switch {
		case o.Group == "" || o.Topic == "":
			l.State = LagBadEntry
		case there:
			e, ok := ends[k]
			if !ok {
				q, err := d.Queue(k)
				if err == nil {
					e, err = q.Ends(ctx)
				}
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					return nil, err
				}
				ends[k] = e
			}
			l.judge(e)
		case topics[o.Topic] && known && o.Offset <= 0 && o.Queue >= 0 && int64(o.Queue) < max(cfg.ReadQueues, cfg.WriteQueues):
			l.judgeEmpty() // it has no files before its first message
		case topics[o.Topic]:
			l.State = LagNoQueue
		case known:
			l.judgeEmpty()
		default:
			l.State = LagNoTopic
		}
		out = append(out, l)
	}
	return out, nil
}

func (l *Lag) judge(e Ends) {
	l.Min, l.Max, l.HasQueue = e.Min, e.Max, true
	l.Lag = max(e.Max-max(l.Offset, e.Min), 0)
	switch {
	case l.Offset < 0:
		l.State = LagNegative
	case l.Offset > e.Max:
		l.State = LagBeyond
	case l.Offset < e.Min:
		l.State = LagBelow
	}
}

// judgeEmpty: the queue is configured and has no message yet.
func (l *Lag) judgeEmpty() {
	switch {
	case l.Offset < 0:
		l.State = LagNegative
	case l.Offset > 0:
		l.State = LagBeyond
	}
	l.HasQueue = true
}
