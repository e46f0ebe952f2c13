package server

import (
	"log/slog"
	"sync"
	"time"
)

// quietEvery is how often the same thing is said.
const quietEvery = 10 * time.Second

// quietLog says each thing at most once in quietEvery and tells how often it
// was left out since.
type quietLog struct {
	log *slog.Logger
	mu  struct {
		sync.Mutex
		said map[string]*said
	}
}

type said struct {
	last time.Time
	left int
}

// warn logs msg; key says what is the same thing. The number of keys is
// bounded by the caller's constants.
func (q *quietLog) warn(msg, key string, attrs ...any) {
	q.mu.Lock()
	if q.mu.said == nil {
		q.mu.said = map[string]*said{}
	}
	e := q.mu.said[key]
	if e == nil {
		e = &said{}
		q.mu.said[key] = e
	}
	now := time.Now()
	if !e.last.IsZero() && now.Sub(e.last) < quietEvery {
		e.left++
		q.mu.Unlock()
		return
	}
	left := e.left
	e.last, e.left = now, 0
	q.mu.Unlock()
	if left > 0 {
		attrs = append(attrs, "not_logged", left)
	}
	q.log.Warn(msg, attrs...) //nolint:sloglint // the callers give constants
}
