package commitlog

// Late is a record that holds its own numbers: a batch that is one record, and one that belongs to light queues too.
type Late struct {
	// Count is how many offsets of its queue the record takes, at least 1.
	Count int64
	// More are the counters of further queues that the record belongs to; one that stands there twice counts once.
	More []*Counter
	// Encode makes the record: queueOffset is its first one in its queue, more are those in the queues of More. It runs
	// under the append lock and must not block.
	Encode func(queueOffset int64, more []int64) ([]byte, error)
}

// encodeLate fills Buf with the numbers that the record would get now.
func (a *Append) encodeLate() error {
	var more []int64
	if n := len(a.Late.More); n > 0 {
		more = make([]int64, n)
		for i, c := range a.Late.More {
			more[i] = c.assigned
		}
	}
	first := int64(0)
	if !a.KeepQueueOffset {
		first = a.Counter.assigned
	}
	buf, err := a.Late.Encode(first, more)
	a.Buf = buf
	return err
}

// countLate moves the counters behind the record.
func (a *Append) countLate() {
	if !a.KeepQueueOffset {
		a.Counter.assigned += a.Late.Count
	}
	for _, c := range a.Late.More {
		if c.last != a { // once, however often it is named
			c.last = a
			c.assigned++
		}
	}
}

// undoLate takes the numbers back after a failed write, settleLate makes them known after a good one.
func (a *Append) undoLate() {
	if a.Late == nil {
		return
	}
	for _, c := range a.Late.More {
		c.assigned, c.last = c.next.Load(), nil
	}
}

func (a *Append) settleLate() {
	if a.Late == nil {
		return
	}
	for _, c := range a.Late.More {
		c.next.Store(c.assigned)
		c.last = nil
	}
}
