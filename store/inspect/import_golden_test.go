package inspect_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mqx/internal/testkit"
	"mqx/message"
	"mqx/store/inspect"
)

// linesOf opens lines that are held in memory.
func linesOf(text []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
}

// small are options for stores of a test: index files of the golden stores' size.
func small(text []byte) inspect.ImportOptions {
	return inspect.ImportOptions{Open: linesOf(text), Plan: inspect.PlanOptions{IndexSlots: 1000, IndexEntries: 4000, QueueFileBytes: 6000}}
}

func exportOf(t *testing.T, d *inspect.Dir, o inspect.ExportOptions) []byte {
	t.Helper()
	var out bytes.Buffer
	n, err := d.Export(context.Background(), &out, o)
	if err != nil {
		t.Fatal(err)
	}
	checkCounts(t, n, out.String())
	return out.Bytes()
}

// Export, import and export of every golden store give the same lines; the log of the new store is the old one, byte for
// byte; nothing in it disagrees, and its queues are those of the old one as far as its log makes them.
func TestImportMakesTheSameLog(t *testing.T) {
	eachSound(t, func(t *testing.T, d *inspect.Dir, m *testkit.Manifest) {
		text := exportOf(t, d, inspect.ExportOptions{Whole: true})
		root := filepath.Join(t.TempDir(), "store")
		p, err := inspect.Import(context.Background(), root, small(text))
		if err != nil {
			t.Fatal(err)
		}
		if !p.New || !p.Whole || !p.Known || p.Lines != int64(bytes.Count(text, []byte{'\n'})) || p.Messages != p.Lines {
			t.Errorf("%+v", p)
		}
		again := open(t, root)
		if !bytes.Equal(exportOf(t, again, inspect.ExportOptions{Whole: true}), text) {
			t.Error("the second export is another")
		}
		sameLogBytes(t, d, again)
		r, err := inspect.Verify(context.Background(), again, inspect.VerifyOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Findings {
			if !f.Note {
				t.Errorf("%s: %s", f.File, f.What)
			}
		}
		sameUnits(t, d, again)
		if _, err := os.Stat(filepath.Join(root, "mqx", "import")); err == nil {
			t.Error("mqx/import is left")
		}
	})
}

// sameLogBytes compares the logs up to the end of the records.
func sameLogBytes(t *testing.T, a, b *inspect.Dir) {
	t.Helper()
	fa, fb := a.Log().Files(), b.Log().Files()
	if len(fb) > len(fa) {
		t.Fatalf("%d log files, want %d", len(fb), len(fa))
	}
	for i := range fb {
		x, errX := os.ReadFile(fa[i].Path)
		y, errY := os.ReadFile(fb[i].Path)
		if errX != nil || errY != nil {
			t.Fatal(errX, errY)
		}
		if fa[i].Start != fb[i].Start || !bytes.Equal(x, y) {
			t.Errorf("log file %s is another", filepath.Base(fb[i].Path))
		}
	}
	for _, f := range fa[len(fb):] {
		if x, err := os.ReadFile(f.Path); err != nil || len(bytes.Trim(x, "\x00")) > 0 {
			t.Errorf("log file %s is missing, %v", filepath.Base(f.Path), err)
		}
	}
}

// sameUnits: every unit of the new queues is one of the old ones, and of those none that the log can make is missing.
func sameUnits(t *testing.T, a, b *inspect.Dir) {
	t.Helper()
	units := func(d *inspect.Dir) map[string]bool {
		out := map[string]bool{}
		keys, err := d.Queues()
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range keys {
			q, err := d.Queue(k)
			if err != nil {
				t.Fatal(err)
			}
			if err := q.Units(context.Background(), 0, 1<<40, func(u inspect.Unit) error {
				if _, err := d.Log().Record(u.Phys); u.Written() && !u.Filler() && err == nil {
					out[strings.Join([]string{k.String(), itoa(u.Offset), itoa(u.Phys), itoa(int64(u.Size))}, " ")] = true
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		return out
	}
	old, fresh := units(a), units(b)
	for u := range old {
		if !fresh[u] {
			t.Errorf("unit %s is missing", u)
		}
	}
	for u := range fresh {
		if !old[u] {
			t.Errorf("unit %s is new", u)
		}
	}
}

// A part, or a whole export that is renumbered, becomes a store of its own: offsets from 0, order, times, hosts, bodies and
// properties kept.
func TestImportRenumbers(t *testing.T) {
	d := openGolden(t, "roll")
	text := exportOf(t, d, inspect.ExportOptions{Whole: true})
	for name, o := range map[string]inspect.ExportOptions{
		"part":       {Match: inspect.Match{Start: 1, Visible: true}},
		"renumbered": {Whole: true},
	} {
		t.Run(name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "store")
			io := small(exportOf(t, d, o))
			io.Renumber, io.LogFileBytes = name == "renumbered", 131072
			p, err := inspect.Import(context.Background(), root, io)
			if err != nil {
				t.Fatal(err)
			}
			if p.Whole || p.From != 0 {
				t.Errorf("%+v", p)
			}
			again := open(t, root)
			compareContent(t, text, exportOf(t, again, inspect.ExportOptions{Whole: true}))
			r, err := inspect.Verify(context.Background(), again, inspect.VerifyOptions{})
			if err != nil || r.Damaged() {
				t.Errorf("%v %+v", err, r.Findings)
			}
		})
	}
}

// compareContent compares what an import keeps, and that queue offsets count from 0.
func compareContent(t *testing.T, before, after []byte) {
	t.Helper()
	next := map[string]int64{}
	a, b := bytes.Split(before, []byte{'\n'}), bytes.Split(after, []byte{'\n'})
	if len(a) != len(b) {
		t.Fatalf("%d lines, want %d", len(b)-1, len(a)-1)
	}
	for i := range a[:len(a)-1] {
		x, errX := message.ParseLine(a[i])
		y, errY := message.ParseLine(b[i])
		if errX != nil || errY != nil {
			t.Fatal(errX, errY)
		}
		key := y.Topic + "/" + itoa(int64(*y.QueueID))
		if *y.QueueOffset != next[key] {
			t.Errorf("line %d has offset %d, want %d", i+1, *y.QueueOffset, next[key])
		}
		next[key]++
		if x.Topic != y.Topic || *x.QueueID != *y.QueueID || !bytes.Equal(x.Body, y.Body) || x.StoreTimestamp != y.StoreTimestamp ||
			x.BornTimestamp != y.BornTimestamp || x.BornHost != y.BornHost || x.StoreHost != y.StoreHost || x.MsgID != y.MsgID || x.Flag != y.Flag {
			t.Errorf("line %d: %s\nwant %s", i+1, b[i], a[i])
		}
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
