package inspect_test

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"mqx/internal/testkit"
)

// A file where a directory belongs, a directory where a file does, and links that lead to themselves are findings that a
// repair mends, not the end of the look.
func TestRepairShape(t *testing.T) {
	file := func(t *testing.T, path string) {
		try(t, os.RemoveAll(path))
		try(t, os.WriteFile(path, []byte("x"), 0o600))
	}
	dir := func(t *testing.T, path string) {
		try(t, os.RemoveAll(path))
		try(t, os.MkdirAll(path, 0o700))
	}
	loop := func(t *testing.T, path string) {
		try(t, os.RemoveAll(path))
		try(t, os.Symlink(path, path))
	}
	dangling := func(t *testing.T, path string) {
		try(t, os.RemoveAll(path))
		try(t, os.Symlink(path+".gone", path))
	}
	sparse := func(t *testing.T, path string) { try(t, os.Truncate(path, 1<<31)) }
	for _, c := range []struct {
		name string
		do   func(*testing.T, string)
	}{
		{"consumequeue", file},
		{"consumequeue/TopicA", file},
		{"consumequeue/TopicA/0", file},
		{"index", file},
		{"config", file},
		{"checkpoint", dir},
		{"config/topics.json", dir},
		{"config/topics.json", loop},
		{"config/topics.json", dangling},
		{"config/topics.json", sparse},
		{"config/consumerOffset.json.bak", loop},
		{"consumequeue/TopicA/0/00000000000000000000", loop},
		{"consumequeue/TopicA/0/00000000000000000000", dangling},
		{"consumequeue/TopicA/0/00000000000000000000", dir},
		{"index", loop},
		{"checkpoint", loop},
		{"config/consumerOffset.json.bak", dir},
	} {
		t.Run(filepath.Base(c.name), func(t *testing.T) {
			root := testkit.GoldenStore(t, "basic")
			before := verify(t, root)
			c.do(t, filepath.Join(root, filepath.FromSlash(c.name)))
			if r := verify(t, root); !r.Damaged() && filepath.Ext(c.name) != ".bak" {
				t.Errorf("%s: no finding", c.name)
			}
			repair(t, root)
			r := verify(t, root)
			for _, f := range r.Findings {
				if !f.Note {
					t.Errorf("%s: after the repair: %s %s: %s", c.name, f.Kind, f.File, f.What)
				}
			}
			if r.Records != before.Records {
				t.Errorf("%s: %d records, want %d", c.name, r.Records, before.Records)
			}
		})
	}
}

// A record may claim any queue offset: the look does not end there, and only that record is lost.
func TestRepairQueueOffset(t *testing.T) {
	for _, n := range []int64{1<<61 + 1, math.MaxInt64, math.MaxInt64 / 20, math.MaxInt64/20 + 1, 1 << 40, 1 << 62, -1, math.MinInt64} {
		root := testkit.GoldenStore(t, "basic")
		before := verify(t, root)
		f, err := os.OpenFile(filepath.Join(root, "commitlog", "00000000000000000000"), os.O_RDWR, 0)
		try(t, err)
		_, err = f.WriteAt(binary.BigEndian.AppendUint64(nil, uint64(n)), 20)
		try(t, errors.Join(err, f.Close()))
		if r := verify(t, root); !r.Damaged() {
			t.Errorf("%d: no finding", n)
		}
		repair(t, root)
		r := verify(t, root)
		for _, f := range r.Findings {
			if !f.Note {
				t.Errorf("%d: after the repair: %s %s: %s", n, f.Kind, f.File, f.What)
			}
		}
		if r.Records != before.Records {
			t.Errorf("%d: %d records, want %d", n, r.Records, before.Records)
		}
	}
}

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
