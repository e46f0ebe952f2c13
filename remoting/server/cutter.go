package server

import (
	"encoding/binary"
	"errors"
	"sync/atomic"

	"mqx/remoting"
)

// errInboundFull closes a connection whose incomplete frame finds no room
// within half of Config.InboundTotal, and of which not even the header is there.
var errInboundFull = errors.New("inbound memory is full")

// lengthField is the size of the field that a frame starts with.
const lengthField = 4

// cutter assembles the frames of one connection from its reads. It copies each
// byte once (a large frame that comes in pieces up to twice) and allocates as
// bytes arrive, never on the word of a length field.
type cutter struct {
	part *inbuf // an incomplete frame, nil when there is none
	need int    // its whole length, 0 while its length field is incomplete
	skip int    // how much of its body is still to come and goes nowhere: part is marked as cut

	max     int           // largest frame
	partial *atomic.Int64 // bytes of incomplete frames, all connections
	inbound *atomic.Int64 // bytes of whole frames, all connections
	limit   int64         // of partial
	own     atomic.Int64  // what of inbound is of this connection
}

// cut takes what one read has brought and returns up to two buffers, each with
// whole frames only and one reference for the caller. With an error, the
// frames before the fault are still returned; the connection cannot go on.
//
// A frame that finds no room comes without its body, marked as cut.
func (k *cutter) cut(data []byte) (out [2]*inbuf, err error) {
	if k.part != nil {
		data, err = k.resume(data)
		if err != nil || k.need == 0 || k.skip > 0 || k.part.len() != k.need && !k.part.cut {
			return out, err
		}
		k.part.charge(k.inbound, &k.own)
		out[0], k.part, k.need = k.part, nil, 0
	}
	end, need, err := wholeFrames(data, k.max)
	if end > 0 {
		b := newInbuf(end, k.inbound, &k.own)
		b.b = append(b.b, data[:end]...)
		out[1] = b
	}
	if rest := data[end:]; err == nil && len(rest) > 0 {
		k.need = need
		err = k.take(rest)
	}
	return out, err
}

// resume adds to the incomplete frame what belongs to it and returns the rest.
func (k *cutter) resume(data []byte) ([]byte, error) {
	if k.need == 0 {
		n := min(lengthField-k.part.len(), len(data))
		k.part.b = append(k.part.b, data[:n]...)
		data = data[n:]
		need, ok, err := remoting.FrameLen(k.part.b)
		if err == nil && need > k.max {
			err = remoting.ErrFrameTooLarge
		}
		if err != nil || !ok {
			return nil, err
		}
		k.need = need
	}
	if k.part.cut {
		n := min(k.skip, len(data))
		k.skip -= n
		return data[n:], nil
	}
	n := min(k.need-k.part.len(), len(data))
	if err := k.take(data[:n]); err != nil {
		return nil, err
	}
	return data[n:], remoting.CheckHeaderLen(k.part.b)
}

// take adds bytes to the incomplete frame. Where there is no room for them, it
// keeps what an answer needs and throws the rest away as it comes: the sender
// is told so, which closing the connection would not do.
func (k *cutter) take(data []byte) error {
	err := k.grow(len(data))
	if err == nil {
		k.part.b = append(k.part.b, data...)
		return nil
	}
	var have []byte
	if k.part != nil {
		have = k.part.b
	}
	short, bad := shorten(have, data)
	if bad != nil {
		return bad
	}
	if short == nil {
		return err
	}
	k.skip = k.need - len(have) - len(data)
	if k.part != nil {
		k.part.release()
	}
	k.part = newInbuf(len(short), k.partial, nil)
	k.part.cut = true
	k.part.b = append(k.part.b, short...)
	return nil
}

// shorten builds a frame that says who asked what, without fields and body, of
// the beginning of a request's frame. It returns nil when its header is not
// there as a whole, or when it is no request.
func shorten(a, b []byte) ([]byte, error) {
	head := make([]byte, 0, smallPartial)
	head = append(head, a[:min(len(a), headerAt)]...)
	head = append(head, b[:min(len(b), headerAt-len(head))]...)
	if len(head) < headerAt {
		return nil, nil
	}
	end := headerAt + int(head[5])<<16 + int(head[6])<<8 + int(head[7])
	if end > len(a)+len(b) || end > headerAt+remoting.MaxHeader {
		return nil, nil
	}
	head = append(head[:0], a[:min(len(a), end)]...)
	head = append(head, b[:end-len(head)]...)
	binary.BigEndian.PutUint32(head, uint32(end-lengthField))
	var cmd remoting.Command
	if err := cmd.Decode(head); err != nil || cmd.IsResponse() {
		return nil, err
	}
	cmd.Remark, cmd.Fields = "", nil
	return cmd.AppendFrame(nil, cmd.Serialize)
}

// headerAt is where the header of a frame begins.
const headerAt = 8

// grow makes room for n more bytes of the incomplete frame.
func (k *cutter) grow(n int) error {
	have, freed := 0, 0
	if k.part != nil {
		have, freed = k.part.len(), cap(k.part.b)
		if freed-have >= n {
			return nil
		}
	}
	size := max(have+n, lengthField)
	if k.need > 0 {
		size = min(max(size, 2*have), k.need)
	}
	if have+n > smallPartial && k.partial.Load()+int64(size-freed) > k.limit {
		return errInboundFull
	}
	b := newInbuf(size, k.partial, nil)
	if k.part != nil {
		b.b = append(b.b, k.part.b...)
		k.part.release()
	}
	k.part = b
	return nil
}

// smallPartial is what every connection may hold of an incomplete frame, also
// when the memory for them is full.
const smallPartial = 4 << 10

// drop frees the incomplete frame.
func (k *cutter) drop() {
	if k.part != nil {
		k.part.release()
		k.part, k.need, k.skip = nil, 0, 0
	}
}

func (b *inbuf) len() int { return len(b.b) }

// wholeFrames returns where the last whole frame of data ends and the whole
// length of the frame that starts there, 0 when that is not known yet.
func wholeFrames(data []byte, maxFrame int) (end, need int, err error) {
	for {
		n, ok, err := remoting.FrameLen(data[end:])
		if err == nil && ok && n > maxFrame {
			err = remoting.ErrFrameTooLarge
		}
		if err == nil {
			err = remoting.CheckHeaderLen(data[end:])
		}
		if err != nil {
			return end, 0, err
		}
		if !ok {
			return end, 0, nil
		}
		if n > len(data)-end {
			return end, n, nil
		}
		end += n
	}
}
