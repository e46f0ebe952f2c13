package inspect_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mqx/internal/testkit"
	"mqx/message"
	"mqx/store/inspect"
)

func diff(t *testing.T, a, b string, o inspect.DiffOptions) (list []string, r inspect.DiffResult) {
	t.Helper()
	r, err := inspect.Diff(context.Background(), open(t, a), open(t, b), o, func(x inspect.Difference) error {
		mark := ""
		if x.Note {
			mark = "note "
		}
		list = append(list, fmt.Sprintf("%s%s %s %s %d %d %s", mark, x.Kind, x.Side, x.Name, x.From, x.To, x.MsgID))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list, r
}

// Every golden store equals itself, and its whole import but for what an import does not bring.
func TestDiffOfTheSame(t *testing.T) {
	eachSound(t, func(t *testing.T, d *inspect.Dir, m *testkit.Manifest) {
		list, r := diff(t, d.Root(), testkit.GoldenStore(t, m.Variant), inspect.DiffOptions{})
		if len(list) > 0 || r.Same != int64(recordsOf(m)) || r.PartAt != -1 {
			t.Errorf("%+v %q", r, list)
		}
		copied := filepath.Join(t.TempDir(), "store")
		if _, err := inspect.Import(context.Background(), copied, small(exportOf(t, d, inspect.ExportOptions{Whole: true}))); err != nil {
			t.Fatal(err)
		}
		if list, _ := diff(t, d.Root(), copied, inspect.DiffOptions{NoConfig: true}); len(list) > 0 {
			t.Errorf("%q", list)
		}
	})
}

func recordsOf(m *testkit.Manifest) (n int) {
	for i := range m.StoreView.CommitLogRecords {
		if !m.StoreView.CommitLogRecords[i].IsBlank() {
			n++
		}
	}
	return n
}

// A fork that was planted is found, with the messages of each side, and nothing else.
func TestDiffFindsAFork(t *testing.T) {
	base := testkit.GoldenStore(t, "basic")
	other := testkit.GoldenStore(t, "basic")
	at := mustImport(t, base, append(simpleLines(3, "TopicB"), simpleLines(2, "Left")...)).From
	mustImport(t, other, append(simpleLines(3, "TopicB"), simpleLines(4, "Right")...))
	list, r := diff(t, base, other, inspect.DiffOptions{NoConfig: true})
	var ids, rest []string
	for _, x := range list {
		if strings.HasPrefix(x, "message") {
			ids = append(ids, strings.ReplaceAll(strings.TrimPrefix(x, "message "), "  -1 -1", ""))
		} else {
			rest = append(rest, x)
		}
	}
	slices.Sort(ids)
	if want := "first Left0,first Left1,second Right0,second Right1,second Right2,second Right3"; strings.Join(ids, ",") != want {
		t.Errorf("%q, want %q", ids, want)
	}
	if r.OnlyFirst != 2 || r.OnlySecond != 4 || r.PartAt < at {
		t.Errorf("%+v", r)
	}
	// The three messages of TopicB were stored at other times, so that the logs part with them; their queues point to the same places.
	want := []string{
		fmt.Sprintf("log-fork both  %d %d ", r.PartAt, open(t, other).Log().Min()+endOf(t, other)),
		"queue first Left/0 0 1 ", "queue first Left/1 0 1 ",
		"queue second Right/0 0 2 ", "queue second Right/1 0 1 ", "queue second Right/2 0 1 ",
	}
	if !slices.Equal(rest, want) {
		t.Errorf("%q, want %q", rest, want)
	}
}

func endOf(t *testing.T, root string) int64 {
	t.Helper()
	end, err := open(t, root).Log().Walk(context.Background(), inspect.WalkOptions{}, func(int64, message.View) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return end.LastEnd
}

func mustImport(t *testing.T, root string, text []byte) *inspect.ImportPlan {
	t.Helper()
	p, err := inspect.Import(context.Background(), root, small(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A log that retention has cut, or one with files of another size, is no other log.
func TestDiffOverRetentionAndFileSizes(t *testing.T) {
	whole := testkit.GoldenStore(t, "crash_kill9_quiet")
	cut := testkit.GoldenStore(t, "clean_firstfile_missing")
	list, r := diff(t, cut, whole, inspect.DiffOptions{NoConfig: true})
	var differences []string
	for _, x := range list {
		if !strings.HasPrefix(x, "note ") {
			differences = append(differences, x)
		}
	}
	if len(differences) > 0 || r.Same == 0 || !slices.Contains(list, "note log-start first  0 131072 ") {
		t.Errorf("%+v %q", r, list)
	}
	a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	for dir, size := range map[string]int64{a: 65536, b: 131072} {
		o := small(simpleLines(200, "T"))
		o.LogFileBytes = size
		if _, err := inspect.Import(context.Background(), dir, o); err != nil {
			t.Fatal(err)
		}
	}
	_, r = diff(t, a, b, inspect.DiffOptions{NoQueues: true, NoConfig: true})
	if r.OnlyFirst+r.OnlySecond > 0 {
		t.Errorf("%+v", r)
	}
}

// A backup that is older lacks the end; a record that was damaged differs alone; an offset and a setting differ by name.
func TestDiffOfBackupAndDamage(t *testing.T) {
	base, other := testkit.GoldenStore(t, "basic"), testkit.GoldenStore(t, "basic")
	p := mustImport(t, other, simpleLines(5, "TopicB"))
	list, r := diff(t, base, other, inspect.DiffOptions{NoQueues: true, NoConfig: true})
	if r.OnlySecond != 5 || r.OnlyFirst != 0 || r.PartAt != -1 || list[0] != fmt.Sprintf("log-end second  %d %d ", p.From, p.To) {
		t.Errorf("%+v %q", r, list)
	}
	list, _ = diff(t, base, other, inspect.DiffOptions{NoLog: true})
	for _, want := range []string{"queue-end second TopicB/0 ", "config both config/topics.json"} {
		if !slices.ContainsFunc(list, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("%q lacks %q", list, want)
		}
	}
	damaged := testkit.GoldenStore(t, "clean_body_mid_secondfile")
	list, r = diff(t, testkit.GoldenStore(t, "clean_reference"), damaged, inspect.DiffOptions{NoConfig: true})
	if r.OnlyFirst != 1 || r.OnlySecond != 0 || r.PartAt != -1 {
		t.Errorf("%+v %q", r, list)
	}
	path := filepath.Join(base, "config", "consumerOffset.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := open(t, base)
	offsets, err := d.Offsets()
	if err != nil || len(offsets) == 0 {
		t.Fatal(offsets, err)
	}
	changed := strings.Replace(string(b), fmt.Sprintf("%d:%d", offsets[0].Queue, offsets[0].Offset), fmt.Sprintf("%d:%d", offsets[0].Queue, offsets[0].Offset+70), 1)
	if changed == string(b) {
		t.Fatal("nothing was changed")
	}
	if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
	list, r = diff(t, base, testkit.GoldenStore(t, "basic"), inspect.DiffOptions{})
	if r.Differences != 1 || !strings.HasPrefix(list[0], "offset both config/consumerOffset.json") {
		t.Errorf("%+v %q", r, list)
	}
}
