package message

import (
	"errors"
	"fmt"
	"math"
)

// ErrDecompressLimit says that a body would become longer than the caller allows.
var ErrDecompressLimit = errors.New("body grows beyond the limit when decompressed")

// DefaultDecompressLimit is the limit, in bytes, that Decompress uses when it is given none.
const DefaultDecompressLimit = 64 << 20

// maxBody is more than any record can hold.
const maxBody = math.MaxInt32

// CompressionDefaultLevel is the level that clients compress with when nothing is set.
const CompressionDefaultLevel = 5

// Compress appends the compressed body to dst. The level means what it means to the method: 0 to 9 for zlib, 1 to 22
// for zstd, nothing for LZ4 (whose output is the LZ4 frame format). The record's SysFlag then needs t.SysFlag().
func Compress(dst, body []byte, t CompressionType, level int) ([]byte, error) {
	c, err := codecOf(t)
	if err != nil {
		return nil, fmt.Errorf("cannot compress body: %w", err)
	}
	out, err := c.compress(dst, body, level)
	if err != nil {
		return nil, fmt.Errorf("cannot compress body with %s: %w", t, err)
	}
	return out, nil
}

// Decompress returns the body that SysFlag says is compressed, or body itself if it is not. limit is the most bytes
// that it returns (0: DefaultDecompressLimit); a body that would grow beyond gives ErrDecompressLimit, and no more
// memory than a small multiple of limit is used to find out (LZ4: besides block buffers of up to 8 MiB, which are
// kept for the next). The caller clears FlagCompressed where it keeps the flag.
func Decompress(body []byte, sysFlag int32, limit int) ([]byte, error) {
	if sysFlag&FlagCompressed == 0 {
		return body, nil
	}
	if limit <= 0 {
		limit = DefaultDecompressLimit
	}
	limit = min(limit, maxBody)
	t := CompressionOf(sysFlag)
	c, err := codecOf(t)
	if err != nil {
		return nil, fmt.Errorf("cannot decompress body: %w", err)
	}
	out, err := c.decompress(body, limit)
	if err != nil {
		return nil, fmt.Errorf("cannot decompress body of %d bytes with %s: %w", len(body), t, err)
	}
	return out, nil
}

// codec is one compression method. Both functions are safe to share.
type codec struct {
	compress   func(dst, body []byte, level int) ([]byte, error)
	decompress func(body []byte, limit int) ([]byte, error)
}

func codecOf(t CompressionType) (codec, error) {
	switch t {
	case CompressionLegacy, CompressionZlib:
		return codec{zlibCompress, zlibDecompress}, nil
	case CompressionLZ4:
		return codec{lz4Compress, lz4Decompress}, nil
	case CompressionZstd:
		return codec{zstdCompress, zstdDecompress}, nil
	}
	return codec{}, fmt.Errorf("unknown method %#x", int32(t))
}
