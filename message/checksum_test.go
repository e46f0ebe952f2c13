package message

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

func TestChecksum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 5000)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	for n := range 600 {
		from := r.IntN(17)
		if got, want := checksum(b[from:from+n]), crc32.ChecksumIEEE(b[from:from+n]); got != want {
			t.Fatalf("checksum of %d bytes = %08x, want %08x", n, got, want)
		}
	}
	for range 2000 {
		from := r.IntN(1000)
		n := r.IntN(4000)
		if got, want := checksum(b[from:from+n]), crc32.ChecksumIEEE(b[from:from+n]); got != want {
			t.Fatalf("checksum of %d bytes = %08x, want %08x", n, got, want)
		}
	}
}

func BenchmarkChecksum(b *testing.B) {
	for _, n := range []int{100, 128, 143, 200, 1000, 1024, 1039, 4000} {
		buf := make([]byte, n)
		b.Run(fmt.Sprintf("whole-%d", n), func(b *testing.B) {
			for b.Loop() {
				checksum(buf)
			}
		})
		b.Run(fmt.Sprintf("plain-%d", n), func(b *testing.B) {
			for b.Loop() {
				crc32.ChecksumIEEE(buf)
			}
		})
	}
}
