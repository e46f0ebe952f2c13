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
	lost  atomic.Bool
	cut   bool  // one frame, of which only what an answer needs is there
	extra int64 // what the requests that were read from it take beside it
}

var inPools [maxBufferBits + 1]sync.Pool

// newInbuf returns an empty buffer with room for n bytes and one reference.
// Its capacity counts in gauge until it is released.
func newInbuf(n int, gauge *atomic.Int64) *inbuf {
	class := max(minBufferBits, bits.Len(uint(max(n, 1)-1)))
	if class > maxBufferBits {
		b := &inbuf{b: make([]byte, 0, n), bits: -1}
		b.start(gauge)
		return b
	}
	b, _ := inPools[class].Get().(*inbuf)
	if b == nil {
		b = &inbuf{b: make([]byte, 0, 1<<class), bits: int8(class)}
	}
	b.start(gauge)
	return b
}

func (b *inbuf) start(gauge *atomic.Int64) {
	b.b, b.cut, b.extra = b.b[:0], false, 0
	b.refs.Store(1)
	b.charge(gauge)
}

// charge moves what the buffer counts into gauge.
func (b *inbuf) charge(gauge *atomic.Int64) {
	if b.gauge != nil {
		b.gauge.Add(-b.size())
	}
	b.gauge = gauge
	gauge.Add(b.size())
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
	b.gauge.Add(b.extra)
}

// size is what the buffer counts in its gauge.
func (b *inbuf) size() int64 { return int64(cap(b.b)) + b.extra }

func (b *inbuf) retain() { b.refs.Add(1) }

func (b *inbuf) release() {
	if b.refs.Add(-1) != 0 {
		return
	}
	b.gauge.Add(-b.size())
	b.gauge = nil
	if b.bits >= 0 && recycle {
		inPools[b.bits].Put(b)
	}
}

// lose takes the buffer out of its gauge and leaves it to the garbage
// collector: somebody who has failed may still look at it.
func (b *inbuf) lose() {
	if b.lost.CompareAndSwap(false, true) {
		b.gauge.Add(-b.size())
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
