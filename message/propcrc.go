package message

import (
	"bytes"
	"encoding/binary"
)

// PropCRCLen is the number of bytes that the checksum property takes at the end of a record:
// "__CRC32#", 0x01, ten digits, 0x02.
const PropCRCLen = len(PropCRC32) + 1 + propCRCDigits + 1

const propCRCDigits = 10

// SealPropCRC computes the checksum of a record that was encoded with room for it, over all bytes but the last
// PropCRCLen, and writes it there. Call it after PatchOffsets. rec is one whole record. It panics if the room is not
// there, rather than write over properties.
func SealPropCRC(rec []byte) {
	end := len(rec) - PropCRCLen
	if end < 0 || string(rec[end:end+len(PropCRC32)]) != PropCRC32 {
		panic("message: record has no room for its checksum property")
	}
	putPropCRC(rec[end:], checksum(rec[:end])&crcMask)
}

// putPropCRC writes the property. The digits stand least significant first.
func putPropCRC(b []byte, crc uint32) {
	p := copy(b, PropCRC32)
	b[p] = NameValueSeparator
	p++
	for range propCRCDigits {
		b[p] = '0' + byte(crc%10)
		crc /= 10
		p++
	}
	b[p] = PropertySeparator
}

// propCRCOf reads the checksum property at the very end of a record.
func propCRCOf(rec []byte) (crc uint32, ok bool) {
	if len(rec) < MinRecordLen+PropCRCLen {
		return 0, false
	}
	b := rec[len(rec)-PropCRCLen:]
	n := len(PropCRC32)
	if string(b[:n]) != PropCRC32 || b[n] != NameValueSeparator || b[PropCRCLen-1] != PropertySeparator {
		return 0, false
	}
	var v uint64
	for i := propCRCDigits - 1; i >= 0; i-- {
		c := b[n+1+i]
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + uint64(c-'0')
	}
	return uint32(min(v, 1<<32-1)), v <= crcMask
}

// withoutPropCRC returns props without any checksum property. It copies only if one stands before the end.
func withoutPropCRC(props []byte) []byte {
	if !bytes.Contains(props, []byte(PropCRC32)) {
		return props
	}
	if n := len(props) - PropCRCLen; n >= 0 && (n == 0 || props[n-1] == PropertySeparator) &&
		bytes.Index(props, []byte(PropCRC32)) == n {
		return props[:n]
	}
	return DeleteProperty(props, PropCRC32)
}

// HasPropCRC reports whether an encoded record ends in a checksum property.
func HasPropCRC(rec []byte) bool {
	_, ok := propCRCOf(rec)
	return ok && int(binary.BigEndian.Uint32(rec)) == len(rec)
}
