package ha_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"sync"
	"syscall"
	"time"

	"mqx/internal/vfs"
	"mqx/store"
	"mqx/store/ha"
)

const (
	simNodes   = 3
	simRoot    = "/data/store"
	simSlots   = 32
	simSilence = 2 * time.Second
	simTimeout = 400 * time.Millisecond // slaveTimeout
)

var errSimOff = errors.New("the node is off")

// simNode is a broker of the group: a disk, which outlives its processes, and what the configuration says.
type simNode struct {
	w    *simWorld
	id   int
	disk *vfs.Mem
	run  *simRun // nil while it is down; the driver's

	// What is durable of its role, beside the store.
	master  bool
	epoch   int64
	role    ha.RoleState // of which the epochs of the log are played
	pending int64        // the log is cut to there before it follows; -1: not
	wipe    bool

	losses []simLoss // of what was not durable
	cuts   []simLoss // by the operator
	floor  int64     // what is before it is durable
}

// simLoss is an event at which a node's log lost what was behind a position.
type simLoss struct {
	at   time.Time
	from int64
}

// simRun is the life of one process.
type simRun struct {
	n        *simNode
	disk     *vfs.Mem
	store    *store.Store
	master   *ha.Master
	follower *ha.Follower
	stop     context.CancelFunc
	stopHA   context.CancelFunc
	wg       sync.WaitGroup
	ha       sync.WaitGroup
	ordered  bool // it was stopped in order
	epoch    int64
	began    int64 // the end of the log at the start
	shown    int64 // of it had been shown before

	mu struct {
		sync.Mutex
		lossAt int  // the operation before which it ends; 0: not now
		power  bool // then the power fails, else the process dies
		chance uint64
		off    bool
		after  *vfs.Mem
		at     time.Time
		from   int64 // what is before it was durable
		store  *store.Store
	}
}

// onOp sees every operation on the disk.
func (r *simRun) onOp(vfs.Op) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.off {
		return errSimOff
	}
	if r.mu.lossAt == 0 {
		return nil
	}
	if r.mu.lossAt--; r.mu.lossAt == 0 {
		r.dieLocked()
		return errSimOff
	}
	return nil
}

// dieLocked ends the process, or takes the power away.
func (r *simRun) dieLocked() {
	r.mu.off, r.mu.at, r.mu.from = true, time.Now(), 0
	if r.mu.store != nil {
		r.mu.from = r.mu.store.LogFlushed()
	}
	if r.mu.power {
		r.mu.after = r.disk.PowerLoss(r.mu.chance)
	} else {
		r.mu.after = r.disk.KillUnsynced()
	}
	r.n.w.net.drop(r.n.id, r.mu.chance%3 == 0)
	simSignal(r.n.w.died)
}

func (r *simRun) die(power bool, chance uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.mu.off {
		r.mu.power, r.mu.chance = power, chance
		r.dieLocked()
	}
}

func (r *simRun) doom(ops int, power bool, chance uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.lossAt, r.mu.power, r.mu.chance = ops, power, chance
}

func (r *simRun) off() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.off
}

// alive calls f unless the process has ended, which it does not do meanwhile.
func (r *simRun) alive(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.mu.off {
		f()
	}
}

// lost notes a loss.
func (w *simWorld) lost(n *simNode, l simLoss) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n.losses = append(n.losses, l)
}

func (n *simNode) config() store.Config {
	cfg := store.DefaultConfig()
	cfg.FS, cfg.RootDir, cfg.Location = n.disk, simRoot, time.UTC
	cfg.FlushDiskType = n.w.flush
	cfg.CommitLogFileBytes, cfg.ConsumeQueueFileBytes = 16<<10, 20*24
	cfg.MaxHashSlotNum, cfg.MaxIndexNum = simSlots, 48
	// Timers of one moment go off in any order: no two are to have the same one.
	cfg.FlushIntervalCommitLogMs, cfg.FlushCommitLogThoroughIntervalMs = 197, 587
	cfg.FlushIntervalConsumeQueueMs, cfg.FlushConsumeQueueThoroughIntervalMs = 307, 907
	cfg.SyncFlushTimeoutMs = 997
	cfg.MaxMessageBytes = 8 << 10
	cfg.FileReservedHours, cfg.DeleteWhen = 72, "23"
	cfg.DiskMaxUsedRatio = 95
	cfg.Logger = n.logger()
	cfg.PhysicalMemoryBytes = 1 << 30
	cfg.Follow, cfg.Gapless, cfg.Held = !n.master, math.MaxInt64, n.master && n.w.rules.Hold && n.w.rules.Waits()
	return cfg
}

func (n *simNode) logger() *slog.Logger { return n.w.logger.With("node", n.id) }

// simReplicas are the slaves of a process that may not have its master yet.
type simReplicas struct{ r *simRun }

func (s simReplicas) Waits() bool  { return s.r.master.Waits() }
func (s simReplicas) Admit() error { return s.r.master.Admit() }
func (s simReplicas) Wait(end int64, done func(bool)) {
	s.r.master.Wait(end, simTimeout, done)
}

// start starts a process on the node's disk. It reports whether that lives.
func (n *simNode) start(doom int) bool {
	w := n.w
	r := &simRun{n: n, disk: n.disk, epoch: n.epoch}
	r.mu.lossAt, r.mu.power, r.mu.chance = doom, w.r.IntN(2) == 0, w.r.Uint64()
	n.disk.Inject(r.onOp)
	n.disk.SetWriteback(w.r.Uint64(), []float64{0, 0.05, 0.5}[w.r.IntN(3)])
	n.run = r
	cfg := n.config()
	if n.master {
		cfg.Replicas = simReplicas{r}
	}
	if n.wipe {
		if err := store.Wipe(cfg, "wiped", true); err != nil {
			return n.failed("wipe the log", err)
		}
		n.wipe = false
	}
	s, err := store.Open(cfg)
	if err != nil {
		return n.failed("open the store", err)
	}
	r.store = s
	n.floor, r.began, r.shown = s.LogEnd(), s.LogEnd(), s.LogShown()
	r.alive(func() { r.mu.store = s })
	if n.pending >= 0 && n.pending < s.LogEnd() {
		if err := s.Truncate(n.pending); err != nil {
			return n.failed("cut the log", err)
		}
	}
	n.pending = -1
	ctx, stop := context.WithCancel(w.t.Context())
	r.stop = stop
	r.wg.Go(func() { _ = s.Run(ctx) })
	hctx, stopHA := context.WithCancel(ctx)
	r.stopHA = stopHA
	w.net.revive(n.id)
	w.setLive(n.id, r)
	if !n.master {
		n.follow(hctx)
		return true
	}
	if err := n.lead(hctx); err != nil {
		return n.failed("lead", err)
	}
	return true
}

// failed ends a start: by the loss that was due, or the test.
func (n *simNode) failed(what string, err error) bool {
	if errors.Is(err, syscall.ENOSPC) {
		n.run.die(false, 1)
	}
	if !n.run.off() {
		n.w.errorf("node %d cannot %s: %v", n.id, what, err)
		n.run.die(false, 1)
	}
	n.reap()
	return false
}

// lead makes the master of a running process.
func (n *simNode) lead(ctx context.Context) error {
	r, w := n.run, n.w
	mc := ha.MasterConfig{
		Log: simLog{r.store, n}, Logger: n.logger(), BatchBytes: 3000, Heartbeat: simSilence / 4, Silence: simSilence, Gate: r.store, Rules: w.rules,
		Record: func(list []ha.Interval) error { return r.save(w.rules, list) },
	}
	var err error
	if mc.Recorded, mc.Base, err = r.recall(w.rules, r.store.LogEnd()); err != nil {
		return err
	}
	mc.Held, mc.Shown = w.rules.Hold && w.rules.Waits(), r.store.LogShown()
	r.master = ha.NewMaster(mc)
	r.master.SetRules(w.rules, n.epoch)
	w.setServing(n.id, r.master)
	l := w.net.listen(n.id)
	r.ha.Go(func() { _ = r.master.Serve(ctx, l) })
	return nil
}

// simState is what a master has durable of its copies, as a broker has it.
type simState struct {
	Level    ha.Level
	Copies   int
	Degraded []ha.Interval
}

const simStateFile = simRoot + "/mqx/replication.json"

func (r *simRun) recall(rules ha.Rules, end int64) ([]ha.Interval, int64, error) {
	var st simState
	b, err := vfs.ReadFile(r.disk, simStateFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if !rules.Waits() {
			return nil, 0, nil
		}
	case err != nil:
		return nil, 0, err
	default:
		if err := json.Unmarshal(b, &st); err != nil {
			return nil, 0, err
		}
	}
	list, changed := ha.Reopened(st.Degraded, end)
	if rules.Waits() && st.Level == rules.Level && st.Copies >= rules.Copies {
		if changed {
			err = r.save(rules, list)
		}
		return list, end, err
	}
	return list, 0, r.save(rules, list)
}

func (r *simRun) save(rules ha.Rules, list []ha.Interval) error {
	b, err := json.Marshal(simState{rules.Level, rules.Copies, list})
	if err == nil {
		err = vfs.MkdirAllDurable(r.disk, simRoot+"/mqx")
	}
	if err == nil {
		err = vfs.WriteFileDurable(r.disk, simStateFile, b)
	}
	return err
}

// simLog is a store with a slow disk.
type simLog struct {
	*store.Store
	n *simNode
}

func (s simLog) wait() {
	if d := s.n.w.slowOf(s.n.id); d > 0 {
		time.Sleep(d)
	}
}

func (s simLog) AppendRaw(at int64, b []byte) error {
	s.wait()
	return s.Store.AppendRaw(at, b)
}

func (s simLog) Flush() error {
	s.wait()
	return s.Store.Flush()
}

func (s simLog) ReadLog(b []byte, off int64) error {
	s.wait()
	return s.Store.ReadLog(b, off)
}

// follow makes the slave of a running process.
func (n *simNode) follow(ctx context.Context) {
	r, w := n.run, n.w
	to := -1
	fc := ha.FollowerConfig{
		Log: simLog{r.store, n}, Logger: n.logger(), Parted: store.IsForeign, Heartbeat: simSilence / 4, Silence: simSilence, Retry: 100 * time.Millisecond,
		Master: func() string {
			if m := w.known(n.id); m >= 0 {
				return fmt.Sprint(m)
			}
			return ""
		},
		Dial: func(ctx context.Context, addr string) (net.Conn, error) {
			if r.off() {
				return nil, errSimOff
			}
			to = int(addr[0] - '0')
			return w.net.dial(ctx, n.id, to)
		},
		Followed: func() error { return w.follows(n, to) },
		Range: func(ctx context.Context) (low, high int64, ok bool, err error) {
			if w.apache {
				return 0, 0, false, nil
			}
			low, high, err = w.ask(ctx, n.id)
			return low, high, err == nil, err
		},
		Blank: func(ctx context.Context) (int64, error) {
			low, high, err := w.ask(ctx, n.id)
			if err != nil || high <= 0 {
				return 0, err
			}
			return max(low, 1), nil
		},
	}
	if w.hello {
		fc.Hello = func(ctx context.Context, local string) (bool, error) {
			m := w.known(n.id)
			if m < 0 || !w.net.reachable(n.id, m) || simSleep(ctx, time.Millisecond) != nil {
				return false, nil //nolint:nilerr // nobody is told, and the slave follows
			}
			if p := w.serving(m); p != nil {
				p.Hello(local, ha.Peer{ID: fmt.Sprint("slave", n.id), Flushed: w.rules.Flushed})
				return w.rules.Flushed, nil
			}
			return false, nil
		}
	}
	r.follower = ha.NewFollower(fc)
	r.ha.Go(func() { r.follower.Run(ctx) })
}

// end stops the process in order; the disk has all of it.
func (n *simNode) end() {
	r := n.run
	if r == nil {
		return
	}
	r.stopHA()
	r.ha.Wait()
	err := r.store.Close()
	r.stop()
	r.wg.Wait()
	if r.off() {
		n.reap()
		return
	}
	if err != nil && !errors.Is(err, syscall.ENOSPC) {
		n.w.errorf("node %d cannot close: %v", n.id, err)
	}
	n.w.net.drop(n.id, false)
	r.ordered = true
	r.die(false, 1)
	n.reap()
}

// reap clears up behind a process that has died, and makes the disk what is left of it.
func (n *simNode) reap() {
	r := n.run
	if r.stop != nil {
		r.stopHA()
		r.ha.Wait()
		_ = r.store.Close()
		r.stop()
		r.wg.Wait()
	} else if r.store != nil {
		_ = r.store.Close()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n.w.setLive(n.id, nil)
	n.w.setServing(n.id, nil)
	n.disk, n.run = r.mu.after, nil
	switch {
	case r.ordered:
		n.w.total.Stops++
	case r.mu.power:
		n.w.total.PowerCuts++
	default:
		n.w.total.Kills++
	}
	if r.mu.store != nil { // else it was lost before the store was open, which had made nothing more durable
		n.floor = r.mu.from
	}
	n.w.lost(n, simLoss{r.mu.at, n.floor})
	n.disk.SetCapacity(0)
}
