package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"mqx/remoting"
	"mqx/remoting/server"
)

// Acting masters (enableSlaveActingMaster): while a group has no master, the slave with the smallest id stands in its place in the
// routes, for reads. Name servers do that, told by registrations; here are the signs of life that they need, the view of the
// group, and the way back of a master, which is in no route before its slaves follow it and it has what was committed to them.
//
// A slave takes no messages, so it delivers none that are delayed, checks no transactions and revives no pops: those wait for the
// master. Apache's acting slaves send them to another group where enableRemoteEscape says so, which stops the start here.

// acting is what a slave knows of its group.
type acting struct {
	told chan minTold // by a name server
	last minTold      // what it did something about last; owned by watchGroup
}

// minTold is the smallest id of the group, as a name server has it.
type minTold struct {
	id         int64
	addr, haAt string
}

// runActing beats at the name servers, and of a slave looks at the group, until ctx ends. Neither waits for the other.
func (b *Broker) runActing(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { b.beat(ctx) })
	if b.slave != nil {
		b.watchGroup(ctx)
	}
}

// beat sends signs of life until ctx ends.
func (b *Broker) beat(ctx context.Context) {
	cfg := b.cfg()
	t := time.NewTicker(cfg.BrokerHeartbeat)
	defer t.Stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	under := map[string]bool{} // heartbeats on their way; a dead name server holds up nobody
	ended := make(chan string, 64)
	for {
		select {
		case <-ctx.Done():
			return
		case addr := <-ended:
			delete(under, addr)
		case <-t.C:
			for addr := range b.registrar.Servers() {
				if under[addr] || len(under) >= cap(ended) {
					continue
				}
				under[addr] = true
				wg.Go(func() {
					b.beatAt(ctx, addr, cfg.HeartbeatTimeout)
					ended <- addr
				})
			}
		}
	}
}

// watchGroup looks, until ctx ends, which id of the group is the smallest. A look that a name server holds up holds up nothing of
// what the others tell.
func (b *Broker) watchGroup(ctx context.Context) {
	t := time.NewTicker(b.cfg().SyncMemberGroup)
	defer t.Stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	looking, found := false, make(chan minTold, 1)
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if looking {
				continue
			}
			looking = true
			wg.Go(func() { found <- b.lookForMin(ctx) })
		case n := <-found:
			if looking = false; n.addr != "" {
				b.minChanged(ctx, n)
			}
		case n := <-b.acting.told:
			b.minChanged(ctx, n)
		}
	}
}

// beatAt sends one sign of life.
func (b *Broker) beatAt(ctx context.Context, nameServer string, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	who := b.identity()
	req := remoting.NewRequest(remoting.ReqBrokerHeartbeat, &remoting.BrokerHeartbeatHeader{
		ClusterName: who.cluster, BrokerName: who.name, BrokerAddr: who.addr, BrokerID: remoting.Some(who.id),
	})
	if _, err := b.client.Call(ctx, nameServer, req); err != nil && ctx.Err() == nil {
		b.quiet.Warn("a name server did not take a sign of life", "addr", nameServer, "error", err)
	}
}

// lookForMin is the smallest id that any name server knows; nothing where none tells.
func (b *Broker) lookForMin(ctx context.Context) minTold {
	members, err := b.members(ctx, slices.Collect(maps.Keys(b.registrar.Servers())))
	if err != nil || len(members) == 0 {
		return minTold{}
	}
	least := slices.Min(slices.Collect(maps.Keys(members)))
	return minTold{id: least, addr: members[least]}
}

// members are the replicas of the group by id, as all name servers that answer know them together: one that has just begun, or
// has lost sight of a broker for a moment, takes none away.
func (b *Broker) members(ctx context.Context, nameServers []string) (map[int64]string, error) {
	var wg sync.WaitGroup
	told, errs := make([]map[int64]string, len(nameServers)), make([]error, len(nameServers))
	for i, addr := range nameServers {
		wg.Go(func() { told[i], errs[i] = b.groupMembers(ctx, addr) })
	}
	wg.Wait()
	all, answered := map[int64]string{}, false
	for i, members := range told {
		answered = answered || errs[i] == nil
		maps.Copy(all, members)
	}
	if !answered {
		return nil, errors.Join(errs...)
	}
	return all, nil
}

// minChanged is what a slave does when the smallest id of its group changes.
func (b *Broker) minChanged(ctx context.Context, n minTold) {
	if was := &b.acting.last; was.id == n.id && was.addr == n.addr {
		return
	}
	b.acting.last = n
	b.log.Info("the smallest id of the group has changed", "id", n.id, "addr", n.addr, "acting", n.id == b.cfg().BrokerID)
	if n.id != 0 || n.addr == "" {
		return
	}
	b.hold.Wake(func(string, string, int32) bool { return true }) // they are answered with the advice to go to the master
	if n.haAt == "" {
		var err error
		if n.haAt, err = b.askHAAddr(ctx, n.addr); err != nil {
			b.log.Warn("the master did not tell its replication port", "master", n.addr, "error", err)
			return
		}
	}
	if err := b.slave.follow(ctx, n.haAt, n.addr); err != nil {
		b.log.Warn("who is told to be the master is not followed", "master", n.addr, "error", err)
	}
}

// askHAAddr asks a master for the address of its replication port.
func (b *Broker) askHAAddr(ctx context.Context, master string) (string, error) {
	h, err := b.exchangeHA(ctx, master, &remoting.ExchangeBrokerHAInfoHeader{})
	if err != nil {
		return "", err
	}
	if h.MasterHAAddress == "" {
		return "", fmt.Errorf("the broker %s is no master", master)
	}
	return h.MasterHAAddress, nil
}

func (b *Broker) exchangeHA(ctx context.Context, addr string, h *remoting.ExchangeBrokerHAInfoHeader) (*remoting.ExchangeBrokerHAInfoResponseHeader, error) {
	ctx, cancel := context.WithTimeout(ctx, syncEvery)
	defer cancel()
	resp, err := b.client.Call(ctx, addr, remoting.NewRequest(remoting.ReqExchangeBrokerHAInfo, h))
	if err != nil {
		return nil, err
	}
	if resp.Code != remoting.RespSuccess {
		return nil, &remoting.ResponseError{Code: resp.Code, Remark: resp.Remark, Request: remoting.RequestName(remoting.ReqExchangeBrokerHAInfo), Addr: addr}
	}
	var out remoting.ExchangeBrokerHAInfoResponseHeader
	return &out, remoting.DecodeHeader(resp.Fields, &out)
}

// handleExchangeHA serves EXCHANGE_BROKER_HA_INFO: a master that comes back tells a slave where it is, a slave asks a master.
func (b *Broker) handleExchangeHA(r *server.Request) {
	var h remoting.ExchangeBrokerHAInfoHeader
	if !header(r, &h) {
		return
	}
	p := newReply(remoting.RespSuccess, "")
	switch {
	case h.MasterHAAddress != "" && b.slave != nil:
		if err := b.slave.follow(b.ctx, h.MasterHAAddress, h.MasterAddress); err != nil {
			r.Reply(remoting.RespSystemError, err.Error())
			return
		}
	case h.MasterHAAddress == "" && b.slave == nil && !b.fence.given():
		at := b.at()
		p.str(keyMasterHA, at.haAddr)
		p.int(keyMasterFlush, b.store.LogFlushed())
		p.str(keyMaster, at.Addr())
	}
	p.to(r)
}

var keyMasterHA, keyMasterFlush, keyMaster = []byte("masterHaAddress"), []byte("masterFlushOffset"), []byte("masterAddress")

// handleMinIDChange serves NOTIFY_MIN_BROKER_ID_CHANGE of a name server.
func (b *Broker) handleMinIDChange(r *server.Request) {
	var h remoting.NotifyMinBrokerIDChangeHeader
	if !header(r, &h) {
		return
	}
	if h.MinBrokerID.OK && b.slave != nil && b.cfg().EnableSlaveActingMaster {
		select {
		case b.acting.told <- minTold{id: h.MinBrokerID.Value, addr: h.MinBrokerAddr, haAt: h.HABrokerAddr}:
		default: // it looks by itself within a second
		}
	}
	r.Reply(remoting.RespSuccess, "")
}
