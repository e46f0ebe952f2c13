package message

import (
	"math/bits"
	"slices"
)

// AppendJavaOrder appends the pairs of raw properties in the order in which Apache writes a record's properties after it
// has changed them: each name once, with its last value, as a Java HashMap made for 128 entries yields them. Records that
// Apache builds itself (half messages and their copies) have this order.
func AppendJavaOrder(dst, raw []byte) []byte {
	type pair struct {
		name, value []byte
		hash        uint32
	}
	var room [24]pair
	list := room[:0]
	EachProperty(raw, func(name, value []byte) bool {
		for i := range list {
			if string(list[i].name) == string(name) {
				list[i].value = value
				return true
			}
		}
		h := uint32(JavaHash(name))
		list = append(list, pair{name, value, h ^ h>>16})
		return true
	})
	buckets := uint32(128)
	if n := len(list); n > 96 { // the map doubles when it is three quarters full
		buckets = uint32(1) << bits.Len(uint((n*4-1)/3))
	}
	slices.SortStableFunc(list, func(a, b pair) int { return int(a.hash&(buckets-1)) - int(b.hash&(buckets-1)) })
	for _, p := range list {
		dst = append(dst, p.name...)
		dst = append(dst, NameValueSeparator)
		dst = append(dst, p.value...)
		dst = append(dst, PropertySeparator)
	}
	return dst
}
