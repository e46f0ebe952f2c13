package broker

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store"
	"mqx/store/ha"
)

// replication is the broker's part in its group: a master sends its log to the slaves that come and tells puts when
// they have it.
type replication struct {
	b      *Broker
	master *ha.Master
	file   string // of what is remembered

	saving    sync.Mutex       // the file, and what is below
	state     replicationState // as it is in the file, or would be
	following int              // slaves
}

// haRetry is the time to the next try to listen for slaves.
const haRetry = 10 * time.Second

// openReplication makes the master; it listens with Run.
func (b *Broker) openReplication(st *store.Store) error {
	cfg := b.cfg()
	mc := ha.MasterConfig{
		Log: st, Logger: b.log, BatchBytes: cfg.HABatchBytes, Heartbeat: cfg.HAHeartbeat, Silence: cfg.HASilence,
		Together: b.flushed.Do, Gate: st, Record: b.ha.record, Copied: b.ha.noteCopy, Async: func(p ha.Peer) bool { return b.cfg().isAsync(p) },
	}
	if cfg.HAFlowControl {
		mc.BytesPerSecond = cfg.HABytesPerSecond
	}
	if !cfg.isSlave() {
		mc.Rules = cfg.rules()
		mc.Held, mc.Shown = cfg.held(), st.LogShown()
	}
	var err error
	if mc.Recorded, mc.Base, err = b.ha.recall(mc.Rules, st.LogEnd()); err != nil {
		return err
	}
	b.ha.master = ha.NewMaster(mc)
	b.ha.master.SetRules(mc.Rules, b.role.Epoch())
	return nil
}

// follow puts the rules of a changed configuration in force.
func (r *replication) follow(cfg *Config) {
	if cfg.isSlave() {
		return
	}
	rules := cfg.rules()
	was := r.master.Status()
	r.master.SetRules(rules, r.b.role.Epoch())
	if was.Rules.Level == rules.Level && was.Rules.Copies == rules.Copies {
		return
	}
	if err := r.ruled(rules); err != nil {
		r.b.log.Error("the new level of replication is in force; what it was acknowledged by is not remembered", "error", err)
	}
}

// Waits reports whether puts wait for slaves (store.Replicas).
func (r *replication) Waits() bool { return r.master.Waits() }

// Admit tells why nothing may be put that waits for slaves (store.Replicas).
func (r *replication) Admit() error { return r.master.Admit() }

// Wait calls done once the slaves that must have the log up to end have it, or have not in time (store.Replicas).
func (r *replication) Wait(end int64, done func(ok bool)) {
	r.master.Wait(end, r.b.cfg().SlaveTimeout, done)
}

// listen opens the replication port. A broker whose messages need no copies starts without it, and says so.
func (r *replication) listen(ctx context.Context) (net.Listener, error) {
	cfg := r.b.cfg()
	port := cfg.HAListenPort
	if cfg.ListenPort == 0 {
		port = 0
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(cfg.BindAddress, strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("cannot listen for slaves (haListenPort): %w", err)
	}
	if cfg.ListenPort == 0 {
		r.b.setHAPort(l.Addr().(*net.TCPAddr).Port)
	}
	return l, nil
}

// serve accepts slaves until ctx ends; where the port was taken at the start, it is tried again.
func (r *replication) serve(ctx context.Context, l net.Listener) {
	for l == nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(haRetry):
		}
		l, _ = r.listen(ctx) // the start has said why not
	}
	if err := r.master.Serve(ctx, l); err != nil {
		r.b.log.Error("slaves are served no longer", "error", err)
	}
}

// startReplication opens the port and serves it on wg.
func (b *Broker) startReplication(ctx, work context.Context, wg *sync.WaitGroup) error {
	if b.slave != nil {
		return nil // slaves of slaves are not served
	}
	l, err := b.ha.listen(ctx)
	if err != nil {
		if rules := b.cfg().rules(); rules.Waits() {
			return err
		}
		b.log.Warn("no slave can follow this broker", "error", err, "retry", haRetry)
	}
	wg.Go(func() { b.ha.serve(work, l) })
	return nil
}

// handleHAStatus serves GET_BROKER_HA_STATUS.
func (b *Broker) handleHAStatus(r *server.Request) {
	info := &remoting.HARuntimeInfo{ClientRuntimeInfo: &remoting.HAClientRuntimeInfo{}, ConnectionInfo: []remoting.HAConnectionRuntimeInfo{}}
	if b.slave != nil {
		st := b.slave.follower.State()
		info.ClientRuntimeInfo = &remoting.HAClientRuntimeInfo{MasterAddr: st.Master, MaxOffset: b.store.LogEnd(), TransferredByteInSecond: st.BytesPerSecond}
		if !st.Told.IsZero() {
			info.ClientRuntimeInfo.LastWriteTimestamp = st.Told.UnixMilli()
		}
		if !st.Heard.IsZero() {
			info.ClientRuntimeInfo.LastReadTimestamp = st.Heard.UnixMilli()
		}
	} else {
		end, rules := b.store.LogEnd(), b.cfg().rules()
		info.Master, info.MasterCommitLogMaxOffset = true, end
		for _, c := range b.ha.master.Conns() {
			gap := max(0, end-c.End)
			in := c.InSync || !rules.Waits() && gap <= rules.MaxGap // as Apache, where nobody waits
			if in {
				info.InSyncSlaveNums++
			}
			info.ConnectionInfo = append(info.ConnectionInfo, remoting.HAConnectionRuntimeInfo{
				Addr: c.Peer, SlaveAckOffset: c.End, Diff: gap, InSync: in, TransferFromWhere: c.Next, TransferredByteInSecond: c.BytesPerSecond,
			})
		}
	}
	info.Mqx = b.haInfo()
	p := newReply(remoting.RespSuccess, "")
	b.body(p, info)
	p.to(r)
}
