//go:build linux || darwin

package cmd

import (
	"context"
	"log/slog"
	"net"

	"mqx/internal/metrics"
)

// Where servers serve metrics when nobody says: Apache's port on loopback, and the next
// one for name servers, which have none in Apache.
const (
	brokerMetrics     = "127.0.0.1:5557"
	nameserverMetrics = "127.0.0.1:5558"
	metricsOff        = "off"
)

// metricsAddr reads --metrics; "" is off.
func metricsAddr(flag string) (string, error) {
	if flag == metricsOff {
		return "", nil
	}
	if _, _, err := net.SplitHostPort(flag); err != nil {
		return "", usagef("cannot use --metrics %q: %w", flag, err).try("--metrics 127.0.0.1:5557, or --metrics off")
	}
	return flag, nil
}

// withHost adds what the machine does to what is served.
func withHost(host bool, sources ...metrics.Source) []metrics.Source {
	if host {
		sources = append(sources, metrics.Host())
	}
	return sources
}

// startMetrics serves the sources until ctx ends. A server without metrics is better
// than none: what stands in the way is said, and the start goes on.
func startMetrics(ctx context.Context, log *slog.Logger, addr string, maxSeries int, sources ...metrics.Source) {
	if addr == "" {
		return
	}
	at, err := metrics.Serve(ctx, log, addr, metrics.Handler(log, maxSeries, sources...))
	if err != nil {
		log.Warn("metrics are not served; --metrics with another address, or off", "addr", addr, "error", err)
		return
	}
	log.Info("metrics served", "url", "http://"+at.String()+"/metrics")
}
