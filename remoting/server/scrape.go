package server

import (
	"strconv"
	"strings"

	"mqx/internal/meter"
	"mqx/internal/metrics"
	"mqx/remoting"
)

// Metrics writes the times of requests under Apache's name.
func (t *RPCTimes) Metrics(m *metrics.Scrape) {
	t.Each(func(k RPCKey, r meter.Reading) {
		m.Histogram("rocketmq_rpc_latency_milliseconds", "Rpc latency", r, 1e-6, m.Labels("protocol_type", "remoting",
			"request_code", strings.ToLower(remoting.RequestName(k.Code)), "response_code", strings.ToLower(remoting.ResponseName(k.Response)),
			"is_long_polling", strconv.FormatBool(k.Parked), "result", k.Result))
	})
}

// Metrics writes what the server counts, under names of our own; port tells the servers
// of one process apart.
func (s *Server) Metrics(m *metrics.Scrape, port string) {
	st := s.Stats()
	at := m.Labels("port", port)
	for i, n := range st.Connections {
		if State(i) != StateClosed {
			m.Gauge("mqx_connections", "Connections by state.", float64(n), m.Labels("port", port, "state", State(i).String()))
		}
	}
	m.Counter("mqx_connections_accepted_total", "Connections accepted, refused ones included.", float64(st.Accepted), at)
	for reason, n := range st.Refused {
		m.Counter("mqx_connections_refused_total", "Connections refused, by reason.", float64(n), m.Labels("port", port, "reason", reason))
	}
	for reason, n := range st.Closed {
		m.Counter("mqx_connections_closed_total", "Connections that have closed, by reason.", float64(n), m.Labels("port", port, "reason", reason))
	}
	m.Counter("mqx_requests_total", "Requests read.", float64(st.Requests), at)
	m.Counter("mqx_requests_oneway_total", "Requests that want no answer.", float64(st.Oneways), at)
	m.Counter("mqx_requests_prompt_total", "Requests that an event loop served though they have a class of workers.", float64(st.Prompt), at)
	for reason, n := range map[string]uint64{"unsupported": st.Unsupported, "overloaded": st.Overloaded, "draining": st.GoAway, "panic": st.Panics} {
		m.Counter("mqx_requests_refused_total", "Requests answered without being served, by reason.", float64(n), m.Labels("port", port, "reason", reason))
	}
	m.Counter("mqx_network_in_bytes_total", "Bytes read from peers.", float64(st.BytesIn), at)
	m.Counter("mqx_network_out_bytes_total", "Bytes written to peers.", float64(st.BytesOut), at)
	m.Counter("mqx_network_reads_total", "System calls that read, or TLS reads.", float64(st.Reads), at)
	m.Counter("mqx_network_writes_total", "System calls that wrote.", float64(st.Writes), at)
	for what, n := range map[string]int64{"inbound": st.Inbound, "parked": st.Parked, "outbound": st.Outbound} {
		m.Gauge("mqx_network_held_bytes", "Memory that requests and answers hold: waiting or running, parked, not taken by their peers.", float64(n), m.Labels("port", port, "what", what))
	}
}

// Metrics writes what the class counts.
func (c *Class) Metrics(m *metrics.Scrape) {
	st := c.Stats()
	l := m.Labels("class", st.Name)
	m.Gauge("mqx_class_waiting", "Requests that wait for a worker.", float64(st.Waiting), l)
	m.Gauge("mqx_class_running", "Workers inside a handler.", float64(st.Running), l)
	m.Gauge("mqx_class_oldest_wait_seconds", "How long the first request in the queue waits.", st.OldestWait.Seconds(), l)
	m.Counter("mqx_class_requests_total", "Requests that a worker took.", float64(st.Requests), l)
	m.Counter("mqx_class_batches_total", "Calls of handlers; a batch of requests is one.", float64(st.Batches), l)
	m.Counter("mqx_class_wait_seconds_total", "Time that requests waited for a worker.", st.TotalWait.Seconds(), l)
	m.Counter("mqx_class_busy_seconds_total", "Time that workers spent in handlers.", st.TotalRunning.Seconds(), l)
	m.Counter("mqx_class_refused_total", "Requests answered SYSTEM_BUSY, by reason.", float64(st.Overloaded), m.Labels("class", st.Name, "reason", "full"))
	m.Counter("mqx_class_refused_total", "Requests answered SYSTEM_BUSY, by reason.", float64(st.Late), m.Labels("class", st.Name, "reason", "late"))
}
