package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strconv"

	"mqx/internal/words"
	"mqx/store/consumequeue"
)

// queues compares the consume queues, offset by offset.
func (d *differ) queues() error {
	ka, err := d.a.Queues()
	if err != nil {
		return err
	}
	kb, err := d.b.Queues()
	if err != nil {
		return err
	}
	inB := map[QueueKey]bool{}
	for _, k := range kb {
		inB[k] = true
	}
	for _, k := range ka {
		if !inB[k] {
			if err := d.onlyQueue(d.a, SideFirst, k); err != nil {
				return err
			}
			continue
		}
		delete(inB, k)
		if err := d.queue(k); err != nil {
			return err
		}
	}
	for _, k := range kb {
		if inB[k] {
			if err := d.onlyQueue(d.b, SideSecond, k); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *differ) onlyQueue(dir *Dir, side Side, k QueueKey) error {
	q, err := dir.Queue(k)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	e, err := q.Ends(d.ctx)
	if err != nil || e.Empty {
		return err
	}
	return d.tell(Difference{
		Kind: DiffQueue, Side: side, Name: k.String(), From: e.Min, To: e.Max, QueueOffset: -1, Phys: -1,
		What: fmt.Sprintf("only the %s store has the queue, with offsets %d to %d", side, e.Min, e.Max),
	})
}

// unitItem is a unit or an error.
type unitItem struct {
	u   Unit
	err error
}

func (d *differ) units(dir *Dir, k QueueKey) (next func() (unitItem, bool), stop func(), err error) {
	q, err := dir.Queue(k)
	if errors.Is(err, fs.ErrNotExist) {
		return func() (unitItem, bool) { return unitItem{}, false }, func() {}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	next, stop = iter.Pull(func(yield func(unitItem) bool) {
		low := dir.log.Min()
		err := q.Units(d.ctx, 0, noLimit, func(u Unit) error {
			if !u.Written() || u.Filler() || u.Phys < low { // retention leaves units of log files that are gone
				return nil
			}
			if !yield(unitItem{u: u}) {
				return ErrStop
			}
			return nil
		})
		if err != nil {
			yield(unitItem{err: err})
		}
	})
	return next, stop, nil
}

// queue compares one queue of both stores. Offsets below the first one that both have are what retention leaves.
func (d *differ) queue(k QueueKey) error {
	nextA, stopA, err := d.units(d.a, k)
	if err != nil {
		return err
	}
	defer stopA()
	nextB, stopB, err := d.units(d.b, k)
	if err != nil {
		return err
	}
	defer stopB()
	a, okA := nextA()
	b, okB := nextB()
	c := &queueDiff{first: -1}
	for okA && okB && a.err == nil && b.err == nil {
		switch {
		case a.u.Offset < b.u.Offset:
			c.alone(a.u, &c.a)
			a, okA = nextA()
		case a.u.Offset > b.u.Offset:
			c.alone(b.u, &c.b)
			b, okB = nextB()
		default:
			c.began = true
			if !sameUnit(a.u, b.u) {
				c.differ(a.u.Offset)
			}
			a, okA = nextA()
			b, okB = nextB()
		}
	}
	if err := errors.Join(a.err, b.err); err != nil {
		return err
	}
	if err := d.tellUnits(k, c); err != nil {
		return err
	}
	if err := d.queueEnd(k, SideFirst, a, okA, nextA); err != nil {
		return err
	}
	return d.queueEnd(k, SideSecond, b, okB, nextB)
}

// queueDiff gathers what differs in a queue.
type queueDiff struct {
	began       bool  // an offset that both have was seen
	first, last int64 // offsets that differ
	count, a, b int64
}

func (c *queueDiff) differ(offset int64) {
	if c.first < 0 {
		c.first = offset
	}
	c.last = offset
	c.count++
}

// alone is a unit at an offset where the other queue has none.
func (c *queueDiff) alone(u Unit, count *int64) {
	if c.began {
		*count++
		c.differ(u.Offset)
	}
}

func (d *differ) tellUnits(k QueueKey, c *queueDiff) error {
	if c.count == 0 {
		return nil
	}
	return d.tell(Difference{
		Kind: DiffQueueUnits, Side: SideBoth, Name: k.String(), From: c.first, To: c.last + 1, QueueOffset: -1, Phys: -1,
		What: fmt.Sprintf("%s from %d to %d do not point to the same", words.Count(c.count, "offset"), c.first, c.last),
	})
}

// sameUnit compares what does not depend on where extension units lie.
func sameUnit(a, b Unit) bool {
	if a.Phys != b.Phys || a.Size != b.Size || a.Count != b.Count {
		return false
	}
	return a.TagsCode == b.TagsCode || consumequeue.IsExtAddr(a.TagsCode) || consumequeue.IsExtAddr(b.TagsCode)
}

// queueEnd tells of what one queue has behind the end of the other.
func (d *differ) queueEnd(k QueueKey, side Side, x unitItem, ok bool, next func() (unitItem, bool)) error {
	if !ok || x.err != nil {
		return x.err
	}
	from, to, n := x.u.Offset, x.u.Next(), int64(0)
	for ; ok; x, ok = next() {
		if x.err != nil {
			return x.err
		}
		n++
		to = x.u.Next()
	}
	return d.tell(Difference{
		Kind: DiffQueueEnd, Side: side, Name: k.String(), From: from, To: to, QueueOffset: -1, Phys: -1,
		First: strconv.FormatInt(n, 10), What: fmt.Sprintf("the queue of the %s store goes on from %d to %d", side, from, to),
	})
}
