package broker

import (
	"strconv"
	"strings"

	"mqx/broker/stats"
	"mqx/internal/metrics"
	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/server"
)

// Help of Apache's counters and gauges: its views overwrite every text with these.
const (
	helpCounter = "default view for counter."
	helpGauge   = "default view for gauge."
)

// Metrics writes the series of the broker: Apache's under Apache's names and labels,
// then those of mqx, which begin with mqx_. docs/metrics.md lists them. It reads counters
// and tables and, for the ages of groups that lag, a bounded number of records.
func (b *Broker) Metrics(s *metrics.Scrape) {
	select {
	case <-b.ready:
	default:
		return // the tables are being loaded
	}
	cfg := b.cfg()
	pairs := append([]string{}, cfg.labels()...)
	pairs = append(pairs, "cluster", cfg.BrokerClusterName, "node_type", "broker", "node_id", cfg.BrokerName)
	apache := append(append([]string{}, pairs...), "otel_scope_name", "broker-meter")
	s.Common(apache...)
	st := b.store.Stats() // it looks at the files of the log: once a scrape
	for _, group := range []struct {
		on    bool
		write func(*metrics.Scrape)
	}{
		{cfg.StateMetrics, b.stateMetrics},
		{cfg.RequestMetrics, b.requestMetrics},
		{cfg.ConnectionMetrics, b.connectionMetrics},
		{cfg.LagMetrics, b.lagMetrics},
		{cfg.TransactionMetrics, b.transactionMetrics},
		{cfg.RemotingMetrics, b.rpc.Metrics},
		{cfg.StoreMetrics, func(s *metrics.Scrape) { b.storageMetrics(s, &st) }},
		{cfg.PopMetrics, b.popMetrics},
	} {
		if group.on {
			group.write(s)
		}
	}
	s.Common(pairs...)
	b.ownMetrics(s, &st)
}

// stateMetrics are the queues of the request classes and the sizes of tables.
func (b *Broker) stateMetrics(s *metrics.Scrape) {
	for name, c := range map[string]*server.Class{
		"send": b.classes.send, "async_put": nil, "pull": b.classes.pull, "ack": b.classes.ack, "query_message": b.classes.query, "client_manager": b.classes.client,
		"heartbeat": b.classes.heartbeat, "lite_pull": b.classes.litePull, "transaction": b.classes.end, "consumer_manager": b.classes.load,
		"admin": b.classes.admin, "reply": b.classes.reply,
	} {
		waiting := 0 // async_put: puts are not queued a second time here
		if c != nil {
			waiting = c.Stats().Waiting
		}
		s.Gauge("rocketmq_processor_watermark", helpGauge, float64(waiting), s.Labels("processor", name))
	}
	s.Gauge("rocketmq_broker_permission", helpGauge, float64(b.cfg().BrokerPermission), s.Labels())
	s.Gauge("rocketmq_topic_number", helpGauge, float64(b.topics.Len()), s.Labels())
	s.Gauge("rocketmq_consumer_group_number", helpGauge, float64(len(b.groups.Names())), s.Labels())
}

// requestMetrics are what came in and went out by topic.
func (b *Broker) requestMetrics(s *metrics.Scrape) {
	for name, in := range b.topics.meters() {
		if message.IsRetry(name) || message.IsDLQ(name) {
			continue
		}
		system := strconv.FormatBool(message.IsSystemTopic(name))
		for kind := range in {
			k := in[kind].Load()
			if k == nil {
				continue
			}
			l := s.Labels("topic", name, "message_type", kindNames[kind], "is_system", system)
			s.Counter("rocketmq_messages_in_total", helpCounter, float64(k.messages.Load()), l)
			s.Counter("rocketmq_throughput_in_total", helpCounter, float64(k.bytes.Load()), l)
			s.Histogram("rocketmq_message_size", "Incoming messages size", k.sizes.Read(), 1, l)
		}
	}
	for name, to := range map[string]string{stats.GroupGetNums: "rocketmq_messages_out_total", stats.GroupGetSize: "rocketmq_throughput_out_total"} {
		b.stats.Each(name, func(key string, total int64) {
			topic, group, ok := splitOffsetKey(key)
			if !ok || message.IsRetry(topic) || message.IsDLQ(topic) {
				return
			}
			system := message.IsSystemTopic(topic) || message.IsSystemGroup(group)
			s.Counter(to, helpCounter, float64(total), s.Labels("topic", topic, "consumer_group", group, "is_system", strconv.FormatBool(system)))
		})
	}
}

// meters are what came into each topic.
func (t *topicTable) meters() map[string]*topicMeter {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := make(map[string]*topicMeter, len(t.mu.topics))
	for name, tp := range t.mu.topics {
		out[name] = tp.in
	}
	return out
}

// clientKind is what connections are counted by.
type clientKind struct{ group, mode, language, version string }

func kindOf(group, mode string, m *member) clientKind {
	return clientKind{group, mode, strings.ToLower(m.peer.Language().String()), strings.ToLower(remoting.VersionName(m.peer.Version()))}
}

// consumeModes are the consume types as metrics name them.
var consumeModes = map[string]string{"CONSUME_ACTIVELY": "pull", "CONSUME_PASSIVELY": "push", "CONSUME_POP": "pop"}

func (b *Broker) connectionMetrics(s *metrics.Scrape) {
	for k, n := range b.producers.kinds() {
		s.Gauge("rocketmq_producer_connections", helpGauge, float64(n), s.Labels("language", k.language, "version", k.version, "protocol_type", "remoting"))
	}
	for k, n := range b.consumers.kinds() {
		system := strconv.FormatBool(strings.HasPrefix(strings.ToLower(k.group), "cid_rmq_sys_"))
		s.Gauge("rocketmq_consumer_connections", helpGauge, float64(n), s.Labels("consumer_group", k.group, "language", k.language, "version", k.version,
			"consume_mode", k.mode, "protocol_type", "remoting", "is_system", system))
	}
}

// kinds counts the producers of all groups; one in two groups counts twice.
func (t *producerTable) kinds() map[clientKind]int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := map[clientKind]int{}
	for _, g := range t.mu.groups {
		for _, m := range g {
			out[kindOf("", "", m)]++
		}
	}
	return out
}

// kinds counts the consumers by group.
func (t *consumerTable) kinds() map[clientKind]int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := map[clientKind]int{}
	for _, g := range t.mu.groups {
		mode := consumeModes[g.consumeType]
		for _, m := range g.clients {
			out[kindOf(g.name, mode, m)]++
		}
	}
	return out
}

func (b *Broker) transactionMetrics(s *metrics.Scrape) {
	for name, to := range map[string]string{stats.CommitNums: "rocketmq_commit_messages_total", stats.RollbackNums: "rocketmq_rollback_messages_total"} {
		b.stats.Each(name, func(topic string, total int64) { s.Counter(to, helpCounter, float64(total), s.Labels("topic", topic)) })
	}
	for topic, n := range b.transactions.open.all() {
		s.Gauge("rocketmq_half_messages", helpGauge, float64(n), s.Labels("topic", topic))
	}
}
