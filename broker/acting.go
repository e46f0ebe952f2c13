package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"mqx/internal/fastjson"
	"mqx/remoting"
	"mqx/remoting/server"
)

// Acting masters (enableSlaveActingMaster): while a group has no master, the slave with the smallest id stands in its place in the
// routes, for reads. Name servers do that, told by registrations; here are the signs of life that they need, the view of the
// group, and the way back of a master, which is in no route before its slaves follow it and it has what was committed to them.
//
// A slave takes no messages, so it delivers none that are delayed, checks no transactions and revives no pops: those wait for the
// master. Apache's acting slaves send them to another group where enableRemoteEscape says so, which stops the start here.

const (
	// preOnlineSlave bounds the wait for one slave to follow a master that comes back, preOnlineMost that for all of them.
	preOnlineSlave = 10 * time.Second
	preOnlineMost  = 30 * time.Second
	preOnlineRetry = time.Second
)

// acting is what a broker knows of its group.
type acting struct {
	told chan minTold // by a name server
	mu   struct {
		sync.Mutex
		known bool
		min   int64 // the smallest id that is alive
		addr  string
	}
}

// minTold is the smallest id of the group, as a name server has it.
type minTold struct {
	id         int64
	addr, haAt string
}

// isActing says that this broker stands in for its master.
func (b *Broker) isActing() bool {
	a := &b.acting
	a.mu.Lock()
	defer a.mu.Unlock()
	return b.slave != nil && b.cfg().EnableSlaveActingMaster && a.mu.known && a.mu.min == b.cfg().BrokerID
}

// learnMin takes over which id of the group is the smallest, and reports whether that is news.
func (a *acting) learnMin(n minTold) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	news := !a.mu.known || a.mu.min != n.id || a.mu.addr != n.addr
	a.mu.known, a.mu.min, a.mu.addr = true, n.id, n.addr
	return news
}

// runActing beats at the name servers and looks at the group until ctx ends.
func (b *Broker) runActing(ctx context.Context) {
	cfg := b.cfg()
	beat, look := time.NewTicker(cfg.BrokerHeartbeat), time.NewTicker(cfg.SyncMemberGroup)
	defer beat.Stop()
	defer look.Stop()
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
		case <-beat.C:
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
		case <-look.C:
			if members := b.members(ctx); len(members) > 0 {
				least := slices.Min(slices.Collect(maps.Keys(members)))
				b.minChanged(ctx, minTold{id: least, addr: members[least]})
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

// members are the replicas that the first name server that answers knows, by id; nil where none does.
func (b *Broker) members(ctx context.Context) map[int64]string {
	for addr := range b.registrar.Servers() {
		if m, err := b.groupMembers(ctx, addr); err == nil && len(m) > 0 {
			return m
		}
	}
	return nil
}

// minChanged does what a slave does when the smallest id of its group changes.
func (b *Broker) minChanged(ctx context.Context, n minTold) {
	if b.slave == nil || !b.acting.learnMin(n) {
		return
	}
	b.log.Info("the smallest id of the group has changed", "id", n.id, "addr", n.addr, "acting", b.isActing())
	if n.id != 0 || n.addr == "" {
		return
	}
	if n.haAt == "" {
		var err error
		if n.haAt, err = b.askHAAddr(ctx, n.addr); err != nil {
			b.log.Warn("the master did not tell its replication port", "master", n.addr, "error", err)
			return
		}
	}
	b.slave.learn(n.haAt, n.addr)
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
		b.slave.learn(h.MasterHAAddress, h.MasterAddress)
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

// preOnline keeps a broker out of the routes, as Apache's with enableSlaveActingMaster and totalReplicas above 1: a master until
// its slaves follow it and it has the offsets that were committed to them, never backwards; a slave until it follows. A replica
// that cannot holds up the others for preOnlineMost at most, and the log says so.
func (b *Broker) preOnline(ctx context.Context) {
	cfg := b.cfg()
	if !cfg.EnableSlaveActingMaster || cfg.SkipPreOnline || cfg.TotalReplicas < 2 || b.fence.given() {
		return
	}
	list, err := b.nameServerList(ctx)
	if err != nil || len(list) == 0 {
		return // told by those who register
	}
	ctx, cancel := context.WithTimeout(ctx, preOnlineMost)
	defer cancel()
	ready := map[string]bool{}
	for {
		err := b.prepareOnline(ctx, list, ready)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			b.log.Error("this broker goes into the routes although its group is not ready for it", "error", err, "waited", preOnlineMost)
			return
		}
		b.log.Info("this broker is not in the routes yet", "why", err)
		select {
		case <-ctx.Done():
		case <-time.After(preOnlineRetry):
		}
	}
}

// prepareOnline is one try of preOnline; slaves in ready are done with.
func (b *Broker) prepareOnline(ctx context.Context, nameServers []string, ready map[string]bool) error {
	var members map[int64]string
	var err error
	for _, ns := range nameServers {
		if members, err = b.groupMembers(ctx, ns); err == nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("cannot ask for the members of the group: %w", err)
	}
	if b.slave != nil {
		return b.slaveOnline(ctx, members[0])
	}
	for _, id := range slices.Sorted(maps.Keys(members)) {
		addr := members[id]
		if id == 0 || addr == b.at().Addr() || ready[addr] {
			continue
		}
		if err := b.slaveBack(ctx, addr); err != nil {
			return fmt.Errorf("slave %s: %w", addr, err)
		}
		ready[addr] = true
	}
	return nil
}

// slaveOnline waits until this slave follows the master, if there is one.
func (b *Broker) slaveOnline(ctx context.Context, master string) error {
	if master == "" || master == b.at().Addr() {
		return nil
	}
	haAddr, err := b.askHAAddr(ctx, master)
	if err != nil {
		return err
	}
	b.slave.learn(haAddr, master)
	return await(ctx, func() bool { p := b.slave.follower.State().Phase; return p == "following" || p.Stopped() })
}

// slaveBack tells a slave that its master is back, waits until it follows, and takes over what was committed to it.
func (b *Broker) slaveBack(ctx context.Context, slave string) error {
	at := b.at()
	if _, err := b.exchangeHA(ctx, slave, &remoting.ExchangeBrokerHAInfoHeader{
		MasterHAAddress: at.haAddr, MasterAddress: at.Addr(), MasterFlushOffset: remoting.Some(b.store.LogFlushed()),
	}); err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(slave)
	if err != nil {
		return err
	}
	if err := await(ctx, func() bool {
		for _, c := range b.ha.master.Conns() {
			if h, _, err := net.SplitHostPort(c.Peer); err == nil && h == host {
				return true
			}
		}
		return false
	}); err != nil {
		return err
	}
	if b.takeBackFrom(ctx, slave) {
		return nil
	}
	body, err := b.askAt(ctx, slave, remoting.NewRequest(remoting.ReqGetAllConsumerOffset, nil)) // a slave of Apache
	if err != nil {
		return err
	}
	var told remoting.ConsumerOffsets
	if err := fastjson.Unmarshal(body, &told); err != nil {
		return err
	}
	b.mergeBack(slave, &told)
	return nil
}

var errNotFollowing = errors.New("it does not follow")

// await waits until is, for preOnlineSlave at most.
func await(ctx context.Context, is func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, preOnlineSlave)
	defer cancel()
	t := time.NewTicker(20 * time.Millisecond)
	defer t.Stop()
	for !is() {
		select {
		case <-ctx.Done():
			return errNotFollowing
		case <-t.C:
		}
	}
	return nil
}
