package client

import (
	"encoding/binary"
	"hash/crc32"
)

// LoadHeaderLen is the length of what a load generator writes at the start of each
// body: magic 4, CRC-32 of the rest of the body 4, run 8, producer 4, given up 4, number 8.
const LoadHeaderLen = 32

const loadMagic = 0x6D71784C // "mqxL"

// loadMark tells who sent a message and where it stands among those of its producer.
// A producer is one slot of a connection: it sends its messages one after the other,
// each after the answer to the one before, so that their order is defined.
type loadMark struct {
	run      uint64
	producer uint32
	// given up counts the numbers below this one whose outcome is not known, as the
	// connection broke before the answer; they may be missing.
	givenUp uint32
	number  uint64
}

// put writes m into the start of body, whose rest is in its final state.
func (m loadMark) put(body []byte) {
	be := binary.BigEndian
	be.PutUint32(body, loadMagic)
	be.PutUint64(body[8:], m.run)
	be.PutUint32(body[16:], m.producer)
	be.PutUint32(body[20:], m.givenUp)
	be.PutUint64(body[24:], m.number)
	be.PutUint32(body[4:], crc32.ChecksumIEEE(body[8:]))
}

// readMark reads the mark of a body; ours is false for bodies that no load generator
// wrote, whole is false for one that is not what was sent.
func readMark(body []byte) (m loadMark, ours, whole bool) {
	be := binary.BigEndian
	if len(body) < LoadHeaderLen || be.Uint32(body) != loadMagic {
		return m, false, false
	}
	m = loadMark{run: be.Uint64(body[8:]), producer: be.Uint32(body[16:]), givenUp: be.Uint32(body[20:]), number: be.Uint64(body[24:])}
	return m, true, crc32.ChecksumIEEE(body[8:]) == be.Uint32(body[4:])
}

// fillBody gives bytes that do not compress well.
func fillBody(body []byte) {
	x := uint64(0x9E3779B97F4A7C15)
	for i := range body {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		body[i] = byte(x)
	}
}

// bitmap is a set of small numbers.
type bitmap []uint64

func (b *bitmap) has(n uint64) bool { return n/64 < uint64(len(*b)) && (*b)[n/64]&(1<<(n%64)) != 0 }

func (b *bitmap) set(n uint64) {
	for n/64 >= uint64(len(*b)) {
		*b = append(*b, 0)
	}
	(*b)[n/64] |= 1 << (n % 64)
}
