package inspect_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mqx/internal/testkit"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/store"
	"mqx/store/inspect"
)

func simpleLines(n int, topic string) []byte {
	var b bytes.Buffer
	for i := range n {
		b.WriteString(`{"topic":"` + topic + `","queueId":` + itoa(int64(i%3)) + `,"body":"` + itoa(int64(i)) + `","properties":{"KEYS":"k` + itoa(int64(i)) + `","UNIQ_KEY":"` + topic + itoa(int64(i)) + `"}}` + "\n")
	}
	return b.Bytes()
}

// bodies are the messages of a topic, by queue and offset, in the order of the log.
func bodies(t *testing.T, root, topic string) []string {
	t.Helper()
	var out []string
	d := open(t, root)
	if _, err := d.Log().Walk(context.Background(), inspect.WalkOptions{}, func(_ int64, v message.View) error {
		if string(v.Topic()) == topic {
			out = append(out, itoa(int64(v.QueueID()))+"/"+itoa(v.QueueOffset())+" "+string(v.Body()))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func verifyClean(t *testing.T, root string) {
	t.Helper()
	r, err := inspect.Verify(context.Background(), open(t, root), inspect.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		if !f.Note {
			t.Errorf("%s: %s", f.File, f.What)
		}
	}
}

// Lines are added to a store that Apache wrote: behind its messages, with its topics widened, and nothing else changed.
func TestImportAdds(t *testing.T) {
	root := testkit.GoldenStore(t, "basic")
	before := exportOf(t, open(t, root), inspect.ExportOptions{Whole: true})
	p, err := inspect.Import(context.Background(), root, small(append(simpleLines(9, "TopicB"), simpleLines(4, "Fresh")...)))
	if err != nil {
		t.Fatal(err)
	}
	if p.New || p.Messages != 13 || strings.Join(p.NewTopics, " ") != "Fresh" || strings.Join(p.MoreQueues, " ") != "TopicB" || p.To <= p.From {
		t.Errorf("%+v", p)
	}
	after := exportOf(t, open(t, root), inspect.ExportOptions{Whole: true})
	if !bytes.HasPrefix(after, before) || bytes.Count(after, []byte{'\n'}) != bytes.Count(before, []byte{'\n'})+13 {
		t.Error("what was there is another now")
	}
	topics, err := open(t, root).Topics()
	if err != nil || topics["Fresh"].WriteQueues != 3 || topics["TopicB"].WriteQueues != 3 || topics["TopicB"].ReadQueues != 3 || topics["TopicA"].WriteQueues != 4 {
		t.Errorf("%+v, %v", topics, err)
	}
	if got := bodies(t, root, "Fresh"); strings.Join(got, ",") != "0/0 0,1/0 1,2/0 2,0/1 3" {
		t.Errorf("%q", got)
	}
	verifyClean(t, root)
}

// What cannot be imported changes nothing.
func TestImportRefuses(t *testing.T) {
	whole := exportOf(t, openGolden(t, "basic"), inspect.ExportOptions{Whole: true})
	lines := bytes.SplitAfter(whole, []byte{'\n'})
	without := bytes.Join(append(append([][]byte{}, lines[:5]...), lines[6:]...), nil)
	for name, c := range map[string]struct {
		text []byte
		line int64
		is   error
	}{
		"no JSON":          {append(simpleLines(3, "T"), "hello\n"...), 4, nil},
		"no topic":         {[]byte(`{"body":"x"}`), 1, nil},
		"negative queue":   {[]byte(`{"topic":"T","queueId":-1,"body":"x"}`), 1, nil},
		"line is missing":  {without, 6, inspect.ErrGap},
		"head is missing":  {bytes.Join(lines[1:], nil), 1, inspect.ErrGap},
		"twice":            {append(append([]byte{}, whole...), lines[len(lines)-2]...), int64(len(lines)), inspect.ErrGap},
		"redacted":         {[]byte(`{"topic":"T","body":null,"bodyEncoding":"none"}`), 1, nil},
		"properties":       {[]byte(`{"topic":"T","body":"x","properties":{"a":"` + strings.Repeat("b", 40000) + `"}}`), 1, nil},
		"other log file":   {bytes.Replace(whole, []byte(`"logFileSize":1048576`), []byte(`"logFileSize":500`), 1), 2, nil},
		"record elsewhere": {bytes.Replace(whole, []byte(`"physicalOffset":315`), []byte(`"physicalOffset":316`), 1), 2, inspect.ErrGap},
	} {
		for _, once := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				root := filepath.Join(t.TempDir(), "store")
				o := small(c.text)
				o.Once = once
				_, err := inspect.Import(context.Background(), root, o)
				x, ok := errors.AsType[*inspect.LineError](err)
				if !ok || x.Line != c.line || c.is != nil && !errors.Is(err, c.is) {
					t.Errorf("%v", err)
				}
				for _, part := range []string{"commitlog", "config", "consumequeue", "mqx/import", "mqx/import.json"} {
					if _, err := os.Stat(filepath.Join(root, part)); !errors.Is(err, fs.ErrNotExist) {
						t.Errorf("%s is there", part)
					}
				}
			})
		}
	}
}

func TestImportRefusesDirectories(t *testing.T) {
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "x"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := inspect.Import(context.Background(), foreign, small(simpleLines(1, "T"))); !errors.Is(err, inspect.ErrNoTarget) {
		t.Error(err)
	}
	if _, err := inspect.Import(context.Background(), testkit.GoldenStore(t, "crash_kill9_quiet"), small(simpleLines(1, "T"))); !errors.Is(err, inspect.ErrNotStopped) {
		t.Error(err)
	}
	root := testkit.GoldenStore(t, "basic")
	lock, err := store.LockDir(vfs.OS, root)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	_, err = inspect.Import(context.Background(), root, small(simpleLines(1, "T")))
	if _, ok := errors.AsType[*store.LockedError](err); !ok {
		t.Error(err)
	}
}

// A batch queue, half messages and a broker's own topics are left out, each counted.
func TestImportSkips(t *testing.T) {
	root := testkit.GoldenStore(t, "batchcq")
	text := append(simpleLines(2, "BcqTopic"), simpleLines(3, "rmq_sys_wheel_timer")...)
	text = append(text, `{"topic":"T","body":"x","sysFlag":4}`+"\n"+`{"topic":"T","body":"y","sysFlag":8}`+"\n"...)
	p, err := inspect.Import(context.Background(), root, small(text))
	if err != nil {
		t.Fatal(err)
	}
	if p.Lines != 7 || p.Records != 1 || p.Skipped[inspect.SkipBatch] != 2 || p.Skipped[inspect.SkipSystem] != 3 || p.Skipped[inspect.SkipHalf] != 1 {
		t.Errorf("%+v", p)
	}
	if got := bodies(t, root, "T"); len(got) != 1 {
		t.Errorf("%q", got)
	}
	verifyClean(t, root)
}

// cutReader ends with an error after n bytes, as an input does whose writer has gone.
type cutReader struct {
	io.Reader
	err error
}

func (c *cutReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if errors.Is(err, io.EOF) {
		err = c.err
	}
	return n, err
}

// An import into a store that was interrupted goes on where it was, also when a broker has stored something else between.
func TestImportGoesOn(t *testing.T) {
	root := testkit.GoldenStore(t, "basic")
	text := simpleLines(1000, "Fresh")
	gone := errors.New("gone")
	o := small(text)
	o.Once = true
	o.Open = func() (io.ReadCloser, error) {
		return io.NopCloser(&cutReader{bytes.NewReader(text[:len(text)/2]), gone}), nil
	}
	if _, err := inspect.Import(context.Background(), root, o); !errors.Is(err, gone) {
		t.Fatal(err)
	}
	half := len(bodies(t, root, "Fresh"))
	if half == 0 || half == 1000 {
		t.Fatalf("%d messages", half)
	}
	if _, err := inspect.Import(context.Background(), root, small(simpleLines(1, "Other"))); !errors.Is(err, inspect.ErrOtherImport) {
		t.Fatal(err)
	}
	other := small(simpleLines(2, "Other"))
	other.Abandon = true
	journal, err := os.ReadFile(filepath.Join(root, "mqx", "import.json"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inspect.Import(context.Background(), root, other); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "mqx", "import.json"), journal, 0o644); err != nil { // as if a broker had stored them
		t.Fatal(err)
	}
	p, err := inspect.Import(context.Background(), root, small(text))
	if err != nil {
		t.Fatal(err)
	}
	if p.Resumed != int64(half) || p.Messages != 1000 {
		t.Errorf("%+v, %d were there", p, half)
	}
	seen := map[string]int{}
	for n, b := range bodies(t, root, "Fresh") {
		_, body, _ := strings.Cut(b, " ")
		seen[body]++
		if body != itoa(int64(n)) {
			t.Fatalf("message %d is %q", n, b)
		}
	}
	if len(seen) != 1000 || len(bodies(t, root, "Other")) != 2 {
		t.Errorf("%d messages", len(seen))
	}
	if _, err := os.Stat(filepath.Join(root, "mqx", "import.json")); err == nil {
		t.Error("the journal is left")
	}
	verifyClean(t, root)
}

// A full disk is told before anything is done.
func TestImportChecksSpace(t *testing.T) {
	root := testkit.GoldenStore(t, "basic")
	for _, dir := range []string{filepath.Join(t.TempDir(), "store"), root} {
		o := small(simpleLines(100, "Fresh"))
		o.FS = smallDisk{vfs.OS}
		_, err := inspect.Import(context.Background(), dir, o)
		if x, ok := errors.AsType[*inspect.NoSpaceError](err); !ok || x.Free != 1900 || x.Need < 10000 {
			t.Error(err)
		}
	}
	verifyClean(t, root)
}

type smallDisk struct{ vfs.FS }

// The slots of a new index file take their space, however few messages there are.
func TestImportChecksSpaceOfIndex(t *testing.T) {
	o := small(simpleLines(1, "Fresh"))
	o.Plan.IndexSlots = 10_000
	o.FS = smallDisk{vfs.OS}
	_, err := inspect.Import(context.Background(), filepath.Join(t.TempDir(), "store"), o)
	if x, ok := errors.AsType[*inspect.NoSpaceError](err); !ok || x.Need < 40_000 {
		t.Error(err)
	}
}

func (smallDisk) Usage(string) (vfs.Usage, error) { return vfs.Usage{Total: 10000, Free: 2000}, nil }

// An import whose store is whole and not yet in its place is finished by the next one, wherever it was interrupted.
func TestImportIsPutInItsPlace(t *testing.T) {
	for n := range 6 {
		root := filepath.Join(t.TempDir(), "store")
		o := small(simpleLines(50, "Fresh"))
		stop := errors.New("stopped")
		o.FS = &stoppingFS{FS: vfs.OS, root: root, after: n, err: stop}
		_, err := inspect.Import(context.Background(), root, o)
		if n < 5 && !errors.Is(err, stop) {
			t.Fatalf("%d: %v", n, err)
		}
		if n == 5 { // every part was moved
			if err != nil {
				t.Fatal(err)
			}
		} else if p, err := inspect.Import(context.Background(), root, small(simpleLines(1, "Other"))); err != nil || !p.Finished || p.Messages != 50 {
			t.Fatalf("%d: %+v, %v", n, p, err)
		}
		if got := bodies(t, root, "Fresh"); len(got) != 50 {
			t.Errorf("%d: %d messages", n, len(got))
		}
		verifyClean(t, root)
	}
}

// stoppingFS fails after some parts were moved to their place.
type stoppingFS struct {
	vfs.FS
	root  string
	after int
	err   error
}

func (f *stoppingFS) Rename(from, to string) error {
	if filepath.Dir(to) == f.root && filepath.Dir(from) == filepath.Join(f.root, "mqx", "import") {
		if f.after == 0 {
			return f.err
		}
		f.after--
	}
	return f.FS.Rename(from, to)
}

// What was delivered before the export is not delivered again: delay levels and the timer go on with what was still to come.
func TestImportKeepsProgress(t *testing.T) {
	for _, variant := range []string{"delay_timer", "pop"} {
		t.Run(variant, func(t *testing.T) {
			old := openGolden(t, variant)
			root := filepath.Join(t.TempDir(), "store")
			if _, err := inspect.Import(context.Background(), root, small(exportOf(t, old, inspect.ExportOptions{Whole: true}))); err != nil {
				t.Fatal(err)
			}
			d := open(t, root)
			var last int64
			if _, err := d.Log().Walk(context.Background(), inspect.WalkOptions{}, func(_ int64, v message.View) error {
				last = max(last, v.StoreTimestamp())
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			pending := func(d *inspect.Dir) map[string]bool {
				dues, err := d.Dues(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				out := map[string]bool{}
				for _, x := range dues {
					if x.Time > last && !x.Cancelled && x.Cancels == "" {
						out[x.Topic+" "+x.UniqKey] = true
					}
				}
				return out
			}
			was, is := pending(old), pending(d)
			for m := range was {
				if !is[m] {
					t.Errorf("%s waits no more", m)
				}
			}
			levels, err := d.DelayOffsets()
			before, errBefore := old.DelayOffsets()
			if err != nil || errBefore != nil {
				t.Fatal(err, errBefore)
			}
			for _, b := range before {
				for _, l := range levels {
					if l.Level == b.Level && (l.Offset < b.Offset-1 || l.Offset > b.Offset) {
						t.Errorf("level %d goes on at %d, it was at %d", l.Level, l.Offset, b.Offset)
					}
				}
			}
			if variant == "pop" {
				offsets, err := d.Offsets()
				if err != nil || len(offsets) == 0 {
					t.Errorf("%v, %v", offsets, err)
				}
			}
		})
	}
}
