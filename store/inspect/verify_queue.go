package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"mqx/internal/vfs"
	"mqx/internal/words"
	"mqx/message"
)

func compareAffected(a, b Affected) int {
	return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.From, b.From))
}

// queueTable is all queues: those that have files, and those that records name.
type queueTable struct {
	v  *verifier
	mu struct {
		sync.RWMutex
		byTopic map[string][]*vqueue
		all     []*vqueue
	}
	anyDir bool // there is a queue with files
	window int  // bytes of a queue that a worker keeps
}

// vqueue is one queue while it is compared.
type vqueue struct {
	key QueueKey
	no  int    // number in the table
	end int64  // offset behind the last unit that is right
	q   *Queue // nil: no files
	v   *verifier

	generation sync.Once
	genPhys    int64 // records before it with offsets from genOffset on are of an earlier topic of that name
	genOffset  int64

	mu struct {
		sync.Mutex
		good  bitPages // units that a record agrees with
		bad   []span   // numbers of units that a record does not agree with
		badAt string   // what is wrong with the first
		zero  []span   // offsets of records whose unit was never written
		first int64    // physical offset of the first record in zero
		max   int64    // behind the greatest offset of a record
		early int64    // store time of the first record in zero
		twice []span   // offsets that two records carry
		recs  int64
	}
}

func newQueueTable(v *verifier) (*queueTable, error) {
	t := &queueTable{v: v}
	t.mu.byTopic = map[string][]*vqueue{}
	keys, err := v.d.Queues()
	if err != nil {
		return nil, err
	}
	t.anyDir = len(keys) > 0
	for _, k := range keys {
		q, err := v.d.Queue(k)
		if vfs.Absent(err) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		q.misfits = nil // they are told as findings
		t.add(k, q)
	}
	t.window = min(16000, max(400, windowBudget/max(1, len(keys)*v.o.Workers)/20*20))
	return t, nil
}

// windowBudget bounds the parts of queues that are held at once by all workers.
const windowBudget = 16 << 20

func (t *queueTable) add(k QueueKey, q *Queue) *vqueue {
	x := &vqueue{key: k, q: q, v: t.v, no: len(t.mu.all)}
	x.mu.first = -1
	t.mu.all = append(t.mu.all, x)
	t.mu.byTopic[k.Topic] = append(t.mu.byTopic[k.Topic], x)
	return x
}

// of is the queue of a record. Batch says that the record belongs into a batch queue, if the topic has both kinds, or none.
func (t *queueTable) of(topic []byte, id int32, batch bool) (*vqueue, error) {
	t.mu.RLock()
	q := pickQueue(t.mu.byTopic[string(topic)], id, batch)
	t.mu.RUnlock()
	if q != nil {
		return q, nil
	}
	k := QueueKey{string(topic), id, batch}
	files, err := t.v.d.Queue(k) // a live broker may have made it meanwhile
	if err != nil && !vfs.Absent(err) {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if q := pickQueue(t.mu.byTopic[string(topic)], id, batch); q != nil {
		return q, nil
	}
	return t.add(k, files), nil
}

func (t *queueTable) at(no int) *vqueue {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.mu.all[no]
}

func pickQueue(list []*vqueue, id int32, batch bool) *vqueue {
	var other *vqueue
	for _, q := range list {
		if q.key.ID != id {
			continue
		}
		if q.key.Batch == batch {
			return q
		}
		other = q
	}
	return other
}

// bitPages is a set of numbers, in pages that are made when they are needed.
type bitPages map[int64]*[bitPage / 64]uint64

const bitPage = 4096

// page is a page of the set, made when it is not there. Its words are changed atomically.
func (b *bitPages) page(no int64) *[bitPage / 64]uint64 {
	if *b == nil {
		*b = bitPages{}
	}
	p := (*b)[no]
	if p == nil {
		p = new([bitPage / 64]uint64)
		(*b)[no] = p
	}
	return p
}

func (b *bitPages) has(n int64) bool {
	p := (*b)[n/bitPage]
	return p != nil && p[n%bitPage/64]&(1<<(n%64)) != 0
}

// see counts a record that no queue lists and none has to.
func (v *verifier) see(k QueueKey) {
	v.queues.mu.Lock()
	v.unseen[k.Topic]++
	v.queues.mu.Unlock()
}

// readQueues looks at every unit once more, from the queues' side.
func (v *verifier) readQueues() error {
	t := v.queues
	v.delays.settle()
	if v.allMissing() {
		return nil
	}
	scans := make([]*queueScan, len(t.mu.all))
	err := v.inParallel(len(scans), func(i int) (err error) {
		scans[i], err = t.mu.all[i].scan()
		if errors.Is(err, fs.ErrNotExist) && v.live {
			scans[i], err = &queueScan{}, nil
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := v.settlePlaces(scans); err != nil {
		return err
	}
	for i, s := range scans {
		t.mu.all[i].settle(s)
	}
	return nil
}

// allMissing reports one finding when no queue has files.
func (v *verifier) allMissing() bool {
	t := v.queues
	if t.anyDir || v.live || v.d.Has(KindRocksDBQueues) {
		return v.d.Has(KindRocksDBQueues)
	}
	spans, total := map[QueueKey][]span{}, int64(0)
	for _, q := range t.mu.all {
		if v.topicGone(q.key.Topic) {
			v.unseen[q.key.Topic] += q.mu.recs
			continue
		}
		spans[q.key] = q.mu.zero
		total += q.mu.recs
	}
	if total == 0 {
		return true
	}
	v.found.add(&Finding{
		Kind: FindQueueMissing, File: nameQueues, Offset: -1, Phys: v.logMin, Messages: total, Affected: affectedSpans(spans),
		What: fmt.Sprintf("there are no consume queues; the log holds %s of %d queues", words.Count(total, "message"), len(spans)),
		Mend: "build the queues from the log", Derived: true,
	})
	return true
}

// topicGone reports whether topics.json is readable and does not know a topic.
func (v *verifier) topicGone(topic string) bool {
	return v.topics != nil && !v.topics[topic] && !message.IsLMQ(topic)
}

// scan looks at the units of one queue; nil when it has no files.
func (q *vqueue) scan() (*queueScan, error) {
	if q.q == nil || len(q.q.files) == 0 {
		return nil, nil
	}
	s := &queueScan{q: q, v: q.v, lastGood: -1}
	return s, q.rest(s)
}

// settle reports what is wrong with a queue, of which s is what its units say. A scan of no queue is one whose files went
// away meanwhile.
func (q *vqueue) settle(s *queueScan) {
	v := q.v
	if s == nil {
		q.missing()
		return
	}
	if s.q == nil {
		return
	}
	for _, name := range q.q.others {
		v.foreign(filepath.Join(v.d.Path(q.key.Dir()), name), whyNoQueueFile(name))
	}
	v.units.Add(s.written)
	v.below.Add(s.below)
	v.fillers.Add(s.fillers)
	q.files()
	s.report()
	q.end = max(q.end, s.end)
}

// rest looks at the units that no record has been compared with. Pages of units that are right are passed over.
func (q *vqueue) rest(s *queueScan) error {
	if q.key.Batch {
		return q.q.Units(q.v.ctx, 0, noLimit, s.unit)
	}
	from := int64(0)
	for _, no := range slices.Sorted(maps.Keys(q.mu.good)) {
		if !fullPage(q.mu.good[no]) {
			continue
		}
		if err := q.q.Units(q.v.ctx, from, no*bitPage, s.unit); err != nil {
			return err
		}
		s.right(no*bitPage, bitPage)
		from = (no + 1) * bitPage
	}
	return q.q.Units(q.v.ctx, from, noLimit, s.unit)
}

func fullPage(p *[bitPage / 64]uint64) bool {
	for _, w := range p {
		if w != math.MaxUint64 {
			return false
		}
	}
	return true
}

func whyNoQueueFile(name string) string {
	if _, ok := fileNumber(name); ok {
		return ErrNoFile.Error()
	}
	return "its name is that of no queue file"
}

func (q *vqueue) finding(kind FindingKind, file string, offset int64, what string) *Finding {
	return &Finding{
		Kind: kind, File: file, Offset: offset, Phys: -1, What: what, queue: &q.key,
		Mend: "build the queue from the log", Derived: true,
	}
}

// missing reports a queue that has records and no files.
func (q *vqueue) missing() {
	v := q.v
	if q.mu.recs == 0 {
		if q.q != nil && len(q.q.files) == 0 && len(q.q.others) > 0 {
			for _, name := range q.q.others {
				v.foreign(filepath.Join(v.d.Path(q.key.Dir()), name), whyNoQueueFile(name))
			}
		}
		return
	}
	if v.topicGone(q.key.Topic) {
		v.unseen[q.key.Topic] += q.mu.recs
		return
	}
	for _, name := range []string{path.Dir(q.key.Dir()), q.key.Dir()} {
		if _, file, err := v.d.stat(name); err == nil && file && !v.found.has(FindForeign, name) {
			v.foreign(v.d.Path(name), "a file lies where a directory belongs")
		}
	}
	f := q.finding(FindQueueMissing, q.key.Dir(), -1, fmt.Sprintf("queue %s has no files; the log holds %s of it", q.key, words.Count(q.mu.recs, "message")))
	f.Phys, f.Messages = q.mu.first, q.mu.recs
	f.Affected = affectedSpans(map[QueueKey][]span{q.key: q.mu.zero})
	f.Note = q.pending()
	v.found.add(f)
}

// pendingTime is how long mqx may keep units in memory: they are written out every second.
const pendingTime = 5 * time.Second

// pending reports whether units that are missing may just not have been written yet when the broker died, or now.
func (q *vqueue) pending() bool {
	v := q.v
	switch {
	case v.live:
		return true
	case !v.dirty || !v.ownUnits:
		return false
	}
	return v.maxStore-q.mu.early < pendingTime.Milliseconds()
}

// files reports files of a queue that cannot be where or what they are.
func (q *vqueue) files() {
	size := q.q.FileSize()
	unit := q.key.UnitBytes()
	if size > 0 && size%unit != 0 {
		size = q.q.files[0].Size
	}
	for i, f := range q.q.files {
		var what string
		switch {
		case f.Size != size || f.Size%unit != 0:
			what = fmt.Sprintf("the file has %s, others of the queue have %d", words.Count(f.Size, "byte"), size)
		case size > 0 && f.Start%size != 0:
			what = fmt.Sprintf("its name is no position where a file of %d bytes begins", size)
		case i > 0 && f.Start > q.q.files[i-1].Start+size:
			what = fmt.Sprintf("the file before it, %s, is missing", FileName(f.Start-size))
		default:
			continue
		}
		if q.v.live && i == len(q.q.files)-1 {
			continue // it is being made
		}
		x := q.finding(FindQueueFiles, q.v.d.Rel(f.Path), 0, what)
		x.Messages = -1
		q.v.found.add(x)
	}
}
