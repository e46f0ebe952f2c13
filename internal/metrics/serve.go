package metrics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"mqx/internal/sorted"
)

// gatherer asks the sources, one scrape at a time.
type gatherer struct {
	mu      sync.Mutex
	sources []Source
	process *prometheus.Registry
	most    int
}

// Gather makes the series of a scrape, sorted by name.
func (g *gatherer) Gather() ([]*dto.MetricFamily, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := newScrape(g.most)
	for _, src := range g.sources {
		s.common = nil
		src.Metrics(s)
	}
	out := s.sorted()
	own, err := g.process.Gather()
	out = append(out, own...)
	sorted.By(out, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return out, err
}

// runtimeSeries are the series of the Go runtime beside the classic ones: the scheduler
// with the goroutines by state, and where memory is.
var runtimeSeries = collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile(`^/(sched|memory/classes|gc/(heap|pauses|cycles))`)}

// Handler serves the series of the sources, of the process and of the Go runtime: at
// /-/healthy an answer that it lives, at every other path a scrape. Each name has at
// most maxSeries series, MaxSeries when that is 0.
func Handler(log *slog.Logger, maxSeries int, sources ...Source) http.Handler {
	g := &gatherer{sources: sources, process: prometheus.NewRegistry(), most: cmp.Or(maxSeries, MaxSeries)}
	g.process.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(runtimeSeries)))
	mux := http.NewServeMux()
	mux.Handle("/", promhttp.HandlerFor(g, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes, EnableOpenMetrics: true,
	}))
	mux.HandleFunc("/-/healthy", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("healthy\n")) })
	return mux
}

// Bounds of the server: a scrape is small, and few ask.
const (
	maxScrapes   = 4
	readTimeout  = 5 * time.Second
	writeTimeout = 30 * time.Second
)

// Serve answers scrapes at addr until ctx ends. It returns once it listens, with the
// address; an address in use is an error.
func Serve(ctx context.Context, log *slog.Logger, addr string, h http.Handler) (net.Addr, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot serve metrics: %w", err)
	}
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	go func() {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("metrics are no longer served", "error", err)
		}
	}()
	context.AfterFunc(ctx, func() { _ = srv.Close() })
	return l.Addr(), nil
}
