package server

// ring is a queue of requests that grows up to what is pushed.
type ring struct {
	slots []*Request // a power of two
	head  int
	n     int
}

const minRing = 64

func (q *ring) len() int { return q.n }

func (q *ring) push(r *Request) {
	if q.n == len(q.slots) {
		q.grow()
	}
	q.slots[(q.head+q.n)&(len(q.slots)-1)] = r
	q.n++
}

func (q *ring) front() *Request {
	if q.n == 0 {
		return nil
	}
	return q.slots[q.head]
}

func (q *ring) pop() *Request {
	r := q.slots[q.head]
	q.slots[q.head] = nil
	q.head = (q.head + 1) & (len(q.slots) - 1)
	q.n--
	if q.n == 0 && len(q.slots) > 64*minRing {
		q.slots, q.head = nil, 0
	}
	return r
}

func (q *ring) grow() {
	bigger := make([]*Request, max(minRing, 2*len(q.slots)))
	for i := range q.n {
		bigger[i] = q.slots[(q.head+i)&(len(q.slots)-1)]
	}
	q.slots, q.head = bigger, 0
}
