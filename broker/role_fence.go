package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"mqx/internal/fastjson"
	"mqx/remoting"
)

const (
	// rivalEvery is the time between two looks for another master of the group, beside those after a registration.
	rivalEvery = 30 * time.Second
	// rivalTimeout bounds the look before the start serves: name servers that do not answer do not keep a master from it.
	rivalTimeout = 2 * time.Second
	// fenceMost bounds how long a fence holds that is asked for.
	fenceMost = 10 * time.Minute
)

// fence is why a master takes no messages.
type fence struct {
	mu struct {
		sync.Mutex
		rival *roleRival  // another one has taken its place
		lift  *time.Timer // of a fence for a while
		until time.Time   // when it is lifted
		going bool        // it becomes a slave: nothing lifts that but the end of the try
		asked int64       // how often the fence was changed: a timer or an undo of an older one counts no more
		text  string
	}
}

// given reports whether another master has taken this one's place.
func (f *fence) given() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.rival != nil
}

// rivalEpoch is the epoch of the master that has taken this one's place, 0 where none has.
func (f *fence) rivalEpoch() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.rival == nil {
		return 0
	}
	return f.mu.rival.Epoch
}

// why is the reason, empty where there is no fence.
func (f *fence) why() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.text
}

// fenceFor makes the master take no messages for d; 0 lifts that. A fence that a rival is the reason of stays. What it
// returns puts back what was before, unless somebody has asked for something else since.
func (b *Broker) fenceFor(d time.Duration) (undo func()) {
	f := &b.fence
	f.mu.Lock()
	defer f.mu.Unlock()
	return b.fenceLocked(d)
}

// fenceToGo is fenceFor of a master that becomes a slave: nobody else lifts that fence or makes it shorter. ok is false where
// another try to become one is under way, whose fence it is.
func (b *Broker) fenceToGo() (undo func(), ok bool) {
	f := &b.fence
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.going {
		return nil, false
	}
	lift := b.fenceLocked(fenceMost)
	f.mu.going = true
	return func() {
		f.mu.Lock()
		f.mu.going = false
		f.mu.Unlock()
		lift()
	}, true
}

// fenceLocked is fenceFor under the lock of the fence.
func (b *Broker) fenceLocked(d time.Duration) (undo func()) {
	f := &b.fence
	if f.mu.rival != nil || f.mu.going {
		return func() {}
	}
	before := f.mu.until
	b.setFence(d)
	asked := f.mu.asked
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.mu.asked == asked {
			b.setFence(before.Sub(b.now()))
		}
	}
}

// setFence is fenceFor under the lock of the fence.
func (b *Broker) setFence(d time.Duration) {
	f := &b.fence
	f.stopTimer()
	if d <= 0 {
		f.mu.text = ""
		b.store.Fence(nil)
		return
	}
	f.mu.text = "this broker takes no messages while its group gets another master"
	b.store.Fence(errors.New(f.mu.text))
	d = min(d, fenceMost)
	asked := f.mu.asked
	f.mu.until = b.now().Add(d)
	f.mu.lift = time.AfterFunc(d, func() { b.liftFence(asked) })
}

// liftFence ends a fence for a while, unless it is another by now: a timer that has gone off cannot be stopped.
func (b *Broker) liftFence(asked int64) {
	b.fence.mu.Lock()
	defer b.fence.mu.Unlock()
	if b.fence.mu.asked == asked && !b.fence.mu.going {
		b.setFence(0)
	}
}

// stopTimer makes what was asked for before count no more. The lock is held.
func (f *fence) stopTimer() {
	f.mu.asked++
	f.mu.until = time.Time{}
	if f.mu.lift != nil {
		f.mu.lift.Stop()
		f.mu.lift = nil
	}
}

// giveUp makes the master take no messages any more, since rival has taken its place, durably.
func (b *Broker) giveUp(rival roleRival) {
	f := &b.fence
	f.mu.Lock()
	f.mu.rival, f.mu.text = &rival, rival.Text()
	f.stopTimer()
	b.store.Fence(errors.New(f.mu.text))
	f.mu.Unlock()
	if err := b.role.Change(func(s *roleState) error {
		s.GiveUp(rival)
		return nil
	}); err != nil {
		b.log.Error("that this master has been replaced could not be saved", "error", err)
	}
	b.log.Error("this broker takes no messages any more: another master has taken its place", "master", rival.Addr, "epoch", rival.Epoch)
	b.registrar.SetServers(nil)
}

// fenceAtStart looks, before anything is served, whether this master has been replaced while it was away.
func (b *Broker) fenceAtStart(ctx context.Context) error {
	if b.slave != nil {
		return nil
	}
	if was := b.role.Get().Fenced; was != nil {
		b.giveUp(*was)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, rivalTimeout)
	defer cancel()
	b.lookForRival(ctx)
	return nil
}

// watchRivals looks for another master from time to time until ctx ends, and soon after each registration.
func (b *Broker) watchRivals(ctx context.Context) {
	t := time.NewTicker(rivalEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		case <-b.taken:
		}
		if b.fence.given() {
			return
		}
		b.lookForRival(ctx)
	}
}

// lookForRival asks the name servers who the master of the group is, and gives up where that is another broker with a
// higher epoch. The epoch is what that broker has registered with, so that it need not answer itself.
func (b *Broker) lookForRival(ctx context.Context) {
	list, err := b.nameServerList(ctx)
	if err != nil {
		return // told by those who register
	}
	var wg sync.WaitGroup
	found := make([]*roleRival, len(list))
	for i, addr := range list {
		wg.Go(func() {
			var err error
			if found[i], err = b.rivalAt(ctx, addr); err != nil && ctx.Err() == nil {
				b.quiet.Warn("a name server could not be asked who the master of this group is", "addr", addr, "error", err)
			}
		})
	}
	wg.Wait()
	own := b.role.Get()
	if r := own.Replaced(found); r != nil {
		b.giveUp(*r)
	}
}

// rivalAt is the other master that a name server knows, nil where there is none.
func (b *Broker) rivalAt(ctx context.Context, nameServer string) (*roleRival, error) {
	who := b.identity()
	members, err := b.groupMembers(ctx, nameServer)
	if err != nil {
		return nil, err
	}
	other := members[0]
	if other == "" || other == who.addr {
		return nil, nil
	}
	req := remoting.NewRequest(remoting.ReqQueryDataVersion, &remoting.QueryDataVersionHeader{BrokerName: who.name, BrokerAddr: other, ClusterName: who.cluster})
	if req.Body, err = fastjson.Marshal(&remoting.DataVersion{}); err != nil {
		return nil, err
	}
	body, err := b.askAt(ctx, nameServer, req)
	if err != nil || len(body) == 0 {
		return nil, err
	}
	var version remoting.DataVersion
	if err := fastjson.Unmarshal(body, &version); err != nil {
		return nil, fmt.Errorf("cannot read the data version of %s: %w", other, err)
	}
	return &roleRival{Epoch: version.StateVersion, Addr: other}, nil
}

// groupMembers are the replicas of this broker's group that a name server knows, by id.
func (b *Broker) groupMembers(ctx context.Context, nameServer string) (map[int64]string, error) {
	who := b.identity()
	body, err := b.askAt(ctx, nameServer, remoting.NewRequest(remoting.ReqGetBrokerMemberGroup, &remoting.GetBrokerMemberGroupHeader{ClusterName: who.cluster, BrokerName: who.name}))
	if err != nil {
		return nil, err
	}
	var members remoting.GetBrokerMemberGroupBody
	if err := fastjson.Unmarshal(body, &members); err != nil {
		return nil, fmt.Errorf("cannot read the members of the group: %w", err)
	}
	if members.BrokerMemberGroup == nil {
		return nil, nil
	}
	return members.BrokerMemberGroup.BrokerAddrs, nil
}

// askAt sends a request to one server and returns the body of the answer.
func (b *Broker) askAt(ctx context.Context, addr string, req *remoting.Command) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, syncEvery)
	defer cancel()
	resp, err := b.client.Call(ctx, addr, req)
	if err != nil {
		return nil, err
	}
	if resp.Code != remoting.RespSuccess {
		return nil, &remoting.ResponseError{Code: resp.Code, Remark: resp.Remark, Request: remoting.RequestName(req.Code), Addr: addr}
	}
	return resp.Body, nil
}
