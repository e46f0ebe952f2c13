package exporter

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"mqx/admin"
	"mqx/internal/metrics"
	"mqx/internal/sorted"
)

// seen is a broker as a scrape sees it.
type seen struct {
	broker
	primary bool
	gone    bool
	err     error
	busy    bool
	asked   time.Time
	figures *figures
}

// Metrics writes the series of the last readings. Figures that are older than three
// intervals, and a minute, are not shown: they belong to a broker whose reading hangs.
func (e *Exporter) Metrics(s *metrics.Scrape) {
	now := e.o.Clock.Now()
	e.mu.Lock()
	rounds, listed, listErr := e.mu.rounds, e.mu.listed, e.mu.listErr
	brokers := make([]seen, 0, len(e.mu.brokers))
	for b, st := range e.mu.brokers {
		brokers = append(brokers, seen{b, st.primary, !st.gone.IsZero(), st.err, st.busy, st.asked, st.figures})
	}
	e.mu.Unlock()
	sorted.By(brokers, func(a, b seen) int {
		return cmp.Or(cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.name, b.name), cmp.Compare(a.id, b.id), cmp.Compare(a.addr, b.addr))
	})
	s.Common()
	if rounds > 0 {
		s.Gauge("mqx_exporter_nameserver_up", "Whether a name server listed the brokers when they were last asked for.", number(listErr == nil), s.Labels())
	}
	if !listed.IsZero() {
		s.Gauge("mqx_exporter_list_age_seconds", "How long ago name servers last listed the brokers.", now.Sub(listed).Seconds(), s.Labels())
	}
	s.Counter("mqx_exporter_rounds_total", "Readings of the cluster that were begun.", float64(rounds), s.Labels())
	s.Counter("mqx_exporter_requests_total", "Requests sent to brokers.", float64(e.o.Client.Requests()), s.Labels())
	stale := max(3*e.o.Interval, time.Minute)
	for i := range brokers {
		b := &brokers[i]
		if b.figures != nil && now.Sub(b.figures.at) > stale {
			b.figures = nil
		}
		e.brokerState(s, b, now)
		if b.figures == nil {
			continue
		}
		s.Common("cluster", b.cluster, "node_type", "broker", "node_id", b.name)
		runtimeSeries(s, &b.figures.status, b.primary, now)
		if b.primary {
			b.figures.write(s, e.o.Queues)
		}
	}
	if e.o.RocketMQExporter {
		s.Common()
		rocketmqExporter(s, brokers)
	}
	s.Common()
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// brokerState is whether a broker answers and how its reading went.
func (e *Exporter) brokerState(s *metrics.Scrape, b *seen, now time.Time) {
	s.Common("cluster", b.cluster, "node_type", "broker", "node_id", b.name, "broker_id", strconv.FormatInt(b.id, 10), "addr", b.addr)
	l := s.Labels()
	if b.figures != nil || b.err != nil || b.gone {
		s.Gauge("mqx_broker_up", "Whether the broker answered when it was last asked; 0 for an hour after it is registered no more.", number(b.figures != nil), l)
	}
	f := b.figures
	if f == nil {
		return
	}
	s.Gauge("mqx_exporter_figures_age_seconds", "How old the figures of the broker are.", max(0, now.Sub(f.at).Seconds()), l)
	s.Gauge("mqx_exporter_reading_seconds", "How long its last reading took.", f.took.Seconds(), l)
	if !b.primary {
		return
	}
	for _, part := range []string{"lag", "topics", "producers", "configuration", "statistics"} {
		if f.failed[part] != nil {
			s.Gauge("mqx_exporter_part_failed", "1 for a part of the last reading that the broker refused or did not answer; its figures are not there.", 1, s.Labels("part", part))
		}
	}
	for _, kind := range []string{"group", "topic", "groups"} {
		if n := f.skipped[kind]; n > 0 {
			s.Gauge("mqx_exporter_skipped", "Groups and topics of the last reading that the broker could not tell of; they have no figures.", float64(n), s.Labels("kind", kind))
		}
	}
}

// Help of the series that have Apache's names, as brokers give them.
const (
	helpGauge   = "default view for gauge."
	helpCounter = "default view for counter."
)

// write writes what the broker said of its topics and groups.
func (f *figures) write(s *metrics.Scrape, queues bool) {
	if f.failed["topics"] == nil {
		s.Gauge("rocketmq_topic_number", helpGauge, float64(len(f.ends)), s.Labels())
	}
	for i := range f.ends {
		t := &f.ends[i]
		if t.Kind == admin.KindRetry || t.Kind == admin.KindDLQ {
			continue
		}
		s.Counter("rocketmq_messages_in_total", helpCounter, f.in[t.Topic], s.Labels("topic", t.Topic, "is_system", strconv.FormatBool(t.Kind == admin.KindSystem)))
	}
	if f.retention > 0 {
		s.Gauge("mqx_store_retention_seconds", "How long messages are kept (fileReservedTime).", f.retention.Seconds(), s.Labels())
	}
	f.clients(s)
	for i := range f.lag {
		f.group(s, &f.lag[i], queues)
	}
}

// clients are the connections by language and version.
func (f *figures) clients(s *metrics.Scrape) {
	type kind struct{ group, mode, language, version string }
	count := map[kind]int{}
	for i := range f.producers {
		p := &f.producers[i]
		count[kind{language: p.Language, version: admin.VersionName(p.Version)}]++
	}
	for k, n := range count {
		s.Gauge("rocketmq_producer_connections", helpGauge, float64(n), s.Labels("language", strings.ToLower(k.language), "version", strings.ToLower(k.version), "protocol_type", "remoting"))
	}
	clear(count)
	for i := range f.lag {
		g := &f.lag[i]
		for j := range g.Members {
			m := &g.Members[j]
			count[kind{g.Group, g.Type, m.Language, m.Version}] += max(1, len(m.Addrs))
		}
	}
	for k, n := range count {
		s.Gauge("rocketmq_consumer_connections", helpGauge, float64(n), s.Labels("consumer_group", k.group, "language", strings.ToLower(k.language),
			"version", strings.ToLower(k.version), "consume_mode", consumeModes[k.mode], "protocol_type", "remoting", "is_system", "false"))
	}
}

// consumeModes are the consume types as series name them.
var consumeModes = map[string]string{"CONSUME_ACTIVELY": "pull", "CONSUME_PASSIVELY": "push", "CONSUME_POP": "pop"}

// place is a group in a topic, or in what its pops of the topic are to be given again.
type place struct {
	topic string
	retry bool
}

// group writes where a group stands. A broadcast group stands nowhere: each of its
// members has a place of its own, on its machine (N119).
func (f *figures) group(s *metrics.Scrape, g *admin.GroupLag, queues bool) {
	s.Gauge("mqx_consumer_members", "Clients of the group that are connected.", float64(len(g.Members)), s.Labels("consumer_group", g.Group))
	if g.Model == "BROADCASTING" {
		return
	}
	sums := map[place]*admin.LagSum{}
	ready := map[place]int64{}
	for i := range g.Queues {
		q := &g.Queues[i]
		at := place{q.Topic, false}
		if topic, ok := admin.IsPopRetry(q.Topic, g.Group); ok {
			at = place{topic, true}
		}
		if sums[at] == nil {
			sums[at] = &admin.LagSum{}
		}
		sums[at].Add(q)
		if q.Max.OK && q.Committed.OK {
			ready[at] += max(0, q.Max.Value-max(q.Committed.Value, q.Pulled.Value))
		}
		if queues {
			l := s.Labels("consumer_group", g.Group, "topic", q.Topic, "queue_id", strconv.Itoa(int(q.QueueID.QueueID)))
			if q.Lag.OK {
				s.Gauge("mqx_consumer_queue_lag_messages", "Messages of one queue that the group has not consumed.", float64(q.Lag.Value), l)
			}
			if none := q.Lag.OK && q.Lag.Value == 0; none || q.Age.OK {
				s.Gauge("mqx_consumer_queue_lag_seconds", "Age of the oldest message of one queue that is not consumed; 0 when there is none, absent where it is not known.", q.Age.Value.Seconds(), l)
			}
		}
	}
	for at, sum := range sums {
		f.place(s, g, at, sum, ready[at])
	}
}

func writeAge(s *metrics.Scrape, name, help string, none bool, age time.Duration, known bool, l metrics.Labels) {
	switch {
	case none:
		s.Gauge(name, help, 0, l)
	case known:
		s.Gauge(name, help, float64(age.Milliseconds()), l)
	}
}

// place writes where a group stands in a topic. Queues of which the lag is not known
// count nothing, as in the brokers' own series, and are told beside it.
func (f *figures) place(s *metrics.Scrape, g *admin.GroupLag, at place, sum *admin.LagSum, ready int64) {
	l := s.Labels("consumer_group", g.Group, "topic", at.topic, "is_retry", strconv.FormatBool(at.retry), "is_system", "false")
	if sum.Unknown > 0 {
		s.Gauge("mqx_consumer_lag_unknown_queues", "Queues of which the lag is not known: nothing was ever committed there, or they could not be read.", float64(sum.Unknown), l)
	}
	if sum.Unknown < sum.Queues {
		s.Gauge("rocketmq_consumer_lag_messages", helpGauge, float64(sum.Known), l)
		s.Gauge("rocketmq_consumer_ready_messages", helpGauge, float64(ready), l)
		writeAge(s, "rocketmq_consumer_lag_latency_milliseconds", helpGauge, sum.Known == 0, sum.Age.Value, sum.Age.OK, l)
	}
	if sum.InFlight.OK {
		s.Gauge("rocketmq_consumer_inflight_messages", helpGauge, float64(sum.InFlight.Value), l)
	}
	if sum.Expires != "" {
		s.Gauge("mqx_consumer_lag_expires", "1 when retention is going to delete messages before the group has read them at its present rate, else 0.", number(sum.Expires == admin.WillYes), l)
	}
	s.Gauge("mqx_consumer_lost_messages", "Messages between the group's offset and the first that is still there: deleted before they were read.", float64(sum.Lost), l)
	if at.retry || strings.HasPrefix(at.topic, "%RETRY%") {
		return // what goes out of them is counted with the topic
	}
	if out, ok := f.out[groupTopic{g.Group, at.topic}]; ok {
		s.Counter("rocketmq_messages_out_total", helpCounter, out, s.Labels("topic", at.topic, "consumer_group", g.Group, "is_system", "false"))
	}
}
