package message

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// scratches hold what is decompressed until its length is known.
var scratches = sync.Pool{New: func() any { return new([]byte) }}

// maxScratch is the largest scratch that is kept.
const maxScratch = 1 << 20

// readLimited returns what r gives, at most limit bytes.
func readLimited(r io.Reader, limit int) ([]byte, error) {
	scratch := scratches.Get().(*[]byte)
	out, err := appendLimited((*scratch)[:0], r, limit)
	if cap(out) <= maxScratch {
		*scratch = out[:0]
		out = bytes.Clone(out)
	}
	scratches.Put(scratch)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// appendLimited reads r into an empty buffer. What it returns with an error is the buffer.
func appendLimited(buf []byte, r io.Reader, limit int) ([]byte, error) {
	const least = 4 << 10
	for {
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, min(limit+1-len(buf), max(least, len(buf))))
		}
		n, err := r.Read(buf[len(buf):min(cap(buf), limit+1)])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > limit:
			return buf, ErrDecompressLimit
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return buf, err
		}
	}
}

// --- zlib

// zlibWriters has one pool for each level, from zlib.HuffmanOnly (-2) to 9.
var zlibWriters [zlib.BestCompression - zlib.HuffmanOnly + 1]sync.Pool

var zlibReaders sync.Pool

func zlibCompress(dst, body []byte, level int) ([]byte, error) {
	level = min(max(level, zlib.HuffmanOnly), zlib.BestCompression)
	buf := bytes.NewBuffer(dst)
	pool := &zlibWriters[level-zlib.HuffmanOnly]
	w, _ := pool.Get().(*zlib.Writer)
	if w == nil {
		var err error
		if w, err = zlib.NewWriterLevel(buf, level); err != nil {
			return nil, err
		}
	} else {
		w.Reset(buf)
	}
	defer pool.Put(w)
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func zlibDecompress(body []byte, limit int) ([]byte, error) {
	src := bytes.NewReader(body)
	r, _ := zlibReaders.Get().(io.ReadCloser)
	if r == nil {
		var err error
		if r, err = zlib.NewReader(src); err != nil {
			return nil, err
		}
	} else if err := r.(zlib.Resetter).Reset(src, nil); err != nil {
		zlibReaders.Put(r)
		return nil, err
	}
	defer zlibReaders.Put(r)
	return readLimited(r, limit)
}

// --- LZ4, frame format

var (
	lz4Writers = sync.Pool{New: func() any { return lz4.NewWriter(nil) }}
	lz4Readers = sync.Pool{New: func() any { return lz4.NewReader(nil) }}
)

func lz4Compress(dst, body []byte, _ int) ([]byte, error) {
	block := lz4.Block64Kb
	switch n := len(body); {
	case n > 1<<20:
		block = lz4.Block4Mb
	case n > 256<<10:
		block = lz4.Block1Mb
	case n > 64<<10:
		block = lz4.Block256Kb
	}
	w := lz4Writers.Get().(*lz4.Writer)
	defer lz4Writers.Put(w)
	buf := bytes.NewBuffer(dst)
	w.Reset(buf)
	if err := w.Apply(lz4.BlockSizeOption(block), lz4.ConcurrencyOption(1)); err != nil {
		return nil, err
	}
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func lz4Decompress(body []byte, limit int) ([]byte, error) {
	r := lz4Readers.Get().(*lz4.Reader)
	defer lz4Readers.Put(r)
	r.Reset(bytes.NewReader(body))
	return readLimited(r, limit)
}

// --- zstd

// zstdMaxWindow is the largest window that a frame may ask for, as in Apache's Java client. It costs nothing here: the
// output itself is the window.
const zstdMaxWindow = 128 << 20

// zstdDecoder decodes whole frames into buffers of a given capacity and not beyond.
var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxWindow(zstdMaxWindow),
		zstd.WithDecoderConcurrency(0))
})

// zstdEncoders has one encoder for each speed.
var zstdEncoders [zstd.SpeedBestCompression + 1]struct {
	once sync.Once
	enc  *zstd.Encoder
	err  error
}

func zstdCompress(dst, body []byte, level int) ([]byte, error) {
	speed := zstd.EncoderLevelFromZstd(level)
	e := &zstdEncoders[speed]
	e.once.Do(func() { e.enc, e.err = zstd.NewWriter(nil, zstd.WithEncoderLevel(speed)) })
	if e.err != nil {
		return nil, e.err
	}
	return e.enc.EncodeAll(body, dst), nil
}

// zstdBlock is the room that any block of a frame can be decoded in, with what the decoder writes beyond.
const zstdBlock = 128<<10 + 64

// zstdDecompress tries with a buffer that usually suffices, then with ever larger ones up to the limit and a block
// more: as long as a whole block has room, an error is the frame's own; without that room it may be the buffer's.
func zstdDecompress(body []byte, limit int) ([]byte, error) {
	d, err := zstdDecoder()
	if err != nil {
		return nil, err
	}
	const least, factor = 4 << 10, 4
	size := max(least, factor*len(body))
	var h zstd.Header
	if err := h.Decode(body); err == nil && h.HasFCS {
		if h.FrameContentSize > uint64(limit) {
			return nil, ErrDecompressLimit
		}
		size = int(h.FrameContentSize) + 1 // a buffer of no bytes at all counts as none given
	}
	for {
		size = min(size, limit+zstdBlock)
		out, err := d.DecodeAll(body, make([]byte, 0, size))
		switch {
		case len(out) > limit:
			return nil, ErrDecompressLimit
		case err == nil:
			return out, nil
		case errors.Is(err, zstd.ErrDecoderSizeExceeded):
			if size == limit+zstdBlock {
				return nil, ErrDecompressLimit
			}
		case size-len(out) >= zstdBlock:
			return nil, err
		}
		size = max(least, factor*size)
	}
}
