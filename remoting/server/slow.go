package server

import (
	"log/slog"
	"sync/atomic"
	"time"

	"mqx/remoting"
)

// Slow logs the requests that take long, with the stages in which they did. Several
// servers may share one. Below its limit it costs one comparison a request. It is safe
// to share.
type Slow struct {
	after atomic.Int64
	log   *slog.Logger
}

// NewSlow logs to log what takes as long as after; 0: nothing.
func NewSlow(log *slog.Logger, after time.Duration) *Slow {
	s := &Slow{log: log}
	s.SetAfter(after)
	return s
}

// SetAfter is the limit from now on; 0: nothing is logged.
func (s *Slow) SetAfter(d time.Duration) { s.after.Store(int64(d)) }

// Is reports whether a request is slow that took d.
func (s *Slow) Is(d time.Duration) bool {
	after := s.after.Load()
	return after > 0 && int64(d) >= after
}

// Stages are parts of the time that a request took, as its handler knows them; 0: it has
// no such stage.
type Stages struct {
	Locked     time.Duration // until the log was its own
	Appended   time.Duration // writing to the log
	Flushed    time.Duration // until it was durable, where it waited for that
	Replicated time.Duration // until replicas had it, where it waited for that; both begin with the end of the append
	// Ready is when the answer was ready to be written; what comes after it is the answering.
	Ready time.Time
}

// SetStages is for a handler whose request is slow; before its answer.
func (r *Request) SetStages(s Stages) { r.stages = s }

// Taken is when a worker took the request from its queue; the zero time for one that was
// served on the event loop.
func (r *Request) Taken() time.Time { return r.taken }

// tell logs a request that took d and was answered with code.
func (s *Slow) tell(r *Request, code int32, d time.Duration) {
	attrs := []any{
		"request", remoting.RequestName(r.Code), "response", remoting.ResponseName(code), "took_ms", millis(d), "peer", r.conn.Remote().String(),
	}
	stage := func(name string, d time.Duration) {
		if d > 0 {
			attrs = append(attrs, name, millis(d))
		}
	}
	began := r.received
	if !r.taken.IsZero() {
		stage("queued_ms", r.taken.Sub(r.received))
		began = r.taken
	}
	st := &r.stages
	if st.Ready.IsZero() {
		stage("served_ms", d-began.Sub(r.received))
	} else {
		stage("locked_ms", st.Locked)
		stage("appended_ms", st.Appended)
		stage("flushed_ms", st.Flushed)
		stage("replicated_ms", st.Replicated)
		stage("answered_ms", r.received.Add(d).Sub(st.Ready))
	}
	s.log.Warn("slow request", attrs...)
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
