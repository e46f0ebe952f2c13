package broker

import (
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mqx/remoting"
)

// peer is what the tables of clients keep of a connection.
type peer interface {
	ID() uint64
	Remote() netip.AddrPort
	Language() remoting.Language
	Version() int32
	Send(cmd *remoting.Command) error
	Close(reason string)
}

// member is one client of a group on one connection.
type member struct {
	peer peer
	id   string       // client id, as the heartbeat says
	seen atomic.Int64 // ms since 1970 of its last heartbeat
	gap  atomic.Int64 // ms between its last two heartbeats, 0 before the second
}

// touch notes a heartbeat. One that is told twice at once, for a client of two groups, counts once.
func (c *member) touch(now time.Time) {
	if before := c.seen.Swap(now.UnixMilli()); now.UnixMilli()-before >= 100 {
		c.gap.Store(now.UnixMilli() - before)
	}
}

func newMember(p peer, id string, now time.Time) *member {
	c := &member{peer: p, id: id}
	c.seen.Store(now.UnixMilli())
	return c
}

// members is the clients of one group by connection.
type members map[uint64]*member

// sorted returns the clients by id and address.
func (c members) sorted() []*member {
	out := make([]*member, 0, len(c))
	for _, cl := range c {
		out = append(out, cl)
	}
	slices.SortFunc(out, func(a, b *member) int {
		if d := strings.Compare(a.id, b.id); d != 0 {
			return d
		}
		return a.peer.Remote().Compare(b.peer.Remote())
	})
	return out
}

// connections is the form of the connection lists.
func (c members) connections() []remoting.Connection {
	out := make([]remoting.Connection, 0, len(c))
	for _, cl := range c.sorted() {
		out = append(out, remoting.Connection{
			ClientAddr: cl.peer.Remote().String(),
			ClientID:   cl.id,
			Language:   cl.peer.Language().String(),
			Version:    cl.peer.Version(),
		})
	}
	return out
}

// register adds or refreshes a client and reports whether it is new.
func (c members) register(p peer, id string, now time.Time) (cl *member, added bool) {
	if cl = c[p.ID()]; cl != nil && cl.id == id {
		cl.touch(now)
		return cl, false
	}
	cl = newMember(p, id, now)
	c[p.ID()] = cl
	return cl, true
}

// silent returns the clients that were not heard of since before.
func (c members) silent(before time.Time) []*member {
	var out []*member
	for _, cl := range c {
		if cl.seen.Load() < before.UnixMilli() {
			out = append(out, cl)
		}
	}
	return out
}

// producerTable is the producers by group. Safe to share.
type producerTable struct {
	turn atomic.Uint32 // of Available
	mu   struct {
		sync.RWMutex
		groups map[string]members
	}
}

func newProducerTable() *producerTable {
	t := &producerTable{}
	t.mu.groups = map[string]members{}
	return t
}

// Register adds or refreshes a producer.
func (t *producerTable) Register(group string, p peer, id string, now time.Time) (*member, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.mu.groups[group]
	if g == nil {
		g = members{}
		t.mu.groups[group] = g
	}
	return g.register(p, id, now)
}

// Unregister removes a producer from a group and reports whether it was there.
func (t *producerTable) Unregister(group string, conn uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.mu.groups[group]
	if g[conn] == nil {
		return false
	}
	delete(g, conn)
	if len(g) == 0 {
		delete(t.mu.groups, group)
	}
	return true
}

// Closed removes a connection from all groups.
func (t *producerTable) Closed(conn uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, g := range t.mu.groups {
		delete(g, conn)
		if len(g) == 0 {
			delete(t.mu.groups, name)
		}
	}
}

// Expire removes the producers silent since before and returns them.
func (t *producerTable) Expire(before time.Time) []*member {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []*member
	for name, g := range t.mu.groups {
		for _, cl := range g.silent(before) {
			delete(g, cl.peer.ID())
			out = append(out, cl)
		}
		if len(g) == 0 {
			delete(t.mu.groups, name)
		}
	}
	return out
}

// Connections lists the clients of a group, nil when there are none.
func (t *producerTable) Connections(group string) []remoting.Connection {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if g := t.mu.groups[group]; len(g) > 0 {
		return g.connections()
	}
	return nil
}

// All is the form of GET_ALL_PRODUCER_INFO.
func (t *producerTable) All() remoting.ProducerTableInfo {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := remoting.ProducerTableInfo{Data: map[string][]remoting.ProducerInfo{}}
	for name, g := range t.mu.groups {
		for _, cl := range g.sorted() {
			out.Data[name] = append(out.Data[name], remoting.ProducerInfo{
				ClientID: cl.id, Language: cl.peer.Language().String(), LastUpdateTimestamp: cl.seen.Load(),
				RemoteIP: "/" + cl.peer.Remote().String(), Version: cl.peer.Version(),
			})
		}
	}
	return out
}

// Len is the number of groups.
func (t *producerTable) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.mu.groups)
}

// Available is a producer of a group that can be written to, each in turn; nil
// when there is none.
func (t *producerTable) Available(group string) asker {
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.mu.groups[group]
	if len(g) == 0 {
		return nil
	}
	list, first := g.sorted(), int(t.turn.Add(1))
	for i := range list {
		p := list[(first+i)%len(list)].peer
		if w, ok := p.(interface{ Writable() bool }); !ok || w.Writable() {
			return p
		}
	}
	return nil
}

// Client finds a producer of any group by its client id, nil when there is none.
func (t *producerTable) Client(id string) *member {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, g := range t.mu.groups {
		for _, cl := range g {
			if cl.id == id {
				return cl
			}
		}
	}
	return nil
}
