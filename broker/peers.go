package broker

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store/ha"
)

// Bounds of what slaves are told.
const (
	// tellPause gathers what changes together.
	tellPause = 20 * time.Millisecond
	// tellWait is how long a slave may take to have what has changed; who waits for it goes on then.
	tellWait = time.Second
	// tellAgain is when a slave is told again that did not answer. Until then it looks by itself (syncEvery).
	tellAgain = 3 * time.Second
	// maxTold bounds the offsets that are told one by one: where more have changed, slaves ask for the table.
	maxTold = 2000
	// maxPeers bounds the slaves that are told.
	maxPeers = 64
	// peerKept is how long one is told that is not connected to the replication port.
	peerKept = time.Minute
)

// The parts of the tables that slaves take over.
const (
	partTopics  = "topics"
	partGroups  = "groups"
	partOffsets = "offsets"
	partDelays  = "delays"
	partModes   = "modes"
	partTimer   = "timer checkpoint"
)

// peers are the slaves of mqx that this master tells what has changed in its tables, within tenths of a second. Safe to
// share. Without a slave it costs one look at a flag per change.
type peers struct {
	b      *Broker
	active atomic.Bool
	wake   chan struct{}

	mu struct {
		sync.Mutex
		slaves  map[string]*peerSlave
		parts   map[string]bool
		offsets map[offsetKey]map[int32]toldOffset
		many    int // of offsets
		waiting []func()
		ended   bool // run is over
	}
}

type peerSlave struct {
	addr  string
	seen  time.Time // connected
	after time.Time // it is not told before
}

type toldOffset struct {
	offset  int64
	resetAt int64 // ms; 0: nobody has set it
}

func newPeers(b *Broker) *peers {
	p := &peers{b: b, wake: make(chan struct{}, 1)}
	p.mu.slaves, p.mu.parts = map[string]*peerSlave{}, map[string]bool{}
	p.mu.offsets = map[offsetKey]map[int32]toldOffset{}
	return p
}

// add notes a slave that wants to be told.
func (p *peers) add(id, addr string) {
	if addr == "" {
		return
	}
	now := p.b.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.mu.slaves[id]; !ok && len(p.mu.slaves) >= maxPeers {
		return
	}
	p.mu.slaves[id] = &peerSlave{addr: addr, seen: now}
	p.active.Store(true)
}

// changed notes that a part of the tables has changed.
func (p *peers) changed(part string) {
	if p == nil || !p.active.Load() {
		return
	}
	p.mu.Lock()
	p.mu.parts[part] = true
	p.mu.Unlock()
	signal(p.wake)
}

// offset notes an offset that was committed; resetAt is when it was reset, in milliseconds of the epoch, 0 where it was not.
func (p *peers) offset(topic, group string, queue int32, offset, resetAt int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer signal(p.wake)
	if p.mu.many >= maxTold {
		p.mu.parts[partOffsets] = true
		if resetAt == 0 { // those are told whatever it takes
			return
		}
	}
	k := offsetKey{topic, group}
	g := p.mu.offsets[k]
	if g == nil {
		g = map[int32]toldOffset{}
		p.mu.offsets[k] = g
	}
	was, ok := g[queue]
	if !ok {
		p.mu.many++
	}
	g[queue] = toldOffset{offset, max(resetAt, was.resetAt)}
}

// replicated calls done once the slaves have a part of the tables as it is now, or after tellWait; at once when nobody is told
// any more, since the broker stops.
func (p *peers) replicated(part string, done func()) {
	if !p.active.Load() {
		done()
		return
	}
	p.mu.Lock()
	ended := p.mu.ended
	if !ended {
		p.mu.parts[part] = true
		p.mu.waiting = append(p.mu.waiting, done)
	}
	p.mu.Unlock()
	if ended {
		done()
		return
	}
	signal(p.wake)
}

// run tells slaves until ctx ends.
func (p *peers) run(ctx context.Context) {
	defer func() {
		p.mu.Lock()
		p.mu.ended = true
		p.mu.Unlock()
		p.round(ctx) // who waits is told
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(tellPause):
		}
		p.round(ctx)
	}
}

// round tells what has changed since the last one.
func (p *peers) round(ctx context.Context) {
	body, addrs, waiting := p.take(p.b.now())
	defer func() {
		for _, done := range waiting {
			done()
		}
	}()
	if len(addrs) == 0 || ctx.Err() != nil {
		return
	}
	data, err := json.Marshal(body)
	if err != nil {
		p.b.log.Error("slaves cannot be told what has changed", "error", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tellWait)
	defer cancel()
	var wg sync.WaitGroup
	for id, addr := range addrs {
		wg.Go(func() {
			req := remoting.NewRequest(remoting.ReqTablesChanged, nil)
			req.Body = data
			resp, err := p.b.client.Call(ctx, addr, req)
			if err != nil || resp.Code != remoting.RespSuccess {
				p.late(id)
			}
		})
	}
	wg.Wait()
}

func (p *peers) late(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.mu.slaves[id]; s != nil {
		s.after = p.b.now().Add(tellAgain)
	}
}

// take takes out what is to be told, to whom, and who waits for that.
func (p *peers) take(now time.Time) (body remoting.TablesChangedBody, addrs map[string]string, waiting []func()) {
	connected := map[string]bool{}
	for _, r := range p.b.ha.master.Replicas() {
		connected[r.ID] = r.Known
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	addrs = map[string]string{}
	for id, s := range p.mu.slaves {
		switch {
		case connected[id]:
			s.seen = now
		case now.Sub(s.seen) > peerKept:
			delete(p.mu.slaves, id)
			continue
		}
		if !s.after.After(now) {
			addrs[id] = s.addr
		}
	}
	p.active.Store(len(p.mu.slaves) > 0)
	for part := range p.mu.parts {
		body.Parts = append(body.Parts, part)
	}
	slices.Sort(body.Parts)
	for k, queues := range p.mu.offsets {
		for q, o := range queues {
			body.Offsets = append(body.Offsets, remoting.ChangedOffset{Topic: k.topic, Group: k.group, Queue: q, Offset: o.offset, Reset: o.resetAt > 0, At: cmp.Or(o.resetAt, now.UnixMilli())})
		}
	}
	waiting, p.mu.waiting = p.mu.waiting, nil
	clear(p.mu.parts)
	clear(p.mu.offsets)
	p.mu.many = 0
	return body, addrs, waiting
}

// handleReplicaHello serves a slave that tells who has opened a connection to the replication port.
func (b *Broker) handleReplicaHello(r *server.Request) {
	var h remoting.ReplicaHelloHeader
	if !header(r, &h) {
		return
	}
	cfg := b.cfg()
	switch {
	case b.slave != nil:
		r.Reply(remoting.RespNotMaster, "this broker is a slave itself")
		return
	case h.ClusterName != cfg.BrokerClusterName || h.BrokerName != cfg.BrokerName:
		r.Reply(remoting.RespInvalidParameter, "this is "+cfg.BrokerName+" of cluster "+cfg.BrokerClusterName+", not "+h.BrokerName+" of "+h.ClusterName)
		return
	case h.BrokerID <= 0:
		r.Reply(remoting.RespInvalidParameter, "a slave has a brokerId above 0")
		return
	}
	id := strconv.FormatInt(h.BrokerID, 10)
	flushed := cfg.HAAckMode == "flushed"
	if !b.ha.master.Hello(h.HAAddr, ha.Peer{ID: id, Flushed: flushed}) {
		r.Reply(remoting.RespSystemBusy, "too many slaves have told who they are and not connected")
		return
	}
	b.peers.add(id, h.BrokerAddr)
	p := newReply(remoting.RespSuccess, "")
	p.str(keyFlushed, strconv.FormatBool(flushed))
	p.to(r)
}

var keyFlushed = []byte("flushed")
