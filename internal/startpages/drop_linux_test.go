package startpages

import (
	"bytes"
	"hash/crc32"
	"io"
	"os"
	"strconv"
	"testing"
)

// ofFiles is how much of mapped files is resident, in bytes.
func ofFiles(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(status) {
		if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == "RssFile:" {
			kib, err := strconv.ParseInt(string(f[1]), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Skip("this kernel does not tell how much of files is resident")
	return 0
}

// All of the binary is resident once it has been read; what was dropped is not, and is there again, the same, when it is used.
func TestDrop(t *testing.T) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	spans := own(maps[:min(len(maps), 1024)])
	if len(spans) == 0 {
		t.Skip("this binary is not linked to a fixed place: nothing is dropped")
	}
	mem, err := os.Open("/proc/self/mem")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mem.Close() }() // it was read
	sum := func() (crc uint32, size int64) {
		h := crc32.NewIEEE()
		for _, s := range spans {
			n, err := io.Copy(h, io.NewSectionReader(mem, int64(s.start), int64(s.end-s.start)))
			if err != nil {
				t.Fatal(err)
			}
			size += n
		}
		return h.Sum32(), size
	}
	want, size := sum()
	before := ofFiles(t)
	Drop()
	if after := ofFiles(t); before-after < size/8 { // the runtime goes on, and has most of so small a binary again
		t.Errorf("%d bytes were read, %d were resident then, and %d are still", size, before, after)
	}
	if got, _ := sum(); got != want {
		t.Error("the binary reads as another one")
	}
}
