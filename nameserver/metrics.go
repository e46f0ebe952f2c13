package nameserver

import (
	"strconv"

	"mqx/internal/metrics"
)

// Metrics writes the series of the name server. Apache's has none, so the names are
// mqx's own but for the times of requests. docs/metrics.md lists them.
func (s *Server) Metrics(m *metrics.Scrape) {
	select {
	case <-s.ready:
	default:
		return
	}
	m.Common("node_type", "nameserver", "node_id", s.net.Addr().String())
	s.rpc.Metrics(m)
	m.Gauge("mqx_start_time_seconds", "When the name server started, in seconds since 1970.", float64(s.started.UnixMilli())/1000, m.Labels())
	s.tableMetrics(m)
	for _, c := range s.classes.all() {
		c.Metrics(m)
	}
	s.net.Metrics(m, "main")
}

// tableMetrics are the brokers that are registered, with how long ago each gave a sign.
func (s *Server) tableMetrics(m *metrics.Scrape) {
	now := s.clock.Now()
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.mu.table
	m.Gauge("mqx_nameserver_clusters", "Clusters that are registered.", float64(len(t.clusters)), m.Labels())
	m.Gauge("mqx_nameserver_topics", "Topics that have a route.", float64(len(t.topics)), m.Labels())
	for at, live := range t.live {
		l := m.Labels("cluster", at.cluster, "broker", live.name, "broker_id", strconv.FormatInt(live.id, 10), "addr", at.addr)
		m.Gauge("mqx_nameserver_broker_silence_seconds", "How long ago a registered broker gave its last sign of life.", max(0, now.Sub(live.seen).Seconds()), l)
		m.Gauge("mqx_nameserver_broker_timeout_seconds", "After how long without a sign it is taken out of the routes.", live.timeout.Seconds(), l)
	}
}
