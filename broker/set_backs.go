package broker

import (
	"strings"
	"sync"
	"time"

	"mqx/remoting"
)

// A table of offsets alone does not tell a reset from a master that is behind, nor a removal from a master that has lost its file.
// So a master of mqx tells its slaves beside the table what was set back or removed there, also those that were away then.

// setBackOverlap is how much of what it has been told a slave asks for again: single offsets that it was told before, and has taken
// over behind the table, may have undone it.
const setBackOverlap = time.Minute

// takenUntil is until when, by the clock of a master, a slave has what that has set back. Safe to share.
type takenUntil struct {
	sync.Mutex
	from string // the address of the master
	at   int64
}

// since is what a slave asks a master from; 0 for everything that it remembers.
func (t *takenUntil) since(master string) int64 {
	t.Lock()
	defer t.Unlock()
	if t.from != master {
		return 0
	}
	return max(0, t.at-setBackOverlap.Milliseconds())
}

func (t *takenUntil) set(from string, at int64) {
	t.Lock()
	defer t.Unlock()
	t.from, t.at = from, at
}

func (t *takenUntil) get() (from string, at int64) {
	t.Lock()
	defer t.Unlock()
	return t.from, t.at
}

// from is what was set back at a time or later, by key and queue.
func (s *setBacks) from(since int64) (table map[string]map[int32]int64, all int64) {
	s.Lock()
	defer s.Unlock()
	for k, when := range s.of {
		if when < since {
			continue
		}
		if table == nil {
			table = map[string]map[int32]int64{}
		}
		if table[k.String()] == nil {
			table[k.String()] = map[int32]int64{}
		}
		table[k.String()][k.queue] = when
	}
	if s.all >= since {
		all = s.all
	}
	return table, all
}

// Told is the table for a slave of mqx, with what was set back since it last asked; since is the time that it was told then.
func (t *offsetTable) Told(since int64) *remoting.ToldOffsets {
	out := &remoting.ToldOffsets{At: t.now().UnixMilli()} // before the table: what is set back from now on is told the next time again
	if since > out.At {
		since = 0 // the clock went back
	}
	out.ConsumerOffsets = t.Snapshot()
	out.SetBack, out.SetBackAll = t.setBack.from(since) // behind it: what is not in the table has its note
	return out
}

// takeTold takes over what the master has told of all offsets; end is where the queues of this slave end.
func (t *tables) takeTold(told *remoting.ToldOffsets, end func(topic string, queue int32) int64) {
	t.notes = told.At > 0 // the master is not one of Apache
	t.takeSetBacks(told)
	t.mergeTable(told.OffsetTable, end)
	if t.notes {
		t.b.offsets.taken.set(t.master, told.At)
	}
}

// takeSetBacks takes over what the master has set back, or removed, since this slave has last heard of it; not where a consumer has
// committed here since, by the clocks of both. What the master does not have and does not remember either stays. The notes are kept:
// this slave may be the master that tells the others.
func (t *tables) takeSetBacks(told *remoting.ToldOffsets) {
	own := t.b.offsets.own.copy()
	whole := told.SetBackAll > 0
	for key, queues := range told.SetBack {
		topic, group, _ := strings.Cut(key, "@")
		for q, when := range queues {
			k := ownCommit{offsetKey{topic, group}, q}
			t.takeSetBack(k, told, own, when, true)
			t.b.offsets.setBack.add(k, when)
		}
		whole = whole || topic == "" || group == ""
	}
	if !whole {
		return
	}
	for key, queues := range t.b.offsets.Snapshot().OffsetTable {
		topic, group, _ := strings.Cut(key, "@")
		removed := max(told.SetBack[ofTopic(topic).String()][-1], told.SetBack[ofGroup(group).String()][-1])
		for q := range queues {
			k := ownCommit{offsetKey{topic, group}, q}
			if removed > 0 {
				t.takeSetBack(k, told, own, removed, true)
			}
			if told.SetBackAll > 0 { // maybe this one: there are too many to be known one by one
				t.takeSetBack(k, told, own, told.SetBackAll, false)
			}
		}
	}
	t.b.offsets.setBack.addAll(told.SetBackAll)
}

// takeSetBack does so with one queue. known is whether it is known that this one was set back.
func (t *tables) takeSetBack(k ownCommit, told *remoting.ToldOffsets, own map[ownCommit]int64, when int64, known bool) {
	have, here := t.b.offsets.Committed(k.topic, k.group, k.queue)
	if since, mine := own[k]; !here || mine && since > when {
		return
	}
	same := func(old int64) bool { return old == have } // else a consumer commits at this moment
	log := t.b.log.With("topic", k.topic, "group", k.group, "queue", k.queue, "was", have)
	switch at, there := told.OffsetTable[k.String()][k.queue]; {
	case there && at < have:
		if _, done := t.b.offsets.commitAsOf([]byte(k.topic), []byte(k.group), k.queue, at, when, same); done {
			log.Info("an offset is set back as the master has done it", "is", at)
		}
	case !there && known:
		if t.b.offsets.removeIf(k.topic, k.group, k.queue, when, same) {
			log.Info("an offset is removed as the master has done it")
		}
	}
}
