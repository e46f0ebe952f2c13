package message

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"net/netip"
)

// Lengths of message ids in characters. Offset ids and unique ids have the same two lengths.
const (
	IDLenV4 = 32
	IDLenV6 = 56
)

const upperHex = "0123456789ABCDEF"

// IDError says that a text is not a message id.
type IDError struct {
	Text string
	Why  string
}

// Error quotes the text and says why it is no id.
func (e *IDError) Error() string { return fmt.Sprintf("message id %s: %s", quoteShort(e.Text), e.Why) }

// AppendOffsetID appends the id of the message at a physical offset of the broker with that address: upper-case hex of
// address (4 or 16 bytes), port (4) and offset (8). A zero address counts as 0.0.0.0.
// Rule: docs/format/message-id.md.
func AppendOffsetID(dst []byte, host netip.AddrPort, phys int64) []byte {
	var b [16 + 4 + 8]byte
	a, n := host.Addr(), 4
	switch {
	case needsV6(a):
		ip := a.As16()
		n = copy(b[:], ip[:])
	case a.IsValid():
		ip := a.As4()
		copy(b[:], ip[:])
	}
	binary.BigEndian.PutUint32(b[n:], uint32(host.Port()))
	binary.BigEndian.PutUint64(b[n+4:], uint64(phys))
	return appendHex(dst, b[:n+12])
}

func appendHex(dst, b []byte) []byte {
	for _, c := range b {
		dst = append(dst, upperHex[c>>4], upperHex[c&0xF])
	}
	return dst
}

// FormatOffsetID returns the id that AppendOffsetID appends.
func FormatOffsetID(host netip.AddrPort, phys int64) string {
	var b [IDLenV6]byte
	return string(AppendOffsetID(b[:0], host, phys))
}

// ParseOffsetID returns the broker address and physical offset of an offset id, in upper or lower case. The error is
// an *IDError: another length than 32 or 56, a character that is no hex digit, a port above 65535, a negative offset.
//
// Every unique id has the form of an offset id; only some fail here. Who is given an id of either kind has to try both.
func ParseOffsetID(s string) (host netip.AddrPort, phys int64, err error) {
	b, n, err := decodeID(s)
	if err != nil {
		return netip.AddrPort{}, 0, err
	}
	ipLen := n - 12
	port := binary.BigEndian.Uint32(b[ipLen:])
	if port > math.MaxUint16 {
		return netip.AddrPort{}, 0, &IDError{s, fmt.Sprintf("port %d is above 65535", port)}
	}
	phys = int64(binary.BigEndian.Uint64(b[ipLen+4:]))
	if phys < 0 {
		return netip.AddrPort{}, 0, &IDError{s, "offset is negative"}
	}
	addr, _ := netip.AddrFromSlice(b[:ipLen])
	return netip.AddrPortFrom(addr, uint16(port)), phys, nil
}

// decodeID turns the hex of an id into bytes.
func decodeID(s string) (b [IDLenV6 / 2]byte, n int, err error) {
	if len(s) != IDLenV4 && len(s) != IDLenV6 {
		return b, 0, &IDError{s, fmt.Sprintf("%d characters, an id has %d or %d", len(s), IDLenV4, IDLenV6)}
	}
	n, err = hex.Decode(b[:], []byte(s))
	if err != nil {
		return b, 0, &IDError{s, "not hexadecimal"}
	}
	return b, n, nil
}
