package ha_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mqx/internal/ballot"
	"mqx/internal/storecheck"
	"mqx/internal/vfs"
	"mqx/store/ha"
)

// The long form of TestSimulation:
//
//	MQX_HASIM_SEEDS=100000 go test ./store/ha -run TestSimulation -timeout 24h -v
//
// and one seed again, with what the brokers log:
//
//	MQX_HASIM_SEED=1234 go test ./store/ha -run TestSimulation -v
const (
	simSeedsEnv = "MQX_HASIM_SEEDS"
	simFirstEnv = "MQX_HASIM_FIRST" // the first of the seeds, 0 unless given
	simSeedEnv  = "MQX_HASIM_SEED"
	simSeeds    = 2000
)

func simEnv(t *testing.T, name string, otherwise uint64) (n uint64, given bool) {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n, true
}

// A group of a master and two slaves on disks, a network and a clock of the test's own, under kills, power cuts, cut and slow
// links, slow and full disks, and changes of the master: docs/replication.md says what must hold.
func TestSimulation(t *testing.T) {
	if seed, ok := simEnv(t, simSeedEnv, 0); ok {
		total := simSeed(t, seed, slog.New(slog.NewTextHandler(t.Output(), nil)))
		t.Logf("%+v", total)
		return
	}
	seeds, given := simEnv(t, simSeedsEnv, simSeeds)
	first, _ := simEnv(t, simFirstEnv, 0)
	if !given && (ha.Raced || testing.Short()) {
		seeds = simSeeds / 40
	}
	total := simTotals{}
	for seed := first; seed < first+seeds; seed++ {
		total.add(simSeed(t, seed, slog.New(slog.DiscardHandler)))
	}
	t.Logf("seeds %d to %d: %+v", first, first+seeds-1, total)
}

func simSeed(t *testing.T, seed uint64, logger *slog.Logger) (total simTotals) {
	t.Helper()
	// Goroutines in the order of the runtime's queue, one at a time: so a seed is the same run again, nearly always.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	failed := t.Failed()
	defer func() {
		if t.Failed() && !failed { // and synctest.Test may have ended the test
			t.Logf("seed %d failed: %s=%d runs it again", seed, simSeedEnv, seed)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		w := newSimWorld(t, seed, logger)
		w.live()
		total = w.total
	})
	return total
}

// live is the life of the group.
func (w *simWorld) live() {
	w.total.Seeds = 1
	w.logger.Info("world", "rules", w.rules, "flush", w.flush, "apache", w.apache, "hello", w.hello)
	for _, n := range w.nodes {
		n.start(0)
		w.pause(1_234_567 * time.Nanosecond)
	}
	var clients sync.WaitGroup
	for range 1 + w.r.IntN(2) {
		r := rand.New(rand.NewPCG(w.r.Uint64(), 1))
		clients.Go(func() { w.produce(r) })
	}
	r := rand.New(rand.NewPCG(w.r.Uint64(), 2))
	clients.Go(func() { w.read(r) })
	for range 6 + w.r.IntN(12) {
		w.pause(time.Duration(1 + w.r.ExpFloat64()*float64(700*time.Millisecond)))
		w.event()
	}
	w.calm()
	w.pause(2 * time.Second) // with all replicas
	close(w.quit)
	clients.Wait()
	w.settle()
	w.check()
}

// pause lets time pass; who dies meanwhile is cleared up behind.
func (w *simWorld) pause(d time.Duration) {
	end := time.After(d)
	for {
		select {
		case <-end:
			return
		case <-w.died:
			w.reap()
		}
	}
}

func (w *simWorld) reap() {
	for _, n := range w.nodes {
		if n.run != nil && n.run.off() {
			n.reap()
			w.logger.Info("a node is down", "node", n.id)
		}
	}
}

// event is one thing that happens.
func (w *simWorld) event() {
	w.total.Events++
	n := w.nodes[w.r.IntN(simNodes)]
	if m := w.nodes[w.known(-1)]; m.run == nil && w.r.IntN(3) == 0 {
		w.promote()
		return
	}
	switch w.r.IntN(16) {
	case 0, 1: // dies in the middle of some operation
		if n.run != nil {
			n.run.doom(1+w.r.IntN(60), w.r.IntN(2) == 0, w.r.Uint64())
		}
	case 2: // stops in order
		if n.run != nil {
			n.end()
		}
	case 3, 4, 5, 6: // somebody comes back
		w.comeBack()
	case 7:
		w.total.Partitions++
		a, b := w.r.IntN(simNodes), w.r.IntN(simNodes)
		w.net.block(a, b, true)
		if w.r.IntN(2) == 0 {
			w.net.block(b, a, true)
		}
	case 8:
		w.net.heal()
	case 9:
		w.net.mu.Lock()
		w.net.mu.cutting, w.net.mu.delay = w.r.IntN(2) == 0, time.Duration(1+w.r.IntN(200))*time.Millisecond
		w.net.mu.Unlock()
	case 10:
		w.total.SlowDisks++
		w.setSlow(n.id, time.Duration(w.r.IntN(300))*time.Millisecond)
	case 11:
		w.setSlow(n.id, 0)
		n.disk.SetCapacity(0)
	case 12:
		w.total.FullDisks++
		room := int64(w.r.IntN(96 << 10))
		if u, err := n.disk.Usage(simRoot); err == nil {
			n.disk.SetCapacity(u.Total - u.Free + room)
		}
	case 13:
		w.operate()
	case 14, 15:
		if m := w.nodes[w.known(-1)]; m.run == nil {
			w.promote()
		} else if w.r.IntN(3) == 0 {
			w.change()
		}
	}
	w.reap()
}

// comeBack starts a node that is down.
func (w *simWorld) comeBack() {
	for _, n := range w.nodes {
		if n.run == nil {
			doom := 0
			if w.r.IntN(4) == 0 {
				doom = 1 + w.r.IntN(120)
			}
			w.begin(n, doom)
			return
		}
	}
}

// begin starts a node; a master must have what it had. A master that has been replaced is a slave from then on: it finds that
// out before it serves, and the operator demotes it.
func (w *simWorld) begin(n *simNode, doom int) bool {
	if n.master && n.epoch < w.epoch {
		n.master = false
	}
	ok := n.start(doom)
	if !ok {
		w.total.InRecovery++
		return false
	}
	if n.master {
		only := [simNodes]bool{}
		only[n.id] = true
		w.takeOver(n, only)
		w.setMaster(n.id)
	}
	return true
}

// operate is what an operator does: whoever has parted is mended.
func (w *simWorld) operate() {
	for _, n := range w.nodes {
		if n.run == nil || n.run.follower == nil {
			continue
		}
		if n.run.follower.State().Phase.Stopped() {
			w.resync(n)
		}
	}
}

// promote makes a slave the master, whose master is down: the one of those that run whose log is the newest. It does nothing
// where the operator cannot reach both slaves, most of the time.
func (w *simWorld) promote() {
	var best *simNode
	var candidates [simNodes]bool
	up := 0
	standing := func(n *simNode) ballot.Standing { // as a broker tells it
		end := n.run.store.LogEnd()
		epoch := w.lastEpoch(n, end)
		s := ballot.Standing{Epoch: &epoch, End: end}
		if parted := (*ha.PartedError)(nil); errors.As(n.run.follower.State().Err, &parted) && parted.At > 0 {
			s.Parted = &parted.At
		}
		return s
	}
	for _, n := range w.nodes {
		if n.run == nil || n.run.follower == nil || n.run.off() {
			continue
		}
		candidates[n.id] = true
		up++
		if best == nil || standing(n).Before(standing(best)) {
			best = n
		}
	}
	if up == 0 || up < simNodes-1 && w.r.IntN(4) > 0 {
		return
	}
	w.total.Promotions++
	w.logger.Info("promote", "node", best.id, "of", candidates)
	if best.run.store.Flush() == nil { // as a broker does, before it takes the role
		w.crown(best, candidates)
	}
}

// crown makes a node the master, with an epoch above all others.
func (w *simWorld) crown(n *simNode, candidates [simNodes]bool) {
	n.end()
	w.epoch++
	n.master, n.epoch = true, w.epoch
	if err := w.role(n, func(s *ha.RoleState) error { return s.Promote(w.epoch) }); err != nil {
		w.t.Errorf("node %d cannot be promoted: %v", n.id, err)
	}
	w.setMaster(n.id)
	if !n.start(0) {
		return
	}
	w.takeOver(n, candidates)
}

// takeOver is the start of a master: it must have what its group must not lose.
func (w *simWorld) takeOver(n *simNode, candidates [simNodes]bool) {
	end := n.run.began
	_ = w.role(n, func(s *ha.RoleState) error { s.BeginEpoch(end); return nil })
	w.authority(n, candidates)
}

// change makes a slave the master in place of one that runs, as mqx admin ha promote does: nothing may be lost.
func (w *simWorld) change() {
	old := w.nodes[w.known(-1)]
	n := w.nodes[w.r.IntN(simNodes)]
	if n == old || n.run == nil || n.run.follower == nil || old.run.store == nil || n.run.follower.State().Phase != ha.PhaseFollowing {
		return
	}
	old.run.store.Fence(errSimFenced)
	end := old.run.store.LogEnd()
	for range 30 {
		w.pause(100 * time.Millisecond)
		if old.run == nil || n.run == nil {
			return
		}
		if n.run.store.LogEnd() >= end {
			break
		}
	}
	if n.run.store.LogEnd() < end || n.run.follower.State().Phase != ha.PhaseFollowing {
		old.run.store.Fence(nil)
		return
	}
	w.total.Switches++
	w.logger.Info("change", "from", old.id, "to", n.id)
	if n.run.store.Flush() != nil {
		old.run.store.Fence(nil)
		return
	}
	var all [simNodes]bool
	all[old.id], all[n.id] = true, true
	w.crown(n, all)
	if old.run != nil {
		old.end()
		w.begin(old, 0)
	}
}

var errSimFenced = errors.New("the group gets another master")

// resync cuts the log of a slave to what its master has of it, as mqx admin ha resync does.
func (w *simWorld) resync(n *simNode) {
	m := w.known(n.id)
	if m < 0 {
		return
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
	defer cancel()
	low, high, err := w.ask(ctx, n.id)
	if err != nil {
		return
	}
	dial := func(ctx context.Context) (net.Conn, error) { return w.net.dial(ctx, n.id, m) }
	at, err := int64(0), ha.ErrNothingCommon
	if n.run.store.LogEnd() >= low {
		at, err = ha.CommonPointBy(ctx, dial, time.Second, n.run.store, low, high)
	}
	switch {
	case errors.Is(err, ha.ErrNothingCommon):
		w.total.Wipes++
		n.wipe, at = true, 0
	case err != nil:
		w.logger.Info("cannot compare", "node", n.id, "err", err)
		return
	case at >= n.run.store.LogEnd():
		n.run.follower.Resume()
		return
	default:
		n.pending = at
	}
	w.total.Resyncs++
	w.logger.Info("resync", "node", n.id, "to", at, "end", n.run.store.LogEnd(), "wipe", n.wipe)
	n.cuts = append(n.cuts, simLoss{time.Now(), at})
	n.end()
	_ = w.role(n, func(s *ha.RoleState) error {
		s.Pending = &ha.RolePending{To: at}
		s.Cut()
		return nil
	})
	w.begin(n, 0)
}

// calm ends all faults and brings everybody up.
func (w *simWorld) calm() {
	w.net.heal()
	for _, n := range w.nodes {
		w.setSlow(n.id, 0)
		n.disk.SetCapacity(0)
	}
	for range 20 {
		up := true
		for _, n := range w.nodes {
			if n.run != nil {
				n.run.doom(0, false, 0)
			}
		}
		w.reap()
		for _, n := range w.nodes {
			if n.run == nil {
				up = w.begin(n, 0) && up
			}
		}
		if up {
			return
		}
	}
}

// settle waits until all have the same.
func (w *simWorld) settle() {
	for range 600 {
		w.pause(100 * time.Millisecond)
		w.operate()
		if w.even() {
			return
		}
	}
	for _, n := range w.nodes {
		if n.run == nil {
			w.errorf("node %d is down at the end", n.id)
			continue
		}
		st := "master"
		if f := n.run.follower; f != nil {
			s := f.State()
			st = string(s.Phase)
			if s.Err != nil {
				st += ": " + s.Err.Error()
			}
		}
		w.errorf("the group does not come to rest: node %d (%s) has the log from %d to %d, dispatched to %d", n.id, st, n.run.store.LogMin(), n.run.store.LogEnd(), n.run.store.Dispatched())
	}
}

func (w *simWorld) even() bool {
	m := w.nodes[w.known(-1)]
	if m.run == nil {
		return false
	}
	end := m.run.store.LogEnd()
	for _, n := range w.nodes {
		if n.run == nil || n.run.store.LogEnd() != end || n.run.store.Dispatched() != end {
			return false
		}
		if f := n.run.follower; f != nil && f.State().Phase != ha.PhaseFollowing {
			return false
		}
	}
	return true
}

// check stops everybody and compares everything.
func (w *simWorld) check() {
	master := w.known(-1)
	if r := w.nodes[master].run; r != nil {
		w.total.Intervals = len(r.master.Status().Intervals)
	}
	for _, n := range w.nodes { // slaves hear of their master's end or not: that is no matter
		n.end()
	}
	var logs [simNodes]*storecheck.Log
	for _, n := range w.nodes {
		journal := w.j
		got, errs := storecheck.CheckStopped(n.disk, simRoot, storecheck.Options{Slots: simSlots, Journal: journal})
		for _, err := range errs {
			w.errorf("node %d (master %v): %v", n.id, n.id == master, err)
		}
		if got == nil {
			return
		}
		logs[n.id] = got.Log
	}
	w.total.Records = len(logs[master].Records)
	for _, n := range w.nodes {
		if n.id != master {
			w.sameLog(w.nodes[master].disk, n.disk, logs[master], logs[n.id], n.id)
		}
	}
	w.net.mu.Lock()
	w.total.ResetConns = w.net.mu.cuts
	w.net.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total.Sent, _ = w.j.Counts()
	w.total.Acked, w.total.Refused, w.total.NotInTime, w.total.Seen = w.mu.acked, w.mu.refused, w.mu.timeout, w.mu.seen
}

// sameLog compares the bytes of two logs where both have them (C8).
func (w *simWorld) sameLog(a, b *vfs.Mem, la, lb *storecheck.Log, id int) {
	if la.End != lb.End {
		w.errorf("C8: the log of the master ends at %d, that of node %d at %d", la.End, id, lb.End)
	}
	read := func(m *vfs.Mem, l *storecheck.Log, from, to int64) []byte {
		var out []byte
		for at := from - from%l.FileSize; at < to; at += l.FileSize {
			f, err := vfs.ReadFile(m, simRoot+"/commitlog/"+simFileName(at))
			if err != nil {
				w.errorf("C8: %v", err)
				return nil
			}
			out = append(out, f[max(0, from-at):min(l.FileSize, to-at)]...)
		}
		return out
	}
	from, to := max(la.Min, lb.Min), min(la.End, lb.End)
	if from >= to {
		return
	}
	x, y := read(a, la, from, to), read(b, lb, from, to)
	for _, gap := range la.Rot { // what the power took from the master, and not from its slaves
		for at := max(gap.From, from); at < min(gap.To, to); at++ {
			x[at-from], y[at-from] = 0, 0
		}
		w.total.Gaps++
	}
	for _, gap := range lb.Rot {
		if !slices.ContainsFunc(la.Rot, func(g storecheck.Rot) bool { return g.From <= gap.From && gap.To <= g.To }) {
			w.errorf("C8: the log of node %d has a gap from %d to %d", id, gap.From, gap.To)
		}
	}
	if !bytes.Equal(x, y) {
		i := 0
		for i < min(len(x), len(y)) && x[i] == y[i] {
			i++
		}
		w.errorf("C8: the log of node %d differs from that of the master at %d", id, from+int64(i))
	}
}

func simFileName(at int64) string {
	text := strconv.FormatInt(at, 10)
	return "00000000000000000000"[len(text):] + text
}

func (p *simTotals) add(o simTotals) {
	for i, v := range p.fields() {
		*v += *o.fields()[i]
	}
}

func (p *simTotals) fields() []*int {
	return []*int{
		&p.Seeds, &p.Events, &p.Stops, &p.Kills, &p.PowerCuts, &p.InRecovery, &p.Partitions, &p.ResetConns, &p.SlowDisks, &p.FullDisks, &p.Promotions, &p.Switches,
		&p.Resyncs, &p.Wipes, &p.Sent, &p.Acked, &p.Refused, &p.NotInTime, &p.Seen, &p.LostAllowed, &p.Expired, &p.Intervals, &p.Gaps, &p.Unsafe, &p.Records,
	}
}
