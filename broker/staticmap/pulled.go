package staticmap

import "mqx/remoting"

// Pulled is the answer to a pull: in, as a physical queue gives it; out, as the reader of the logical queue gets it.
type Pulled struct {
	Code           int32 // SUCCESS or one of the PULL_ codes
	Next, Min, Max int64
	Delta          int64 // for the offsets of the messages
	// Behind: the queue has messages that may not be read yet, or may have: its end is none.
	Behind bool
}

// Pulled turns the answer of the stretch i, that was asked at a physical offset, into that of the logical queue. At the end of
// an older stretch the reader is sent on to the next one at once; before the beginning of the oldest it is moved to it.
func (q Queue) Pulled(i int, asked int64, p Pulled) Pulled {
	end, next := q.End(i), q.Next(i)
	leads := i == len(q)-1
	if p.Code != remoting.RespSuccess {
		switch {
		case asked < p.Min:
			p.Next, p.Code = p.Min, remoting.RespPullRetryImmediately
			if q.oldest() == i {
				p.Code = remoting.RespPullOffsetMoved
			}
		case next >= 0 && (asked >= end || asked >= p.Max && !p.Behind):
			return q.begin(next)
		case next >= 0 && asked >= p.Max:
			p.Next, p.Code = asked, remoting.RespPullNotFound
		case !leads && asked >= p.Max:
			p.Code = remoting.RespPullNotFound // where the leader begins is not decided yet
		case leads && asked > p.Max && p.Code == remoting.RespPullOffsetMoved:
			p.Next = p.Max
		}
	}
	return q.Told(i, p)
}

// Told turns the offsets of an answer of the stretch i into those of the logical queue, and leaves its code.
func (q Queue) Told(i int, p Pulled) Pulled {
	it, end := q[i], q.End(i)
	p.Next = Logic(it, min(p.Next, end))
	p.Min = Logic(it, min(max(it.StartOffset, p.Min), end))
	p.Max = max(Logic(it, min(p.Max, end)), q.known())
	p.Delta = Delta(it)
	return p
}

// begin sends a reader to the beginning of a stretch.
func (q Queue) begin(i int) Pulled {
	at := q[i].LogicOffset
	return Pulled{Code: remoting.RespPullRetryImmediately, Next: at, Min: at, Max: max(at, q.known()), Delta: Delta(q[i])}
}

// Ended reports whether a pull at a physical offset of the stretch i lies behind its end, and is the next one's.
func (q Queue) Ended(i int, asked int64) (Pulled, bool) {
	if next := q.Next(i); next >= 0 && asked >= q.End(i) {
		return q.begin(next), true
	}
	return Pulled{}, false
}

// Most bounds the messages of a pull at a physical offset of the stretch i, so that none behind its end is handed out.
func (q Queue) Most(i int, asked int64, most int32) int32 {
	if left := q.End(i) - asked; left < int64(most) {
		return int32(max(0, left))
	}
	return most
}

func (q Queue) oldest() int { return q.Find(-1) }

// known is the greatest logical offset that the mapping itself tells.
func (q Queue) known() int64 {
	it, ok := q.Leader()
	if !ok {
		return -1
	}
	if it.EndOffset >= it.StartOffset {
		return it.LogicOffset + it.EndOffset - it.StartOffset
	}
	return it.LogicOffset
}
