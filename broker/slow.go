package broker

import (
	"log/slog"
	"time"

	"mqx/remoting/server"
	"mqx/store"
)

// Logging is what the broker says of itself, and when.
type Logging struct {
	// SlowMillis is from how many ms on a request is logged with its stages; 0: none is.
	SlowMillis int64 `conf:"slowRequestMillis"`
	// Level is DEBUG, INFO, WARN or ERROR where it was set; "": as whoever starts the broker
	// decides.
	Level string `conf:"logLevel"`
}

func defaultLogging() Logging { return Logging{SlowMillis: 1000} }

// validLevel reports whether a text is a level; an empty one is that of the start.
func validLevel(text string) bool {
	var l slog.Level
	return text == "" || l.UnmarshalText([]byte(text)) == nil
}

// logAs puts what a configuration says of the log in force.
func (b *Broker) logAs(c *Config) {
	b.slow.SetAfter(time.Duration(c.SlowMillis) * time.Millisecond)
	if b.level == nil || c.Logging.Level == "" {
		return
	}
	var l slog.Level
	if l.UnmarshalText([]byte(c.Logging.Level)) == nil { // it has been checked
		b.level.Set(l)
	}
}

// stagesOf are the stages of a put that has been answered at ready. The time at which its
// lock was had is that of its record, in ms.
func stagesOf(p *store.Put, taken, ready time.Time) server.Stages {
	s := server.Stages{Ready: ready}
	if p.Appended.IsZero() {
		return s
	}
	from := p.Began
	if !taken.IsZero() {
		from = taken
	}
	held := p.Began
	if at := time.UnixMilli(p.Record.StoreTimestamp); at.After(p.Began) && at.Before(p.Appended) {
		held = at
	}
	s.Locked, s.Appended = held.Sub(from), p.Appended.Sub(held)
	if !p.Flushed.IsZero() {
		s.Flushed = max(0, p.Flushed.Sub(p.Appended))
	}
	if !p.Copied.IsZero() {
		s.Replicated = max(0, p.Copied.Sub(p.Appended))
	}
	return s
}
