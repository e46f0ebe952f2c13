package server

import (
	"sync/atomic"
	"time"
)

const (
	// precedenceLasts is how long after its last request a preferred server still counts as used.
	precedenceLasts = 10 * time.Millisecond
	// restShare is how many times as long as a request took its class rests behind it.
	// A lone sender meets a request that steps back in one send of nine then; with two
	// instead of eight its p99 was three times that without such requests.
	restShare = 8
	// longestRest bounds what a class that steps back rests after one request.
	longestRest = 4 * time.Millisecond
)

// Precedence is what the requests of one server (Config.Precedence) have over
// those of some classes (ClassConfig.StepsBackFor). As long as that server is
// used, such a class works on one request at a time and rests afterwards for restShare
// times as long as that took, at most longestRest, so that it has a ninth of one core
// while its requests are short. It is never stopped altogether. Safe to share.
type Precedence struct {
	start time.Time
	last  atomic.Int64  // when the preferred server was used, ns since start
	turn  chan struct{} // holds an item while somebody works or rests
}

// NewPrecedence returns what no server uses yet.
func NewPrecedence() *Precedence {
	p := &Precedence{start: time.Now(), turn: make(chan struct{}, 1)}
	p.last.Store(-int64(precedenceLasts))
	return p
}

// mark says that the preferred server was used at now.
func (p *Precedence) mark(now time.Time) { p.last.Store(int64(now.Sub(p.start))) }

// Wanted reports whether the preferred server is in use.
func (p *Precedence) Wanted() bool {
	return p != nil && int64(time.Since(p.start))-p.last.Load() < int64(precedenceLasts)
}

// StepBack calls f, one call at a time and with a rest behind it while the
// preferred server is in use. A nil Precedence only calls f.
func (p *Precedence) StepBack(f func()) {
	if !p.Wanted() {
		f()
		return
	}
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	began := time.Now()
	f()
	if p.Wanted() {
		time.Sleep(min(restShare*time.Since(began), longestRest))
	}
}
