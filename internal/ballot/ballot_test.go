package ballot

import "testing"

// Epochs ascend, and those of two brokers are never the same, whatever each of them knows.
func TestNext(t *testing.T) {
	for _, tt := range []struct{ known, id, want int64 }{
		{0, 0, 1000},
		{1, 0, 2000},
		{0, 1, 1},
		{0, 2, 2},
		{1, 1, 1001},
		{2, 1, 1001},
		{1001, 2, 2002},
		{1000, 1, 1001},
		{0, 1000, 1000},
		{1000, 1000, 2000},
		{0, 1001, 1},
		{7, 3, 1003},
	} {
		if got := Next(tt.known, tt.id); got != tt.want {
			t.Errorf("behind %d, broker %d: %d, want %d", tt.known, tt.id, got, tt.want)
		}
	}
	for known := range int64(3100) {
		for id := range int64(4) {
			a := Next(known, id)
			if a <= known {
				t.Fatalf("%d behind %d", a, known)
			}
			for _, other := range []int64{0, 1, 999, 1000, 1001, 2500} {
				for o := range int64(4) {
					if o != id && Next(other, o) == a {
						t.Fatalf("brokers %d and %d both get %d", id, o, a)
					}
				}
			}
		}
	}
}
