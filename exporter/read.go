package exporter

import (
	"context"
	"time"

	"mqx/admin"
)

// figures are what one broker said in one reading. They do not change any more.
type figures struct {
	at        time.Time
	took      time.Duration
	status    admin.BrokerStatus
	lag       []admin.GroupLag
	ends      []admin.TopicEnds
	producers []admin.ProducerRow
	stats     map[admin.StatKey]stat
	retention time.Duration // 0: not known
	in        map[string]float64
	out       map[groupTopic]float64
	failed    map[string]error // by part of the reading
	skipped   map[string]int   // items left out, by kind
	first     error            // of those
}

// groupTopic is a group in a topic, or a topic for all.
type groupTopic struct{ group, topic string }

// stat is a statistic of a broker over its last minute.
type stat struct{ tps, sum float64 }

// reading is one reading of one broker.
type reading struct {
	o       *Options
	b       broker
	primary bool
	before  counters
	after   counters
	*figures
}

// run reads the broker. An error means that it did not say how it is; what else failed
// is in the figures.
func (r *reading) run(ctx context.Context) error {
	began := r.o.Clock.Now()
	r.figures = &figures{failed: map[string]error{}, skipped: map[string]int{}}
	values, err := r.o.Client.RuntimeInfo(ctx, r.b.addr)
	if err != nil {
		return err
	}
	r.status = admin.BrokerStatus{Broker: admin.Broker{Cluster: r.b.cluster, Name: r.b.name, ID: r.b.id, Addr: r.b.addr}, Values: values}
	r.after = r.before
	if r.primary {
		r.part(ctx, "lag", r.readLag)
		r.part(ctx, "topics", r.readEnds)
		r.part(ctx, "producers", r.readProducers)
		r.part(ctx, "configuration", r.readRetention)
		if r.o.RocketMQExporter {
			r.part(ctx, "statistics", r.readStats)
		}
		r.after.advance(r.figures)
	}
	r.took = r.o.Clock.Now().Sub(began)
	return nil
}

// part reads something that the rest does without.
func (r *reading) part(ctx context.Context, name string, read func(context.Context) error) {
	if err := read(ctx); err != nil {
		r.failed[name] = err
	}
}

func (r *reading) target() admin.Target { return admin.Target{Broker: r.b.addr} }

func (r *reading) skip(items []admin.ItemError) {
	for _, i := range items {
		r.skipped[i.Kind]++
		if r.first == nil {
			r.first = i
		}
	}
}

func firstOf(errs []admin.TargetError) error {
	if len(errs) == 0 {
		return nil
	}
	return errs[0].Err
}

func (r *reading) readLag(ctx context.Context) error {
	lag, err := r.o.Client.GetLag(ctx, admin.LagOptions{Target: r.target(), Ages: !r.o.NoAges, Members: r.o.RocketMQExporter, Lenient: true})
	if err != nil {
		return err
	}
	if err := firstOf(lag.Errors); err != nil {
		return err
	}
	r.skip(lag.Skipped)
	r.lag = lag.Groups
	return nil
}

func (r *reading) readEnds(ctx context.Context) error {
	known := map[string]map[int32]int64{}
	for i := range r.lag {
		for j := range r.lag[i].Queues {
			q := &r.lag[i].Queues[j]
			if !q.Max.OK {
				continue
			}
			if known[q.Topic] == nil {
				known[q.Topic] = map[int32]int64{}
			}
			known[q.Topic][q.QueueID.QueueID] = q.Max.Value
		}
	}
	ends, skipped, errs, err := r.o.Client.TopicEnds(ctx, admin.TopicEndsOptions{
		Target: r.target(), Known: func(_ admin.Broker, topic string) map[int32]int64 { return known[topic] },
	})
	if err != nil {
		return err
	}
	r.skip(skipped)
	r.ends = ends
	return firstOf(errs)
}

func (r *reading) readProducers(ctx context.Context) error {
	rows, errs, err := r.o.Client.ListProducers(ctx, r.target(), "")
	if err != nil {
		return err
	}
	r.producers = rows
	return firstOf(errs)
}

func (r *reading) readRetention(ctx context.Context) error {
	d, err := r.o.Client.Retention(ctx, r.b.addr)
	r.retention = d.Value
	return err
}

// readStats reads the broker's own statistics, for the series of rocketmq-exporter.
func (r *reading) readStats(ctx context.Context) error {
	keys := []admin.StatKey{{Name: "BROKER_PUT_NUMS", Key: r.b.cluster}, {Name: "BROKER_GET_NUMS", Key: r.b.cluster}}
	for i := range r.ends {
		for _, name := range []string{admin.StatTopicPut, "TOPIC_PUT_SIZE"} {
			keys = append(keys, admin.StatKey{Name: name, Key: r.ends[i].Topic})
		}
	}
	for gt := range groupTopics(r.lag) {
		for _, name := range []string{admin.StatGroupGet, "GROUP_GET_SIZE", "SNDBCK_PUT_NUMS"} {
			keys = append(keys, admin.StatKey{Name: name, Key: gt.topic + "@" + gt.group})
		}
	}
	found, err := r.o.Client.StatisticsAt(ctx, r.b.addr, keys)
	r.stats = make(map[admin.StatKey]stat, len(found))
	for k, d := range found {
		r.stats[k] = stat{d.StatsMinute.TPS, float64(d.StatsMinute.Sum)}
	}
	return err
}

// told says in the log what went wrong for the first time since the figures before.
func (r *reading) told(before *figures) {
	for part, err := range r.failed {
		if before == nil || before.failed[part] == nil {
			r.o.Logger.Warn("a broker does not tell all", "broker", r.b.name, "addr", r.b.addr, "part", part, "error", err)
		}
	}
	if r.first != nil && (before == nil || before.first == nil) {
		r.o.Logger.Warn("a broker cannot tell of some groups or topics; they are left out", "broker", r.b.name, "addr", r.b.addr, "first", r.first)
	}
}
