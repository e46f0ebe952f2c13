package broker

import (
	"cmp"
	"hash/maphash"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mqx/internal/fastjson"
	"mqx/internal/jsonfile"
	"mqx/internal/vfs"
	"mqx/remoting"
)

// offsetShards spreads the table over locks, so that a commit on one event
// loop does not wait for one on another, nor for a save.
const offsetShards = 64

// offsetKey names the offsets of a group in a topic.
type offsetKey struct{ topic, group string }

func (k offsetKey) String() string { return k.topic + "@" + k.group }

// groupOffsets are the positions of a group in the queues of one topic.
type groupOffsets struct {
	committed map[int32]int64
	pulled    map[int32]int64 // where the last pull of each queue began; lost at a stop of the process
	reset     map[int32]int64 // set by an operator, handed out once
}

type offsetShard struct {
	sync.RWMutex
	table map[offsetKey]*groupOffsets
}

// offsetTable is the committed offsets of all groups. Safe to share; all
// methods touch memory only, apart from Load and Save.
type offsetTable struct {
	// light, with light queues on, is the file that stands in for path; "" for none.
	light string
	fsys  vfs.FS
	path  string
	now   func() time.Time
	log   *slog.Logger
	step  int64  // commits a data version
	peers *peers // told of each change; nil for nobody

	seed    maphash.Seed
	shards  [offsetShards]offsetShard
	commits atomic.Int64
	dirty   atomic.Bool
	saving  sync.Mutex

	version struct {
		sync.Mutex
		remoting.DataVersion
	}
	kept remoting.DataVersion // of the file that was loaded; zero for none

	own      commitTimes // of a slave: what was committed to it and its master has not got
	ownEpoch atomic.Int64
	setBack  setBacks   // when somebody set an offset back
	taken    takenUntil // of a slave
}

func newOffsetTable(fsys vfs.FS, path string, now func() time.Time, step int64, log *slog.Logger) *offsetTable {
	t := &offsetTable{fsys: fsys, path: path, now: now, step: max(1, step), log: log, seed: maphash.MakeSeed()}
	for i := range t.shards {
		t.shards[i].table = map[offsetKey]*groupOffsets{}
	}
	t.version.DataVersion = remoting.NewDataVersion(now())
	return t
}

// Load reads consumerOffset.json. Only the committed offsets count, as in
// Apache. With no usable file and no usable backup it fails: starting at
// nothing would make every group consume everything again.
func (t *offsetTable) Load() error {
	var read offsetsFile
	parse := func(b []byte) error {
		read = offsetsFile{}
		return fastjson.Unmarshal(b, &read)
	}
	file := t.file()
	src, err := jsonfile.Load(t.fsys, file, parse)
	if err == nil && src == jsonfile.None && t.light != "" {
		// Light queues are on for the first time: what was committed before goes on.
		file = t.path
		src, err = jsonfile.Load(t.fsys, file, parse)
	}
	if err != nil {
		return err
	}
	if src == jsonfile.Backup {
		t.log.Warn("consumer offsets were loaded from the backup", "file", file)
	}
	t.loadLight(read.LMQOffsetTable)
	for name, queues := range read.OffsetTable {
		topic, group, ok := splitOffsetKey(name)
		if !ok {
			t.log.Warn("an entry of the consumer offsets is not topic@group and is left out", "entry", name)
			continue
		}
		for q, off := range queues {
			t.set(offsetKey{topic, group}, q, off)
		}
	}
	if src != jsonfile.None {
		t.version.DataVersion, t.kept = read.DataVersion, read.DataVersion
	}
	t.own.load(read.CommittedHere)
	t.ownEpoch.Store(read.CommittedEpoch)
	t.setBack.fromFile(read.SetBack, read.SetBackAll)
	t.taken.set(read.TakenFrom, read.TakenAt)
	t.dirty.Store(false)
	return nil
}

// splitOffsetKey cuts topic@group. Neither may hold an '@'.
func splitOffsetKey(s string) (topic, group string, ok bool) {
	topic, group, ok = strings.Cut(s, "@")
	return topic, group, ok && topic != "" && group != ""
}

func (t *offsetTable) shard(topic, group []byte) *offsetShard {
	h := maphash.Bytes(t.seed, topic) + 31*maphash.Bytes(t.seed, group)
	return &t.shards[h%offsetShards]
}

func (t *offsetTable) shardOf(k offsetKey) *offsetShard {
	h := maphash.String(t.seed, k.topic) + 31*maphash.String(t.seed, k.group)
	return &t.shards[h%offsetShards]
}

// Query is the offset a consumer starts at: a pending reset, else the committed
// one.
func (t *offsetTable) Query(topic, group []byte, queue int32) (int64, bool) {
	s := t.shard(topic, group)
	s.RLock()
	defer s.RUnlock()
	g := s.table[offsetKey{string(topic), string(group)}]
	if g == nil {
		return 0, false
	}
	if off, ok := g.reset[queue]; ok {
		return off, true
	}
	off, ok := g.committed[queue]
	return off, ok
}

// Committed is the committed offset, without a pending reset.
func (t *offsetTable) Committed(topic, group string, queue int32) (int64, bool) {
	k := offsetKey{topic, group}
	s := t.shardOf(k)
	s.RLock()
	defer s.RUnlock()
	g := s.table[k]
	if g == nil {
		return 0, false
	}
	off, ok := g.committed[queue]
	return off, ok
}

// Commit stores an offset. It may go back. While a reset of the queue is
// pending it is swallowed. old is what stood there, -1 for nothing.
func (t *offsetTable) Commit(topic, group []byte, queue int32, offset int64) (old int64, swallowed bool) {
	old, done := t.commitIf(topic, group, queue, offset, nil)
	return old, !done
}

// commitIf is Commit where may says so, which is asked under the lock with what stands there, -1 for nothing: consumers commit at
// the same time. done is false where nothing was stored.
func (t *offsetTable) commitIf(topic, group []byte, queue int32, offset int64, may func(old int64) bool) (old int64, done bool) {
	return t.commitAsOf(topic, group, queue, offset, 0, may)
}

// commitAsOf does so with what was set back at another broker at that time, in milliseconds of the epoch; 0: now.
func (t *offsetTable) commitAsOf(topic, group []byte, queue int32, offset, when int64, may func(old int64) bool) (old int64, done bool) {
	s := t.shard(topic, group)
	s.Lock()
	g := s.table[offsetKey{string(topic), string(group)}]
	old, pending := g.at(queue)
	if may != nil && !may(old) || pending {
		s.Unlock()
		return old, false
	}
	if g == nil {
		g = &groupOffsets{committed: map[int32]int64{}}
		s.table[offsetKey{string(topic), string(group)}] = g
	}
	g.committed[queue] = offset
	var resetAt int64
	if offset < old {
		resetAt = cmp.Or(when, t.now().UnixMilli())
		t.noteSetBack(offsetKey{string(topic), string(group)}, queue, resetAt)
	}
	s.Unlock()
	if old != offset && t.peers != nil && t.peers.active.Load() {
		t.peers.offset(string(topic), string(group), queue, offset, resetAt)
	}
	if t.counted(); offset < old {
		t.turned()
	}
	return old, true
}

// at is the committed offset of a queue, -1 for nothing, and whether a reset of it is pending. g may be nil.
func (g *groupOffsets) at(queue int32) (offset int64, pending bool) {
	if g == nil {
		return -1, false
	}
	_, pending = g.reset[queue]
	if offset, ok := g.committed[queue]; ok {
		return offset, pending
	}
	return -1, pending
}

// counted marks the table as changed, with a new data version each step commits.
func (t *offsetTable) counted() {
	t.dirty.Store(true)
	if t.commits.Add(1)%t.step == 0 {
		t.newVersion()
	}
}

// turned marks the table as changed by more than progress, with a new data version at once: what a slave of Apache still has of
// before does not come back (takeBackTable).
func (t *offsetTable) turned() {
	t.dirty.Store(true)
	t.newVersion()
}

func (t *offsetTable) newVersion() {
	t.version.Lock()
	defer t.version.Unlock()
	t.version.DataVersion = t.version.NextVersion(t.now())
}

func (t *offsetTable) set(k offsetKey, queue int32, offset int64) {
	s := t.shardOf(k)
	s.Lock()
	defer s.Unlock()
	s.get(k).committed[queue] = offset
	t.dirty.Store(true)
}

func (s *offsetShard) get(k offsetKey) *groupOffsets {
	g := s.table[k]
	if g == nil {
		g = &groupOffsets{committed: map[int32]int64{}}
		s.table[k] = g
	}
	return g
}

// Pulled remembers where a pull of the queue began.
func (t *offsetTable) Pulled(topic, group []byte, queue int32, offset int64) {
	s := t.shard(topic, group)
	s.Lock()
	defer s.Unlock()
	g := s.table[offsetKey{string(topic), string(group)}]
	if g == nil {
		g = s.get(offsetKey{string(topic), string(group)})
	}
	if g.pulled == nil {
		g.pulled = map[int32]int64{}
	}
	g.pulled[queue] = offset
}

// PullOffset is what Pulled remembers, the committed offset when it is behind
// that, 0 for nothing.
func (t *offsetTable) PullOffset(topic, group string, queue int32) int64 {
	k := offsetKey{topic, group}
	s := t.shardOf(k)
	s.RLock()
	defer s.RUnlock()
	g := s.table[k]
	if g == nil {
		return 0
	}
	return g.pulled[queue]
}

// Reset puts an offset in force: it is committed, and the next pull of the
// queue learns of it; commits until then are swallowed.
func (t *offsetTable) Reset(topic, group string, queue int32, offset int64) {
	k := offsetKey{topic, group}
	s := t.shardOf(k)
	s.Lock()
	g := s.get(k)
	g.committed[queue] = offset
	if g.reset == nil {
		g.reset = map[int32]int64{}
	}
	g.reset[queue] = offset
	t.noteSetBack(k, queue, 0)
	s.Unlock()
	t.tell(k, queue, offset)
	t.turned()
}

// tell tells slaves of an offset that somebody has set.
func (t *offsetTable) tell(k offsetKey, queue int32, offset int64) {
	if t.peers != nil && t.peers.active.Load() {
		t.peers.offset(k.topic, k.group, queue, offset, t.now().UnixMilli())
	}
}

// HasReset reports whether a reset of the queue is pending.
func (t *offsetTable) HasReset(topic, group []byte, queue int32) bool {
	s := t.shard(topic, group)
	s.RLock()
	defer s.RUnlock()
	g := s.table[offsetKey{string(topic), string(group)}]
	if g == nil || len(g.reset) == 0 {
		return false
	}
	_, ok := g.reset[queue]
	return ok
}

// TakeReset returns the pending reset of a queue and ends it.
func (t *offsetTable) TakeReset(topic, group []byte, queue int32) (int64, bool) {
	if !t.HasReset(topic, group, queue) {
		return 0, false
	}
	s := t.shard(topic, group)
	s.Lock()
	defer s.Unlock()
	g := s.table[offsetKey{string(topic), string(group)}]
	if g == nil {
		return 0, false
	}
	off, ok := g.reset[queue]
	delete(g.reset, queue)
	return off, ok
}

// RemoveTopic forgets all offsets of a topic, pulled and reset ones included.
func (t *offsetTable) RemoveTopic(topic string) {
	t.remove(func(k offsetKey) bool { return k.topic == topic }, ofTopic(topic))
}

// RemoveQueue forgets the offset of a group in one queue.
func (t *offsetTable) RemoveQueue(topic, group string, queue int32) {
	t.removeIf(topic, group, queue, 0, nil)
}

// removeIf does so where may says so, which is asked under the lock with what stands there; nil is always. when is as of commitAsOf.
// done is false where nothing was removed.
func (t *offsetTable) removeIf(topic, group string, queue int32, when int64, may func(old int64) bool) (done bool) {
	s := t.shardOf(offsetKey{topic, group})
	s.Lock()
	defer s.Unlock()
	g := s.table[offsetKey{topic, group}]
	if g == nil {
		return false
	}
	old, ok := g.committed[queue]
	if ok && may != nil && !may(old) {
		return false
	}
	if ok {
		delete(g.committed, queue)
		t.noteSetBack(offsetKey{topic, group}, queue, when)
		t.turned()
	}
	delete(g.reset, queue)
	return ok
}

// RemoveGroup forgets all offsets of a group, also those of its broadcast clients behind a proxy.
func (t *offsetTable) RemoveGroup(group string) {
	t.remove(func(k offsetKey) bool { return k.group == group || k.group == group+broadcastGroup }, ofGroup(group), ofGroup(group+broadcastGroup))
}

// remove drops what matches. The notes come first: who sees that something is gone sees its note, also a slave that has an offset
// which was lost here before.
func (t *offsetTable) remove(drop func(offsetKey) bool, notes ...ownCommit) {
	gone := false
	for _, k := range notes {
		t.noteSetBack(k.offsetKey, k.queue, 0)
	}
	t.dirty.Store(true)
	for i := range t.shards {
		s := &t.shards[i]
		s.Lock()
		for k := range s.table {
			if drop(k) {
				delete(s.table, k)
				gone = true
			}
		}
		s.Unlock()
	}
	if gone {
		t.turned()
	}
}

// Clone copies the committed offsets of src in a topic to dst.
func (t *offsetTable) Clone(src, dst, topic string) {
	from := t.Queues(topic, src)
	for q, off := range from {
		k := offsetKey{topic, dst}
		s := t.shardOf(k)
		s.Lock()
		s.get(k).committed[q] = off
		t.noteSetBack(k, q, 0)
		s.Unlock()
		t.tell(k, q, off)
	}
	t.turned()
}

// Queues are the committed offsets of a group in a topic; nil for none.
func (t *offsetTable) Queues(topic, group string) map[int32]int64 {
	k := offsetKey{topic, group}
	s := t.shardOf(k)
	s.RLock()
	defer s.RUnlock()
	g := s.table[k]
	if g == nil || len(g.committed) == 0 {
		return nil
	}
	out := make(map[int32]int64, len(g.committed))
	for q, off := range g.committed {
		out[q] = off
	}
	return out
}

// Topics lists the topics in which a group has committed offsets, sorted.
func (t *offsetTable) Topics(group string) []string {
	return t.list(func(k offsetKey) (string, bool) { return k.topic, k.group == group })
}

// Groups lists the groups that have committed offsets in a topic, sorted.
func (t *offsetTable) Groups(topic string) []string {
	return t.list(func(k offsetKey) (string, bool) { return k.group, k.topic == topic })
}

func (t *offsetTable) list(pick func(offsetKey) (string, bool)) []string {
	var out []string
	for i := range t.shards {
		s := &t.shards[i]
		s.RLock()
		for k, g := range s.table {
			if name, ok := pick(k); ok && len(g.committed) > 0 {
				out = append(out, name)
			}
		}
		s.RUnlock()
	}
	slices.Sort(out)
	return out
}

// Snapshot is the table in the form of consumerOffset.json.
func (t *offsetTable) Snapshot() remoting.ConsumerOffsets {
	out := remoting.ConsumerOffsets{
		GroupTopicMap:   map[string][]string{},
		OffsetTable:     map[string]map[int32]int64{},
		PullOffsetTable: map[string]map[int32]int64{},
	}
	for i := range t.shards {
		s := &t.shards[i]
		s.RLock()
		for k, g := range s.table {
			if len(g.committed) > 0 {
				out.OffsetTable[k.String()] = copyOffsets(g.committed)
				out.GroupTopicMap[k.group] = append(out.GroupTopicMap[k.group], k.topic)
			}
			if len(g.pulled) > 0 {
				out.PullOffsetTable[k.String()] = copyOffsets(g.pulled)
			}
		}
		s.RUnlock()
	}
	for _, topics := range out.GroupTopicMap {
		slices.Sort(topics)
	}
	t.version.Lock()
	out.DataVersion = t.version.DataVersion
	t.version.Unlock()
	return out
}

func copyOffsets(m map[int32]int64) map[int32]int64 {
	out := make(map[int32]int64, len(m))
	for q, off := range m {
		out[q] = off
	}
	return out
}

// Save writes the table when it has changed since the last save.
func (t *offsetTable) Save() error {
	t.saving.Lock()
	defer t.saving.Unlock()
	if !t.dirty.Swap(false) {
		return nil
	}
	from, at := t.taken.get() // before the offsets: those may have more than it says, and never less
	file := offsetsFile{ConsumerOffsets: t.inFile(t.Snapshot()), TakenFrom: from, TakenAt: at}
	// Behind the offsets: what is in the file has its note there, also when it was changed just now.
	file.CommittedHere = t.own.table()
	file.SetBack, file.SetBackAll = t.setBack.inFile()
	if file.CommittedHere != nil {
		file.CommittedEpoch = t.ownEpoch.Load()
	}
	b, err := fastjson.MarshalPretty(file)
	if err == nil {
		err = jsonfile.Save(t.fsys, t.file(), b)
	}
	if err != nil {
		t.dirty.Store(true)
		t.log.Error("consumer offsets could not be saved", "file", t.file(), "error", err)
	}
	return err
}
