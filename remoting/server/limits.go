package server

import (
	"math"
	"net/netip"
	"sync"
)

const (
	// assumedDescriptors is used where the system tells no limit.
	assumedDescriptors = 65536
	// minReserve is the least number of descriptors kept for the store, logs
	// and connections that mqx opens itself.
	minReserve = 128
)

// Limits counts connections, in all and by address, against a maximum.
// Servers of one process may share one. Safe to share.
type Limits struct {
	max, perIP, rest int

	mu struct {
		sync.Mutex
		open int
		byIP map[netip.Addr]int
	}
}

// NewLimits returns limits; values mean what they mean in Config: 0 takes the
// descriptor limit less a reserve of a quarter (at least 128, at most half of
// it) for maxConnections, and three quarters of the result for maxPerIP. Also
// a larger maxConnections is cut to what the descriptors allow, since a server
// without descriptors serves nobody.
func NewLimits(maxConnections, maxPerIP int) *Limits {
	fds, err := RaiseDescriptorLimit()
	if err != nil || fds == 0 {
		fds = assumedDescriptors
	}
	return newLimits(maxConnections, maxPerIP, fds)
}

func newLimits(maxConnections, maxPerIP int, fds uint64) *Limits {
	n := int(min(fds, math.MaxInt32))
	room := max(n-min(max(n/4, minReserve), n/2), 1)
	if maxConnections <= 0 || maxConnections > room {
		maxConnections = room
	}
	if maxPerIP == 0 {
		maxPerIP = max(maxConnections/4*3, 1)
	}
	if maxPerIP < 0 || maxPerIP > maxConnections {
		maxPerIP = maxConnections
	}
	l := &Limits{max: maxConnections, perIP: maxPerIP, rest: n - maxConnections}
	l.mu.byIP = map[netip.Addr]int{}
	return l
}

// Max returns the maxima in force.
func (l *Limits) Max() (connections, perIP int) { return l.max, l.perIP }

// Rest returns how many descriptors the process has beside those of the
// connections, for files and for connections that it opens itself.
func (l *Limits) Rest() int { return l.rest }

// Open returns the number of open connections.
func (l *Limits) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.open
}

// acquire counts a connection from addr, or returns why there is no room.
func (l *Limits) acquire(addr netip.Addr) (refusal string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.open >= l.max {
		return ReasonMaxTotal
	}
	if l.mu.byIP[addr] >= l.perIP {
		return ReasonMaxPerIP
	}
	l.mu.open++
	l.mu.byIP[addr]++
	return ""
}

// release gives back what acquire counted.
func (l *Limits) release(addr netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.open--
	if l.mu.byIP[addr]--; l.mu.byIP[addr] <= 0 {
		delete(l.mu.byIP, addr)
	}
}
