package broker

import (
	"context"
	"errors"
	"sync"
	"time"

	"mqx/store"
)

// copiesAgain is the pause before copies that did not come in time are waited for again.
const copiesAgain = 100 * time.Millisecond

// errNotCopied is why a message of the broker's own does not count although it is in the log.
var errNotCopied = errors.New("too few slaves have it")

// waitCopies waits until the slaves that the level asks for have the log up to end, however long that takes; it reports false
// when ctx ended before. A degraded level asks for none.
func (b *Broker) waitCopies(ctx context.Context, end int64) bool {
	for b.ha.Waits() {
		done := make(chan bool, 1)
		b.ha.Wait(end, func(ok bool) { done <- ok })
		select {
		case ok := <-done:
			if ok {
				return true
			}
		case <-ctx.Done():
			return false
		}
		if !sleep(ctx, copiesAgain) {
			return false
		}
	}
	return true
}

// copied waits for the copies of puts that are in the log, once each has ended. What has its copies then is PutOK, what has not,
// since ctx ended, FlushSlaveTimeout: it is not to be settled. What is in the log is never put a second time for want of them.
func (b *Broker) copied(ctx context.Context, ps []*store.Put) {
	end := int64(0)
	for _, p := range ps {
		if p.Size > 0 && (p.Status == store.PutOK || p.Status == store.FlushSlaveTimeout) { // not what another broker has stored
			end = max(end, p.PhysicalOffset+int64(p.Size))
		}
	}
	if end == 0 {
		return
	}
	ok := b.waitCopies(ctx, end)
	for _, p := range ps {
		switch {
		case p.Size == 0: // another broker's answer stands
		case ok && p.Status == store.FlushSlaveTimeout:
			p.Status, p.Err = store.PutOK, nil
		case !ok && p.Status == store.PutOK:
			p.Status, p.Err = store.FlushSlaveTimeout, errNotCopied
		}
	}
}

// putSettled puts what a service of the broker delivers, by put, and waits until it is done and has its copies. Where fewer slaves
// are in sync than have to be, nothing is appended. Only PutOK is to be settled.
func (b *Broker) putSettled(ctx context.Context, put func([]*store.Put), ps []*store.Put) {
	if err := b.ha.Admit(); err != nil {
		for _, p := range ps {
			p.Status, p.Err = store.InSyncReplicasNotEnough, err
		}
		return
	}
	var done sync.WaitGroup
	done.Add(len(ps))
	finish := func(*store.Put) { done.Done() }
	for _, p := range ps {
		p.Done = finish
	}
	put(ps)
	done.Wait()
	b.copied(ctx, ps)
}

// copiedInTime reports whether the slaves that the level asks for have the log up to end, or get it within slaveTimeout.
func (b *Broker) copiedInTime(end int64) bool {
	if !b.ha.Waits() {
		return true
	}
	done := make(chan bool, 1)
	b.ha.Wait(end, func(ok bool) { done <- ok })
	return <-done
}
