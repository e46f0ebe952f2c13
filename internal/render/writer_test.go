package render

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

var asOf = time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)

var testSchema = Schema{
	Kind: "TopicList", Name: "name",
	Fields: []Field{
		{Name: "name", Doc: "topic"},
		{Name: "queues", Kind: Int, Doc: "number of queues"},
		{Name: "bytes", Kind: Size, Wide: true},
		{Name: "lastStored", Kind: Time},
		{Name: "waitMs", Title: "WAIT", Kind: Duration},
		{Name: "tags", Kind: List, Wide: true},
	},
}

func testRows() [][]any {
	return [][]any{
		{"ORDERS", int64(9007199254740993), 1536, asOf.Add(-3 * time.Minute), 1500 * time.Microsecond, []string{"a", "b"}},
		{"中文主题", int32(2), 3 << 30, time.Time{}, nil, []string{}},
		{"tab\there", nil, nil, asOf.Add(-50 * time.Hour), 2 * time.Second, nil},
	}
}

func printed(t *testing.T, o Options, rows [][]any, problems ...Problem) string {
	t.Helper()
	o.Now = asOf
	var b strings.Builder
	w, err := New(&b, testSchema, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if err := w.Row(r...); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range problems {
		w.Problem(p)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil { // idempotent
		t.Fatal(err)
	}
	return b.String()
}

func lines(text ...string) string { return strings.Join(text, "\n") + "\n" }

func TestForms(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"pipe", Options{}, lines(
			"name\tqueues\tlastStored\twaitMs",
			"ORDERS\t9007199254740993\t2026-01-02T03:01:05.678Z\t1.5",
			"中文主题\t2\t-\t-",
			`tab\there`+"\t-\t2025-12-31T01:04:05.678Z\t2000",
		)},
		{"pipe wide without header", Options{Form: FormWide, NoHeaders: true}, lines(
			"ORDERS\t9007199254740993\t1536\t2026-01-02T03:01:05.678Z\t1.5\ta,b",
			"中文主题\t2\t3221225472\t-\t-\t",
			`tab\there`+"\t-\t-\t2025-12-31T01:04:05.678Z\t2000\t-",
		)},
		{"terminal", Options{TTY: true}, lines(
			"NAME                 QUEUES  LAST STORED   WAIT",
			"ORDERS     9007199254740993  3m ago       1.5ms",
			"中文主题                  2  -                -",
			`tab\there                 -  2d ago          2s`,
		)},
		{"terminal, cut", Options{TTY: true, Width: 44}, lines(
			"NAME                 QUEUES  LAST ST…   WAIT",
			"ORDERS     9007199254740993  3m ago    1.5ms",
			"中文主题                  2  -             -",
			`tab\there                 -  2d ago       2s`,
		)},
		{"csv", Options{Form: FormCSV}, lines(
			"name,queues,bytes,lastStored,waitMs,tags",
			`ORDERS,9007199254740993,1536,2026-01-02T03:01:05.678Z,1.5,"a,b"`,
			"中文主题,2,3221225472,,,",
			"tab\there,,,2025-12-31T01:04:05.678Z,2000,",
		)},
		{"name", Options{Form: FormName}, lines("ORDERS", "中文主题", `tab\there`)},
		{"ndjson", Options{Form: FormNDJSON, Strings: true, Limit: 1}, lines(
			`{"name":"ORDERS","queues":9007199254740993,"queuesString":"9007199254740993","bytes":1536,"bytesString":"1536","lastStored":"2026-01-02T03:01:05.678Z","waitMs":1.5,"tags":["a","b"]}`,
		)},
		{"ndjson, unknown", Options{Form: FormNDJSON, Strings: true, Match: "name~^tab"}, lines(
			`{"name":"tab\there","queues":null,"queuesString":null,"bytes":null,"bytesString":null,"lastStored":"2025-12-31T01:04:05.678Z","waitMs":2000,"tags":null}`,
		)},
		{"template", Options{Form: FormTemplate, Template: `{{.name}} has {{.queues}}`}, lines(
			"ORDERS has 9007199254740993", "中文主题 has 2", "tab\there has ",
		)},
		{"sorted", Options{Form: FormName, Sort: "queues"}, lines("ORDERS", "中文主题", `tab\there`)},
		{"sorted back", Options{Form: FormName, Sort: "-queues"}, lines("中文主题", "ORDERS", `tab\there`)},
		{"sorted by text, limited", Options{Form: FormName, Sort: "name", Limit: 2}, lines("ORDERS", `tab\there`)},
		{"streamed", Options{TTY: true, Stream: true, Limit: 2}, lines(
			"NAME          QUEUES  LAST STORED    WAIT",
			"ORDERS        9007199254740993  3m ago        1.5ms",
			"中文主题           2  -                 -",
		)},
		{"help", Options{Form: FormHelp}, lines(
			"FIELD       TYPE           MEANING",
			"name        text           topic",
			"queues      integer        number of queues",
			"bytes       size in bytes",
			"lastStored  time",
			"waitMs      milliseconds",
			"tags        list",
		)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, printed(t, c.o, testRows())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDocuments(t *testing.T) {
	problem := Problem{Target: "broker-b", Addr: "10.0.0.2:10911", Message: "no answer within 3s"}
	type document struct {
		APIVersion string           `json:"apiVersion" yaml:"apiVersion"`
		Kind       string           `json:"kind" yaml:"kind"`
		AsOf       string           `json:"asOf" yaml:"asOf"`
		Items      []map[string]any `json:"items" yaml:"items"`
		Errors     []Problem        `json:"errors" yaml:"errors"`
	}
	var fromJSON, fromYAML, empty document
	if err := json.Unmarshal([]byte(printed(t, Options{Form: FormJSON}, testRows(), problem)), &fromJSON); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(printed(t, Options{Form: FormYAML}, testRows(), problem)), &fromYAML); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(printed(t, Options{Form: FormJSON}, nil)), &empty); err != nil {
		t.Fatal(err)
	}
	if empty.Items == nil || empty.Errors == nil {
		t.Errorf("items and errors of an empty document are null: %+v", empty)
	}
	for form, doc := range map[string]document{"json": fromJSON, "yaml": fromYAML} {
		if doc.APIVersion != APIVersion || doc.Kind != "TopicList" || doc.AsOf != "2026-01-02T03:04:05.678Z" {
			t.Errorf("%s: head is %q %q %q", form, doc.APIVersion, doc.Kind, doc.AsOf)
		}
		if diff := cmp.Diff([]Problem{problem}, doc.Errors); diff != "" {
			t.Errorf("%s: errors (-want +got):\n%s", form, diff)
		}
		if len(doc.Items) != 3 || doc.Items[1]["name"] != "中文主题" || doc.Items[2]["queues"] != nil {
			t.Errorf("%s: items are %v", form, doc.Items)
		}
		if got := fmt.Sprintf("%.0f", doc.Items[0]["bytes"]); form == "json" && got != "1536" {
			t.Errorf("%s: bytes are %v", form, got)
		}
	}
	if got := fromYAML.Items[0]["queues"]; got != 9007199254740993 {
		t.Errorf("yaml: queues are %v (%T)", got, got)
	}
}

// Colour is there where it is asked for, and nothing but colour: without it the
// text is the same.
func TestColorAddsNothingElse(t *testing.T) {
	for name, o := range map[string]Options{
		"table": {TTY: true}, "stream": {TTY: true, Stream: true}, "narrow": {TTY: true, Width: 40},
	} {
		plain := printed(t, o, testRows())
		o.Color = true
		colored := printed(t, o, testRows())
		if strings.Contains(plain, "\x1b") || !strings.Contains(colored, "\x1b[36mORDERS") {
			t.Errorf("%s: got %q and %q", name, plain, colored)
		}
		if diff := cmp.Diff(plain, ansi.ReplaceAllString(colored, "")); diff != "" {
			t.Errorf("%s: (-plain +coloured):\n%s", name, diff)
		}
	}
	if got := printed(t, Options{TTY: true, Color: true}, testRows()); !strings.HasPrefix(got, "\x1b[1mNAME") {
		t.Errorf("the header is not bold: %q", got)
	}
}

var ansi = regexp.MustCompile("\x1b\\[[0-9;]*m")

// A body cannot steer the terminal.
func TestControlCharactersAreShown(t *testing.T) {
	for in, want := range map[string]string{
		"plain 中文":       "plain 中文",
		"a\x1b[2Jb":      `a\u001b[2Jb`,
		"line\r\nend\t":  `line\r\nend\t`,
		"bad\xffutf8":    `bad\xffutf8`,
		"rtl\u202eover":  `rtl\u202eover`,
		"\u0085next":     `\u0085next`,
		"tilde~ is fine": "tilde~ is fine",
	} {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %q, want %q", in, got, want)
		}
	}
}

// A document is the same whether its records are held back or written as they come.
func TestStreamedDocument(t *testing.T) {
	for _, form := range []Form{FormJSON, FormYAML} {
		for n := range 4 {
			var got [2]strings.Builder
			for i := range got {
				w, err := New(&got[i], testSchema, Options{Form: form, Stream: i == 1, Strings: n == 3, Now: time.Unix(1, 0)})
				if err != nil {
					t.Fatal(err)
				}
				for k := range n {
					before := got[i].Len()
					if err := w.Row(testRows()[k%len(testRows())]...); err != nil {
						t.Fatal(err)
					}
					if grown := got[i].Len() > before; grown != (i == 1) {
						t.Errorf("%s, row %d, streamed %v: written %v", form, k, i == 1, grown)
					}
				}
				if n > 1 {
					w.Problem(Problem{Target: "broker-a", Message: "no answer"})
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if got[0].String() != got[1].String() {
				t.Errorf("%s of %d rows: held back\n%s\nas they come\n%s", form, n, got[0].String(), got[1].String())
			}
		}
	}
}

func TestBadOptions(t *testing.T) {
	for want, o := range map[string]Options{
		"cannot sort by field \"size\"":      {Sort: "size"},
		"cannot sort output that has no end": {Sort: "name", Stream: true},
		"cannot match field \"size\"":        {Match: "size>3"},
		"cannot parse output template":       {Form: FormTemplate, Template: "{{.name"},
		"cannot print field \"size\"":        {Form: FormTemplate, Template: "{{.name}} {{.size}}"},
		"cannot parse match":                 {Match: "queues>x"},
		"must not be negative":               {Limit: -1},
	} {
		if _, err := New(&strings.Builder{}, testSchema, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("options %+v: error %v, want %q", o, err, want)
		}
	}
	if _, _, err := ParseForm("xml"); err == nil || !strings.Contains(err.Error(), "template=TEXT") {
		t.Errorf("ParseForm(xml): %v", err)
	}
}

func TestWrongValuesPanic(t *testing.T) {
	for _, row := range [][]any{{"too", "few"}, {1, 1, 1, asOf, time.Second, []string{}}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("row %v was taken", row)
				}
			}()
			w, err := New(&strings.Builder{}, testSchema, Options{})
			if err != nil {
				t.Fatal(err)
			}
			_ = w.Row(row...)
		}()
	}
}

func TestMatch(t *testing.T) {
	rows := testRows()
	for expr, want := range map[string]string{
		"name=ORDERS":                            "0",
		"name!=ORDERS":                           "12",
		"name~'^(ORD|tab)'":                      "02",
		"name!~主题":                               "02",
		"queues>=2":                              "01",
		"queues<100":                             "1",
		"queues=2":                               "1",
		"queues=":                                "2",
		"queues!=":                               "01",
		"bytes>1000 && bytes<2000":               "0",
		"bytes<2000 || name=中文主题":                "01",
		"lastStored>2026-01-01T00:00:00Z":        "0",
		"waitMs>=1500ms":                         "2",
		"waitMs<2":                               "0",
		"tags=b":                                 "0",
		"中文":                                     "1",
		`name="tab	here" || "a,b"`:               "02",
		"name=ORDERS && queues<2 || queues == 2": "1",
	} {
		m, err := ParseMatch(expr, &testSchema)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		got := ""
		for i, r := range rows {
			row := make([]any, len(r))
			for k, v := range r {
				row[k] = known(testSchema.Fields[k], v)
			}
			if m.row(row) {
				got += fmt.Sprint(i)
			}
		}
		if got != want {
			t.Errorf("%s keeps rows %q, want %q", expr, got, want)
		}
	}
}

func TestUnits(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 1 << 40: "1.0 TiB", -2048: "-2.0 KiB"} {
		if got := FormatSize(n); got != want {
			t.Errorf("FormatSize(%d) = %q, want %q", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		1234567 * time.Nanosecond: "1.23ms", 12345 * time.Millisecond: "12.35s", 95 * time.Second: "1m35s", 450: "450ns",
	} {
		if got := FormatDuration(d); got != want {
			t.Errorf("FormatDuration(%d) = %q, want %q", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		time.Millisecond: "now", 59 * time.Second: "59s ago", 3 * time.Hour: "3h00m ago", 72 * time.Hour: "3d ago", -5 * time.Second: "5s ahead",
	} {
		if got := age(d); got != want {
			t.Errorf("age(%v) = %q, want %q", d, got, want)
		}
	}
}

// A system call a row cost more than all the rest of `mqx admin config get`.
func TestRowsThatWereHeldBackAreWrittenTogether(t *testing.T) {
	var out countingWriter
	w, err := New(&out, Schema{Kind: "K", Name: "a", Fields: []Field{{Name: "a"}}}, Options{Form: FormTable})
	if err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if err := w.Row("x"); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if out.writes != 1 || out.bytes != 2+500*2 {
		t.Errorf("%d bytes in %d writes, want %d in 1", out.bytes, out.writes, 2+500*2)
	}
}

type countingWriter struct{ writes, bytes int }

func (c *countingWriter) Write(p []byte) (int, error) {
	c.writes++
	c.bytes += len(p)
	return len(p), nil
}
