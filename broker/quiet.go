package broker

import (
	"log/slog"
	"sync"
	"time"
)

// quietEvery is how often the same message is logged.
const quietEvery = 10 * time.Second

// quietLog logs each message at most once in quietEvery, and then how often it
// was left out: what clients cause must not fill the log. Safe to share.
type quietLog struct {
	log *slog.Logger
	now func() time.Time
	mu  struct {
		sync.Mutex
		said map[string]said // by message, which is a constant of the caller's
	}
}

type said struct {
	last time.Time
	left int
}

// Warn logs msg unless it was logged a short while ago.
func (q *quietLog) Warn(msg string, attrs ...any) {
	q.mu.Lock()
	if q.mu.said == nil {
		q.mu.said = map[string]said{}
	}
	e, now := q.mu.said[msg], q.now()
	if since := now.Sub(e.last); !e.last.IsZero() && since >= 0 && since < quietEvery {
		e.left++
		q.mu.said[msg] = e
		q.mu.Unlock()
		return
	}
	q.mu.said[msg] = said{last: now}
	q.mu.Unlock()
	if e.left > 0 {
		attrs = append(attrs, "not_logged", e.left)
	}
	q.log.Warn(msg, attrs...) //nolint:sloglint // the callers give constants
}
