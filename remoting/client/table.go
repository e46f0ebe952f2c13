package client

import "mqx/remoting"

// The opaque of a request is the number of its place in the table (16 bits)
// and the count of how often that place has been used (15 bits), so that an
// answer finds its request without a search, and one that comes too late finds
// nobody.
const (
	placeBits = 16
	placeMask = 1<<placeBits - 1
	useMask   = 1<<(31-placeBits) - 1
)

// pending is a request that waits for its answer.
type pending struct {
	done     func(*remoting.Command, error)
	sent     int64 // client's clock
	deadline int64 // 0: none
	code     int32
	use      int32
}

// table holds the requests of a connection that wait.
type table struct {
	max    int
	n      int // taken places
	places []pending
	free   []uint16
}

// add registers a request; false when the table is full.
func (t *table) add(p pending) (ref int32, ok bool) {
	var at int
	switch {
	case len(t.free) > 0:
		at = int(t.free[len(t.free)-1])
		t.free = t.free[:len(t.free)-1]
	case len(t.places) < t.max:
		at = len(t.places)
		t.places = append(t.places, pending{})
	default:
		return 0, false
	}
	slot := &t.places[at]
	p.use = slot.use
	*slot = p
	t.n++
	return p.use<<placeBits | int32(at), true
}

// take removes the request that ref was given for; false when it is not there.
func (t *table) take(ref int32) (pending, bool) {
	at := int(ref & placeMask)
	if ref < 0 || at >= len(t.places) {
		return pending{}, false
	}
	slot := &t.places[at]
	if slot.done == nil || slot.use != ref>>placeBits {
		return pending{}, false
	}
	return t.remove(at), true
}

func (t *table) remove(at int) pending {
	slot := &t.places[at]
	p := *slot
	*slot = pending{use: (p.use + 1) & useMask}
	t.free = append(t.free, uint16(at))
	t.n--
	return p
}

// strange returns an opaque that no request waits for.
func (t *table) strange() int32 { return useMask<<placeBits | placeMask }

// expire removes the requests whose deadline has passed and returns them with
// the next deadline, 0 when there is none.
func (t *table) expire(now int64) (late []pending, next int64) {
	for at := range t.places {
		p := &t.places[at]
		switch {
		case p.done == nil || p.deadline == 0:
		case p.deadline <= now:
			late = append(late, t.remove(at))
		case next == 0 || p.deadline < next:
			next = p.deadline
		}
	}
	return late, next
}

// clear removes and returns all requests.
func (t *table) clear() []pending {
	var all []pending
	for at := range t.places {
		if t.places[at].done != nil {
			all = append(all, t.remove(at))
		}
	}
	return all
}
