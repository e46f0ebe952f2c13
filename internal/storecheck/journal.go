package storecheck

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sync"

	"mqx/internal/sorted"
)

// Journal remembers what was sent and what was answered. It is safe to share.
type Journal struct {
	mu struct {
		sync.Mutex
		clock int64
		sends []Send
	}
}

// Send is one message on its way, and what became of it.
type Send struct {
	ID          uint64 // also its place in the journal
	Topic       string
	QueueID     int32
	Size        int
	Began       int64 // ticks of the journal's clock
	Acked       int64 // 0: not answered, or with an error
	QueueOffset int64
	Phys        int64 // -1: the answer did not tell
}

// idLen is the part of a body that says which message it is: the id, and its checksum.
const idLen = 12

// MinBody is the least size of a body.
const MinBody = idLen

// Body is the body of a message: nothing but its id and size decide about it.
func Body(id uint64, size int) []byte {
	b := make([]byte, 0, max(size, MinBody)+8)
	b = binary.BigEndian.AppendUint64(b, id)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	for x := id*0x9E3779B97F4A7C15 + 1; len(b) < size; {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return b[:max(size, MinBody)]
}

// bodyID reads the id out of a body.
func bodyID(b []byte) (uint64, bool) {
	if len(b) < idLen || crc32.ChecksumIEEE(b[:8]) != binary.BigEndian.Uint32(b[8:]) {
		return 0, false
	}
	return binary.BigEndian.Uint64(b), true
}

// Begin notes that a message is about to be sent and returns its body.
func (j *Journal) Begin(topic string, queueID int32, size int) (id uint64, body []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.mu.clock++
	id = uint64(len(j.mu.sends))
	j.mu.sends = append(j.mu.sends, Send{ID: id, Topic: topic, QueueID: queueID, Size: max(size, MinBody), Began: j.mu.clock, Phys: -1})
	return id, Body(id, size)
}

// Ack notes that a message was answered as stored. phys is -1 when the answer did not tell.
func (j *Journal) Ack(id uint64, queueOffset, phys int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.mu.clock++
	s := &j.mu.sends[id]
	s.Acked, s.QueueOffset, s.Phys = j.mu.clock, queueOffset, phys
}

// Snapshot returns a copy as of now: what is answered later is not in it, and what is sent later only when sent is set,
// as sent and not answered.
func (j *Journal) Snapshot() *Journal {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := &Journal{}
	c.mu.clock, c.mu.sends = j.mu.clock, slices.Clone(j.mu.sends)
	return c
}

// Adopt takes what a log holds for answered: a reader may have seen it. It fails for a record that was never sent.
func (j *Journal) Adopt(l *Log) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	topics := j.topics()
	for i := range l.Records {
		r := &l.Records[i]
		if !topics[r.Topic] {
			continue
		}
		id, ok := bodyID(r.Body)
		if !ok || id >= uint64(len(j.mu.sends)) {
			return fmt.Errorf("record at %d (queue %s/%d offset %d) was never sent", r.Phys, r.Topic, r.QueueID, r.QueueOffset)
		}
		if s := &j.mu.sends[id]; s.Acked == 0 {
			j.mu.clock++
			s.Acked, s.QueueOffset, s.Phys = j.mu.clock, r.QueueOffset, r.Phys
		}
	}
	return nil
}

// topics are those that messages were sent to; the lock is held.
func (j *Journal) topics() map[string]bool {
	topics := map[string]bool{}
	for i := range j.mu.sends {
		topics[j.mu.sends[i].Topic] = true
	}
	return topics
}

// Counts returns how many messages were sent, and how many of them answered.
func (j *Journal) Counts() (sent, acked int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.mu.sends {
		if j.mu.sends[i].Acked > 0 {
			acked++
		}
	}
	return len(j.mu.sends), acked
}

// Keep makes those messages the only answered ones for which keep returns true.
func (j *Journal) Keep(keep func(*Send) bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.mu.sends {
		if s := &j.mu.sends[i]; s.Acked > 0 && !keep(s) {
			s.Acked = 0
		}
	}
}

// Save writes the journal.
func (j *Journal) Save(w io.Writer) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return json.NewEncoder(w).Encode(j.mu.sends)
}

// LoadJournal reads what Save wrote.
func LoadJournal(r io.Reader) (*Journal, error) {
	j := &Journal{}
	if err := json.NewDecoder(r).Decode(&j.mu.sends); err != nil {
		return nil, fmt.Errorf("cannot read journal: %w", err)
	}
	for i := range j.mu.sends {
		j.mu.clock = max(j.mu.clock, j.mu.sends[i].Began, j.mu.sends[i].Acked)
	}
	return j, nil
}

// Check compares a log with the journal: every answered message is there exactly once, where the answer said, as it was
// sent; no message is there twice, and none that was not sent; and where one was answered before the next was sent, they
// have that order in their queue. Records of topics that the journal has never seen are passed over. Messages that were
// answered may lie before the start of the log.
func (j *Journal) Check(l *Log) []error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var errs []error
	add := func(format string, args ...any) {
		if len(errs) < 20 {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	topics := j.topics()
	found := make([]*Record, len(j.mu.sends))
	for i := range l.Records {
		r := &l.Records[i]
		if !topics[r.Topic] {
			continue
		}
		id, ok := bodyID(r.Body)
		if !ok || id >= uint64(len(j.mu.sends)) {
			add("record at %d (queue %s/%d offset %d) was never sent", r.Phys, r.Topic, r.QueueID, r.QueueOffset)
			continue
		}
		s := &j.mu.sends[id]
		if first := found[id]; first != nil {
			add("message %d is there twice: at %d and %d (queue %s/%d offsets %d and %d), answered offset %d", id, first.Phys, r.Phys, r.Topic, r.QueueID, first.QueueOffset, r.QueueOffset, s.QueueOffset)
			continue
		}
		found[id] = r
		if s.Topic != r.Topic || s.QueueID != r.QueueID || !bytes.Equal(r.Body, Body(id, s.Size)) {
			add("message %d at %d is not as it was sent: queue %s/%d with %d bytes, sent to %s/%d with %d", id, r.Phys, r.Topic, r.QueueID, len(r.Body), s.Topic, s.QueueID, s.Size)
		}
		if r.Torn {
			add("message %d at %d has torn properties", id, r.Phys)
		}
		if s.Acked > 0 && (s.QueueOffset != r.QueueOffset || s.Phys >= 0 && s.Phys != r.Phys) {
			add("message %d lies at %d, offset %d of queue %s/%d; answered was %d, offset %d", id, r.Phys, r.QueueOffset, r.Topic, r.QueueID, s.Phys, s.QueueOffset)
		}
	}
	errs = append(errs, j.lost(l, found)...)
	return append(errs, j.disordered(found)...)
}

// lost are answered messages that are not there; the lock is held.
func (j *Journal) lost(l *Log, found []*Record) []error {
	var errs []error
	minOffset := map[QueueKey]int64{}
	for i := range l.Records {
		r := &l.Records[i]
		if _, ok := minOffset[QueueKey{r.Topic, r.QueueID}]; !ok {
			minOffset[QueueKey{r.Topic, r.QueueID}] = r.QueueOffset
		}
	}
	n := 0
	for i := range j.mu.sends {
		s := &j.mu.sends[i]
		if s.Acked == 0 || found[i] != nil || s.Phys >= 0 && s.Phys < l.Min {
			continue
		}
		if least, ok := minOffset[QueueKey{s.Topic, s.QueueID}]; s.Phys < 0 && l.Min > 0 && (!ok || s.QueueOffset < least) {
			continue // it has left the log
		}
		if n++; n <= 5 {
			errs = append(errs, fmt.Errorf("message %d is lost: answered offset %d of queue %s/%d, position %d; the log ends at %d", s.ID, s.QueueOffset, s.Topic, s.QueueID, s.Phys, l.End))
		}
	}
	if n > 5 {
		errs = append(errs, fmt.Errorf("%d messages are lost in all", n))
	}
	return errs
}

// disordered are pairs of messages in a queue that lie in the wrong order: the first was answered before the other was
// sent. The lock is held.
func (j *Journal) disordered(found []*Record) []error {
	var errs []error
	byQueue := map[QueueKey][]*Record{}
	for i, r := range found {
		if r != nil {
			k := QueueKey{j.mu.sends[i].Topic, j.mu.sends[i].QueueID}
			byQueue[k] = append(byQueue[k], r)
		}
	}
	for k, recs := range byQueue {
		sorted.By(recs, func(a, b *Record) int { return cmp.Compare(a.QueueOffset, b.QueueOffset) })
		latest := &Send{}
		for _, r := range recs {
			id, _ := bodyID(r.Body)
			s := &j.mu.sends[id]
			if s.Acked > 0 && s.Acked < latest.Began {
				errs = append(errs, fmt.Errorf("queue %s/%d: message %d was answered before message %d was sent, and lies behind it", k.Topic, k.ID, s.ID, latest.ID))
				break
			}
			if s.Began > latest.Began {
				latest = s
			}
		}
	}
	return errs
}
