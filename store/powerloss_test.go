package store_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mqx/internal/storecheck"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/store"
)

// The long form of TestPowerLoss:
//
//	MQX_POWERLOSS_SEEDS=20000 go test ./store -run TestPowerLoss -timeout 2h -v
//
// and one seed again, with what the store logs:
//
//	MQX_POWERLOSS_SEED=1234 go test ./store -run TestPowerLoss -v
const (
	powerLossSeedsEnv = "MQX_POWERLOSS_SEEDS"
	powerLossFirstEnv = "MQX_POWERLOSS_FIRST" // the first of the seeds, 0 unless given
	powerLossSeedEnv  = "MQX_POWERLOSS_SEED"
	powerLossSeeds    = 100 // the `crash` step of CI takes ten times as many
)

// powerSlots is the number of slots of index files: few, so that chains are long.
const powerSlots = 32

// The flush of the tests: what is appended is durable after both, and some, at the latest.
const (
	powerFlush    = 50 * time.Millisecond
	powerThorough = 400 * time.Millisecond
	// powerPages behind a record make a flush due at the next interval: flushCommitLogLeastPages, and one for where
	// pages begin.
	powerPages = 5
)

func (p *powerTest) config(disk vfs.FS, flush string) store.Config {
	cfg := store.DefaultConfig()
	cfg.FS, cfg.RootDir, cfg.Location = disk, "/data/store", time.UTC
	cfg.FlushDiskType = flush
	cfg.CommitLogFileBytes, cfg.ConsumeQueueFileBytes = 16<<10, 20*24
	cfg.MaxHashSlotNum, cfg.MaxIndexNum = powerSlots, 48
	cfg.FlushIntervalCommitLogMs = int(powerFlush.Milliseconds())
	cfg.FlushCommitLogThoroughIntervalMs = int(powerThorough.Milliseconds())
	cfg.FlushIntervalConsumeQueueMs, cfg.FlushConsumeQueueThoroughIntervalMs = 70, 300
	cfg.MaxMessageBytes = 8 << 10
	cfg.FileReservedHours = 0 // whatever DeleteExpiredNow meets
	cfg.DeleteWhen = "23"
	cfg.Logger = slog.New(slog.DiscardHandler)
	cfg.PhysicalMemoryBytes = 1 << 30
	cfg.EnableConsumeQueueExt, cfg.ConsumeQueueExtFileBytes, cfg.BitMaps = p.ext, 300, powerBitMaps{}
	return cfg
}

// powerBitMaps are bit maps that can be told apart, of different lengths.
type powerBitMaps struct{}

// AppendBitMap is part of store.BitMaps.
func (powerBitMaps) AppendBitMap(dst, _, props []byte) []byte {
	keys, _ := message.Property(props, message.PropKeys)
	return append(dst, powerBitMap(string(keys))...)
}

func powerBitMap(keys string) []byte {
	h := fnv.New64a()
	_, _ = h.Write([]byte(keys))
	sum := h.Sum(nil)
	return sum[:sum[0]%8]
}

// A store on a disk that forgets what was not synced, whenever that happens, recovery included: what was answered under
// SYNC_FLUSH is there afterwards, what was answered under ASYNC_FLUSH and is older than both flush intervals, what was
// once served; nothing else that was not sent; queues and index agree with the log. N001, N002, N003, N004, N016, N018.
func TestPowerLoss(t *testing.T) {
	if text := os.Getenv(powerLossSeedEnv); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		powerLossSeed(t, seed, slog.New(slog.NewTextHandler(t.Output(), nil)))
		return
	}
	seeds := powerLossSeeds
	if text := os.Getenv(powerLossSeedsEnv); text != "" {
		var err error
		if seeds, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	} else if testing.Short() {
		seeds /= 10
	}
	first := uint64(0)
	if text := os.Getenv(powerLossFirstEnv); text != "" {
		var err error
		if first, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	total := powerTotals{}
	for seed := range uint64(seeds) {
		total.add(powerLossSeed(t, first+seed, nil))
	}
	t.Logf("%d seeds from %d on: %+v", seeds, first, total)
}

// powerTotals are what a run went through.
type powerTotals struct{ Losses, Kills, InRecovery, Sent, Acked, Lost, Found, Rot, Cut int }

func (p *powerTotals) add(o powerTotals) {
	p.Losses += o.Losses
	p.Kills += o.Kills
	p.InRecovery += o.InRecovery
	p.Sent += o.Sent
	p.Acked += o.Acked
	p.Lost += o.Lost
	p.Found += o.Found
	p.Rot += o.Rot
	p.Cut += o.Cut
}

// powerLossSeed runs the life of one store over several losses of power, on a clock of its own.
func powerLossSeed(t *testing.T, seed uint64, logger *slog.Logger) (total powerTotals) {
	t.Helper()
	defer func() {
		if t.Failed() { // and synctest.Test has ended the test
			t.Logf("seed %d failed: %s=%d runs it again", seed, powerLossSeedEnv, seed)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		p := &powerTest{t: t, r: rand.New(rand.NewPCG(seed, 0)), j: &storecheck.Journal{}, logger: logger, disk: vfs.NewMem(), pending: map[uint64]bool{}}
		for range 2 + p.r.IntN(4) {
			p.generation()
			if t.Failed() {
				break
			}
		}
		sent, _ := p.j.Counts()
		p.total.Sent = sent
		total = p.total
	})
	return total
}

// powerTest is the life of one store. The disk is replaced by what is left of it after each loss.
type powerTest struct {
	t      *testing.T
	r      *rand.Rand
	j      *storecheck.Journal
	logger *slog.Logger
	disk   *vfs.Mem
	total  powerTotals
	// ext: this generation writes extension units.
	ext bool
	// expired: log files were allowed to go.
	expired bool
	// pending are messages that a killed process had answered and not flushed, and that no start has made durable yet.
	pending map[uint64]bool

	mu struct {
		sync.Mutex
		lossAt   int    // the operation before which the power fails; 0: not now
		chance   uint64 // seed of what the loss leaves
		kill     bool   // the process ends, the power does not
		lost     bool
		after    *vfs.Mem
		answered *storecheck.Journal // as of the loss
		at       time.Time
		flushed  int64
		store    *store.Store // the open one
		born     map[uint64]time.Time
		deleted  bool // deletedTopic has no queues
	}
}

var errPowerOff = errors.New("the power is off")

// onOp sees every operation of the store.
func (p *powerTest) onOp(vfs.Op) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.lost {
		return errPowerOff
	}
	if p.mu.lossAt == 0 {
		return nil
	}
	if p.mu.lossAt--; p.mu.lossAt == 0 {
		p.loseLocked()
		return errPowerOff
	}
	return nil
}

// loseLocked takes the power away now, or kills the process: then nothing of what was written goes, and what was not
// synced is still not. What was answered is noted first, so that all of it happened before.
func (p *powerTest) loseLocked() {
	p.mu.lost, p.mu.at = true, time.Now()
	p.mu.answered = p.j.Snapshot()
	p.mu.flushed = -1
	if p.mu.store != nil {
		p.mu.flushed = p.mu.store.LogFlushed()
	}
	if p.mu.kill {
		p.mu.after = p.disk.KillUnsynced()
	} else {
		p.mu.after = p.disk.PowerLoss(p.mu.chance)
	}
}

func (p *powerTest) isLost() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.lost
}

// generation opens the store, works with it, and loses the power some time: while it opens, while it works, when it is
// idle, while it closes or when it is closed.
func (p *powerTest) generation() {
	flush := store.SyncFlush
	if p.r.IntN(3) == 0 {
		flush = store.AsyncFlush
	}
	p.ext = p.r.IntN(2) == 0
	p.mu.Lock()
	p.mu.lost, p.mu.store, p.mu.born, p.mu.chance = false, nil, map[uint64]time.Time{}, p.r.Uint64()
	p.mu.kill = p.r.IntN(4) == 0
	switch p.r.IntN(5) {
	case 0:
		p.mu.lossAt = 1 + p.r.IntN(60) // while it opens, as a rule
	case 1:
		p.mu.lossAt = 0
	default:
		p.mu.lossAt = 1 + p.r.IntN(1500)
	}
	p.mu.Unlock()
	p.disk.SetWriteback(p.r.Uint64(), []float64{0, 0.05, 0.5}[p.r.IntN(3)])
	p.disk.Inject(p.onOp)
	cfg := p.config(p.disk, flush)
	if p.logger != nil {
		cfg.Logger = p.logger
	}
	s, err := store.Open(cfg)
	switch {
	case err == nil:
		p.serve(s, flush)
	case !p.isLost():
		p.t.Errorf("cannot open the store: %v", err)
		return
	default:
		p.total.InRecovery++
	}
	p.total.Losses++
	p.check(flush)
}

// serve lets producers work and ends the store one way or the other.
func (p *powerTest) serve(s *store.Store, flush string) {
	p.mu.Lock()
	p.mu.store = s
	lost := p.mu.lost
	p.mu.Unlock()
	if !lost {
		p.adopt()
	}
	ctx, cancel := context.WithCancel(p.t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) })
	var producers sync.WaitGroup
	for range 1 + p.r.IntN(3) {
		r := rand.New(rand.NewPCG(p.r.Uint64(), 1))
		producers.Go(func() { p.produce(s, r, flush) })
	}
	if p.r.IntN(4) == 0 {
		p.expired = true
		time.Sleep(time.Duration(p.r.IntN(300)) * time.Millisecond)
		s.DeleteExpiredNow()
	}
	if p.r.IntN(4) == 0 {
		p.deleteTopic(s)
	}
	producers.Wait()
	if p.r.IntN(2) == 0 { // idle for a while
		time.Sleep(time.Duration(p.r.IntN(1000)) * time.Millisecond)
	}
	clean := p.r.IntN(3) == 0
	if !clean {
		p.loseNow()
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	if err := <-closed; err == nil && !p.isLost() {
		// What was closed is durable, whatever the flush mode.
		p.mu.Lock()
		p.loseLocked()
		p.mu.flushed = s.LogEnd()
		p.mu.at = p.mu.at.Add(time.Hour)
		p.mu.Unlock()
	} else if err != nil && !p.isLost() {
		p.t.Errorf("cannot close the store: %v", err)
		p.loseNow()
	}
	cancel()
	running.Wait()
}

// deletedTopic is written to and deleted, and must stay away once that was answered.
const deletedTopic = "Deleted"

func (p *powerTest) deleteTopic(s *store.Store) {
	done := make(chan *store.Put, 3)
	puts := make([]*store.Put, 3)
	for i := range puts {
		puts[i] = &store.Put{Record: message.Record{
			Topic: []byte(deletedTopic), QueueID: int32(i), Body: []byte("goes"), Properties: []byte("KEYS\x01gone\x02"),
			BornHost: netip.MustParseAddrPort("10.0.0.1:4000"), StoreHost: netip.MustParseAddrPort("10.0.0.2:10911"),
		}, Done: func(put *store.Put) { done <- put }}
	}
	p.setDeleted(false)
	s.PutBatch(puts)
	for range puts {
		<-done
	}
	time.Sleep(time.Duration(p.r.IntN(150)) * time.Millisecond)
	if err := s.DeleteTopic(deletedTopic); err == nil {
		p.setDeleted(true)
	}
}

// setDeleted notes whether the topic must be away; what the power failed before counts not.
func (p *powerTest) setDeleted(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.mu.lost {
		p.mu.deleted = away
	}
}

func (p *powerTest) loseNow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.mu.lost {
		p.loseLocked()
	}
}

// adopt makes what an opened store holds answered: it may be served from now on, and must not go again.
func (p *powerTest) adopt() {
	l, err := storecheck.ReadLog(p.disk.Kill(), "/data/store/commitlog")
	if err != nil {
		p.t.Errorf("cannot read the log of an open store: %v", err)
		return
	}
	if err := p.j.Adopt(l); err != nil {
		p.t.Error(err)
	}
	clear(p.pending)
}

var powerTopics = []string{"Orders", "Payments", "%RETRY%group"}

// produce sends messages one after the other, singles and batches.
func (p *powerTest) produce(s *store.Store, r *rand.Rand, flush string) {
	for range 5 + r.IntN(40) {
		done := make(chan *store.Put, 8)
		puts := make([]*store.Put, 0, 4)
		ids := map[*store.Put][]uint64{}
		for range 1 + r.IntN(4) {
			put, id := p.put(r, done)
			puts, ids[put] = append(puts, put), id
		}
		s.PutBatch(puts)
		for range puts {
			put := <-done
			if put.Status == store.PutOK {
				p.answered(put, ids[put])
			}
		}
		if p.isLost() {
			return
		}
		if flush == store.AsyncFlush || r.IntN(3) == 0 {
			time.Sleep(time.Duration(r.ExpFloat64() * float64(15*time.Millisecond)))
		}
	}
}

func (p *powerTest) put(r *rand.Rand, done chan *store.Put) (*store.Put, []uint64) {
	topic, queue := powerTopics[r.IntN(len(powerTopics))], int32(r.IntN(2))
	put := &store.Put{WaitFlush: true, Done: func(put *store.Put) { done <- put }}
	put.Record = message.Record{
		QueueID: queue, Topic: []byte(topic), BornTimestamp: time.Now().UnixMilli(),
		BornHost: netip.MustParseAddrPort("10.0.0.1:4000"), StoreHost: netip.MustParseAddrPort("10.0.0.2:10911"),
	}
	begin := func() (uint64, []byte, []byte) {
		id, body := p.j.Begin(topic, queue, storecheck.MinBody+r.IntN([]int{30, 300, 3000}[r.IntN(3)]))
		props := message.AppendProperty(nil, message.PropUniqKey, fmt.Sprintf("U%d", id))
		if r.IntN(2) == 0 {
			props = message.AppendProperty(props, message.PropKeys, fmt.Sprintf("k%d g%d", id, id%7))
		}
		if r.IntN(2) == 0 {
			props = message.AppendProperty(props, message.PropTags, fmt.Sprintf("tag%d", id%3))
		}
		return id, body, props
	}
	n := 1
	if r.IntN(4) == 0 {
		n, put.Batch = 1+r.IntN(5), true
	}
	var ids []uint64
	for range n {
		id, body, props := begin()
		ids = append(ids, id)
		if put.Batch {
			put.Record.Body = message.AppendBatchItem(put.Record.Body, 0, body, props)
		} else {
			put.Record.Body, put.Record.Properties = body, props
		}
	}
	return put, ids
}

func (p *powerTest) answered(put *store.Put, ids []uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, id := range ids {
		at := put.PhysicalOffset
		if put.Batch {
			at = put.Offsets[i]
		}
		p.mu.born[id] = time.Now()
		if !p.mu.lost {
			p.j.Ack(id, put.QueueOffset+int64(i), at)
		}
	}
}

// appendedAfter returns a function that tells when the log, as far as born knows, had grown beyond a position.
func appendedAfter(j *storecheck.Journal, born map[uint64]time.Time) func(phys int64) (time.Time, bool) {
	type place struct {
		phys int64
		at   time.Time
	}
	var places []place
	j.Keep(func(s *storecheck.Send) bool {
		if t, ok := born[s.ID]; ok {
			places = append(places, place{s.Phys, t})
		}
		return true
	})
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.phys, b.phys) })
	return func(phys int64) (time.Time, bool) {
		i, _ := slices.BinarySearchFunc(places, phys, func(p place, phys int64) int { return cmp.Compare(p.phys, phys) })
		if i == len(places) {
			return time.Time{}, false
		}
		return places[i].at, true
	}
}

// check looks at what the loss left, with a store of its own, and leaves it for the next generation.
func (p *powerTest) check(flush string) {
	p.mu.Lock()
	after, at, flushed, born, answered, kill := p.mu.after, p.mu.at, p.mu.flushed, p.mu.born, p.mu.answered, p.mu.kill
	p.mu.Unlock()
	if after == nil {
		p.t.Error("the power did not fail")
		return
	}
	_, before := answered.Counts()
	may := map[uint64]bool{} // what may be lost
	if flush == store.AsyncFlush {
		// What was appended less than both intervals ago, and had less than a few pages behind it one interval ago, and
		// was not flushed by chance.
		late := appendedAfter(p.j, born)
		p.j.Keep(func(s *storecheck.Send) bool {
			t, now := born[s.ID]
			if !now || s.Phys < flushed || at.Sub(t) > powerFlush+powerThorough {
				return true
			}
			t, enough := late(s.Phys + powerPages*4096)
			may[s.ID] = !enough || at.Sub(t) <= powerFlush
			return true
		})
	}
	if kill { // it is there, and may go with the power later, until a start has made it durable
		p.total.Kills++
		maps.Copy(p.pending, may)
	} else {
		p.j.Keep(func(s *storecheck.Send) bool { return !may[s.ID] && !p.pending[s.ID] })
		clear(p.pending)
	}
	_, due := p.j.Counts()
	p.total.Acked, p.total.Lost = p.total.Acked+len(born), p.total.Lost+before-due
	p.disk = after
	p.inspect(after.Kill(), flush)
}

// inspect recovers a copy of the disk and compares everything with everything.
func (p *powerTest) inspect(disk *vfs.Mem, flush string) {
	t := p.t
	cfg := p.config(disk, flush)
	if p.logger != nil {
		cfg.Logger = p.logger
	}
	s := p.reopen(cfg)
	if s == nil {
		return
	}
	type bounds struct{ min, max int64 }
	offsets := map[storecheck.QueueKey]bounds{}
	for q := range s.Queues() {
		offsets[storecheck.QueueKey{Topic: q.Topic, ID: q.QueueID}] = bounds{s.MinOffset(q.Topic, q.QueueID), s.MaxOffset(q.Topic, q.QueueID)}
	}
	for _, f := range s.Findings() {
		switch f.Kind {
		case store.FindRot:
			p.total.Rot++
		case store.FindTornTail:
			p.total.Cut++
		case store.FindHole:
			t.Errorf("a hole in the log: %+v", f)
		}
	}
	if err := s.Close(); err != nil {
		t.Errorf("cannot close the recovered store: %v", err)
		return
	}
	got, errs := storecheck.CheckStopped(disk, cfg.RootDir, storecheck.Options{
		Slots: powerSlots, Journal: p.j, Gone: func(topic string) bool { return topic == deletedTopic },
		BitMap: func(props map[string]string) []byte { return powerBitMap(props[message.PropKeys]) },
	})
	for _, err := range errs {
		t.Errorf("after the loss (%s): %v", flush, err)
	}
	if got == nil {
		return
	}
	p.total.Found += len(got.Log.Records)
	if got.Log.Min > 0 && !p.expired {
		t.Errorf("the log begins at %d, nothing was allowed to go", got.Log.Min)
	}
	for k, q := range got.Queues {
		if p.mu.deleted && k.Topic == deletedTopic && len(q.Units) > 0 {
			t.Errorf("queue %s/%d of a deleted topic is back, with %d units", k.Topic, k.ID, len(q.Units))
		}
		want := bounds{q.Min(got.Log.Min), q.Max()}
		if offsets[k] != want {
			t.Errorf("queue %s/%d: offsets %v, want %v", k.Topic, k.ID, offsets[k], want)
		}
	}
	// A second clean start changes nothing.
	first := contents(t, disk, cfg.RootDir)
	if s = p.reopen(cfg); s == nil {
		return
	}
	if err := s.Close(); err != nil {
		t.Errorf("cannot close the store again: %v", err)
		return
	}
	for name, b := range contents(t, disk, cfg.RootDir) {
		if !bytes.Equal(first[name], b) {
			t.Errorf("a second clean start changed %q", name)
		}
		delete(first, name)
	}
	for name := range first {
		t.Errorf("a second clean start removed %q", name)
	}
}

func (p *powerTest) reopen(cfg store.Config) *store.Store {
	s, err := store.Open(cfg)
	if err != nil {
		p.t.Errorf("cannot open what the loss left: %v", err)
		return nil
	}
	return s
}

// contents are the bytes of log, queues and index.
func contents(t *testing.T, disk *vfs.Mem, root string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := disk.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			if e.IsDir() {
				walk(path)
				continue
			}
			if out[path], err = vfs.ReadFile(disk, path); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, part := range []string{"commitlog", "consumequeue", "index"} {
		walk(filepath.Join(root, part))
	}
	return out
}
