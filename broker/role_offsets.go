package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"mqx/internal/fastjson"
	"mqx/remoting"
)

const (
	// ownCommitsMost bounds the queues of which a slave remembers that a consumer committed to it.
	ownCommitsMost = 100_000
	// takeBackTimeout bounds what a master waits for its slaves before it serves.
	takeBackTimeout = 2 * time.Second
)

// ownCommits are the queues of groups to which consumers committed at this slave, since its master was away. Safe to share.
type ownCommits struct {
	sync.Mutex
	of map[ownCommit]struct{}
}

type ownCommit struct {
	offsetKey
	queue int32
}

// note remembers a commit of a consumer.
func (c *ownCommits) note(topic, group string, queue int32) {
	c.Lock()
	defer c.Unlock()
	if c.of == nil {
		c.of = map[ownCommit]struct{}{}
	}
	if len(c.of) < ownCommitsMost {
		c.of[ownCommit{offsetKey{topic, group}, queue}] = struct{}{}
	}
}

// copy is what is remembered now.
func (c *ownCommits) copy() map[ownCommit]struct{} {
	c.Lock()
	defer c.Unlock()
	return maps.Clone(c.of)
}

// settle forgets those that the master has now, or that have moved on there.
func (c *ownCommits) settle(told map[string]map[int32]int64, own func(key string, queue int32) (int64, bool)) {
	c.Lock()
	defer c.Unlock()
	for k := range c.of {
		at, there := told[k.String()][k.queue]
		if have, ok := own(k.String(), k.queue); !ok || there && at >= have {
			delete(c.of, k)
		}
	}
}

// haOffsets tells a master that comes back what consumers committed here meanwhile (ReqMqxHA, "offsets").
func (b *Broker) haOffsets() any {
	out := &remoting.ConsumerOffsets{OffsetTable: map[string]map[int32]int64{}}
	b.commits.Lock()
	defer b.commits.Unlock()
	for k := range b.commits.of {
		at, ok := b.offsets.Committed(k.topic, k.group, k.queue)
		if !ok {
			continue
		}
		if out.OffsetTable[k.String()] == nil {
			out.OffsetTable[k.String()] = map[int32]int64{}
		}
		out.OffsetTable[k.String()][k.queue] = at
	}
	return out
}

// takeBack takes over, before a master serves, what consumers committed to its slaves while it was away: never backwards,
// and never beyond the end of a queue. A slave tells only what was committed to itself: what it has of its master may have
// been reset there since.
func (b *Broker) takeBack(ctx context.Context) error {
	if b.slave != nil || b.fence.given() {
		return nil
	}
	list, err := b.nameServerList(ctx)
	if err != nil || len(list) == 0 {
		return nil // told by those who register
	}
	ctx, cancel := context.WithTimeout(ctx, takeBackTimeout)
	defer cancel()
	var wg sync.WaitGroup
	asked := struct {
		sync.Mutex
		m map[string]bool
	}{m: map[string]bool{}}
	for _, ns := range list {
		wg.Go(func() {
			members, err := b.groupMembers(ctx, ns)
			if err != nil {
				return // looked for again with the registration
			}
			for id, addr := range members {
				asked.Lock()
				known := asked.m[addr]
				asked.m[addr] = true
				asked.Unlock()
				if id != 0 && !known && addr != b.at().Addr() {
					if _, err := b.takeBackFrom(ctx, addr); err != nil {
						b.log.Warn("a slave did not tell what was committed to it meanwhile", "slave", addr, "error", err)
					}
				}
			}
		})
	}
	wg.Wait()
	return nil
}

// takeBackFrom does so with one slave and reports whether it is one of mqx, which counts where it has told.
func (b *Broker) takeBackFrom(ctx context.Context, slave string) (mqx bool, err error) {
	req := remoting.NewRequest(remoting.ReqMqxHA, nil)
	req.Fields.Set(remoting.FieldAct, remoting.HAActOffsets)
	body, err := b.askAt(ctx, slave, req)
	var refused *remoting.ResponseError
	if errors.As(err, &refused) && refused.Code == remoting.RespRequestCodeNotSupported {
		return false, nil // a slave of Apache
	}
	var told remoting.ConsumerOffsets
	if err == nil {
		err = fastjson.Unmarshal(body, &told)
	}
	if err != nil {
		return false, fmt.Errorf("cannot ask what was committed to the slave %s: %w", slave, err)
	}
	b.mergeBack(slave, &told)
	return true, nil
}

// takeBackTable does so with a slave of Apache, which tells its whole table: what was committed there and what it once got from
// here. As Apache's masters do, it takes that where its version is not below the one that this broker saved last; an offset
// that goes back makes a new version at once, so that a slave that has not heard of it does not undo it.
func (b *Broker) takeBackTable(ctx context.Context, slave string) error {
	body, err := b.askAt(ctx, slave, remoting.NewRequest(remoting.ReqGetAllConsumerOffset, nil))
	var told remoting.ConsumerOffsets
	if err == nil {
		err = fastjson.Unmarshal(body, &told)
	}
	if err != nil {
		return fmt.Errorf("cannot ask for the offsets of the slave %s: %w", slave, err)
	}
	if own := b.offsets.kept; told.DataVersion.Compare(own) < 0 {
		b.log.Warn("the offsets of a slave are older than those here: none is taken over, and what was committed to it alone is consumed again",
			"slave", slave, "version", told.DataVersion.Counter, "own", own.Counter)
		return nil
	}
	b.mergeBack(slave, &told)
	return nil
}

// mergeBack takes over offsets of a slave: never backwards, and never beyond the end of a queue.
func (b *Broker) mergeBack(slave string, told *remoting.ConsumerOffsets) {
	b.mergeBackTo(slave, told, func(topic string) bool { return b.topics.Get(topic) != nil }, b.store.EndOffset)
}

// mergeBackTo does so where there is such a topic, up to the end of its queues.
func (b *Broker) mergeBackTo(slave string, told *remoting.ConsumerOffsets, there func(topic string) bool, end func(topic string, queue int32) int64) {
	for key, queues := range told.OffsetTable {
		topic, group, ok := splitOffsetKey(key)
		if !ok || !there(topic) {
			continue
		}
		for q, at := range queues {
			at = min(at, end(topic, q))
			if have, ok := b.offsets.Committed(topic, group, q); !ok || at > have {
				b.offsets.Commit([]byte(topic), []byte(group), q, at)
				b.log.Info("an offset that was committed to a slave meanwhile is taken over", "slave", slave, "topic", topic, "group", group, "queue", q, "was", have, "is", at)
			}
		}
	}
}
