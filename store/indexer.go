package store

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"mqx/message"
	"mqx/store/commitlog"
	"mqx/store/index"
)

const (
	// indexPause lets appends gather before the index follows: a query that waits wakes it at once.
	indexPause = 10 * time.Millisecond
	// indexRound bounds how many bytes of the log one round takes.
	indexRound = 4 << 20
	// indexHot is the distance from the end of the log within which it is read through the mapping.
	indexHot = 64 << 20
	// indexIdle is after how long without messages the cache of slots is given back.
	indexIdle = time.Minute
)

// indexer follows the log behind the queues and builds the key index. It belongs to one goroutine at a time
// (Store.indexing).
type indexer struct {
	s       *Store
	enabled bool
	pos     atomic.Int64 // everything before is in the index
	found   int64        // what lies before was on disk at the start: bodies may be broken there

	kick   chan struct{} // there is something to do, soon
	hurry  chan struct{} // somebody waits for it
	hashes []int32

	// A record of which some keys are in the index already, because putting the next one failed.
	partOff  int64
	partDone int

	waiters struct {
		sync.Mutex
		list []indexWaiter
	}
}

type indexWaiter struct {
	pos  int64
	done chan struct{}
}

func newIndexer(s *Store) *indexer {
	return &indexer{
		s: s, enabled: s.cfg.MessageIndexEnable && s.cfg.IndexFileWriteEnable,
		kick: make(chan struct{}, 1), hurry: make(chan struct{}, 1), partOff: -1,
	}
}

// wake tells the indexer that the log has grown.
func (x *indexer) wake() { signal(x.kick) }

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// run follows the log until ctx ends.
func (x *indexer) run(ctx context.Context) {
	if x.enabled {
		x.s.givingWay(ctx, x.runAs)
	}
}

// runAs is run until ctx ends or the store gives way or does not any longer.
func (x *indexer) runAs(ctx context.Context, aside bool) {
	timer := time.NewTimer(0)
	for x.s.givesWay.Load() == aside {
		more, err := x.step(ctx)
		switch {
		case err != nil:
			x.s.stats.dispatchRetries.Add(1)
			if !x.s.alarms.pause(ctx, alarmIndex, err) {
				return
			}
			continue
		case more:
			continue
		}
		if !x.sleep(ctx, timer) {
			return
		}
	}
}

// sleep waits until there is something to do; false when ctx ended.
func (x *indexer) sleep(ctx context.Context, timer *time.Timer) bool {
	select {
	case <-ctx.Done():
		return false
	case <-x.hurry:
		return true
	case <-x.kick:
	}
	timer.Reset(indexPause)
	select {
	case <-ctx.Done():
		return false
	case <-x.hurry:
	case <-timer.C:
	}
	return true
}

// step indexes some of what is there and reports whether there may be more.
func (x *indexer) step(ctx context.Context) (more bool, err error) {
	s := x.s
	s.indexing.Lock()
	defer s.indexing.Unlock()
	end, pos := s.dispatcher.pos.Load(), x.pos.Load()
	if pos < s.log.Min() { // expired before it was indexed
		pos = s.log.Min()
		x.pos.Store(pos)
	}
	if pos >= end || ctx.Err() != nil {
		return false, nil
	}
	to, old := min(end, pos+indexRound), pos < x.found
	if old {
		to = min(to, x.found)
	}
	walk, err := s.log.Walk(pos, commitlog.WalkOptions{
		To: to, Hot: end-pos < indexHot, OnFinding: s.reportLog,
		VerifyBody: old && s.cfg.CheckCRCOnRecover, VerifyProp: old && s.cfg.ForceVerifyPropCRC, // as for the queues
	}, x.record)
	if err != nil {
		return false, err
	}
	if walk.Offset < to {
		return false, fmt.Errorf("cannot read the commit log at %d: %v: %w", walk.Offset, walk.Reason, errUnreadable)
	}
	x.pos.Store(walk.Offset)
	x.tell()
	s.alarms.clear(alarmIndex)
	return true, s.index.Spill()
}

// record adds the keys of one record.
func (x *indexer) record(off int64, rec message.View) error {
	if rec.Transaction() == message.TransactionRollback {
		return x.done(off, rec)
	}
	x.hashes = appendKeyHashes(x.hashes[:0], rec)
	skip := 0
	if x.partOff == off {
		skip = x.partDone
	}
	for i, h := range x.hashes[skip:] {
		if err := x.s.index.Put(h, off, rec.StoreTimestamp()); err != nil {
			x.partOff, x.partDone = off, skip+i
			return err
		}
	}
	return x.done(off, rec)
}

func (x *indexer) done(off int64, rec message.View) error {
	x.partOff = -1
	x.pos.Store(off + int64(len(rec)))
	return nil
}

// appendKeyHashes returns the hashes of a message's keys in the order in which Apache adds them: unique key, words of
// KEYS, tags.
func appendKeyHashes(dst []int32, rec message.View) []int32 {
	props := rec.Properties()
	uniq, hasUniq := message.Property(props, message.PropUniqKey)
	keys, hasKeys := message.Property(props, message.PropKeys)
	tags, hasTags := message.Property(props, message.PropTags)
	if !hasUniq && !hasKeys && !hasTags {
		return dst
	}
	h := index.NewHasher(rec.Topic())
	if hasUniq {
		dst = append(dst, h.Key(uniq))
	}
	for word, rest := message.NextKey(keys); word != nil; word, rest = message.NextKey(rest) {
		dst = append(dst, h.Key(word))
	}
	if hasTags {
		dst = append(dst, h.Tags(tags))
	}
	return dst
}

// wait returns when the index covers the log up to pos; false when ctx ended before.
func (x *indexer) wait(ctx context.Context, pos int64) bool {
	if !x.enabled || x.pos.Load() >= pos {
		return true
	}
	w := indexWaiter{pos, make(chan struct{})}
	x.waiters.Lock()
	x.waiters.list = append(x.waiters.list, w)
	x.waiters.Unlock()
	signal(x.hurry)
	if x.pos.Load() >= pos {
		x.tell()
	}
	select {
	case <-w.done:
		return true
	case <-ctx.Done():
		x.waiters.Lock()
		defer x.waiters.Unlock()
		for i := range x.waiters.list {
			if x.waiters.list[i].done == w.done {
				x.waiters.list = append(x.waiters.list[:i], x.waiters.list[i+1:]...)
				break
			}
		}
		return x.pos.Load() >= pos
	}
}

// tell wakes those whose position is reached.
func (x *indexer) tell() {
	pos := x.pos.Load()
	x.waiters.Lock()
	defer x.waiters.Unlock()
	keep := x.waiters.list[:0]
	for _, w := range x.waiters.list {
		if w.pos <= pos {
			close(w.done)
		} else {
			keep = append(keep, w)
		}
	}
	x.waiters.list = keep
}

// start finds out from where on the index has to be built, and removes what cannot be trusted: after a dirty stop the
// files with messages newer than durableMs, and always what lies behind the end of the log.
func (x *indexer) start(dirty bool, durableMs, logMin, logEnd int64) error {
	x.found = logEnd
	if !x.enabled {
		x.pos.Store(logEnd)
		return nil
	}
	dropped := 0
	if dirty {
		n, err := x.s.index.DropNewer(durableMs)
		if err != nil {
			return err
		}
		dropped = n
	}
	n, err := x.s.index.DropBehind(logEnd)
	if err != nil {
		return err
	}
	dropped += n
	phys, again, ok := x.s.index.End()
	switch {
	case !ok || phys < logMin:
		phys = logMin
	case !again:
		if rec, err := x.s.recordAt(phys); err == nil {
			phys += int64(len(rec))
		}
	}
	x.pos.Store(phys)
	if phys < logEnd {
		x.s.find(Finding{
			Kind: FindIndexBehind, File: "index", Offset: phys,
			What: fmt.Sprintf("the key index is built again for the log from %d to %d; %d files were dropped", phys, logEnd, dropped),
		})
	}
	return nil
}
