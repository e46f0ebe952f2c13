package broker

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"mqx/internal/fastjson"
	"mqx/remoting"
	"mqx/remoting/client"
)

const (
	// forwardLook is how often the addresses of the brokers that get what is for sealed queues are asked for.
	forwardLook = 10 * time.Second
	// forwardLookMost bounds one look, and is the least time between two for a broker that no name server knows.
	forwardLookMost = time.Second
	// forwardWanted is how long a broker is looked for after the last message for it.
	forwardWanted = 10 * time.Minute
	// forwardAway is how long a broker that did not answer gets none of the messages that were held back: whoever delivers
	// them waits for each answer.
	forwardAway = 5 * time.Second
	// maxForwards and maxForwardBytes bound the sends on their way to one broker.
	maxForwards     = 4096
	maxForwardBytes = 64 << 20
)

// forwarder knows where the brokers are that have queues which are sealed here, and how much is on its way to them. Safe to share.
type forwarder struct {
	servers func() map[string]bool
	ask     func(ctx context.Context, addr string, req *remoting.Command) ([]byte, error)
	log     *slog.Logger
	wake    chan struct{}

	mu struct {
		sync.Mutex
		targets map[string]*forwardTarget // by broker name
		ended   bool
	}
}

// forwardTarget is a broker that has queues which are sealed here.
type forwardTarget struct {
	addr   string    // of its master, empty: not known
	used   time.Time // when it was last wanted
	looked time.Time // when it was last asked for
	away   time.Time // until when it gets no message that was held back
	sends  int       // on their way to it, or waiting for its address
	bytes  int       // of their bodies
	// waiting are those that wait for its address.
	waiting []func()
}

// newForwarder makes one. servers are the name servers, true for those that answer; ask asks one of them.
func newForwarder(servers func() map[string]bool, ask func(context.Context, string, *remoting.Command) ([]byte, error), log *slog.Logger) *forwarder {
	f := &forwarder{servers: servers, ask: ask, log: log, wake: make(chan struct{}, 1)}
	f.mu.targets = map[string]*forwardTarget{}
	return f
}

// run looks for the addresses that are wanted until ctx ends.
func (f *forwarder) run(ctx context.Context) {
	tick := time.NewTicker(forwardLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			f.mu.Lock()
			f.mu.ended = true
			all := slices.Collect(maps.Keys(f.mu.targets))
			f.mu.Unlock()
			f.release(all)
			return
		case <-f.wake:
		case <-tick.C:
		}
		f.release(f.look(ctx))
	}
}

// release lets the sends try again that wait for the addresses of brokers which have been looked for.
func (f *forwarder) release(looked []string) {
	f.mu.Lock()
	var waiting []func()
	now := time.Now()
	for _, name := range looked {
		t := f.mu.targets[name]
		waiting = append(waiting, t.waiting...)
		t.waiting, t.looked = nil, now
		if t.sends == 0 && now.Sub(t.used) > forwardWanted {
			delete(f.mu.targets, name)
		}
	}
	f.mu.Unlock()
	for _, again := range waiting {
		again()
	}
}

// look asks the name servers where the wanted brokers are, all at once: what the first one says that knows a broker counts.
// Where none does the addresses stay as they are. It returns the names of those brokers.
func (f *forwarder) look(ctx context.Context) []string {
	f.mu.Lock()
	looked := slices.Collect(maps.Keys(f.mu.targets))
	f.mu.Unlock()
	if len(looked) == 0 {
		return nil
	}
	wanted := map[string]bool{}
	for _, name := range looked {
		wanted[name] = true
	}
	ctx, cancel := context.WithTimeout(ctx, forwardLookMost)
	var asking sync.WaitGroup
	defer func() { cancel(); asking.Wait() }()
	type answer struct {
		addr string
		info remoting.ClusterInfo
		err  error
	}
	servers := f.servers()
	answers := make(chan answer, len(servers))
	for addr := range servers {
		asking.Go(func() {
			a := answer{addr: addr}
			var body []byte
			if body, a.err = f.ask(ctx, addr, remoting.NewRequest(remoting.ReqGetBrokerClusterInfo, nil)); a.err == nil {
				a.err = fastjson.Unmarshal(body, &a.info)
			}
			answers <- a
		})
	}
	for range servers {
		a := <-answers
		if a.err != nil {
			f.log.Warn("a name server does not say where sealed queues have gone", "addr", a.addr, "error", a.err)
			continue
		}
		f.found(wanted, &a.info)
		if len(wanted) == 0 {
			break
		}
	}
	return looked
}

// found takes the addresses of wanted brokers from what a name server says, and those brokers out of wanted.
func (f *forwarder) found(wanted map[string]bool, info *remoting.ClusterInfo) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range wanted {
		master := info.BrokerAddrTable[name].BrokerAddrs[0]
		if master == "" {
			continue
		}
		delete(wanted, name)
		if t := f.mu.targets[name]; t != nil {
			t.addr = master
		}
	}
}

// target is what is known of a broker. Needs mu.
func (f *forwarder) target(broker string) *forwardTarget {
	t := f.mu.targets[broker]
	if t == nil {
		t = &forwardTarget{}
		f.mu.targets[broker] = t
	}
	return t
}

// addr is the address of a broker, empty while it is not known: again is called then when it has been looked for, once.
// unknown says that it has just been looked for, or that nobody looks any more.
func (f *forwarder) addr(broker string, again func()) (addr string, unknown bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, now := f.target(broker), time.Now()
	t.used = now
	if t.addr != "" {
		return t.addr, false
	}
	if f.mu.ended || !t.looked.IsZero() && now.Sub(t.looked) < forwardLookMost {
		return "", true
	}
	signal(f.wake)
	if again == nil {
		return "", true
	}
	t.waiting = append(t.waiting, again)
	return "", false
}

// enter counts a send to a broker, with so many bytes, until leave; false: too much is on its way to it.
func (f *forwarder) enter(broker string, bytes int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.target(broker)
	if t.sends >= maxForwards || t.sends > 0 && t.bytes+bytes > maxForwardBytes {
		return false
	}
	t.sends++
	t.bytes += bytes
	return true
}

// leave ends what enter began.
func (f *forwarder) leave(broker string, bytes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.target(broker)
	t.sends--
	t.bytes -= bytes
}

// failed notes that a broker did not answer. An address that cannot be reached is forgotten: it may have another master by now.
func (f *forwarder) failed(broker, addr string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.target(broker)
	t.away = time.Now().Add(forwardAway)
	if _, unreached := errors.AsType[*client.ConnectError](err); unreached && t.addr == addr {
		t.addr = ""
	}
}

// answered notes that a broker answers.
func (f *forwarder) answered(broker string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.target(broker).away = time.Time{}
}

// isAway reports whether a broker did not answer a short time ago.
func (f *forwarder) isAway(broker string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.mu.targets[broker]
	return t != nil && time.Now().Before(t.away)
}
