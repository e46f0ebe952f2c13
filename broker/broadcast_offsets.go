package broker

import (
	"context"
	"sync"
	"time"

	"mqx/remoting"
	"mqx/remoting/server"
)

const (
	// forBroadcast is the requestSource of a pull that a proxy makes for one client of a broadcast group, which
	// proxyFrowardClientId names.
	forBroadcast = 1
	// broadcastGroup is what the offsets of a group's slowest client are kept under, behind the name of the group.
	broadcastGroup = "@broadcast"
	// broadcastScan is how often they are brought up to date and clients that are gone forgotten.
	broadcastScan = 5 * time.Second
	// maxBroadcastClients bounds the clients whose places are kept; others begin where they ask.
	maxBroadcastClients = 100_000
)

// broadcastOffsets are the places of the clients of broadcast groups, which keep their offsets themselves: a client that comes
// through a proxy has none, and one that moves between proxy and broker shall go on where it was. Safe to share.
type broadcastOffsets struct {
	mu struct {
		sync.Mutex
		groups  map[broadcastKey]map[string]*broadcastClient
		clients int
	}
}

type broadcastKey struct{ topic, group string }

// broadcastClient is how far one client has come; proxied says how it came last.
type broadcastClient struct {
	at      time.Time
	proxied bool
	next    map[int32]int64
}

func newBroadcastOffsets() *broadcastOffsets {
	t := &broadcastOffsets{}
	t.mu.groups = map[broadcastKey]map[string]*broadcastClient{}
	return t
}

// client finds the entry of a client, or makes it; nil when there are too many. Needs mu.
func (t *broadcastOffsets) client(k broadcastKey, id string, proxied bool, now time.Time) *broadcastClient {
	c := t.mu.groups[k][id]
	if c != nil {
		return c
	}
	if t.mu.clients >= maxBroadcastClients {
		return nil
	}
	if t.mu.groups[k] == nil {
		t.mu.groups[k] = map[string]*broadcastClient{}
	}
	c = &broadcastClient{at: now, proxied: proxied, next: map[int32]int64{}}
	t.mu.groups[k][id] = c
	t.mu.clients++
	return c
}

// Pulled notes where a client reads a queue.
func (t *broadcastOffsets) Pulled(k broadcastKey, id string, queue int32, offset int64, proxied bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.client(k, id, proxied, now); c != nil {
		c.at, c.proxied, c.next[queue] = now, proxied, max(c.next[queue], offset)
	}
}

// Moved reports whether a client has to be told where to begin: it asks for that by a negative offset through a proxy, or came
// another way before. known is where it was, -1 when that is not known.
func (t *broadcastOffsets) Moved(k broadcastKey, id string, queue int32, offset int64, proxied bool, now time.Time) (known int64, moved bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.groups[k] == nil {
		return -1, proxied && offset < 0
	}
	c := t.client(k, id, proxied, now)
	if c == nil {
		return -1, proxied && offset < 0
	}
	if c.proxied == proxied && (!proxied || offset >= 0) {
		return -1, false
	}
	if next, ok := c.next[queue]; ok {
		return next, true
	}
	return -1, true
}

// slowest is the least place of a queue that a client of a group has.
type slowest struct {
	key   broadcastKey
	queue int32
	next  int64
}

// Scan forgets clients that have not come for a while, and returns how far all of each group have come. online says whether a
// client is connected to this broker; such a one is waited for up to patience, others up to gone.
func (t *broadcastOffsets) Scan(now time.Time, gone, patience time.Duration, online func(group, id string) bool) []slowest {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []slowest
	for k, clients := range t.mu.groups {
		least := map[int32]int64{}
		for id, c := range clients {
			here, since := online(k.group, id), now.Sub(c.at)
			if here || since < gone {
				for q, next := range c.next {
					if old, ok := least[q]; !ok || next < old {
						least[q] = next
					}
				}
			}
			if here && since >= patience || !here && since >= gone {
				delete(clients, id)
				t.mu.clients--
			}
		}
		if len(clients) == 0 {
			delete(t.mu.groups, k)
		}
		for q, next := range least {
			out = append(out, slowest{k, q, next})
		}
	}
	return out
}

// Forget drops what matches.
func (t *broadcastOffsets) Forget(match func(topic, group string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, clients := range t.mu.groups {
		if match(k.topic, k.group) {
			t.mu.clients -= len(clients)
			delete(t.mu.groups, k)
		}
	}
}

// broadcastPull is who pulls for a broadcast group; ok is false for all other pulls.
func (b *Broker) broadcastPull(r *server.Request, c *pullContext) (k broadcastKey, id string, proxied, ok bool) {
	proxied = c.head.RequestSource == forBroadcast
	if !proxied && !c.broadcast || !b.cfg().BroadcastOffsets {
		return k, "", false, false
	}
	if proxied {
		id = string(c.head.ProxyFrowardClientID)
	} else {
		id = b.consumers.ClientOf(c.group.GroupName, r.Conn().ID())
	}
	return broadcastKey{c.topic.TopicName, c.group.GroupName}, id, proxied, id != ""
}

// broadcastStart is where a pull of a broadcast group has to begin instead of where it asks; ok is false when it is right.
func (b *Broker) broadcastStart(r *server.Request, c *pullContext) (at int64, ok bool) {
	k, id, proxied, ok := b.broadcastPull(r, c)
	if !ok {
		return 0, false
	}
	q := c.head.QueueID
	known, moved := b.broadcasts.Moved(k, id, q, c.head.QueueOffset, proxied, b.now())
	switch {
	case !moved:
		return 0, false
	case known >= 0:
		return known, true
	}
	if at, ok = b.offsets.Committed(k.topic, k.group+broadcastGroup, q); ok {
		return at, true
	}
	if near, err := b.store.IsNearEnd(k.topic, q, 0); err == nil && near {
		return 0, true
	}
	return b.store.MaxOffset(k.topic, q), true
}

// broadcastPulled notes where a client of a broadcast group reads.
func (b *Broker) broadcastPulled(r *server.Request, c *pullContext, code int32, next int64) {
	k, id, proxied, ok := b.broadcastPull(r, c)
	if !ok {
		return
	}
	at := c.head.QueueOffset
	if code == remoting.RespPullOffsetMoved {
		at = next
	}
	b.broadcasts.Pulled(k, id, c.head.QueueID, at, proxied, b.now())
}

// keepBroadcasts saves how far broadcast groups have come, until ctx ends.
func (b *Broker) keepBroadcasts(ctx context.Context) {
	tick := time.NewTicker(broadcastScan)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			b.scanBroadcasts()
		}
	}
}

func (b *Broker) scanBroadcasts() {
	c := &b.cfg().Clients
	online := func(group, id string) bool { return b.consumers.Client(group, id) != nil }
	for _, s := range b.broadcasts.Scan(b.now(), c.BroadcastGone, c.BroadcastPatience, online) {
		b.commitHere([]byte(s.key.topic), []byte(s.key.group+broadcastGroup), s.queue, s.next)
	}
}
