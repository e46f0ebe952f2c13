// Package clock hands the time of day to code that must not ask for it itself, so that tests decide what time it is.
package clock

import (
	"sync"
	"time"
)

// Clock tells the time of day.
//
// Implementations are safe to share between goroutines.
type Clock interface {
	Now() time.Time
}

// System is the clock of the machine (time.Now).
var System Clock = systemClock{}

type systemClock struct{}

// Now is time.Now.
func (systemClock) Now() time.Time { return time.Now() }

// Manual is a clock that stands still until it is told otherwise. It is safe to share between goroutines.
type Manual struct {
	mu struct {
		sync.Mutex
		now time.Time
	}
}

// NewManual returns a clock that shows t.
func NewManual(t time.Time) *Manual {
	m := &Manual{}
	m.mu.now = t
	return m
}

// Now returns the time that was set last.
func (m *Manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.now
}

// Set puts the clock to t, which may lie in the past.
func (m *Manual) Set(t time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.now = t
}

// Advance moves the clock by d and returns the new time.
func (m *Manual) Advance(d time.Duration) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.now = m.mu.now.Add(d)
	return m.mu.now
}
