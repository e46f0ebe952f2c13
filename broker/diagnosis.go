package broker

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mqx/remoting/server"
	"mqx/store"
)

// diagnosis is what the broker keeps for those who look for a cause: which sends were
// refused at which stage, and which clients it closed as idle. It is told by
// GET_BROKER_RUNTIME_INFO under keys of mqx's own. Safe to share.
type diagnosis struct {
	locked, appended, flushed atomic.Int64 // sends that were not answered with success

	mu struct {
		sync.Mutex
		idle []idleClient // oldest first, at most maxIdle
	}
}

// maxIdle bounds the clients that are remembered, idleKept how long they are told.
const (
	maxIdle  = 32
	idleKept = time.Hour
)

// idleClient is a connection that was closed because nothing came on it.
type idleClient struct {
	at     time.Time
	id     string // client id, empty for one that never said it
	peer   string
	silent time.Duration // since its last heartbeat
	every  time.Duration // between its last two heartbeats, 0: there were no two
}

// refused counts a put that was not stored, or not as durably as was asked for.
func (d *diagnosis) refused(s store.Status) {
	switch s {
	case store.OSPageCacheBusy:
		d.locked.Add(1)
	case store.FlushDiskTimeout, store.FlushSlaveTimeout:
		d.flushed.Add(1)
	case store.CreateFileFailed, store.ServiceNotAvailable, store.UnknownError:
		d.appended.Add(1)
	default: // the message was not right, which is no fault of a stage
	}
}

// idleClosed remembers a connection.
func (d *diagnosis) idleClosed(c idleClient) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.mu.idle) == maxIdle {
		d.mu.idle = slices.Delete(d.mu.idle, 0, 1)
	}
	d.mu.idle = append(d.mu.idle, c)
}

// idleText is the clients of the last hour, "; " between them.
func (d *diagnosis) idleText(now time.Time) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var parts []string
	for _, c := range d.mu.idle {
		if now.Sub(c.at) > idleKept {
			continue
		}
		text := c.peer
		if c.id != "" {
			text = c.id + " from " + c.peer + ", last heartbeat " + c.silent.Round(time.Second).String() + " before"
		}
		if c.every > 0 {
			text += ", one every " + c.every.Round(time.Second).String()
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// closedIdle remembers a connection that the server closed as idle, before it leaves the
// tables of clients.
func (b *Broker) closedIdle(c *server.Conn, why error) {
	if e, ok := errors.AsType[*server.CloseError](why); !ok || e.Reason != server.ReasonIdle {
		return
	}
	one := idleClient{at: b.now(), peer: c.Remote().String()}
	m := b.producers.ofConn(c.ID())
	if m == nil {
		m = b.consumers.ofConn(c.ID())
	}
	if m != nil {
		one.id, one.silent = m.id, one.at.Sub(time.UnixMilli(m.seen.Load()))
		one.every = time.Duration(m.gap.Load()) * time.Millisecond
	}
	b.diagnosis.idleClosed(one)
}

// ofConn is a producer on a connection, nil for none.
func (t *producerTable) ofConn(conn uint64) *member {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, g := range t.mu.groups {
		if m := g[conn]; m != nil {
			return m
		}
	}
	return nil
}

// ofConn is a consumer on a connection, nil for none.
func (t *consumerTable) ofConn(conn uint64) *member {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, g := range t.mu.groups {
		if m := g.clients[conn]; m != nil {
			return m
		}
	}
	return nil
}

// diagnosisInfo adds mqx's own keys to the runtime information.
func (b *Broker) diagnosisInfo(t map[string]string, now time.Time) {
	var queued uint64
	for _, c := range []*server.Class{b.classes.send, b.classes.pull, b.classes.litePull, b.classes.query} {
		if c != nil {
			st := c.Stats()
			queued += st.Overloaded + st.Late
		}
	}
	t["mqxRefused_queued"] = strconv.FormatUint(queued, 10)
	for stage, n := range map[string]*atomic.Int64{"locked": &b.diagnosis.locked, "appended": &b.diagnosis.appended, "flushed": &b.diagnosis.flushed} {
		t["mqxRefused_"+stage] = fmt.Sprint(n.Load())
	}
	t["mqxIdleClosed"] = b.diagnosis.idleText(now)
}
