package metrics

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"mqx/internal/meter"
)

func scrape(t *testing.T, h http.Handler, path string) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	text, err := io.ReadAll(w.Result().Body)
	if err != nil || w.Code != http.StatusOK {
		t.Fatalf("GET %s: %d %v\n%s", path, w.Code, err, text)
	}
	return string(text)
}

func TestScrape(t *testing.T) {
	sizes := meter.New([]int64{10, 100})
	sizes.Observe(7, 2)
	sizes.Observe(1000, 1)
	h := Handler(slog.New(slog.DiscardHandler), 0, SourceFunc(func(s *Scrape) {
		s.Common("node_id", "broker-a", "cluster", "c")
		s.Counter("a_total", "what comes", 12, s.Labels("topic", "T\"\n\xff", "absent", ""))
		s.Gauge("b", "what is", 0.5, s.Labels())
		s.Histogram("c_seconds", "how long", sizes.Read(), 0.001, s.Labels("x", "y"))
	}), SourceFunc(func(s *Scrape) { s.Gauge("d", "of another", 1, s.Labels()) }))
	text := scrape(t, h, "/metrics")
	for _, line := range []string{
		"# HELP a_total what comes\n# TYPE a_total counter\na_total{cluster=\"c\",node_id=\"broker-a\",topic=\"T\\\"\\n\uFFFD\"} 12\n",
		"b{cluster=\"c\",node_id=\"broker-a\"} 0.5\n",
		"c_seconds_bucket{cluster=\"c\",node_id=\"broker-a\",x=\"y\",le=\"0.01\"} 2\n",
		"c_seconds_bucket{cluster=\"c\",node_id=\"broker-a\",x=\"y\",le=\"+Inf\"} 3\n",
		"c_seconds_sum{cluster=\"c\",node_id=\"broker-a\",x=\"y\"} 1.014\n",
		"c_seconds_count{cluster=\"c\",node_id=\"broker-a\",x=\"y\"} 3\n",
		"\nd 1\n",
		"\ngo_sched_goroutines_goroutines ", "\nprocess_open_fds ", "\ngo_sched_goroutines_runnable_goroutines ",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("%q is not in\n%s", line, text)
		}
	}
	if text := scrape(t, h, "/-/healthy"); text != "healthy\n" {
		t.Errorf("healthy: %q", text)
	}
}

// The series of one name are bounded; what is above the bound is added up.
func TestBound(t *testing.T) {
	h := Handler(slog.New(slog.DiscardHandler), 3, SourceFunc(func(s *Scrape) {
		for i := range 10 {
			l := s.Labels("topic", strconv.Itoa(i))
			s.Counter("a_total", "", 1, l)
			s.Gauge("b", "", 2, l)
			s.Histogram("c", "", meter.Reading{Bounds: []int64{1}, Counts: []uint64{1, 1}, Sum: 3}, 1, l)
		}
	}))
	text := scrape(t, h, "/")
	for _, line := range []string{
		"a_total{topic=\"2\"} 1\na_total{otel_metric_overflow=\"true\"} 7\n", "b{otel_metric_overflow=\"true\"} 14\n",
		"c_bucket{otel_metric_overflow=\"true\",le=\"1\"} 7\n", "c_count{otel_metric_overflow=\"true\"} 14\n",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("%q is not in\n%s", line, text)
		}
	}
	if n := strings.Count(text, "\na_total{"); n != 4 {
		t.Errorf("%d series of a_total", n)
	}
}
