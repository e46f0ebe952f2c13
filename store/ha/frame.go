package ha

import (
	"encoding/binary"
	"fmt"
)

const (
	reportLen = 8
	headLen   = 12
	// MaxFrame bounds a frame: Apache's slaves read into a buffer of 4 MiB and never grow it.
	MaxFrame = 4<<20 - headLen
)

// appendReport encodes how far a slave's log goes.
func appendReport(b []byte, end int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(end)) }

// lastReport returns the newest of the reports in b, how many bytes they are, and whether there is one.
func lastReport(b []byte) (end int64, n int, ok bool) {
	n = len(b) - len(b)%reportLen
	if n == 0 {
		return 0, 0, false
	}
	return int64(binary.BigEndian.Uint64(b[n-reportLen:])), n, true
}

// putHead writes the head of a frame of n bytes of the log at off.
func putHead(b []byte, off int64, n int) {
	binary.BigEndian.PutUint64(b, uint64(off))
	binary.BigEndian.PutUint32(b[8:], uint32(n))
}

// parseHead reads the head of a frame.
func parseHead(b []byte) (off int64, n int, err error) {
	off, n = int64(binary.BigEndian.Uint64(b)), int(int32(binary.BigEndian.Uint32(b[8:])))
	if off < 0 || n < 0 || n > MaxFrame {
		return 0, 0, fmt.Errorf("cannot follow the master: a frame of %d bytes at %d", n, off)
	}
	return off, n, nil
}
