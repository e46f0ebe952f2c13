package cmd

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"mqx/internal/render"
)

// goldenNow is when the records of golden files were asked for.
var goldenNow = time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)

// goldenForms are the forms in which a golden file has the records of a schema: as a
// program gets them, and as a person does on a terminal of 80 and of 140 columns.
var goldenForms = []struct {
	name    string
	options render.Options
}{
	{"table, terminal of 80 columns", render.Options{Form: render.FormTable, TTY: true, Width: 80}},
	{"table, terminal of 140 columns", render.Options{Form: render.FormTable, TTY: true, Width: 140}},
	{"wide, terminal of 80 columns", render.Options{Form: render.FormWide, TTY: true, Width: 80}},
	{"a line a field, terminal of 80 columns", render.Options{Form: render.FormTable, TTY: true, Width: 80, Records: true}},
	{"table, pipe", render.Options{Form: render.FormTable}},
	{"wide, pipe", render.Options{Form: render.FormWide}},
	{"json", render.Options{Form: render.FormJSON}},
	{"ndjson", render.Options{Form: render.FormNDJSON}},
	{"ndjson, strings", render.Options{Form: render.FormNDJSON, Strings: true}},
	{"yaml", render.Options{Form: render.FormYAML}},
	{"csv", render.Options{Form: render.FormCSV}},
	{"name", render.Options{Form: render.FormName}},
	{"template", render.Options{Form: render.FormTemplate}},
	{"help", render.Options{Form: render.FormHelp}},
}

// goldenValue is the value of a field in the first row, an ordinary one, in the second,
// with East Asian text and what must be escaped, and in the third, where nothing is known.
func goldenValue(s *render.Schema, i, row int) any {
	f := s.Fields[i]
	if row == 2 && f.Name != s.Name {
		return nil
	}
	n := int64(i + 1)
	if row == 1 {
		n = 9007199254740993 - n // more than a float holds
	}
	switch f.Kind {
	case render.Int, render.Size:
		return n
	case render.Float:
		return float64(n) / 8
	case render.Bool:
		return (i+row)%2 == 0
	case render.Time:
		return goldenNow.Add(-time.Duration(i+1) * 7 * time.Minute)
	case render.Duration:
		return time.Duration(i+1) * 1500 * time.Millisecond
	case render.List:
		return [][]string{{f.Name + "-a", f.Name + "-b"}, {"订单,中", "two words"}}[row]
	case render.Object:
		return []map[string]any{{"key": f.Name}, {"键": []string{"值"}}}[row]
	case render.Series:
		return [][]float64{{1, 2, 3}, {8, 0, 4.5}}[row]
	}
	return []string{f.Name + "-value", "订单服务-東京-서울-" + f.Name + "\tand a tab", f.Name}[row]
}

// goldenOutput is one form of three records of a schema and an answer that is missing.
func goldenOutput(t *testing.T, s render.Schema, o render.Options) string {
	t.Helper()
	var b bytes.Buffer
	o.Now = goldenNow
	if o.Form == render.FormTemplate {
		for _, f := range s.Fields {
			o.Template += "{{." + f.Name + "}};"
		}
	}
	w, err := render.New(&b, s, o)
	if err != nil {
		t.Fatalf("%s: %v", s.Kind, err)
	}
	for row := range 3 {
		values := make([]any, len(s.Fields))
		for i := range values {
			values[i] = goldenValue(&s, i, row)
		}
		if err := w.Row(values...); err != nil {
			t.Fatalf("%s: %v", s.Kind, err)
		}
	}
	w.Problem(render.Problem{Target: "broker-b", Addr: "10.0.0.2:10911", Message: "no answer within 3s"})
	if err := w.Close(); err != nil {
		t.Fatalf("%s: %v", s.Kind, err)
	}
	return b.String()
}

// allSchemas are the schemas of every command, each once.
func allSchemas() []render.Schema {
	byKind := map[string]render.Schema{}
	var kinds []string
	for _, list := range schemas {
		for _, s := range list {
			if _, ok := byKind[s.Kind]; !ok {
				kinds = append(kinds, s.Kind)
			}
			byKind[s.Kind] = s
		}
	}
	slices.Sort(kinds)
	out := make([]render.Schema, len(kinds))
	for i, k := range kinds {
		out[i] = byKind[k]
	}
	return out
}

// The records of every command in every form are what testdata/golden has: one file a
// schema, written by go test ./cmd -run Fresh -update.
func TestGoldenFormsAreFresh(t *testing.T) {
	dir := filepath.Join("testdata", "golden")
	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var want []string
	for _, s := range allSchemas() {
		want = append(want, s.Kind+".txt")
		t.Run(s.Kind, func(t *testing.T) {
			var b strings.Builder
			forms := map[string]string{}
			for _, form := range goldenForms {
				text := goldenOutput(t, s, form.options)
				forms[form.name] = text
				fmt.Fprintf(&b, "== %s\n%s", form.name, text)
				checkTerminal(t, s, form.name, form.options, text)
			}
			checkForms(t, s, forms)
			path := filepath.Join(dir, s.Kind+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			kept, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(kept), b.String()); diff != "" {
				t.Errorf("%s is not what is printed: go test ./cmd -run Fresh -update, and look at what changed (-file +printed):\n%.3000s", path, diff)
			}
		})
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("the files of %s (-schemas +files):\n%s", dir, diff)
	}
}

// checkTerminal holds a form to the width of its terminal, but where whole fields need more, and to what a pipe gets.
func checkTerminal(t *testing.T, s render.Schema, name string, o render.Options, text string) {
	t.Helper()
	if strings.Contains(text, "\x1b") {
		t.Errorf("%s: colour although there is none", name)
	}
	if !o.TTY || o.Form != render.FormTable || o.Records {
		return
	}
	whole := 0
	for i, f := range s.Fields {
		if f.Whole || f.Name == s.Name {
			whole = max(whole, render.Width(fmt.Sprint(goldenValue(&s, i, 1)))+len(f.Name)+8)
		}
	}
	for line := range strings.Lines(text) {
		if n := render.Width(strings.TrimRight(line, "\n")); n > max(o.Width, whole) {
			t.Errorf("%s: a line of %d columns: %q", name, n, line)
		}
	}
}

// checkForms reads the forms for programs back: they say the same, with every field in its order.
func checkForms(t *testing.T, s render.Schema, forms map[string]string) {
	t.Helper()
	var names []string
	for _, f := range s.Fields {
		names = append(names, f.Name)
	}
	var document, yamlDocument struct {
		APIVersion string
		Kind       string
		AsOf       string
		Items      []map[string]any
		Errors     []map[string]any
	}
	if err := json.Unmarshal([]byte(forms["json"]), &document); err != nil {
		t.Fatalf("json: %v", err)
	}
	if document.APIVersion != "mqx/v1" || document.Kind != s.Kind || document.AsOf != "2026-01-02T03:04:05.678Z" || len(document.Items) != 3 || len(document.Errors) != 1 {
		t.Errorf("the document is %+v", document)
	}
	lines := slices.Collect(strings.Lines(forms["ndjson"]))
	if len(lines) != 3 {
		t.Fatalf("ndjson has %d lines", len(lines))
	}
	for i, line := range lines {
		var item map[string]any
		if err := json.Unmarshal([]byte(line), &item); err != nil {
			t.Fatalf("ndjson: %v", err)
		}
		if diff := cmp.Diff(document.Items[i], item); diff != "" {
			t.Errorf("item %d (-json +ndjson):\n%s", i, diff)
		}
		if diff := cmp.Diff(names, membersOf(t, line)); diff != "" {
			t.Errorf("members of item %d (-schema +ndjson):\n%s", i, diff)
		}
	}
	for name := range document.Items[2] {
		if v := document.Items[2][name]; v != nil && name != s.Name {
			t.Errorf("%s of an item of which nothing is known is %v", name, v)
		}
	}
	if err := yaml.Unmarshal([]byte(forms["yaml"]), &yamlDocument); err != nil {
		t.Fatalf("yaml: %v", err)
	}
	cells, err := csv.NewReader(strings.NewReader(forms["csv"])).ReadAll()
	if err != nil || len(cells) != 4 || !slices.Equal(cells[0], names) {
		t.Errorf("csv has %d lines, the first %q (%v)", len(cells), cells[0], err)
	}
	piped := slices.Collect(strings.Lines(forms["wide, pipe"]))
	if len(piped) != 4 || strings.TrimSuffix(piped[0], "\n") != strings.Join(names, "\t") {
		t.Errorf("a pipe gets %d lines, the first %q", len(piped), piped[0])
	}
	for i, line := range piped {
		if n := strings.Count(line, "\t"); n != len(names)-1 {
			t.Errorf("line %d of a pipe has %d tabs", i, n)
		}
	}
}

// membersOf are the names of the members of a JSON object in their order.
func membersOf(t *testing.T, text string) []string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	var names []string
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, fmt.Sprint(name))
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
	}
	return names
}
