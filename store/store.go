package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"mqx/internal/clock"
	"mqx/internal/failpoint"
	"mqx/internal/meter"
	"mqx/internal/vfs"
	"mqx/store/commitlog"
	"mqx/store/consumequeue"
	"mqx/store/index"
)

const (
	// checkpointBytesBehind of dispatched log make a checkpoint due before its time: they are what a dirty start reads.
	checkpointBytesBehind = 256 << 20
	// checkpointRetry is the time to the next try after a checkpoint that could not be written.
	checkpointRetry = 5 * time.Second
	// hotMost bounds the part of the log that is served from the map, whatever memory there is.
	hotMost = 4 << 30
)

// Store is an open store directory. All methods are safe to share.
//
// Its locks, outermost first: deleting, checkpointing, dispatching, indexing, putting; then those of the parts.
type Store struct {
	cfg    Config // as opened; what Reconfigure can change is in live
	live   atomic.Pointer[Config]
	lock   io.Closer
	log    *commitlog.Log
	cqs    *consumequeue.Set
	index  *index.Index
	queues *table
	ckpt   *checkpointFile // owned by checkpointing
	ends   endsFile        // the same
	timer  atomic.Pointer[Timer]

	dispatcher *dispatcher
	indexer    *indexer
	cleaner    *cleaner
	disk       *disk
	alarms     *alarms
	deleted    deletedTopics
	damaged    damagedFiles

	delays      []time.Duration
	memoryBytes int64 // distance from the end of the log within which it counts as cached
	hotBytes    int64
	hotFrom     int64 // where the log ended at the start: whether what lies before is in memory is not known

	reconfiguring sync.Mutex
	deleting      sync.Mutex
	putting       sync.RWMutex // read: queue counters are in use; write: they are being replaced
	checkpointing sync.Mutex
	dispatching   sync.Mutex
	indexing      sync.Mutex

	checkpointed atomic.Int64 // position that the last checkpoint covers
	queuesFailed atomic.Bool  // a sync of the queues failed: no checkpoint any more
	closing      atomic.Bool  // changes under start
	fenced       atomic.Pointer[error]
	givesWay     atomic.Bool // GiveWay
	stats        counters

	found struct {
		sync.Mutex
		list    []Finding
		total   int64
		skipped map[int64]bool
	}

	life   context.Context // ends with Close
	end    context.CancelFunc
	run    sync.WaitGroup // Run
	start  sync.Mutex     // of Run and Close
	closed struct {
		sync.Once
		err error
	}
}

// Open locks the directory, checks what kind of store it is, recovers it and returns it
// ready to serve. It starts no goroutine that outlives it. What recovery repaired is in Findings.
//
// Errors: *LockedError when another process has it open, *LayoutError when the directory
// is of a kind that is not served or its parts do not belong together.
func Open(cfg Config) (*Store, error) {
	cfg.setDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("cannot open store: %w", err)
	}
	s := &Store{cfg: cfg, queues: newTable(cfg.BatchTopic), alarms: &alarms{logger: cfg.Logger}}
	s.life, s.end = context.WithCancel(context.Background())
	s.delays, _ = ParseDelayLevels(cfg.MessageDelayLevel)
	s.cleaner = &cleaner{s: s, kick: make(chan struct{}, 1)}
	s.live.Store(&cfg)
	s.disk = &disk{s: s}
	s.memoryBytes, s.hotBytes = cfg.memoryWindows()
	s.stats.epoch = time.Now()
	s.stats.appendTimes, s.stats.dispatchTimes = meter.NewLatency(), meter.NewLatency()
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.abandon())
	}
	s.hotFrom = s.log.End()
	return s, nil
}

func (c *Config) setDefaults() {
	if c.FS == nil {
		c.FS = vfs.OS
	}
	if c.Clock == nil {
		c.Clock = clock.System
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Location == nil {
		c.Location = time.Local
	}
	if c.PhysicalMemoryBytes <= 0 {
		c.PhysicalMemoryBytes = physicalMemory()
	}
}

// MemoryBytes is the distance from the end of the log within which messages count as being in memory (AccessMessageInMemoryMaxRatio):
// who reads what lies further back is sent to a slave.
func (s *Store) MemoryBytes() int64 { return s.memoryBytes }

// isHot reports whether what stands at a position of a log that ends at end is served from the map: who touches a page there that is
// not in memory waits for the disk, and that may be the loop that serves everybody.
func (s *Store) isHot(phys, end int64) bool {
	return end-phys <= s.hotBytes && phys >= s.hotFrom && !s.damaged.has(phys)
}

// memoryWindows are the distances from the end of the log within which it counts as cached, and within which it is served
// from the map.
func (c *Config) memoryWindows() (memory, hot int64) {
	memory = c.PhysicalMemoryBytes / 100 * int64(c.AccessMessageInMemoryMaxRatio)
	hot = c.HotWindowBytes
	if hot == 0 {
		hot = min(memory/4, hotMost)
	}
	return memory, hot
}

func (s *Store) indexDir() string { return filepath.Join(s.cfg.RootDir, "index") }

// open does the work of Open, in an order in which nothing is changed before the directory is known to be ours.
func (s *Store) open() error {
	c := &s.cfg
	// 1. The directory is ours, and of a kind that is served.
	if err := vfs.MkdirAllDurable(c.FS, c.RootDir); err != nil {
		return fmt.Errorf("cannot open store: %w", err)
	}
	var err error
	if s.lock, err = lockDir(c.FS, c.RootDir); err != nil {
		return err
	}
	if err := checkKind(c.FS, c.RootDir); err != nil {
		return err
	}
	_, dirty := readPID(c.FS, c.RootDir)
	// 2. What is there.
	r := &recovery{s: s, dirty: dirty, broken: map[*queue]bool{}, max: map[*queue]int64{}}
	if err := s.load(r); err != nil {
		return err
	}
	r.readStop()
	shown := r.shownSoFar()
	// 3. From here on the store is changed.
	if c.Held && shown >= 0 {
		if err := s.noteHeld(shown); err != nil {
			return err
		}
	}
	if err := writeAbort(c.FS, c.RootDir); err != nil {
		return err
	}
	if s.ckpt, err = openCheckpoint(c.FS, c.RootDir); err != nil {
		return err
	}
	s.ckpt.last = r.ckpt
	// 4. Log and queues.
	if err := r.recover(); err != nil {
		return err
	}
	end := s.log.End()
	s.dispatcher.pos.Store(end)
	if c.Held {
		from, err := r.holdBack(shown)
		if err != nil {
			return err
		}
		s.dispatcher.pos.Store(from)
	}
	// 5. The index, which is built behind the scenes.
	if err := s.openIndex(r, end); err != nil {
		return err
	}
	// 6. The checkpoint is not ahead of what recovery found. The queues need not be durable yet: the next start would
	// build them again from the same place.
	if err := s.ckpt.write(r.checkpoint()); err != nil {
		return err
	}
	if err := s.forgetHeld(); err != nil {
		return err
	}
	switch found := s.ckpt.last.LogicsPhysOffset; {
	case r.stop != nil && s.dispatcher.lastStart == found:
		s.writeDurable(s.queueMaxima())
	case r.durable != nil && r.durable.ckpt.LogicsPhysOffset == found:
		s.writeDurable(r.durable.queues)
	}
	if !dirty && s.dispatcher.lastStart <= s.ckpt.last.LogicsPhysOffset {
		s.checkpointed.Store(s.dispatcher.pos.Load())
	}
	s.keepRoom(s.queueMaxima())
	s.disk.look()
	return nil
}

// load reads what the directory holds, without changing what cannot be made again.
func (s *Store) load(r *recovery) error {
	c := &s.cfg
	mode := commitlog.AsyncFlush
	if c.FlushDiskType == SyncFlush {
		mode = commitlog.SyncFlush
	}
	ckpt, ok, err := ReadCheckpoint(c.FS, c.RootDir)
	if err != nil {
		return err
	}
	if s.log, err = commitlog.Open(commitlog.Config{
		FS: c.FS, Dir: c.commitLogDir(), FileSize: int64(c.CommitLogFileBytes), FlushMode: mode,
		FlushInterval:         time.Duration(c.FlushIntervalCommitLogMs) * time.Millisecond,
		FlushLeastPages:       c.FlushCommitLogLeastPages,
		FlushThoroughInterval: time.Duration(c.FlushCommitLogThoroughIntervalMs) * time.Millisecond,
		SyncFlushTimeout:      time.Duration(c.SyncFlushTimeoutMs) * time.Millisecond,
		PropCRC:               c.AppendPropCRC, MaxOpenFiles: c.MaxOpenLogFiles, Together: c.Together, Clock: c.Clock, Logger: c.Logger,
	}); err != nil {
		return err
	}
	s.cqs = consumequeue.NewSet(consumequeue.Config{
		FS: c.FS, Root: c.RootDir, FileBytes: int64(c.ConsumeQueueFileBytes),
		BatchBytes: int64(c.BatchConsumeQueueFileBytes), ExtBytes: int64(c.ConsumeQueueExtFileBytes), MaxOpenFiles: c.MaxOpenFiles, Logger: c.Logger,
	})
	if err := s.loadQueues(r.broken); err != nil {
		return err
	}
	if err := s.loadEnds(); err != nil {
		return err
	}
	known := &ckpt
	if !ok || !ckpt.plausible() {
		known = nil
	}
	if err := s.checkRanges(known); err != nil {
		return err
	}
	if err := s.deleted.load(c.FS, c.RootDir); err != nil {
		s.find(Finding{FindStateUnreadable, filepath.Join(ownDir, deletedName), -1, fmt.Sprintf("the list of deleted topics is not used: %v", err)})
	}
	s.dispatcher, s.indexer = newDispatcher(s), newIndexer(s)
	r.ckpt = ckpt
	files, err := s.log.Files()
	if err != nil {
		return err
	}
	if known == nil && len(files) > 0 {
		s.find(Finding{FindCheckpoint, "checkpoint", -1, "it is missing or cannot be true; the log is searched further back"})
		r.ckpt, r.noCheckpoint = Checkpoint{}, true
	}
	return nil
}

// openIndex opens the key index and decides what of it can be trusted.
func (s *Store) openIndex(r *recovery, logEnd int64) error {
	x, found, err := index.Open(index.Config{
		FS: s.cfg.FS, Dir: s.indexDir(), Slots: int32(s.cfg.MaxHashSlotNum),
		Entries: int32(s.cfg.MaxIndexNum), Location: s.cfg.Location, Clock: s.cfg.Clock, Logger: s.cfg.Logger,
	})
	if err != nil {
		return err
	}
	s.index = x
	for _, f := range found {
		s.find(Finding{FindIndexDamaged, f.Path, -1, f.What})
	}
	if r.stop != nil && s.indexer.enabled {
		if phys, _, ok := x.End(); (ok && phys == r.stop.indexPhys || !ok && r.stop.indexPhys < 0) && r.stop.indexed == logEnd {
			s.indexer.pos.Store(logEnd)
			return nil
		}
	}
	return s.indexer.start(r.dirty, r.ckpt.IndexTime, s.log.Min(), logEnd)
}

// abandon gives back what a failed Open holds. `abort` stays if it was there.
func (s *Store) abandon() error {
	s.end()
	var errs []error
	if s.index != nil {
		errs = append(errs, s.index.Close())
	}
	if s.cqs != nil {
		errs = append(errs, s.cqs.Close())
	}
	if s.log != nil {
		errs = append(errs, s.log.Close())
	}
	if s.ckpt != nil {
		errs = append(errs, s.ckpt.f.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}

// Run flushes, dispatches, cleans and writes checkpoints until ctx is cancelled or the store is closed. It blocks.
func (s *Store) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	s.start.Lock()
	if s.closing.Load() {
		s.start.Unlock()
		return errClosing
	}
	s.run.Add(1)
	s.start.Unlock()
	defer s.run.Done()
	var wg sync.WaitGroup
	var logErr error
	wg.Go(func() { logErr = s.log.Run(ctx) })
	wg.Go(func() { s.dispatcher.run(ctx) })
	wg.Go(func() { s.indexer.run(ctx) })
	wg.Go(func() { s.runFlusher(ctx) })
	wg.Go(func() { s.cleaner.run(ctx) })
	wg.Go(func() { s.disk.run(ctx) })
	wg.Wait()
	return logErr
}

// queuesATick bounds the queues whose units are written at a time: of thousands that get a message each second, each is
// written every few seconds, several units together. What memory they have is bounded by the dispatcher.
const queuesATick = 1024

// runFlusher writes queue units and index entries to their files, and makes them durable with a checkpoint behind them
// from time to time.
func (s *Store) runFlusher(ctx context.Context) {
	interval := time.Duration(s.cfg.FlushIntervalConsumeQueueMs) * time.Millisecond
	thorough := time.Duration(s.cfg.FlushConsumeQueueThoroughIntervalMs) * time.Millisecond
	t := time.NewTicker(interval)
	defer t.Stop()
	last := s.cfg.Clock.Now()
	idle := time.Duration(0)
	indexed := s.indexer.pos.Load()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if s.cqs.Pending() > 0 {
			_ = s.wroteOut(s.cqs.WriteOutSome(queuesATick)) // it raises the alarm
		}
		if pos := s.indexer.pos.Load(); pos != indexed {
			idle = 0
			if s.writeIndex() {
				indexed = pos // else it is tried again
			}
		} else if idle += interval; idle >= indexIdle {
			s.index.DropCache()
			idle = 0
		}
		behind := s.dispatcher.pos.Load() - s.checkpointed.Load()
		now := s.cfg.Clock.Now()
		if behind > 0 && (now.Sub(last) >= thorough || behind >= checkpointBytesBehind) && !s.queuesFailed.Load() {
			last = now
			if err := s.checkpoint(false); err != nil {
				s.alarms.raise(alarmCheckpoint, err)
				last = now.Add(checkpointRetry - thorough)
			} else {
				s.alarms.clear(alarmCheckpoint)
			}
		}
	}
}

// writeIndex brings cached index entries to their file and reports whether that worked.
func (s *Store) writeIndex() bool {
	if err := s.index.WriteBack(); err != nil {
		s.alarms.raise(alarmIndexFile, err)
		return false
	}
	s.alarms.clear(alarmIndexFile)
	return true
}

// Close ends the store in order. Run's context must have been cancelled, or Close cancels it. Idempotent; waits. When
// something could not be made durable it returns why and leaves `abort` in place, so that the next start looks.
func (s *Store) Close() error {
	s.closed.Do(func() { s.closed.err = s.close() })
	return s.closed.err
}

func (s *Store) close() error {
	// 1. No more puts; those under way are finished.
	s.start.Lock()
	s.closing.Store(true)
	s.start.Unlock()
	s.putting.Lock()
	s.putting.Unlock() //nolint:staticcheck // a barrier
	// 2. The goroutines of Run end.
	s.end()
	s.run.Wait()
	// 3. The rest of the log is dispatched and indexed, confirmed or not; notes say what has not been. A gap
	// of the master's log behind which nothing has come goes.
	shown := s.log.Confirmed()
	var err error
	if shown < s.log.End() {
		err = s.noteHeld(shown)
	}
	if err == nil {
		s.log.Ungate()
	}
	err = errors.Join(err, s.cutGap(), s.dispatchRest())
	// 4. Everything becomes durable, then the checkpoint says so.
	err = errors.Join(err, s.checkpoint(true))
	// 5. The note for the next start.
	if err == nil {
		err = s.writeStop(shown)
	}
	failpoint.Pass(failpoint.StopNoted)
	// 6. Files are closed; the preallocated next log file goes.
	err = errors.Join(err, s.log.Close(), s.cqs.Close(), s.index.Close(), s.ckpt.f.Close())
	// 7. The mark of a store in use goes last.
	if err == nil {
		err = removeAbort(s.cfg.FS, s.cfg.RootDir)
	}
	if err == nil {
		err = s.forgetHeld()
	}
	if err != nil {
		err = fmt.Errorf("cannot close store %q cleanly: %w", s.cfg.RootDir, err)
	}
	return errors.Join(err, s.lock.Close())
}

// dispatchRest builds queues and index up to the end of the log.
func (s *Store) dispatchRest() error {
	ctx := context.Background()
	for s.dispatcher.pos.Load() < s.log.Confirmed() {
		if _, err := s.dispatcher.step(ctx); err != nil {
			return err
		}
	}
	if !s.indexer.enabled || s.log.End()-s.indexer.pos.Load() > indexRestMost {
		return nil
	}
	for s.indexer.pos.Load() < s.dispatcher.pos.Load() {
		if _, err := s.indexer.step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// indexRestMost bounds what is indexed before the store closes: an index that is being built again goes on at the next
// start.
const indexRestMost = 256 << 20

// writeStop leaves the note that spares the next start its search.
func (s *Store) writeStop(shown int64) error {
	phys, _, ok := s.index.End()
	if !ok {
		phys = -1
	}
	note := cleanStop{
		logMin: s.log.Min(), logEnd: s.log.End(), shown: min(shown, s.log.End()), lastStart: s.dispatcher.lastStart, indexPhys: phys,
		indexed: s.indexer.pos.Load(), queues: map[stopKey]stopQueue{},
	}
	for q := range s.queues.all {
		if q.exists() {
			note.queues[stopKey{q.topic, q.id}] = stopQueue{q.maxOffset(), q.lastEnd()}
		}
	}
	return writeState(s.cfg.FS, filepath.Join(s.cfg.RootDir, ownDir, stopName), stopHead, note.encode())
}

// LogMin is the first readable physical offset.
func (s *Store) LogMin() int64 { return s.log.Min() }

// LogEnd is the physical offset behind the last record.
func (s *Store) LogEnd() int64 { return s.log.End() }

// LogFlushed is the physical offset up to which the log is durable.
func (s *Store) LogFlushed() int64 { return s.log.Flushed() }

// Dispatched is the physical offset up to which queues are built.
func (s *Store) Dispatched() int64 { return s.dispatcher.pos.Load() }
