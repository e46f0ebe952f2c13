package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"mqx/internal/fastjson"
	"mqx/message"
	"mqx/remoting"
	"mqx/store/ha"
)

// takeBackTimeout bounds what a master waits for its slaves before it serves.
const takeBackTimeout = 2 * time.Second

// commitHere stores the offset of a consumer; a slave remembers that it was committed to it.
func (b *Broker) commitHere(topic, group []byte, queue int32, offset int64) (old int64, swallowed bool) {
	if b.slave == nil {
		return b.offsets.Commit(topic, group, queue, offset)
	}
	old, swallowed, noted := b.offsets.commitOwn(topic, group, queue, offset, b.role.Epoch())
	if !noted {
		b.quiet.Warn("too many queues were committed to this slave while its master is away; what is committed to the rest is not brought to it", "limit", ownCommitsMost)
	}
	return old, swallowed
}

// haOffsetsMost bounds the queues in one body: with the longest names it stays within half of what a frame may have.
const haOffsetsMost = 5000

// haOffsets tells a master that comes back what consumers committed here meanwhile (ReqMqxHA, "offsets"); a piece of it where after
// is not nil.
func (b *Broker) haOffsets(after *remoting.HAOffsetsAfter) *remoting.HAOffsets {
	out := &remoting.HAOffsets{OffsetTable: map[string]map[int32]int64{}, CommittedAt: map[string]map[int32]int64{}}
	var own []toldOwn
	for k, when := range b.offsets.own.copy() {
		if key := k.String(); after == nil || after.Before(key, k.queue) {
			own = append(own, toldOwn{k, key, when})
		}
	}
	if after != nil {
		own, out.More = pieceOf(own, after.Most)
	}
	for _, o := range own {
		at, ok := b.offsets.Committed(o.topic, o.group, o.queue)
		if !ok {
			continue
		}
		if out.OffsetTable[o.key] == nil {
			out.OffsetTable[o.key], out.CommittedAt[o.key] = map[int32]int64{}, map[int32]int64{}
		}
		out.OffsetTable[o.key][o.queue], out.CommittedAt[o.key][o.queue] = at, o.when
	}
	return out
}

// toldOwn is a queue of a group, under the key by which it is told, and when a consumer committed there.
type toldOwn struct {
	ownCommit
	key  string
	when int64
}

// pieceOf is the first of all, no more than most or haOffsetsMost, and what asks for those behind; nil where there are none.
func pieceOf(all []toldOwn, most int) (piece []toldOwn, more *remoting.HAOffsetsAfter) {
	slices.SortFunc(all, func(a, b toldOwn) int { return cmp.Or(strings.Compare(a.key, b.key), cmp.Compare(a.queue, b.queue)) })
	n := haOffsetsMost
	if most > 0 {
		n = min(n, most)
	}
	if len(all) <= n {
		return all, nil
	}
	last := all[n-1]
	return all[:n], &remoting.HAOffsetsAfter{Key: last.key, Queue: last.queue, Most: most}
}

// removedAtMaster stands in a master's answer for an offset that it does not have because somebody has removed it, or its topic.
const removedAtMaster = -1

// bringBack tells the master what was committed to this slave, where the master came back without asking: this slave was away
// itself. The log is known to be a beginning of the master's.
func (s *slave) bringBack(ctx context.Context) error {
	if s.tables.offsets == nil || s.follower.State().Phase != ha.PhaseFollowing {
		return nil
	}
	return s.b.bringBackTo(ctx, s.tables.master)
}

func (b *Broker) bringBackTo(ctx context.Context, master string) error {
	for more := (&remoting.HAOffsetsAfter{Most: haOffsetsMost}); more != nil; {
		have := b.haOffsets(more)
		more = have.More
		if len(have.OffsetTable) == 0 {
			continue
		}
		back, err := b.giveOffsets(ctx, master, have)
		if err != nil {
			return fmt.Errorf("cannot tell the master %s what was committed to this slave: %w", master, err)
		}
		b.takeStanding(have, back)
	}
	return nil
}

// giveOffsets tells a master what was committed here, and returns what stands there instead. What lies behind the end of the log
// here may be others there.
func (b *Broker) giveOffsets(ctx context.Context, master string, have *remoting.HAOffsets) (*remoting.HAOffsets, error) {
	told := &remoting.HAOffsets{OffsetTable: map[string]map[int32]int64{}, CommittedAt: have.CommittedAt}
	for key, queues := range have.OffsetTable {
		topic, _, _ := splitOffsetKey(key)
		told.OffsetTable[key] = map[int32]int64{}
		for q, at := range queues {
			told.OffsetTable[key][q] = min(at, b.store.EndOffset(topic, q))
		}
	}
	body, err := fastjson.MarshalStandard(told)
	if err != nil {
		return nil, err
	}
	req := remoting.NewRequest(remoting.ReqMqxHA, nil)
	req.Fields.Set(remoting.FieldAct, remoting.HAActTakeOffsets)
	req.Body = body
	answer, err := b.askAt(ctx, master, req)
	back := &remoting.HAOffsets{}
	var refused *remoting.ResponseError
	if errors.As(err, &refused) && (refused.Code == remoting.RespRequestCodeNotSupported || refused.Code == remoting.RespInvalidParameter && refused.Remark == unknownAct(remoting.HAActTakeOffsets)) {
		return back, nil // a master of Apache, or of an mqx that does not know this act
	}
	if err == nil {
		err = fastjson.Unmarshal(answer, back)
	}
	return back, err
}

// takeStanding takes over what the master has set back, or removed, of what it was told; not where a consumer has committed since.
func (b *Broker) takeStanding(told, back *remoting.HAOffsets) {
	for key, queues := range back.OffsetTable {
		topic, group, ok := splitOffsetKey(key)
		for q, at := range queues {
			was, asked := told.OffsetTable[key][q]
			when := back.CommittedAt[key][q]
			same := func(old int64) bool { return old == was }
			switch {
			case !ok || !asked:
			case at == removedAtMaster:
				b.offsets.removeIf(topic, group, q, when, same) // and what was never committed is nobody's own
			case at >= 0:
				b.offsets.commitAsOf([]byte(topic), []byte(group), q, at, when, same)
			}
		}
	}
	b.offsets.settleOwn(back.OffsetTable)
}

// haTakeOffsets serves that, and answers what was set back here since.
func (b *Broker) haTakeOffsets(told *remoting.HAOffsets, peer string) (*remoting.HAOffsets, error) {
	if b.slave != nil || b.fence.given() {
		return nil, refuse(remoting.RespNotMaster, "this broker is not the master of its group")
	}
	return b.mergeBack(peer, told), nil
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

// takeBackFrom does so with one slave and reports whether it is one of mqx, which counts where it has told all.
func (b *Broker) takeBackFrom(ctx context.Context, slave string) (mqx bool, err error) {
	for after := (&remoting.HAOffsetsAfter{Most: haOffsetsMost}); after != nil; {
		told, err := b.askOwn(ctx, slave, after)
		var refused *remoting.ResponseError
		if errors.As(err, &refused) && refused.Code == remoting.RespRequestCodeNotSupported {
			return false, nil // a slave of Apache
		}
		if more := told.More; err == nil && more != nil && !after.Before(more.Key, more.Queue) {
			err = fmt.Errorf("the piece behind %s, queue %d, ends at %s, queue %d", after.Key, after.Queue, more.Key, more.Queue)
		}
		if err != nil {
			return false, fmt.Errorf("cannot ask what was committed to the slave %s: %w", slave, err)
		}
		b.mergeBack(slave, told)
		after = told.More
	}
	return true, nil
}

// askOwn asks a slave for a piece of what was committed to it.
func (b *Broker) askOwn(ctx context.Context, slave string, after *remoting.HAOffsetsAfter) (*remoting.HAOffsets, error) {
	told := &remoting.HAOffsets{}
	body, err := fastjson.MarshalStandard(after)
	if err != nil {
		return told, err
	}
	req := remoting.NewRequest(remoting.ReqMqxHA, nil)
	req.Fields.Set(remoting.FieldAct, remoting.HAActOffsets)
	req.Body = body
	if body, err = b.askAt(ctx, slave, req); err != nil {
		return told, err
	}
	return told, fastjson.Unmarshal(body, told)
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
	b.mergeBack(slave, &remoting.HAOffsets{OffsetTable: told.OffsetTable})
	return nil
}

// mergeBack takes over offsets of a slave: never backwards, never beyond the end of a queue, and not what was committed there
// before somebody set the offset back here (by the clocks of both).
func (b *Broker) mergeBack(slave string, told *remoting.HAOffsets) (setBack *remoting.HAOffsets) {
	return b.mergeBackTo(slave, told, func(topic string) bool { return b.topics.Get(topic) != nil }, b.store.EndOffset)
}

// mergeBackTo does so where there is such a topic, up to the end of its queues. It returns what stands where somebody has set the
// offset back, and removedAtMaster where nothing does.
func (b *Broker) mergeBackTo(slave string, told *remoting.HAOffsets, there func(topic string) bool, end func(topic string, queue int32) int64) *remoting.HAOffsets {
	setBack := &remoting.HAOffsets{OffsetTable: map[string]map[int32]int64{}, CommittedAt: map[string]map[int32]int64{}}
	stands := func(key string, queue int32, at, since int64) {
		if setBack.OffsetTable[key] == nil {
			setBack.OffsetTable[key], setBack.CommittedAt[key] = map[int32]int64{}, map[int32]int64{}
		}
		setBack.OffsetTable[key][queue], setBack.CommittedAt[key][queue] = at, since
	}
	for key, queues := range told.OffsetTable {
		topic, group, ok := splitOffsetKey(key)
		if !ok {
			continue
		}
		// Light queues that are off here stand in no table and have no end that is known (offsetTable.lower): nobody has removed them.
		dark := message.IsLMQ(topic) && b.offsets.light == ""
		for q, at := range queues {
			k := ownCommit{offsetKey{topic, group}, q}
			if !dark && !there(topic) {
				stands(key, q, removedAtMaster, b.offsets.setBack.last(k))
				continue
			}
			if !dark {
				at = min(at, end(topic, q))
			}
			var since int64
			set := false
			when, known := told.CommittedAt[key][q]
			have, done := b.offsets.commitIf([]byte(topic), []byte(group), q, at, func(have int64) bool {
				since = b.offsets.setBack.last(k)
				set = known && since > when
				return at > have && !set
			})
			switch log := b.log.With("slave", slave, "topic", topic, "group", group, "queue", q); {
			case set:
				log.Info("an offset that was committed to a slave is not taken over: it was set back here since", "committed", at, "is", have)
				stands(key, q, have, since) // removedAtMaster for nothing
			case done:
				log.Info("an offset that was committed to a slave meanwhile is taken over", "was", have, "is", at)
			}
		}
	}
	return setBack
}
