package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/olekukonko/tablewriter/pkg/twwidth"
)

// What a message list looks like: text, numbers, ids.
var idSchema = Schema{Kind: "IdList", Name: "msgId", Fields: []Field{
	{Name: "topic"},
	{Name: "broker"},
	{Name: "queueId", Title: "QUEUE", Kind: Int},
	{Name: "status", Tone: ToneOf(map[string]Tone{"SEND_OK": Good}, Bad)},
	{Name: "msgId", Title: "MESSAGE ID", Whole: true},
	{Name: "offsetMsgId", Title: "OFFSET ID", Whole: true},
	{Name: "rates", Kind: Series},
}}

const (
	longID   = "7F000001C350000000000000A1B2C3D4"
	offsetID = "7F00000100002A9F0000000000000F5A"
)

func idTable(t *testing.T, o Options) string {
	t.Helper()
	o.TTY, o.Now = true, asOf
	var b strings.Builder
	w, err := New(&b, idSchema, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Row("订单主题-a-rather-long-name", "broker-a", 3, "SEND_OK", longID, offsetID, []float64{0, 4, 8}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// However narrow the terminal, an id stands there whole, and no line is longer
// than the terminal unless an id alone is.
func TestIDsAreNeverCut(t *testing.T) {
	for _, stream := range []bool{false, true} {
		for width := 20; width <= 200; width += 5 {
			for _, color := range []bool{false, true} {
				text := idTable(t, Options{Width: width, Stream: stream, Color: color})
				if !strings.Contains(text, longID) || !strings.Contains(text, offsetID) {
					t.Fatalf("stream %v, width %d: an id is cut:\n%s", stream, width, text)
				}
				for line := range strings.Lines(text) {
					if n := twwidth.Width(strings.TrimRight(line, "\n")); n > max(width, 100) {
						t.Fatalf("stream %v, width %d: a line of %d columns:\n%s", stream, width, n, text)
					}
				}
			}
		}
		for line := range strings.Lines(idTable(t, Options{Width: 80, Stream: stream})) {
			if n := twwidth.Width(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("stream %v: a line of %d columns on a terminal of 80: %q", stream, n, line)
			}
		}
	}
}

func TestIDsGoBelow(t *testing.T) {
	got := idTable(t, Options{Width: 80})
	if !strings.Contains(got, "\n    offset id: "+offsetID+"\n") {
		t.Errorf("got:\n%s", got)
	}
	if diff := cmp.Diff(3, strings.Count(got, "\n")); diff != "" {
		t.Errorf("lines (-want +got):\n%s\n%s", diff, got)
	}
}

func TestSparkline(t *testing.T) {
	for _, c := range []struct {
		values []float64
		width  int
		want   string
	}{
		{nil, 0, ""},
		{[]float64{0, 0}, 0, "▁▁"},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8}, 0, "▂▃▄▅▆▇██"},
		{[]float64{0, 8, -1}, 0, "▁█▁"},
		{[]float64{0, 2, 6, 10, 8, 8}, 3, "▂██"},
	} {
		if got := Sparkline(c.values, c.width); got != c.want {
			t.Errorf("Sparkline(%v, %d) = %q, want %q", c.values, c.width, got, c.want)
		}
	}
	if got := idTable(t, Options{Form: FormTemplate, Template: "{{index .rates 1}}"}); got != "4\n" {
		t.Errorf("a template over a series: %q", got)
	}
}

func TestTemplateFields(t *testing.T) {
	for text, unknown := range map[string]bool{
		"{{.topic}} {{printf \"%d\" .queueId}}":                         false,
		"{{range .rates}}{{.}}{{end}}{{$.topic}}":                       false,
		"{{range .rates}}{{$.nosuch}}{{end}}":                           true,
		"{{with .broker}}{{.}}{{else}}{{.nosuch}}{{end}}":               true,
		"{{if gt .queueId 3}}{{.topic}}{{else if .nosuch}}x{{end}}":     true,
		"{{(index .rates 0)}}{{len .nosuch}}":                           true,
		"{{define \"x\"}}{{.anything}}{{end}}{{template \"x\" .topic}}": false,
	} {
		_, err := New(&strings.Builder{}, idSchema, Options{Form: FormTemplate, Template: text})
		if (err != nil) != unknown {
			t.Errorf("%s: %v, want an error: %v", text, err, unknown)
		}
	}
}
