package exporter

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"mqx/admin"
	"mqx/internal/metrics"
	"mqx/internal/sorted"
)

// helpOld is the help of the series of rocketmq-exporter, which has none: where they come
// from.
const helpOld = "As rocketmq-exporter has it."

// two rounds to two decimals, as rocketmq-exporter does with rates.
func two(v float64) float64 { return math.Round(v*100) / 100 }

// rocketmqExporter writes the series of rocketmq-exporter: those with figures of one
// broker, then those that are sums over the brokers that answered.
func rocketmqExporter(s *metrics.Scrape, brokers []seen) {
	groups := map[string]*oldGroup{}
	for i := range brokers {
		b := &brokers[i]
		if b.figures == nil {
			continue
		}
		if !b.primary {
			oldDifference(s, b, brokers)
			continue
		}
		oldRuntime(s, b)
		oldTopics(s, b)
		oldGroups(s, b, groups)
	}
	for name, g := range groups {
		g.write(s, name)
	}
}

func gauge(s *metrics.Scrape, name string, v float64, labels ...string) {
	s.Gauge(name, helpOld, v, s.Labels(labels...))
}

// oldDifference is how far a replica is behind its master.
func oldDifference(s *metrics.Scrape, b *seen, brokers []seen) {
	mine, ok := b.figures.status.Float("commitLogMaxOffset")
	for i := range brokers {
		m := &brokers[i]
		if m.cluster != b.cluster || m.name != b.name || !m.primary || m.figures == nil {
			continue
		}
		if theirs, has := m.figures.status.Float("commitLogMaxOffset"); ok && has {
			gauge(s, "rocketmq_broker_commitlog_diff", theirs-mine, "cluster", b.cluster, "brokerIP", b.addr, "broker", b.name)
		}
	}
}

// rate is the rate over the last minute of a statistic; one that the broker does not
// keep, because nothing was counted lately, is 0.
func (f *figures) rate(name, key string) (float64, bool) {
	st, ok := f.stats[admin.StatKey{Name: name, Key: key}]
	return two(st.tps), ok || f.failed["statistics"] == nil
}

func oldTopics(s *metrics.Scrape, b *seen) {
	f := b.figures
	at := []string{"cluster", b.cluster, "brokerIP", b.addr, "broker", b.name}
	for stat, name := range map[string]string{"BROKER_PUT_NUMS": "rocketmq_broker_tps", "BROKER_GET_NUMS": "rocketmq_broker_qps"} {
		if v, ok := f.rate(stat, b.cluster); ok {
			gauge(s, name, v, at...)
		}
	}
	for i := range f.ends {
		t := &f.ends[i]
		sum := 0.0
		for _, end := range t.Queues {
			sum += float64(end)
		}
		l := []string{"cluster", b.cluster, "broker", b.name, "topic", t.Topic}
		switch t.Kind {
		case admin.KindRetry:
			gauge(s, "rocketmq_topic_retry_offset", sum, l...)
		case admin.KindDLQ:
			gauge(s, "rocketmq_topic_dlq_offset", sum, "cluster", b.cluster, "broker", b.name, "group", strings.TrimPrefix(t.Topic, "%DLQ%"))
		default:
			gauge(s, "rocketmq_producer_offset", sum, l...)
			for stat, name := range map[string]string{admin.StatTopicPut: "rocketmq_producer_tps", "TOPIC_PUT_SIZE": "rocketmq_producer_message_size"} {
				if v, ok := f.rate(stat, t.Topic); ok {
					gauge(s, name, v, l...)
				}
			}
		}
	}
	count := map[string]int{}
	for i := range f.producers {
		count[f.producers[i].Group]++
	}
	for group, n := range count {
		gauge(s, "rocketmq_producer_count", float64(n), "cluster", b.cluster, "broker", b.name, "group", group)
	}
}

// oldGroup is a group over all brokers.
type oldGroup struct {
	broadcast bool
	lag       map[string]float64 // by topic; where it is known
	members   map[string]admin.LagMember
}

func oldGroups(s *metrics.Scrape, b *seen, groups map[string]*oldGroup) {
	f := b.figures
	for i := range f.lag {
		g := &f.lag[i]
		all := groups[g.Group]
		if all == nil {
			all = &oldGroup{lag: map[string]float64{}, members: map[string]admin.LagMember{}}
			groups[g.Group] = all
		}
		all.broadcast = all.broadcast || g.Model == "BROADCASTING"
		for j := range g.Members {
			if m := &g.Members[j]; m.Told || all.members[m.ClientID].ClientID == "" {
				all.members[m.ClientID] = *m
			}
		}
		for topic, sum := range sumsOf(g) {
			if sum.Unknown < sum.Queues {
				all.lag[topic] += float64(sum.Known)
			}
			oldPlace(s, b, g, topic, sum)
		}
	}
}

// sumsOf is where a group stands in each topic.
func sumsOf(g *admin.GroupLag) map[string]*admin.LagSum {
	out := map[string]*admin.LagSum{}
	for i := range g.Queues {
		q := &g.Queues[i]
		if out[q.Topic] == nil {
			out[q.Topic] = &admin.LagSum{}
		}
		out[q.Topic].Add(q)
	}
	return out
}

func oldPlace(s *metrics.Scrape, b *seen, g *admin.GroupLag, topic string, sum *admin.LagSum) {
	f := b.figures
	l := []string{"cluster", b.cluster, "broker", b.name, "topic", topic, "group", g.Group}
	offset, known := 0.0, false
	for i := range g.Queues {
		if q := &g.Queues[i]; q.Topic == topic && q.Committed.OK {
			offset, known = offset+float64(q.Committed.Value), true
		}
	}
	if known {
		gauge(s, "rocketmq_consumer_offset", offset, l...)
	}
	key := topic + "@" + g.Group
	for stat, name := range map[string]string{admin.StatGroupGet: "rocketmq_consumer_tps", "GROUP_GET_SIZE": "rocketmq_consumer_message_size"} {
		if v, ok := f.rate(stat, key); ok {
			gauge(s, name, v, l...)
		}
	}
	if st, ok := f.stats[admin.StatKey{Name: "SNDBCK_PUT_NUMS", Key: key}]; ok || f.failed["statistics"] == nil {
		gauge(s, "rocketmq_send_back_nums", st.sum, l...)
	}
	if g.Model == "BROADCASTING" {
		return
	}
	switch {
	case sum.Unknown == 0 && sum.Known == 0:
		gauge(s, "rocketmq_group_get_latency_by_storetime", 0, l...)
	case sum.Age.OK:
		gauge(s, "rocketmq_group_get_latency_by_storetime", float64(sum.Age.Value.Milliseconds()), l...)
	}
}

// write writes the sums of a group and what its members say.
func (g *oldGroup) write(s *metrics.Scrape, name string) {
	model := "1"
	if g.broadcast {
		model = "0"
	}
	for topic, lag := range g.lag {
		series := "rocketmq_group_diff"
		if strings.HasPrefix(topic, "%RETRY%") {
			series = "rocketmq_group_retrydiff"
		}
		if !g.broadcast { // the places of a broadcast group are with its members (N119)
			gauge(s, series, lag, "group", name, "topic", topic, "countOfOnlineConsumers", strconv.Itoa(len(g.members)), "msgModel", model)
		}
	}
	if len(g.members) == 0 {
		return
	}
	members := make([]admin.LagMember, 0, len(g.members))
	for _, m := range g.members {
		members = append(members, m)
	}
	sorted.By(members, func(a, b admin.LagMember) int { return cmp.Compare(a.ClientID, b.ClientID) })
	var addrs, ids []string
	for i := range members {
		m := &members[i]
		addrs, ids = append(addrs, m.Addr), append(ids, m.ClientID)
		for topic, c := range m.Counts {
			l := []string{"clientAddr", m.Addr, "clientId", m.ClientID, "group", name, "topic", topic}
			gauge(s, "rocketmq_client_consume_fail_msg_count", float64(c.ConsumeFailedMsgs), l...)
			gauge(s, "rocketmq_client_consume_fail_msg_tps", two(c.ConsumeFailedTPS), l...)
			gauge(s, "rocketmq_client_consume_ok_msg_tps", two(c.ConsumeOKTPS), l...)
			gauge(s, "rocketmq_client_consume_rt", two(c.ConsumeRT), l...)
			gauge(s, "rocketmq_client_consumer_pull_rt", two(c.PullRT), l...)
			gauge(s, "rocketmq_client_consumer_pull_tps", two(c.PullTPS), l...)
		}
	}
	gauge(s, "rocketmq_group_count", float64(len(members)), "caddr", strings.Join(addrs, ","), "localaddr", strings.Join(ids, ","), "group", name)
}
