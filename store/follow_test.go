package store

import (
	"fmt"
	"path/filepath"
	"testing"

	"mqx/internal/vfs"
)

// A slave may be killed, or its directory be one of Apache's slaves, after any byte that its master has sent: who opens it as the
// master has the messages that have come whole, and takes more.
func TestPromotedWithinARecord(t *testing.T) {
	src, _ := openMem(t)
	ends := []int64{0}
	for i := range 3 {
		p := mustPut(t, src, newRecord("T", 0, fmt.Sprintf("body %d", i), fmt.Sprintf("KEYS\x01key%d\x02WAIT\x01true\x02", i)))
		ends = append(ends, p.PhysicalOffset+int64(p.Size))
	}
	all := make([]byte, src.LogEnd())
	if err := src.ReadLog(all, 0); err != nil {
		t.Fatal(err)
	}
	for n := ends[1] + 1; n < int64(len(all)); n++ {
		whole := 1
		if n >= ends[2] {
			whole = 2
		}
		killed := vfs.NewMem()
		cfg := memConfig(killed)
		cfg.Follow = true
		s := mustOpen(t, cfg)
		if err := s.AppendRaw(0, all[:n]); err != nil {
			t.Fatal(err)
		}
		killed = killed.Kill()
		mustClose(t, s)

		apache := vfs.NewMem()
		mustClose(t, mustOpen(t, memConfig(apache))) // makes the directories
		if err := apache.RemoveAll(filepath.Join(testRoot, ownDir)); err != nil {
			t.Fatal(err)
		}
		file := make([]byte, 16<<10)
		copy(file, all[:n])
		if err := vfs.WriteFileDurable(apache, filepath.Join(testRoot, "commitlog", fmt.Sprintf("%020d", 0)), file); err != nil {
			t.Fatal(err)
		}
		for name, m := range map[string]*vfs.Mem{"killed": killed, "of Apache": apache} {
			s := mustOpen(t, memConfig(m))
			if s.LogEnd() != ends[whole] {
				t.Fatalf("%s after %d bytes: the log ends at %d, want %d", name, n, s.LogEnd(), ends[whole])
			}
			if p := mustPut(t, s, newRecord("T", 0, "own", "")); p.QueueOffset != int64(whole) {
				t.Fatalf("%s after %d bytes: the next message gets offset %d, want %d", name, n, p.QueueOffset, whole)
			}
			catchUp(t, s)
			if got := readAll(t, s, "T", 0, nil); len(got) != whole+1 {
				t.Fatalf("%s after %d bytes: %d messages, want %d", name, n, len(got), whole+1)
			}
			mustClose(t, s)
		}
	}
}
