package broker

import (
	"maps"
	"strings"
	"sync"

	"mqx/remoting"
)

const (
	// ownCommitsMost bounds the queues of which a slave remembers that a consumer committed to it.
	ownCommitsMost = 100_000
	// setBackMost bounds the queues of which a broker remembers when their offset was set back.
	setBackMost = 10_000
)

// ownCommit names a queue of a group.
type ownCommit struct {
	offsetKey
	queue int32
}

// commitTimes are times, in milliseconds of the epoch, by queue of a group. Safe to share.
type commitTimes struct {
	sync.Mutex
	of map[ownCommit]int64
}

// copy is what is remembered now.
func (c *commitTimes) copy() map[ownCommit]int64 {
	c.Lock()
	defer c.Unlock()
	return maps.Clone(c.of)
}

// table is that in the form of a file; nil for nothing.
func (c *commitTimes) table() map[string]map[int32]int64 {
	c.Lock()
	defer c.Unlock()
	if len(c.of) == 0 {
		return nil
	}
	out := map[string]map[int32]int64{}
	for k, when := range c.of {
		if out[k.String()] == nil {
			out[k.String()] = map[int32]int64{}
		}
		out[k.String()][k.queue] = when
	}
	return out
}

// load takes over what a file has.
func (c *commitTimes) load(table map[string]map[int32]int64) {
	c.Lock()
	defer c.Unlock()
	c.of = map[ownCommit]int64{}
	for name, queues := range table {
		topic, group, ok := strings.Cut(name, "@")
		if !ok {
			continue
		}
		for q, when := range queues {
			c.of[ownCommit{offsetKey{topic, group}, q}] = when
		}
	}
}

// ofTopic and ofGroup name all queues of a topic, or of a group, that was removed.
func ofTopic(topic string) ownCommit { return ownCommit{offsetKey{topic: topic}, -1} }
func ofGroup(group string) ownCommit { return ownCommit{offsetKey{group: group}, -1} }

// setBacks are when somebody has set offsets back, or removed them. Safe to share.
type setBacks struct {
	commitTimes
	all int64 // under its lock: nothing is known one by one of what was set back until then
}

// add remembers a time. Where there are too many, all are forgotten in the same step: a queue may count as set back that was not
// then, and never the other way round.
func (s *setBacks) add(k ownCommit, when int64) {
	s.Lock()
	defer s.Unlock()
	if s.of == nil {
		s.of = map[ownCommit]int64{}
	}
	if _, known := s.of[k]; known || len(s.of) < setBackMost {
		s.of[k] = max(s.of[k], when)
		return
	}
	for _, w := range s.of {
		when = max(when, w)
	}
	s.all = max(s.all, when)
	clear(s.of)
}

// addAll remembers that until a time any of them may have been set back.
func (s *setBacks) addAll(when int64) {
	s.Lock()
	defer s.Unlock()
	s.all = max(s.all, when)
}

// last is when an offset was set back last; 0: never, as far as is known.
func (s *setBacks) last(k ownCommit) int64 {
	s.Lock()
	defer s.Unlock()
	return max(s.of[k], s.of[ofTopic(k.topic)], s.of[ofGroup(k.group)], s.all)
}

// inFile is what a file has of it.
func (s *setBacks) inFile() (table map[string]map[int32]int64, all int64) {
	table = s.table()
	s.Lock() // behind the table: what was forgotten since is in both
	defer s.Unlock()
	return table, s.all
}

// fromFile takes that over.
func (s *setBacks) fromFile(table map[string]map[int32]int64, all int64) {
	s.load(table)
	s.Lock()
	defer s.Unlock()
	s.all = all
}

// note remembers a time unless there are as many as may be.
func (c *commitTimes) note(k ownCommit, when int64, most int) bool {
	c.Lock()
	defer c.Unlock()
	if c.of == nil {
		c.of = map[ownCommit]int64{}
	}
	if _, known := c.of[k]; !known && len(c.of) >= most {
		return false
	}
	c.of[k] = when
	return true
}

// offsetsFile is what the file of offsets holds: Apache's table, and what mqx remembers of it, which Apache passes over.
type offsetsFile struct {
	remoting.ConsumerOffsets
	// CommittedHere is, at a slave, when a consumer committed to it last what its master has not got yet.
	CommittedHere map[string]map[int32]int64 `json:"mqxCommittedHere,omitempty"`
	// CommittedEpoch is the epoch of the group then.
	CommittedEpoch int64 `json:"mqxCommittedEpoch,omitempty"`
	// SetBack is when an offset was last set back or removed; what was set back before SetBackAll is not known one by one.
	SetBack    map[string]map[int32]int64 `json:"mqxSetBack,omitempty"`
	SetBackAll int64                      `json:"mqxSetBackAll,omitempty"`
	// TakenAt is, at a slave, until when, by the clock of the master TakenFrom, it has what that has set back.
	TakenFrom string `json:"mqxTakenFrom,omitempty"`
	TakenAt   int64  `json:"mqxTakenAt,omitempty"`
}

// commitOwn is Commit at a slave; noted is as of noteOwn. What a consumer only repeats is no news: with the time of the repetition it
// would stand above what somebody has reset at the master meanwhile.
func (t *offsetTable) commitOwn(topic, group []byte, queue int32, offset, epoch int64) (old int64, swallowed, noted bool) {
	old, swallowed = t.Commit(topic, group, queue, offset)
	return old, swallowed, swallowed || old == offset || t.noteOwn(string(topic), string(group), queue, epoch)
}

// noteOwn remembers that a consumer committed to this slave what is in the table; false where it remembers too many already. It
// comes behind the commit. epoch is that of the master which is away.
func (t *offsetTable) noteOwn(topic, group string, queue int32, epoch int64) bool {
	t.own.Lock()
	if len(t.own.of) == 0 {
		t.ownEpoch.Store(epoch)
	}
	t.own.Unlock()
	ok := t.own.note(ownCommit{offsetKey{topic, group}, queue}, t.now().UnixMilli(), ownCommitsMost)
	t.dirty.Store(true)
	return ok
}

// forgetOwn is for a broker that became the master: what was committed to it is what there is.
func (t *offsetTable) forgetOwn() error {
	if len(t.own.copy()) == 0 {
		return nil
	}
	t.own.load(nil)
	t.dirty.Store(true)
	return t.Save()
}

// settleOwn forgets what the master has now, or what has moved on there, and reports whether that is anything.
func (t *offsetTable) settleOwn(told map[string]map[int32]int64) bool {
	t.own.Lock() // during the look too: a consumer that commits now notes it behind that
	defer t.own.Unlock()
	gone := false
	for k := range t.own.of {
		at, there := told[k.String()][k.queue]
		if have, ok := t.Committed(k.topic, k.group, k.queue); !ok || there && at >= have {
			delete(t.own.of, k)
			gone = true
		}
	}
	if gone {
		t.dirty.Store(true)
	}
	return gone
}

// noteSetBack remembers that somebody has set an offset back, or removed it: what was committed to a slave before is not taken
// over then. when is the time at the broker where that was, 0 for now: a slave that hears of it later must not take what was committed
// elsewhere meanwhile for older. It is called under the lock of the part of the table, so that whoever sees the offset sees the note.
func (t *offsetTable) noteSetBack(k offsetKey, queue int32, when int64) {
	if when == 0 {
		when = t.now().UnixMilli()
	}
	t.setBack.add(ownCommit{k, queue}, when)
}
