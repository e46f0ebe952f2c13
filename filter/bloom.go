package filter

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// Bloom is the shape of the bit maps that brokers keep beside queue units: for every message, the bits of those groups
// whose expression it fulfils. Rule: docs/format/consumequeue.md, "Extension units".
type Bloom struct {
	hashes, bits int
}

// NewBloom returns the shape for a number of groups a topic and a rate, in percent, of messages that pass though their
// group does not want them.
func NewBloom(errorPercent, groups int) (Bloom, error) {
	if errorPercent < 1 || errorPercent > 99 {
		return Bloom{}, fmt.Errorf("cannot make a bloom filter: an error rate of %d %% is not within 1 to 99", errorPercent)
	}
	if groups < 1 || groups > maxGroups {
		return Bloom{}, fmt.Errorf("cannot make a bloom filter: %d groups are not within 1 to %d", groups, maxGroups)
	}
	rate := float64(errorPercent) / 100
	hashes := int(math.Ceil(logarithm(0.5, rate)))
	n := math.Ceil(float64(groups) * logarithm(2, 1/rate) * logarithm(2, math.E))
	return Bloom{hashes: max(1, hashes), bits: 8 * int(math.Ceil(n/8))}, nil
}

// maxGroups keeps a bit map within an extension unit, which has at most 32,767 bytes, at every rate.
const maxGroups = 20_000

func logarithm(base, x float64) float64 { return math.Log(x) / math.Log(base) }

// Bits is the length of a bit map, a multiple of 8.
func (b Bloom) Bits() int { return b.bits }

// Hashes is the number of bits of one group.
func (b Bloom) Hashes() int { return b.hashes }

// Positions returns the bits of a group in a topic, in Apache's order; some may be equal.
func (b Bloom) Positions(group, topic string) []int32 {
	h, _ := murmur128([]byte(group + "#" + topic))
	low, high := uint32(h), uint32(h>>32)
	out := make([]int32, b.hashes)
	for i := range out {
		sum := int32(low + uint32(i+1)*high)
		if sum < 0 {
			sum = ^sum
		}
		out[i] = sum % int32(b.bits)
	}
	return out
}

// Valid reports whether positions that were stored with a bit map length belong to this shape.
func (b Bloom) Valid(bitNum int, positions []int32) bool {
	return bitNum == b.bits && len(positions) == b.hashes &&
		!slices.ContainsFunc(positions, func(p int32) bool { return p < 0 || int(p) >= b.bits })
}

// Set sets the bits of a group in a bit map of Bits bits.
func Set(bitMap []byte, positions []int32) {
	for _, p := range positions {
		bitMap[p/8] |= 1 << (p % 8)
	}
}

// Hit reports whether all bits of a group are set in a bit map of Bits bits: when not, the message does not fulfil the
// group's expression.
func Hit(bitMap []byte, positions []int32) bool {
	for _, p := range positions {
		if bitMap[p/8]&(1<<(p%8)) == 0 {
			return false
		}
	}
	return true
}

// murmur128 is MurmurHash3_x64_128 with seed 0.
func murmur128(data []byte) (h1, h2 uint64) {
	const c1, c2 = 0x87c37b91114253d5, 0x4cf5ad432745937f
	n := uint64(len(data))
	for ; len(data) >= 16; data = data[16:] {
		k1, k2 := binary.LittleEndian.Uint64(data), binary.LittleEndian.Uint64(data[8:])
		h1 ^= bits.RotateLeft64(k1*c1, 31) * c2
		h1 = (bits.RotateLeft64(h1, 27)+h2)*5 + 0x52dce729
		h2 ^= bits.RotateLeft64(k2*c2, 33) * c1
		h2 = (bits.RotateLeft64(h2, 31)+h1)*5 + 0x38495ab5
	}
	if len(data) > 0 {
		var tail [16]byte
		copy(tail[:], data)
		k1, k2 := binary.LittleEndian.Uint64(tail[:]), binary.LittleEndian.Uint64(tail[8:])
		h2 ^= bits.RotateLeft64(k2*c2, 33) * c1 // zero for a short tail
		h1 ^= bits.RotateLeft64(k1*c1, 31) * c2
	}
	h1 ^= n
	h2 ^= n
	h1 += h2
	h2 += h1
	h1, h2 = mix(h1), mix(h2)
	h1 += h2
	return h1, h2 + h1
}

func mix(k uint64) uint64 {
	k = (k ^ k>>33) * 0xff51afd7ed558ccd
	k = (k ^ k>>33) * 0xc4ceb9fe1a85ec53
	return k ^ k>>33
}
