package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"mqx/admin/roll"
	"mqx/internal/fastjson"
	"mqx/message"
	"mqx/remoting"
)

// RollOwnedError says that another run restarts brokers of the cluster.
type RollOwnedError struct{ Broker string }

// Error names the broker that says so.
func (e *RollOwnedError) Error() string {
	return fmt.Sprintf("another run restarts brokers of the cluster: it has the lease on broker %s", e.Broker)
}

// rollLease keeps a second roll out of a cluster, on whatever machine and with whatever copy of the state: the lock of a queue that
// every broker has, in the name of a group that every broker knows, on every master, for a minute at a time. A broker forgets it when
// it is restarted; the others remember, and take part again once it is back. It warns and does not fence.
type rollLease struct {
	c        *Client
	owner    string
	clusters []string
}

// leaseEvery is how often a lease is renewed, which lasts move.LeaseTime.
const leaseEvery = 10 * time.Second

func (c *Client) rollLease(st *roll.State, owner string) *rollLease {
	if owner == "" {
		owner = MoveOwner()
	}
	l := &rollLease{c: c, owner: owner}
	for i := range st.Brokers {
		l.clusters = append(l.clusters, st.Brokers[i].Cluster)
	}
	return l
}

func (l *rollLease) masters(ctx context.Context) ([]Broker, error) {
	all, err := l.c.Cluster(ctx)
	return slices.DeleteFunc(all, func(b Broker) bool { return b.ID != 0 || !slices.Contains(l.clusters, b.Cluster) }), err
}

// hold takes the lease or renews it; a *RollOwnedError says that another run has it. Brokers that are down say nothing; one that
// refuses to answer is an error.
func (l *rollLease) hold(ctx context.Context) error {
	masters, err := l.masters(ctx)
	if err != nil {
		return err
	}
	var owned, refused error
	l.c.each(masters, func(mu *sync.Mutex, b Broker) error {
		held, err := l.lock(ctx, b)
		mu.Lock()
		defer mu.Unlock()
		var no *remoting.ResponseError
		switch {
		case errors.As(err, &no):
			refused = fmt.Errorf("cannot see whether another run restarts brokers: %w", b.fail(err))
		case err == nil && !held:
			owned = &RollOwnedError{b.Name}
		}
		return err
	})
	if owned != nil {
		return owned
	}
	return refused
}

func (l *rollLease) lock(ctx context.Context, b Broker) (held bool, err error) {
	req := remoting.NewRequest(remoting.ReqLockBatchMQ, &remoting.RPCHeader{})
	if req.Body, err = l.body(b); err != nil {
		return false, err
	}
	resp, err := askBody[remoting.LockBatchResponseBody](ctx, l.c, b.Addr, req)
	return err == nil && len(resp.LockOKMQSet) > 0, err
}

func (l *rollLease) body(b Broker) ([]byte, error) {
	return fastjson.MarshalStandard(&remoting.LockBatchBody{
		ClientID: l.owner, ConsumerGroup: message.GroupTools, OnlyThisBroker: true,
		MQSet: []remoting.MessageQueue{{Topic: message.TopicSelfTest, BrokerName: b.Name}},
	})
}

// release gives the lease back, so that nobody has to wait for its end. What cannot be reached lets it end by itself.
func (l *rollLease) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.c.cfg.BrokerTimeout)
	defer cancel()
	masters, err := l.masters(ctx)
	if err != nil {
		return
	}
	l.c.each(masters, func(_ *sync.Mutex, b Broker) error {
		req := remoting.NewRequest(remoting.ReqUnlockBatchMQ, &remoting.RPCHeader{})
		var err error
		if req.Body, err = l.body(b); err == nil {
			_, err = l.c.ask(ctx, b.Addr, req)
		}
		return err
	})
}

// keep renews the lease, while a broker restarts too, until stop is called. Where another run has got it, the context ends with that
// for its cause.
func (l *rollLease) keep(ctx context.Context) (kept context.Context, stop func()) {
	kept, cancel := context.WithCancelCause(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(leaseEvery)
		defer tick.Stop()
		for {
			select {
			case <-kept.Done():
				return
			case <-tick.C:
			}
			var owned *RollOwnedError
			if errors.As(l.hold(kept), &owned) {
				cancel(owned)
			}
		}
	})
	return kept, func() {
		cancel(nil)
		done.Wait()
		l.release(ctx)
	}
}

// take is hold for who does not have the lease yet: what was taken of one that another run has is given back.
func (l *rollLease) take(ctx context.Context) error {
	err := l.hold(ctx)
	if err != nil {
		l.release(ctx)
	}
	return err
}
