package inspect_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mqx/store/inspect"

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

// What a repair writes below config/ makes the directory again when it is gone.
func TestRepairConfigGone(t *testing.T) {
	root := testkit.GoldenStore(t, "delay_timer")
	try(t, os.RemoveAll(filepath.Join(root, "config")))
	try(t, os.WriteFile(filepath.Join(root, "config"), nil, 0o600))
	repair(t, root)
	for _, f := range verify(t, root).Findings {
		if !f.Note {
			t.Errorf("after the repair: %s %s: %s", f.Kind, f.File, f.What)
		}
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

// A topic that leads out of the directory of the queues is never followed: an import refuses it, a repair takes the record
// for broken.
func TestTopicLeadsElsewhere(t *testing.T) {
	for _, topic := range []string{"a/b", "../../outside", "..", ".", "a\x00b", strings.Repeat("a", 256)} {
		line, err := json.Marshal(map[string]any{"topic": topic, "body": "x"})
		try(t, err)
		root := filepath.Join(t.TempDir(), "store")
		_, err = inspect.Import(t.Context(), root, inspect.ImportOptions{Open: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(line)), nil
		}})
		if err == nil {
			t.Errorf("topic %.20q: imported", topic)
		}
	}
	_, err := inspect.Import(t.Context(), filepath.Join(t.TempDir(), "store"), inspect.ImportOptions{Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(`{"topic":"A","body":"x","queueId":0,"queueOffset":9223372036854775807}`)), nil
	}})
	if err == nil {
		t.Error("a queue offset that no queue can hold was imported")
	}
	root := testkit.GoldenStore(t, "basic")
	if _, err := inspect.Copy(t.Context(), root, filepath.Join(root, "sub"), inspect.CopyOptions{}); !errors.Is(err, inspect.ErrInside) {
		t.Errorf("a copy into the store itself: %v", err)
	}
	name := filepath.Join(root, "commitlog", "00000000000000000000")
	b, err := os.ReadFile(name)
	try(t, err)
	try(t, os.WriteFile(name, bytes.ReplaceAll(b, []byte("\x06TopicA"), []byte("\x06../../")), 0o600))
	try(t, os.RemoveAll(filepath.Join(root, "consumequeue")))
	if r := verify(t, root); !r.Damaged() {
		t.Error("no finding")
	}
	parent, err := os.ReadDir(filepath.Dir(root))
	try(t, err)
	repair(t, root)
	after, err := os.ReadDir(filepath.Dir(root))
	try(t, err)
	if len(after) != len(parent) {
		t.Errorf("something was written beside the store: %v", after)
	}
	for _, f := range verify(t, root).Findings {
		if !f.Note {
			t.Errorf("after the repair: %s %s: %s", f.Kind, f.File, f.What)
		}
	}
}

// A link is no way into the directory that is only read.
func TestCopyInsideByLink(t *testing.T) {
	root := testkit.GoldenStore(t, "basic")
	out := t.TempDir()
	try(t, os.Symlink(root, filepath.Join(out, "link")))
	try(t, os.Symlink(filepath.Join(root, "consumequeue"), filepath.Join(out, "deep")))
	try(t, os.Symlink(filepath.Join(root, "none"), filepath.Join(out, "dangling")))
	for _, c := range [][2]string{
		{root, "link/new"},
		{root, "link/new/er"},
		{root, "deep/new"},
		{root, "dangling"},
		{root, "dangling/new"},
		{root, "link"},
		{filepath.Join(out, "link"), filepath.Join(root, "new")},
	} {
		to := c[1]
		if !filepath.IsAbs(to) {
			to = out + "/" + to
		}
		if _, err := inspect.Copy(t.Context(), c[0], to, inspect.CopyOptions{}); !errors.Is(err, inspect.ErrInside) {
			t.Errorf("%s to %s: %v, want %v", c[0], to, err, inspect.ErrInside)
		}
	}
	for _, name := range []string{"new", "none"} {
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil {
			t.Errorf("%s was made in the source", name)
		}
	}
	try(t, os.Mkdir(filepath.Join(out, "elsewhere"), 0o700))
	try(t, os.Symlink(filepath.Join(out, "elsewhere"), filepath.Join(out, "fine")))
	if _, err := inspect.Copy(t.Context(), root, filepath.Join(out, "fine", "new"), inspect.CopyOptions{}); err != nil {
		t.Error(err)
	}
}
