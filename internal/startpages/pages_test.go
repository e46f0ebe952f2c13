package startpages

import (
	"slices"
	"testing"
)

func TestOwnRanges(t *testing.T) {
	const binary = "00400000-0128a000 r-xp 00000000 fe:00 10020099      /usr/bin/mqx\n0128a000-0219d000 r--p 00e8a000 fe:00 10020099      /usr/bin/mqx\n" +
		"0219d000-022a0000 rw-p 01d9d000 fe:00 10020099      /usr/bin/mqx\n"
	want := []span{{0x400000, 0x128a000}, {0x128a000, 0x219d000}}
	for name, tt := range map[string]struct {
		maps string
		want []span
	}{
		"a binary":            {binary + "022a0000-04561000 rw-p 00000000 00:00 0\n", want},
		"cut off":             {binary[:110], want[:1]},
		"another file behind": {binary + "7f0000000000-7f0000010000 r-xp 00000000 fe:00 1      /lib/libc.so\n", want},
		"loaded anywhere":     {"55d0c0000000-55d0c0e8a000 r-xp 00000000 fe:00 10020099      /usr/bin/mqx\n", nil},
		"nothing":             {"", nil},
		"none":                {"nonsense\n", nil},
	} {
		if got := own([]byte(tt.maps)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
