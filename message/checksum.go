package message

import "hash/crc32"

// crcBlock is how many bytes the instructions for CRC-32 take at a time. What is left behind them is at most 15 bytes,
// which hash/crc32 takes one by one, each waiting for the one before: as long as for 500 bytes before them.
const crcBlock = 16

// crcTail says, for the number of bytes behind a byte, what the byte adds to the checksum.
var crcTail = func() (t [crcBlock - 1][256]uint32) {
	for i := range t[0] {
		t[0][i] = crc32.IEEETable[i]
	}
	for k := 1; k < len(t); k++ {
		for i := range t[k] {
			was := t[k-1][i]
			t[k][i] = crc32.IEEETable[byte(was)] ^ was>>8
		}
	}
	return t
}()

// checksum is crc32.ChecksumIEEE(b).
func checksum(b []byte) uint32 {
	rest := len(b) % crcBlock
	if rest < 4 || len(b) < 64 {
		return crc32.ChecksumIEEE(b)
	}
	sum := ^crc32.ChecksumIEEE(b[:len(b)-rest])
	tail := b[len(b)-rest:]
	t := crcTail[:len(tail)]
	x := t[rest-1][tail[0]^byte(sum)] ^ t[rest-2][tail[1]^byte(sum>>8)] ^
		t[rest-3][tail[2]^byte(sum>>16)] ^ t[rest-4][tail[3]^byte(sum>>24)]
	for i := 4; i < len(tail); i++ {
		x ^= t[len(tail)-1-i][tail[i]]
	}
	return ^x
}
