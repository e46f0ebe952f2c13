package vfs

import "bytes"

var zeros [4096]byte

// AllZero reports whether b holds nothing but zeros, as what was never written
// of a sparse file.
func AllZero(b []byte) bool {
	for len(b) > len(zeros) {
		if !bytes.Equal(b[:len(zeros)], zeros[:]) {
			return false
		}
		b = b[len(zeros):]
	}
	return bytes.Equal(b, zeros[:len(b)])
}
