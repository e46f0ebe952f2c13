package transaction

import "math/bits"

// pageBits is the number of offsets of one page of an offsetSet: 512 bytes.
const pageBits = 4096

// offsetSet is a set of queue offsets that lie close together: it takes a bit
// for each offset of the pages it touches.
type offsetSet struct {
	pages map[int64]*[pageBits / 64]uint64
}

func (s *offsetSet) add(off int64) {
	if s.pages == nil {
		s.pages = map[int64]*[pageBits / 64]uint64{}
	}
	p := s.pages[off/pageBits]
	if p == nil {
		p = new([pageBits / 64]uint64)
		s.pages[off/pageBits] = p
	}
	p[off%pageBits/64] |= 1 << (off % 64)
}

func (s *offsetSet) has(off int64) bool {
	p := s.pages[off/pageBits]
	return p != nil && p[off%pageBits/64]&(1<<(off%64)) != 0
}

// firstMissing is the first offset from off on that is not in the set.
func (s *offsetSet) firstMissing(off int64) int64 {
	for {
		p := s.pages[off/pageBits]
		if p == nil {
			return off
		}
		for end := (off/pageBits + 1) * pageBits; off < end; off += 64 - off%64 {
			if free := ^p[off%pageBits/64] >> (off % 64); free != 0 {
				return off + int64(bits.TrailingZeros64(free))
			}
		}
	}
}

// dropBelow forgets whole pages below off.
func (s *offsetSet) dropBelow(off int64) {
	for n := range s.pages {
		if (n+1)*pageBits <= off {
			delete(s.pages, n)
		}
	}
}
