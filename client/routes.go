package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"mqx/internal/clock"
	"mqx/internal/fastjson"
	"mqx/remoting"
)

// Permission bits of a queue.
const (
	permWrite = 2
	permRead  = 4
)

const masterID = 0

// NoRouteError says that no name server knows a topic, or that no queue of it can be used.
type NoRouteError struct {
	Topic string
	Err   error // why: for an unknown topic the *remoting.ResponseError that says so
}

// Error names the topic.
func (e *NoRouteError) Error() string {
	if e.Unknown() {
		return fmt.Sprintf("cannot find route of topic %q: no name server knows it", e.Topic)
	}
	return fmt.Sprintf("cannot find route of topic %q: %v", e.Topic, e.Err)
}

// Unwrap is the cause.
func (e *NoRouteError) Unwrap() error { return e.Err }

// Unknown reports whether the topic does not exist, as far as the name servers know.
func (e *NoRouteError) Unknown() bool {
	var re *remoting.ResponseError
	return errors.As(e.Err, &re) && re.Code == remoting.RespTopicNotExist
}

// route is what is known of a topic. It is not changed after it was made.
type route struct {
	topic   string
	brokers map[string]map[int64]string // broker name -> id -> address
	write   []remoting.MessageQueue     // writable queues of masters, sorted
	read    []remoting.MessageQueue     // readable queues, sorted
	// template: the topic does not exist yet; the queues are those of the topic from
	// whose template the first send will create it.
	template bool
}

// newRoute derives the queues of a topic from route data, as the Java client does.
func newRoute(topic string, d *remoting.TopicRouteData) *route {
	r := &route{topic: topic, brokers: map[string]map[int64]string{}}
	for _, b := range d.BrokerDatas {
		r.brokers[b.BrokerName] = b.BrokerAddrs
	}
	qs := slices.SortedFunc(slices.Values(d.QueueDatas), func(a, b remoting.QueueData) int { return cmp.Compare(a.BrokerName, b.BrokerName) })
	for _, q := range qs {
		if len(r.brokers[q.BrokerName]) == 0 {
			continue
		}
		if q.Perm&permRead != 0 {
			r.read = appendQueues(r.read, topic, q.BrokerName, q.ReadQueueNums)
		}
		if q.Perm&permWrite != 0 && r.brokers[q.BrokerName][masterID] != "" && d.OrderTopicConf == nil {
			r.write = appendQueues(r.write, topic, q.BrokerName, q.WriteQueueNums)
		}
	}
	if d.OrderTopicConf != nil {
		r.write = orderedQueues(topic, *d.OrderTopicConf)
	}
	return r
}

// orderedQueues reads "broker:n;broker:n", the queues of an ordered topic.
func orderedQueues(topic, conf string) (out []remoting.MessageQueue) {
	for part := range strings.SplitSeq(conf, ";") {
		broker, n, ok := strings.Cut(part, ":")
		if count, err := strconv.ParseInt(n, 10, 32); ok && err == nil {
			out = appendQueues(out, topic, broker, int32(count))
		}
	}
	return out
}

// maxQueues bounds the queues of one broker that a route is believed.
const maxQueues = 65536

func appendQueues(dst []remoting.MessageQueue, topic, broker string, n int32) []remoting.MessageQueue {
	for i := range min(n, maxQueues) {
		dst = append(dst, remoting.MessageQueue{Topic: topic, BrokerName: broker, QueueID: i})
	}
	return dst
}

// addr is the address of a replica of a broker: the wanted id, else the master, else
// the smallest id that there is.
func (r *route) addr(broker string, id int64) (string, bool) {
	addrs := r.brokers[broker]
	if a := addrs[id]; a != "" {
		return a, true
	}
	if a := addrs[masterID]; a != "" {
		return a, true
	}
	if len(addrs) == 0 {
		return "", false
	}
	return addrs[slices.Min(slices.Collect(maps.Keys(addrs)))], true
}

// anyAddr is the address of some broker of the topic, of a master where there is one.
func (r *route) anyAddr() (string, bool) {
	if len(r.brokers) == 0 {
		return "", false
	}
	names := slices.Sorted(maps.Keys(r.brokers))
	return r.addr(names[rand.IntN(len(names))], masterID)
}

// routes is the cache of routes. Safe to share.
type routes struct {
	ask   func(ctx context.Context, topic string) (*remoting.TopicRouteData, error)
	poll  time.Duration
	clock clock.Clock
	group singleflight.Group
	life  context.Context // ends with close; bounds refreshes nobody waits for
	close context.CancelFunc

	mu struct {
		sync.Mutex
		table map[string]*routeEntry
	}
}

type routeEntry struct {
	route *route
	at    time.Time
	stale bool // a failure says that it may be wrong
}

func newRoutes(ask func(context.Context, string) (*remoting.TopicRouteData, error), poll time.Duration, c clock.Clock) *routes {
	rs := &routes{ask: ask, poll: poll, clock: c}
	rs.life, rs.close = context.WithCancel(context.Background())
	rs.mu.table = map[string]*routeEntry{}
	return rs
}

// get returns the route of a topic: from the cache while it is young; an old one is
// returned and refreshed behind the caller's back; a doubtful one is asked for again,
// and kept when no name server answers.
func (rs *routes) get(ctx context.Context, topic string) (*route, error) {
	rs.mu.Lock()
	e := rs.mu.table[topic]
	var doubtful, old bool
	if e != nil {
		doubtful = e.stale
		old = rs.clock.Now().Sub(e.at) >= rs.pollOf(e.route)
	}
	rs.mu.Unlock()
	if e != nil && !doubtful {
		if old {
			rs.group.DoChan(topic, func() (any, error) { return rs.refresh(rs.life, topic) })
		}
		return e.route, nil
	}
	// Whoever joins waits for the same answer, each with a deadline of its own.
	ch := rs.group.DoChan(topic, func() (any, error) { return rs.refresh(rs.life, topic) })
	var err error
	select {
	case res := <-ch:
		if err = res.Err; err == nil {
			return res.Val.(*route), nil
		}
	case <-ctx.Done():
		err = ctx.Err()
	}
	if e != nil && ctx.Err() == nil {
		return e.route, nil
	}
	return nil, err
}

// templatePoll is the time after which a topic that did not exist is asked for again.
const templatePoll = time.Second

func (rs *routes) pollOf(r *route) time.Duration {
	if r.template {
		return min(rs.poll, templatePoll)
	}
	return rs.poll
}

// refresh asks for a route and stores it.
func (rs *routes) refresh(ctx context.Context, topic string) (*route, error) {
	d, err := rs.ask(ctx, topic)
	if err != nil {
		return nil, err
	}
	r := newRoute(topic, d)
	rs.put(r)
	return r, nil
}

func (rs *routes) put(r *route) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.mu.table[r.topic] = &routeEntry{route: r, at: rs.clock.Now()}
}

// doubt makes the next get of a topic ask the name servers.
func (rs *routes) doubt(topic string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if e := rs.mu.table[topic]; e != nil {
		e.stale = true
	}
}

// all returns the cached routes.
func (rs *routes) all() []*route {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	out := make([]*route, 0, len(rs.mu.table))
	for _, e := range rs.mu.table {
		out = append(out, e.route)
	}
	return out
}

// askRoute asks the name servers for a route. One that does not know the topic is no
// authority while others have not been asked.
func (c *core) askRoute(ctx context.Context, topic string) (*remoting.TopicRouteData, error) {
	req := remoting.NewRequest(remoting.ReqGetRouteInfoByTopic, &remoting.GetRouteInfoHeader{Topic: topic})
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	resp, err := AskNameServers(ctx, c.conn, c.ns, req, func(r *remoting.Command) bool { return r.Code == remoting.RespSuccess })
	if err != nil {
		return nil, fmt.Errorf("cannot ask for route of topic %q: %w", topic, err)
	}
	if resp.Code != remoting.RespSuccess {
		return nil, &NoRouteError{Topic: topic, Err: responseError(c.ns.Current(), req.Code, resp)}
	}
	d := &remoting.TopicRouteData{}
	if err := fastjson.Unmarshal(resp.Body, d); err != nil {
		return nil, fmt.Errorf("cannot read route of topic %q: %w", topic, err)
	}
	return d, nil
}
