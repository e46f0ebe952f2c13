package filter

import (
	"slices"
	"testing"
)

// Shapes and positions as Apache stored them.
func TestBloomAsApache(t *testing.T) {
	b, err := NewBloom(20, 8)
	if err != nil {
		t.Fatal(err)
	}
	if b.Bits() != 32 || b.Hashes() != 3 {
		t.Errorf("%d bits, %d hashes", b.Bits(), b.Hashes())
	}
	if got := b.Positions("CG_ext_sql", "ExtTopic"); !slices.Equal(got, []int32{15, 17, 12}) {
		t.Error(got)
	}
	if got := b.Positions("CG_ext_sql2", "ExtTopic"); !slices.Equal(got, []int32{15, 28, 9}) {
		t.Error(got)
	}
	if b, _ = NewBloom(20, 32); b.Bits() != 112 || b.Hashes() != 3 {
		t.Errorf("%d bits, %d hashes", b.Bits(), b.Hashes())
	}
}

func TestBloomBits(t *testing.T) {
	bits := make([]byte, 4)
	Set(bits, []int32{15, 17, 12})
	if !slices.Equal(bits, []byte{0, 0x90, 0x02, 0}) {
		t.Errorf("%x", bits)
	}
	if !Hit(bits, []int32{12, 15}) || Hit(bits, []int32{12, 16}) {
		t.Error("hits are wrong")
	}
	b, _ := NewBloom(20, 8)
	for _, bad := range [][]int32{nil, {1, 2}, {1, 2, 32}, {1, 2, -1}} {
		if b.Valid(32, bad) {
			t.Error(bad)
		}
	}
	if b.Valid(112, []int32{1, 2, 3}) || !b.Valid(32, []int32{1, 2, 3}) {
		t.Error("lengths are not told apart")
	}
}

func TestBloomLimits(t *testing.T) {
	for _, bad := range [][2]int{{0, 32}, {100, 32}, {20, 0}, {20, maxGroups + 1}} {
		if _, err := NewBloom(bad[0], bad[1]); err == nil {
			t.Error(bad)
		}
	}
}
