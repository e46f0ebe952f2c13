//go:build linux || darwin

package cmd

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"mqx/internal/render"

	"github.com/rogpeppe/go-internal/testscript"
	"go.yaml.in/yaml/v3"
)

// inProcess runs mqx in the process of the test: hundreds of reads would start as many processes.
func inProcess(ts *testscript.TestScript, tty bool, width int, args ...string) (code Exit, out, errOut string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var o, e bytes.Buffer
	args = append(append([]string{"mqx"}, args...), "-n", ts.Getenv("MQX_NAMESRV"), "--color", "never")
	code = Execute(ctx, args, Streams{In: strings.NewReader(""), Out: &o, Err: &e, OutTTY: tty, Width: width})
	return code, o.String(), e.String()
}

// everyForm runs a read in every form, and asks that all of them have the same records:
// every ROWS ARG..., where ROWS is how many there are at least.
func everyForm(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: every ROWS ARG...")
	}
	least := 0
	if _, err := fmt.Sscan(args[0], &least); err != nil {
		ts.Fatalf("rows: %v", err)
	}
	args = args[1:]
	in := func(form string) string {
		code, out, errOut := inProcess(ts, false, 0, append(slices.Clone(args), "-o", form)...)
		if code != ExitOK {
			ts.Fatalf("%v -o %s: exit code %d: %s", args, form, code, errOut)
		}
		if strings.Contains(out, "\x1b") {
			ts.Fatalf("%v -o %s: colour on a pipe", args, form)
		}
		return out
	}
	var document struct {
		APIVersion, Kind, AsOf string
		Items, Errors          []map[string]any
	}
	ts.Check(json.Unmarshal([]byte(in("json")), &document))
	rows := len(document.Items)
	if document.APIVersion != "mqx/v1" || document.Kind == "" || document.AsOf == "" || document.Errors == nil || rows < least {
		ts.Fatalf("%v: a document of %d items, want %d: %+v", args, rows, least, document)
	}
	cells, err := csv.NewReader(strings.NewReader(in("csv"))).ReadAll()
	ts.Check(err)
	fields := strings.Split(strings.TrimSuffix(strings.SplitAfter(in("wide"), "\n")[0], "\n"), "\t")
	var written struct{ Items []map[string]any }
	ts.Check(yaml.Unmarshal([]byte(in("yaml")), &written))
	for form, n := range map[string]int{
		"csv": len(cells) - 1, "table": count(in("table")) - 1, "wide": count(in("wide")) - 1, "ndjson": count(in("ndjson")),
		"yaml": len(written.Items), "template={{len .}}": count(in("template={{len .}}")),
	} {
		if n != rows {
			ts.Fatalf("%v -o %s: %d records, as json %d", args, form, n, rows)
		}
	}
	if !slices.Equal(cells[0], fields) && rows > 0 {
		ts.Fatalf("%v: the fields are %q and %q", args, cells[0], fields)
	}
	if help := in("help"); count(help) < len(fields) {
		ts.Fatalf("%v: -o help lists fewer than %d fields: %s", args, len(fields), help)
	}
	if rows > 0 && in("name") == "" {
		ts.Fatalf("%v -o name prints nothing", args)
	}
	for _, width := range []int{80, 140} {
		code, out, errOut := inProcess(ts, true, width, args...)
		if code != ExitOK || rows > 0 && count(out) < rows {
			ts.Fatalf("%v on a terminal: exit code %d: %s%s", args, code, out, errOut)
		}
		for line := range strings.Lines(out) {
			if n := render.Width(strings.TrimRight(line, "\n")); n > width && strings.Contains(strings.TrimSpace(line), "  ") {
				ts.Fatalf("%v: a line of %d columns on a terminal of %d: %q", args, n, width, line)
			}
		}
	}
	if code, _, errOut := inProcess(ts, false, 0, append(slices.Clone(args), "--no-such-flag")...); code != ExitUsage || count(errOut) != 3 {
		ts.Fatalf("%v with a flag that is none: exit code %d: %s", args, code, errOut)
	}
}

func count(text string) int { return strings.Count(text, "\n") }

// silentReads runs the reads of a file, one a line, all at the same time, while a broker is stopped: silent BROKER FILE.
// None takes longer than the 3 s a broker has and what the others need; each names the broker, in its document as well,
// has what the others said, and ends with 3, with --partial ok with 0. A line that begins with ! asks the silent one alone:
// then there is nothing to print, and the exit code is that of no answer. One that begins with ~ finds nothing on the others.
func silentReads(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: silent BROKER FILE")
	}
	var mu sync.Mutex
	var wrong []string
	fail := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		wrong = append(wrong, fmt.Sprintf(format, args...))
	}
	var all sync.WaitGroup
	for line := range strings.Lines(ts.ReadFile(args[1])) {
		line, alone := strings.CutPrefix(strings.TrimSpace(line), "! ")
		line, empty := strings.CutPrefix(line, "~ ")
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		all.Go(func() { silentRead(ts, args[0], words, alone, empty, fail) })
		if !alone {
			all.Go(func() {
				if code, _, errOut := inProcess(ts, false, 0, append(slices.Clone(words), "--timeout", "60s", "--partial", "ok", "-o", "name")...); code != ExitOK {
					fail("%v --partial ok: exit code %d: %s", words, code, errOut)
				}
			})
		}
	}
	all.Wait()
	if len(wrong) > 0 {
		ts.Fatalf("%s", strings.Join(wrong, "\n"))
	}
}

// silentLimit is how long a read may take: the 3 s and what a busy machine adds. The best of
// three runs counts, since others work on it.
const silentLimit = 3500 * time.Millisecond

func silentRead(ts *testscript.TestScript, broker string, words []string, alone, empty bool, fail func(string, ...any)) {
	best := time.Hour
	for range 3 {
		began := time.Now()
		code, out, errOut := inProcess(ts, false, 0, append(slices.Clone(words), "--timeout", "60s", "-o", "json")...)
		best = min(best, time.Since(began))
		if !strings.Contains(errOut, broker) {
			fail("%v: exit code %d, nobody names %s: %s", words, code, broker, errOut)
			return
		}
		var document struct{ Items, Errors []map[string]any }
		switch {
		case alone:
			if code != ExitConnect && code != ExitPartial {
				fail("%v: exit code %d: %s", words, code, errOut)
			}
		case code != ExitPartial:
			fail("%v: exit code %d: %s", words, code, errOut)
		case json.Unmarshal([]byte(out), &document) != nil || len(document.Items) == 0 && !empty || !strings.Contains(fmt.Sprint(document.Errors), broker):
			fail("%v: %d records, errors %v", words, len(document.Items), document.Errors)
		}
		if best <= silentLimit {
			return
		}
	}
	fail("%v: it takes %s", words, best)
}
