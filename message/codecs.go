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

// readLimited appends what r gives to an empty buffer, at most limit bytes.
func readLimited(r io.Reader, compressed, limit int) ([]byte, error) {
	const least = 512
	out := make([]byte, 0, min(limit+1, max(least, 4*compressed)))
	for {
		if len(out) == cap(out) {
			out = slices.Grow(out, min(limit+1-len(out), max(least, len(out))))
		}
		n, err := r.Read(out[len(out):min(cap(out), limit+1)])
		out = out[:len(out)+n]
		if len(out) > limit {
			return nil, ErrDecompressLimit
		}
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
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
	return readLimited(r, len(body), limit)
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
	return readLimited(r, len(body), limit)
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

// zstdDecompress tries with a buffer that usually suffices, then with ever larger ones up to the limit.
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
		size = int(h.FrameContentSize)
	}
	for {
		size = min(size, limit)
		out, err := d.DecodeAll(body, make([]byte, 0, size))
		switch {
		case !errors.Is(err, zstd.ErrDecoderSizeExceeded):
			return out, err
		case size == limit:
			return nil, ErrDecompressLimit
		}
		size = max(least, factor*size)
	}
}
