package staticmap

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"mqx/remoting"
)

// Detail is what one broker has of a static topic.
type Detail = remoting.TopicQueueMappingDetail

// Bounds of a mapping: what is beyond them is refused.
const (
	maxQueues    = 16384 // logical queues
	maxStretches = 4096  // of one logical queue
)

// scopeGlobal is the scope of all mappings so far.
const scopeGlobal = "__global__"

// mockPrefix begins the broker name under which clients know logical queues.
const mockPrefix = "__syslo__"

// Mapping is what one broker has of a static topic, ready for requests. It is never changed; a new one takes its place.
type Mapping struct {
	detail Detail
	queues map[int32]Queue
	led    []int32 // the logical queues led here, sorted
}

// New makes the mapping of a detail, which is copied. It is not checked: see Check.
func New(d *Detail) *Mapping {
	m := &Mapping{detail: *d, queues: map[int32]Queue{}}
	m.detail.CurrIDMap = map[int32]int32{}
	m.detail.HostedQueues = map[int32][]Item{}
	if m.detail.Scope == "" {
		m.detail.Scope = scopeGlobal
	}
	for id, items := range d.HostedQueues {
		own := slices.Clone(items)
		if own == nil {
			own = []Item{}
		}
		m.detail.HostedQueues[id], m.queues[id] = own, own
		if Queue(own).LedBy(d.BName) {
			m.led = append(m.led, id)
		}
	}
	slices.Sort(m.led)
	return m
}

// Detail is the mapping as it is written and sent. It must not be changed.
func (m *Mapping) Detail() *Detail { return &m.detail }

// Broker is the name of the broker whose mapping this is.
func (m *Mapping) Broker() string { return m.detail.BName }

// Queue is the logical queue of an id. ok is false when this broker knows nothing of it.
func (m *Mapping) Queue(id int32) (q Queue, ok bool) {
	q, ok = m.queues[id]
	return q, ok && len(q) > 0
}

// Led is the logical queue of an id that this broker leads. ok is false when it does not.
func (m *Mapping) Led(id int32) (q Queue, ok bool) {
	q = m.queues[id]
	return q, q.LedBy(m.detail.BName)
}

// AnyLed is a logical queue that this broker leads, for a message that does not say to which it goes: the n-th of them,
// counted in a circle. ok is false when it leads none. (Apache takes the first it knows of, led here or not.)
func (m *Mapping) AnyLed(n int) (id int32, ok bool) {
	if len(m.led) == 0 {
		return 0, false
	}
	return m.led[n%len(m.led)], true
}

// Landing is where a message goes that was meant for a physical queue here when it was sent and comes to it only now (delayed,
// or committed later): there still, when the queue leads; else to the leading queue of the same logical one, else to any that
// leads here. ok is false when none does.
func (m *Mapping) Landing(physical int32) (queue int32, ok bool) {
	for _, id := range m.led {
		it, _ := m.queues[id].Leader()
		if it.QueueID == physical {
			return physical, true
		}
	}
	for _, id := range m.led {
		if slices.ContainsFunc(m.queues[id], func(it Item) bool { return it.BName == m.detail.BName && it.QueueID == physical }) {
			it, _ := m.queues[id].Leader()
			return it.QueueID, true
		}
	}
	id, ok := m.AnyLed(int(physical))
	if !ok {
		return physical, false
	}
	it, _ := m.queues[id].Leader()
	return it.QueueID, true
}

// Mock is the broker name under which clients know the logical queues.
func (m *Mapping) Mock() string { return MockBroker(m.detail.Scope) }

// MockBroker is the broker name of the logical queues of a scope.
func MockBroker(scope string) string {
	if scope == scopeGlobal {
		scope = scope[2:]
	}
	return mockPrefix + scope
}

// Info is what name servers are told: which logical queues are led here, on which physical ones.
func (m *Mapping) Info() remoting.TopicQueueMappingInfo {
	info := m.detail.TopicQueueMappingInfo
	info.Dirty, info.CurrIDMap = false, map[int32]int32{}
	for _, id := range m.led {
		it, _ := m.queues[id].Leader()
		info.CurrIDMap[id] = it.QueueID
	}
	return info
}

// Check reports what is wrong with a detail by itself.
func Check(d *Detail) error {
	if d.TotalQueues < 0 || d.TotalQueues > maxQueues || len(d.HostedQueues) > maxQueues {
		return fmt.Errorf("%d queues are out of range 0 to %d", max(int(d.TotalQueues), len(d.HostedQueues)), maxQueues)
	}
	for _, id := range slices.Sorted(maps.Keys(d.HostedQueues)) {
		if id < 0 || id >= maxQueues {
			return fmt.Errorf("queue %d is out of range 0 to %d", id, maxQueues-1)
		}
		if err := Queue(d.HostedQueues[id]).check(); err != nil {
			return fmt.Errorf("queue %d: %w", id, err)
		}
	}
	return nil
}

// check looks at the stretches: generations and logical offsets rise, and none reaches the next one.
func (q Queue) check() error {
	if len(q) > maxStretches {
		return fmt.Errorf("%d stretches are more than %d", len(q), maxStretches)
	}
	for i, it := range q {
		switch {
		case it.StartOffset < 0 || it.Gen < 0 || it.QueueID < 0:
			return errors.New("The field is illegal, should not be negative") //nolint:staticcheck // Apache's words
		case it.BName == "":
			return fmt.Errorf("the stretch of generation %d names no broker", it.Gen)
		case i < len(q)-1 && !Decided(it):
			return errors.New("The non-latest item has negative logic offset") //nolint:staticcheck // Apache's words
		case it.EndOffset != -1 && it.EndOffset < it.StartOffset:
			return errors.New("The endOffset is smaller than the start offset") //nolint:staticcheck // Apache's words
		case it.LogicOffset > math.MaxInt64/2 || it.StartOffset > math.MaxInt64/2:
			return fmt.Errorf("an offset beyond %d", int64(math.MaxInt64/2))
		}
		if i == 0 {
			continue
		}
		before := q[i-1]
		if it.Gen <= before.Gen {
			return errors.New("The gen does not increase monotonically") //nolint:staticcheck // Apache's words
		}
		if !Decided(it) {
			continue
		}
		if it.LogicOffset <= before.LogicOffset {
			return errors.New("The base logic offset does not increase monotonically") //nolint:staticcheck // Apache's words
		}
		if before.EndOffset >= before.StartOffset && Logic(before, before.EndOffset) >= it.LogicOffset {
			return errors.New("The max logic offset does not increase monotonically") //nolint:staticcheck // Apache's words
		}
	}
	return nil
}

// Merge is what becomes of a broker's mapping when it is told a new one: the new one, with the queues that it does not name
// kept from the old. old is nil where there is none. Unless forced, an earlier epoch, another scope, or stretches that
// contradict what is known are refused: a mapping only goes forward. (Apache makes the comparison of stretches an assertion,
// which servers do not check.)
func Merge(old *Mapping, d *Detail, force bool) (*Mapping, error) {
	if err := Check(d); err != nil {
		return nil, err
	}
	m := New(d)
	if old == nil {
		return m, nil
	}
	had := &old.detail
	if !force {
		if d.Epoch < had.Epoch {
			return nil, fmt.Errorf("Can't accept data with small epoch %d < %d", d.Epoch, had.Epoch) //nolint:staticcheck // Apache's words
		}
		if m.detail.Scope != had.Scope {
			return nil, fmt.Errorf("Can't accept data with unmatched scope %s != %s", m.detail.Scope, had.Scope) //nolint:staticcheck // Apache's words
		}
	}
	same := d.Epoch == had.Epoch
	merged := m.detail
	for _, id := range slices.Sorted(maps.Keys(had.HostedQueues)) {
		was := had.HostedQueues[id]
		is, ok := merged.HostedQueues[id]
		switch {
		case force && ok:
		case force:
			merged.HostedQueues[id] = was
		case !ok && same:
			return nil, errors.New("Cannot accept equal epoch with null data") //nolint:staticcheck // Apache's words
		case !ok:
			merged.HostedQueues[id] = was
		default:
			if err := follows(was, is, same); err != nil {
				return nil, fmt.Errorf("queue %d: %w", id, err)
			}
		}
	}
	return New(&merged), nil
}

// follows reports whether the stretches is may come after was: those of one generation are the same, but that a logical
// offset may be decided, once; the oldest may be missing on either side.
func follows(was, is Queue, sameEpoch bool) error {
	if len(was) == 0 {
		return nil
	}
	if len(is) == 0 {
		return errors.New("The new item list is null or empty") //nolint:staticcheck // Apache's words
	}
	for i, j := 0, 0; i < len(was) && j < len(is); {
		a, b := was[i], is[j]
		switch {
		case b.Gen < a.Gen:
			j++
			continue
		case a.Gen < b.Gen:
			i++
			continue
		case a.BName != b.BName || a.QueueID != b.QueueID || a.StartOffset != b.StartOffset || Decided(a) && a.LogicOffset != b.LogicOffset:
			return fmt.Errorf("generation %d is queue %d of %s from %d at %d, and that does not become queue %d of %s from %d at %d", a.Gen,
				a.QueueID, a.BName, a.StartOffset, a.LogicOffset, b.QueueID, b.BName, b.StartOffset, b.LogicOffset)
		}
		i++
		j++
	}
	if !sameEpoch {
		return nil
	}
	a, b := was[len(was)-1], is[len(is)-1]
	if a.Gen != b.Gen || a.BName != b.BName || a.QueueID != b.QueueID || a.StartOffset != b.StartOffset {
		return errors.New("The new leader is different but epoch equal") //nolint:staticcheck // Apache's words
	}
	return nil
}

// WithoutOldest is the mapping without the oldest stretch of the queues named: what they held is gone. A queue's leader stays.
func (m *Mapping) WithoutOldest(ids []int32) *Mapping {
	d := m.detail
	d.HostedQueues = maps.Clone(m.detail.HostedQueues)
	for _, id := range ids {
		if items := d.HostedQueues[id]; len(items) > 1 {
			d.HostedQueues[id] = items[1:]
		}
	}
	return New(&d)
}
