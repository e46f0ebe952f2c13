package vfs

import "testing"

func TestAllZero(t *testing.T) {
	for _, n := range []int{0, 1, 4095, 4096, 4097, 9000} {
		b := make([]byte, n)
		if !AllZero(b) {
			t.Errorf("%d zeros are none", n)
		}
		for _, at := range []int{0, n / 2, n - 1} {
			if n == 0 {
				continue
			}
			b[at] = 1
			if AllZero(b) {
				t.Errorf("%d bytes with a 1 at %d are zeros", n, at)
			}
			b[at] = 0
		}
	}
}
