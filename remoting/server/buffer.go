package server

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// Size classes of the pooled input buffers: powers of two. Larger buffers are
// left to the garbage collector.
const (
	minBufferBits = 9  // 512 bytes
	maxBufferBits = 20 // 1 MiB
)

// inbuf is a buffer with received bytes that its readers share. The last
// release returns it to the pool.
type inbuf struct {
	b     []byte
	refs  atomic.Int32
	bits  int8 // size class, -1 when not pooled
	gauge *atomic.Int64
	own   *atomic.Int64 // of the connection, nil where only gauge counts
	lost  atomic.Bool
	cut   bool  // one frame, of which only what an answer needs is there
	extra int64 // what the requests that were read from it take beside it
}

var inPools [maxBufferBits + 1]sync.Pool

// newInbuf returns an empty buffer with room for n bytes and one reference.
// Its capacity counts in gauge, and in own unless that is nil, until it is released.
func newInbuf(n int, gauge, own *atomic.Int64) *inbuf {
	class := max(minBufferBits, bits.Len(uint(max(n, 1)-1)))
	if class > maxBufferBits {
		b := &inbuf{b: make([]byte, 0, n), bits: -1}
		b.start(gauge, own)
		return b
	}
	b, _ := inPools[class].Get().(*inbuf)
	if b == nil {
		b = &inbuf{b: make([]byte, 0, 1<<class), bits: int8(class)}
	}
	b.start(gauge, own)
	return b
}

func (b *inbuf) start(gauge, own *atomic.Int64) {
	b.b, b.cut, b.extra = b.b[:0], false, 0
	b.refs.Store(1)
	b.charge(gauge, own)
}

// charge moves what the buffer counts into gauge and own.
func (b *inbuf) charge(gauge, own *atomic.Int64) {
	if b.gauge != nil {
		b.count(-b.size())
	}
	b.gauge, b.own = gauge, own
	b.count(b.size())
}

func (b *inbuf) count(n int64) {
	b.gauge.Add(n)
	if b.own != nil {
		b.own.Add(n)
	}
}

// requestBytes is about what a decoded request takes: the Request and its fields, a kilobyte for those of a pull.
const requestBytes = 1280

// holds counts n requests that were read from the buffer with it, until it is released. Only who holds a reference and has
// handed none of them on calls it.
func (b *inbuf) holds(n int) {
	if b.lost.Load() {
		return
	}
	b.extra = int64(n) * requestBytes
	b.count(b.extra)
}

// size is what the buffer counts in its gauge.
func (b *inbuf) size() int64 { return int64(cap(b.b)) + b.extra }

func (b *inbuf) retain() { b.refs.Add(1) }

func (b *inbuf) release() {
	if b.refs.Add(-1) != 0 {
		return
	}
	b.count(-b.size())
	b.gauge, b.own = nil, nil
	if b.bits >= 0 && recycle {
		inPools[b.bits].Put(b)
	}
}

// lose takes the buffer out of its gauge and leaves it to the garbage
// collector: somebody who has failed may still look at it.
func (b *inbuf) lose() {
	if b.lost.CompareAndSwap(false, true) {
		b.count(-b.size())
	}
}

// Output buffers grow as they are filled; those above maxOutKept are not kept.
const (
	newOutSize = 4 << 10
	maxOutKept = 256 << 10
)

// outbuf holds whole frames to be sent.
type outbuf struct {
	b      []byte
	frames int
}

var outPool = sync.Pool{New: func() any { return &outbuf{b: make([]byte, 0, newOutSize)} }}

func newOutbuf() *outbuf { return outPool.Get().(*outbuf) }

func (o *outbuf) free() {
	if cap(o.b) > maxOutKept {
		return
	}
	o.b, o.frames = o.b[:0], 0
	outPool.Put(o)
}
