package pop

import (
	"math"
	"slices"
	"strings"

	"mqx/internal/fastjson"
)

// OrderInfo is the messages of one queue that an ordered pop handed out last:
// until they are acknowledged or visible again, nobody else gets any of that
// queue. It is an entry of consumerOrderInfo.json.
type OrderInfo struct {
	AttemptID     string          `json:"a,omitempty"`
	CommitBits    int64           `json:"cm"`
	Invisible     int64           `json:"i"` // ms
	LastConsume   int64           `json:"l"` // ms
	Offsets       []int64         `json:"o"` // the first is absolute, the others are counted from it
	ConsumedCount map[int64]int32 `json:"oc,omitempty"`
	NextVisible   map[int64]int64 `json:"ot,omitempty"` // ms, by offset: changed invisible times
	PopTime       int64           `json:"popTime"`
}

// maxOrdered is the most messages of one ordered pop: their marks are 64 bits.
const maxOrdered = 64

func newOrderInfo(attempt string, popTime, invisible int64, offsets []int64, now int64) *OrderInfo {
	o := &OrderInfo{AttemptID: attempt, PopTime: popTime, Invisible: invisible, LastConsume: now}
	for i, off := range offsets {
		if i > 0 {
			off -= offsets[0]
		}
		o.Offsets = append(o.Offsets, off)
	}
	return o
}

func (o *OrderInfo) offset(i int) int64 {
	if i == 0 {
		return o.Offsets[0]
	}
	return o.Offsets[0] + o.Offsets[i]
}

func (o *OrderInfo) index(offset int64) int {
	for i := range o.Offsets {
		if o.offset(i) == offset {
			return i
		}
	}
	return -1
}

func (o *OrderInfo) acked(i int) bool { return o.CommitBits&(1<<i) != 0 }

// visible is when message i is visible again.
func (o *OrderInfo) visible(i int, invisible int64) int64 {
	if at, ok := o.NextVisible[o.offset(i)]; ok {
		return at
	}
	return After(o.PopTime, invisible)
}

// blocks reports whether the queue is closed to a pop with that attempt id. A
// pop that repeats an attempt gets the same messages again.
func (o *OrderInfo) blocks(attempt string, invisible, now int64) bool {
	if len(o.Offsets) == 0 || o.AttemptID != "" && o.AttemptID == attempt {
		return false
	}
	if o.Invisible <= 0 {
		o.Invisible = invisible
	}
	for i := range o.Offsets {
		if !o.acked(i) && now < o.visible(i, o.Invisible) {
			return true
		}
	}
	return false
}

// freeAt is when the queue opens; ok is false when that is not known.
func (o *OrderInfo) freeAt(now int64) (at int64, ok bool) {
	if len(o.Offsets) == 0 {
		return 0, false
	}
	for i := range o.Offsets {
		if o.acked(i) {
			continue
		}
		if o.Invisible <= 0 {
			return 0, false
		}
		if at := o.visible(i, o.Invisible); now < at {
			return at, true
		}
	}
	return now, true
}

// next is the offset to commit: that of the first message without an ack.
func (o *OrderInfo) next() int64 {
	for i := range o.Offsets {
		if !o.acked(i) {
			return o.offset(i)
		}
	}
	return o.offset(len(o.Offsets)-1) + 1
}

// countAttempts takes over how often messages were handed out before.
func (o *OrderInfo) countAttempts(old *OrderInfo) {
	if old.AttemptID != "" && old.AttemptID == o.AttemptID {
		o.ConsumedCount = old.ConsumedCount
		return
	}
	o.ConsumedCount = map[int64]int32{}
	for i := range o.Offsets {
		if off := o.offset(i); old.index(off) >= 0 {
			o.ConsumedCount[off] = old.ConsumedCount[off] + 1
		}
	}
}

// Orders is the state of ordered consumption of all queues. Not safe to share.
type Orders struct {
	table map[string]map[int32]*OrderInfo // topic@group
}

// NewOrders returns an empty table.
func NewOrders() *Orders { return &Orders{table: map[string]map[int32]*OrderInfo{}} }

func orderKey(topic, group string) string { return topic + "@" + group }

func (t *Orders) get(q QueueKey) *OrderInfo { return t.table[orderKey(q.Topic, q.Group)][q.Queue] }

// Update notes what an ordered pop handed out, and appends to counts how often
// each message was handed out before (orderCountInfo). offsets must not be
// empty.
func (t *Orders) Update(q QueueKey, attempt string, popTime, invisible int64, offsets []int64, now int64, counts []byte) []byte {
	o := newOrderInfo(attempt, popTime, invisible, offsets[:min(len(offsets), maxOrdered)], now)
	k := orderKey(q.Topic, q.Group)
	if t.table[k] == nil {
		t.table[k] = map[int32]*OrderInfo{}
	}
	if old := t.table[k][q.Queue]; old != nil {
		o.countAttempts(old)
	}
	t.table[k][q.Queue] = o
	kind, least := Kind(q.Topic), int32(math.MaxInt32)
	for i := range o.Offsets {
		off := o.offset(i)
		if n, ok := o.ConsumedCount[off]; ok {
			counts = appendOrderCount(counts, kind, q.Queue, off, n)
			least = min(least, n)
		}
	}
	if len(o.ConsumedCount) != len(o.Offsets) {
		least = 0 // some are new
	}
	// The queue's own count is for old clients.
	return AppendStart(counts, kind, q.Queue, int64(least))
}

// Blocked reports whether a queue is closed to a pop with that attempt id.
func (t *Orders) Blocked(q QueueKey, attempt string, invisible, now int64) bool {
	o := t.get(q)
	return o != nil && o.blocks(attempt, invisible, now)
}

// Clear opens a queue.
func (t *Orders) Clear(q QueueKey) { delete(t.table[orderKey(q.Topic, q.Group)], q.Queue) }

// AckResult is what became of an ordered ack.
type AckResult int8

// Results of an ordered ack.
const (
	AckCommit  AckResult = iota // the consumer offset is to become the one returned
	AckIllegal                  // the message was not handed out
	AckOld                      // the queue was handed out again since, or nothing is known of that: nothing changes
)

// Ack marks a message as consumed and returns the offset to commit; committed is
// the one of now, -1 for none. When it is not known what was handed out (the state
// is lost, or the queue was reset), only the message at the committed offset moves
// it: those before any other may not be done.
func (t *Orders) Ack(q QueueKey, offset, popTime, committed int64) (next int64, res AckResult) {
	o := t.get(q)
	switch {
	case o == nil && offset == committed:
		return offset + 1, AckCommit
	case o == nil:
		return 0, AckOld
	case len(o.Offsets) == 0:
		return 0, AckIllegal
	case popTime != o.PopTime:
		return 0, AckOld
	}
	i := o.index(offset)
	if i < 0 || i >= maxOrdered {
		return 0, AckIllegal
	}
	o.CommitBits |= 1 << i
	return o.next(), AckCommit
}

// ChangeVisible sets when a message is visible again. It changes nothing when
// the queue was handed out again since.
func (t *Orders) ChangeVisible(q QueueKey, offset, popTime, at int64) {
	o := t.get(q)
	if o == nil || o.PopTime != popTime {
		return
	}
	if o.NextVisible == nil {
		o.NextVisible = map[int64]int64{}
	}
	if o.index(offset) >= 0 {
		o.NextVisible[offset] = at
	}
}

// FreeAt is when a queue opens; ok is false when it is not closed, or for ever.
func (t *Orders) FreeAt(q QueueKey, now int64) (at int64, ok bool) {
	o := t.get(q)
	if o == nil {
		return 0, false
	}
	return o.freeAt(now)
}

// All yields the queues of the table.
func (t *Orders) All(yield func(QueueKey) bool) {
	for k, queues := range t.table {
		topic, group, _ := strings.Cut(k, "@")
		for q := range queues {
			if !yield(QueueKey{topic, group, q}) {
				return
			}
		}
	}
}

// staleMs is how long a queue may stay unused before Clean forgets it.
const staleMs = 24 * 3600 * 1000

// Clean forgets queues that keep refuses and those unused for a day.
func (t *Orders) Clean(now int64, keep func(QueueKey) bool) {
	for k, queues := range t.table {
		topic, group, ok := strings.Cut(k, "@")
		for q, o := range queues {
			if !ok || now-o.LastConsume > staleMs || !keep(QueueKey{topic, group, q}) {
				delete(queues, q)
			}
		}
		if len(queues) == 0 {
			delete(t.table, k)
		}
	}
}

// ordersFile is consumerOrderInfo.json.
type ordersFile struct {
	Count int32                           `json:"orderInfoCount"`
	Level string                          `json:"orderedConsumptionLevel"`
	Table map[string]map[int32]*OrderInfo `json:"table"`
}

// Encode is the content of consumerOrderInfo.json.
func (t *Orders) Encode() ([]byte, error) {
	return fastjson.MarshalPretty(ordersFile{Count: int32(len(t.table)), Level: "QUEUE", Table: t.table})
}

// Decode takes the table from the content of consumerOrderInfo.json. On an
// error it is unchanged.
func (t *Orders) Decode(data []byte) error {
	var read ordersFile
	if err := fastjson.Unmarshal(data, &read); err != nil {
		return err
	}
	table := map[string]map[int32]*OrderInfo{}
	for k, queues := range read.Table {
		table[k] = map[int32]*OrderInfo{}
		for q, o := range queues {
			if o != nil && len(o.Offsets) <= maxOrdered {
				table[k][q] = o
			}
		}
	}
	t.table = table
	return nil
}

// Offsets lists the offsets of the messages that a queue is closed for, in
// order; nil when there is no entry.
func (t *Orders) Offsets(q QueueKey) []int64 {
	o := t.get(q)
	if o == nil {
		return nil
	}
	out := make([]int64, 0, len(o.Offsets))
	for i := range o.Offsets {
		out = append(out, o.offset(i))
	}
	slices.Sort(out)
	return out
}
