package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"mqx/internal/vfs"
)

// The note of a clean stop: what is not one is refused, what is one is written back the same.
func FuzzCleanStop(f *testing.F) {
	note := cleanStop{logMin: 10, logEnd: 900, lastStart: 800, indexPhys: 800, indexed: 900, queues: map[stopKey]stopQueue{{"T", 3}: {7, 900}, {"%RETRY%g 1", 0}: {1, 2}}}
	f.Add(note.encode())
	f.Add([]byte("log 1\nqueue 1 2\n"))
	f.Add([]byte("queue 1 2 3 T\n\n\nindex\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decodeCleanStop(b)
		if err != nil {
			return
		}
		again, err := decodeCleanStop(c.encode())
		if err != nil {
			t.Fatalf("%v of %q", err, c.encode())
		}
		if diff := cmp.Diff(c.queues, again.queues, cmp.AllowUnexported(stopKey{}, stopQueue{})); diff != "" {
			t.Error(diff)
		}
	})
}

// A store whose small files hold anything opens, or says why not, and serves its messages.
func FuzzOpenSmallFiles(f *testing.F) {
	f.Add("checkpoint", make([]byte, 4096))
	f.Add("checkpoint", []byte{1, 2, 3})
	f.Add("mqx/stopped", []byte("mqx clean stop 1\nlog 0 9999 12\ncrc32 00000000\n"))
	f.Add("mqx/deleted-topics", []byte("mqx deleted topics 1\n99999999 T\ncrc32 00000000\n"))
	f.Add("abort", []byte("-17 and more"))
	f.Fuzz(func(t *testing.T, name string, content []byte) {
		if name != "checkpoint" && name != "mqx/stopped" && name != "mqx/deleted-topics" && name != "abort" {
			return
		}
		m := vfs.NewMem()
		s := mustOpen(t, memConfig(m))
		fill(t, s, 5)
		mustClose(t, s)
		writeFile(t, m, testRoot+"/"+name, string(content))
		s = mustOpen(t, memConfig(m))
		if name != "mqx/deleted-topics" {
			expectAll(t, s, 5)
		}
		mustClose(t, s)
	})
}
