package nameserver

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"mqx/internal/metrics"
)

// A scrape tells who is registered, and everything it has is in docs/metrics.md.
func TestMetrics(t *testing.T) {
	s := startServer(t, nil)
	dial(t, s).ok(registerRequest(t, 0, "m:1", 1, "x", "y"))
	w := httptest.NewRecorder()
	metrics.Handler(slog.New(slog.DiscardHandler), 0, s).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	text := w.Body.String()
	for _, want := range []string{`mqx_nameserver_clusters{`, `mqx_nameserver_broker_silence_seconds{addr="`, `request_code="register_broker"`, `mqx_connections{`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	doc, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE ((?:mqx|rocketmq)_\S+) `).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(string(doc), "| `"+m[1]+"`") {
			t.Errorf("%s is not in docs/metrics.md", m[1])
		}
	}
}
