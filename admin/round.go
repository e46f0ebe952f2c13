package admin

import (
	"context"
	"sync"

	"mqx/remoting"
)

// Round is what one read has learned of the addresses it asks: who answers, and who keeps
// silent. It is made by WithRound and safe for concurrent use.
type Round struct {
	mu       sync.Mutex
	answered map[string]bool // brokers
	silent   map[string]error
}

type roundKey struct{}

// WithRound makes a context for one read. An address that has not answered a request in the
// time it had is not asked again with it: a read of several requests waits once for a broker
// that hangs, not once for each of them.
func WithRound(ctx context.Context) (context.Context, *Round) {
	r := &Round{answered: map[string]bool{}, silent: map[string]error{}}
	return context.WithValue(ctx, roundKey{}, r), r
}

// Answered reports whether a broker has answered a request with success.
func (r *Round) Answered(addr string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answered[addr]
}

// AnsweredBesides reports whether a broker has that is not in errs: then what came is an
// answer, be it empty.
func (r *Round) AnsweredBesides(errs []TargetError) bool {
	failed := map[string]bool{}
	for _, e := range errs {
		failed[e.Addr] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for addr := range r.answered {
		if !failed[addr] {
			return true
		}
	}
	return false
}

func roundOf(ctx context.Context) *Round {
	r, _ := ctx.Value(roundKey{}).(*Round)
	return r
}

// silence is why an address is not asked again, nil when it may be.
func (r *Round) silence(addr string) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.silent[addr]
}

// note keeps how a request to an address ended; timedOut: it had its time and no answer came.
func (r *Round) note(addr string, code int32, broker bool, err error, timedOut bool) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		if broker {
			r.answered[addr] = true
		}
	case timedOut && !relayed(code):
		r.silent[addr] = err
	}
}

// relayed reports whether a broker passes a request on to a client, and waits for it.
func relayed(code int32) bool {
	switch code {
	case remoting.ReqGetConsumerRunningInfo, remoting.ReqConsumeMessageDirectly, remoting.ReqInvokeBrokerToResetOffset, remoting.ReqInvokeBrokerToGetConsumerStatus:
		return true
	}
	return false
}
