package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"mqx/remoting"
	"mqx/store/ha"
)

const (
	// preOnlineSlave bounds the wait for one slave to follow a master that comes back, preOnlineMost that for all of them.
	preOnlineSlave = 10 * time.Second
	preOnlineMost  = 30 * time.Second
	preOnlineRetry = time.Second
)

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
	within, cancel := context.WithTimeout(ctx, preOnlineMost)
	defer cancel()
	ready := map[string]bool{}
	for {
		err := b.prepareOnline(within, list, ready)
		if err == nil || ctx.Err() != nil || b.fence.given() {
			return
		}
		if within.Err() != nil {
			b.log.Error("this broker goes into the routes although its group is not ready for it", "error", err, "waited", preOnlineMost)
			return
		}
		b.log.Info("this broker is not in the routes yet", "why", err)
		sleep(within, preOnlineRetry)
	}
}

// prepareOnline is one try of preOnline; slaves in ready are done with.
func (b *Broker) prepareOnline(ctx context.Context, nameServers []string, ready map[string]bool) error {
	members, err := b.members(ctx, nameServers)
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
		if err := b.slaveBack(ctx, id, addr); err != nil {
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
	if err := b.slave.follow(ctx, haAddr, master); err != nil {
		return err
	}
	return await(ctx, func() bool { p := b.slave.follower.State().Phase; return p == "following" || p.Stopped() })
}

// slaveBack tells a slave that its master is back, waits until it follows, and takes over what was committed to it.
func (b *Broker) slaveBack(ctx context.Context, id int64, slave string) error {
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
	if err := await(ctx, func() bool { return follows(b.ha.master.Replicas(), id, host) }); err != nil {
		return err
	}
	mqx, err := b.takeBackFrom(ctx, slave)
	if err != nil || mqx {
		return err
	}
	return b.takeBackTable(ctx, slave)
}

// follows reports whether the slave with an id, registered at a host, is one of those that follow. One that has not told its id
// is known by its host only: a slave of Apache that connects from another address than it registers is not seen.
func follows(replicas []ha.Replica, id int64, host string) bool {
	return slices.ContainsFunc(replicas, func(r ha.Replica) bool {
		if r.Known {
			return r.ID == strconv.FormatInt(id, 10)
		}
		return r.Host == host
	})
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
