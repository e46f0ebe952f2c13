package broker

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Metrics is what is told to who scrapes, and where.
type Metrics struct {
	// MetricsExporter is DISABLE or PROM when the configuration says so. Where it says
	// nothing, whoever starts the broker decides: mqx broker start serves on loopback.
	MetricsExporter exporterType `conf:"metricsExporterType"`
	MetricsPort     int          `conf:"metricsPromExporterPort"`
	MetricsHost     string       `conf:"metricsPromExporterHost"` // "": brokerIP1
	MetricsLabel    string       `conf:"metricsLabel"`            // k:v,k:v
	// MetricsMaxSeries bounds the series of one name.
	MetricsMaxSeries int `conf:"metricsOtelCardinalityLimit"`

	StateMetrics       bool `conf:"enableStatsMetrics"`
	RequestMetrics     bool `conf:"enableRequestMetrics"`
	ConnectionMetrics  bool `conf:"enableConnectionMetrics"`
	LagMetrics         bool `conf:"enableLagAndDlqMetrics"`
	TransactionMetrics bool `conf:"enableTransactionMetrics"`
	RemotingMetrics    bool `conf:"enableRemotingMetrics"`
	StoreMetrics       bool `conf:"enableMessageStoreMetrics"`
	PopMetrics         bool `conf:"enablePopMetrics"`

	// Keys of mqx: the lag of each queue of each group, and what the machine does.
	QueueMetrics bool `conf:"metricsConsumerQueues"`
	HostMetrics  bool `conf:"metricsHostGauges"`
}

func defaultMetrics() Metrics {
	return Metrics{
		MetricsPort: 5557, MetricsMaxSeries: 50_000,
		StateMetrics: true, RequestMetrics: true, ConnectionMetrics: true, LagMetrics: true,
		TransactionMetrics: true, RemotingMetrics: true, StoreMetrics: true, PopMetrics: true,
	}
}

// exporterType is a value of metricsExporterType; the zero value is one that was not
// given.
type exporterType struct{ name string }

// exporterNames are the values by Apache's numbers.
var exporterNames = []string{"DISABLE", "OTLP_GRPC", "PROM", "LOG"}

// UnmarshalText takes a name or a number.
func (e *exporterType) UnmarshalText(text []byte) error {
	name := strings.TrimSpace(string(text))
	for i, n := range exporterNames {
		if name == strconv.Itoa(i) || strings.EqualFold(name, n) {
			e.name = n
			return nil
		}
	}
	return fmt.Errorf("must be one of %s, got %q", strings.Join(exporterNames, ", "), name)
}

// MarshalText is the name; Apache's default where none was given.
func (e exporterType) MarshalText() ([]byte, error) {
	if e.name == "" {
		return []byte("DISABLE"), nil
	}
	return []byte(e.name), nil
}

// isPushed reports whether a metricsExporterType wants metrics where nobody sends them.
func isPushed(v string) bool {
	var e exporterType
	return e.UnmarshalText([]byte(v)) == nil && (e.name == "OTLP_GRPC" || e.name == "LOG")
}

// MetricsAddr is where the configuration wants metrics served: "" for nowhere. given is
// false when it says nothing about it.
func (c *Config) MetricsAddr() (addr string, given bool) {
	switch c.MetricsExporter.name {
	case "":
		return "", false
	case "PROM":
		host := c.MetricsHost
		if host == "" {
			host = c.BrokerIP1
		}
		return net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(c.MetricsPort)), true
	}
	return "", true
}

// labels are the labels of metricsLabel as name, value, name, value. A pair that cannot
// be read is passed over, as in Apache.
func (m *Metrics) labels() []string {
	var out []string
	for pair := range strings.SplitSeq(m.MetricsLabel, ",") {
		name, value, ok := strings.Cut(pair, ":")
		if name = strings.TrimSpace(name); ok && isLabelName(name) {
			out = append(out, name, strings.TrimSpace(value))
		}
	}
	return out
}

// isLabelName: what Prometheus takes, but for what the broker sets itself.
func isLabelName(name string) bool {
	switch name {
	case "", "cluster", "node_type", "node_id", "otel_scope_name", "le":
		return false
	}
	for i, r := range name {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return !strings.HasPrefix(name, "__")
}
