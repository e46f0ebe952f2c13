package cmd

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/internal/render"
	"mqx/internal/sorted"
)

type logsOptions struct {
	output outputFlags
	level  string
	above  time.Duration
}

var logErrorsSchema = render.Schema{Kind: "LogErrorList", Name: "text", Fields: []render.Field{
	{Name: "count", Kind: render.Int, Doc: "lines"},
	{Name: "level", Doc: "level of the lines"},
	{Name: "text", Whole: true, Doc: "what they have in common; numbers, addresses and names that differ are *"},
	{Name: "first", Kind: render.Time, Wide: true, Doc: "time of the first; unknown where lines have none"},
	{Name: "last", Kind: render.Time, Doc: "time of the last"},
	{Name: "example", Wide: true, Doc: "the last of them as it stands"},
	{Name: "files", Kind: render.List, Wide: true, Doc: "files that they stand in"},
}}

var logSlowSchema = render.Schema{Kind: "LogSlowList", Name: "what", Fields: []render.Field{
	{Name: "count", Kind: render.Int, Doc: "how often it was slow"},
	{Name: "what", Whole: true, Doc: "the request, or what the lines of another server have in common"},
	{Name: "stage", Doc: "the stage that took most of the time: queued, locked, appended, flushed, replicated, answered, served; unknown where lines do not say"},
	{Name: "totalMs", Kind: render.Float, Doc: "ms, of all of them"},
	{Name: "meanMs", Kind: render.Float, Doc: "ms"},
	{Name: "maxMs", Kind: render.Float, Doc: "ms"},
	{Name: "first", Kind: render.Time, Wide: true, Doc: "time of the first"},
	{Name: "last", Kind: render.Time, Doc: "time of the last"},
	{Name: "files", Kind: render.List, Wide: true, Doc: "files that they stand in"},
}}

func newLogsCmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{
		Use: "logs", Short: "Count and rank what log files say",
		Example: "  mqx logs errors ~/logs/rocketmqlogs/*.log\n  mqx logs slow broker.log",
	}, newLogsErrorsCmd(a), newLogsSlowCmd(a))
}

const logFilesText = `Takes log files of mqx, as text or JSON, and of Apache RocketMQ (store.log, broker.log,
remoting.log and the others); - is stdin. Lines that belong to the one before, as stack
traces, are not counted.`

func newLogsErrorsCmd(a *app) *cobra.Command {
	o := &logsOptions{}
	c := &cobra.Command{
		Use:     "errors FILE...",
		Short:   "Count warnings and errors, the most frequent first",
		Long:    logFilesText + "\nLines that differ in numbers, addresses and ids alone are one row.",
		Example: "  mqx logs errors broker.log\n  journalctl -u mqx-broker -o cat | mqx logs errors -\n  mqx logs errors store.log --level error -o json",
		RunE: func(_ *cobra.Command, args []string) error {
			if !slices.Contains([]string{"warn", "error"}, o.level) {
				return notOneOf("--level", o.level, "warn", "error")
			}
			return o.run(a, args, logErrorsSchema, func(lines *logLines) [][]any { return lines.errors(o.level) })
		},
	}
	grouped(c, groupFilter, func(f *pflag.FlagSet) { f.StringVar(&o.level, "level", "warn", "from this level on: warn or error") })
	o.output.addRows(c)
	o.output.add(c)
	return c
}

func newLogsSlowCmd(a *app) *cobra.Command {
	o := &logsOptions{}
	c := &cobra.Command{
		Use:   "slow FILE...",
		Short: "Count what was slow, what took most time in all first",
		Long: logFilesText + `
mqx logs a request above the key slowRequestMillis with its stages; of Apache's files every
line counts that says what something cost or how long it took.`,
		Example: "  mqx logs slow broker.log\n  mqx logs slow --above 200ms store.log broker.log -o csv",
		RunE: func(_ *cobra.Command, args []string) error {
			return o.run(a, args, logSlowSchema, func(lines *logLines) [][]any { return lines.slow(o.above) })
		},
	}
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.DurationVar(&o.above, "above", 100*time.Millisecond, "leave out what took less")
	})
	o.output.addRows(c)
	o.output.add(c)
	return c
}

func (o *logsOptions) run(a *app, files []string, schema render.Schema, rows func(*logLines) [][]any) error {
	if len(files) == 0 && !o.output.help() {
		return usagef("cannot read logs: no file is given").try("mqx logs errors FILE")
	}
	return a.printRows(&o.output, schema, func() ([][]any, error) {
		lines := &logLines{}
		for _, f := range files {
			if err := lines.readFile(a, f); err != nil {
				return nil, err
			}
		}
		if lines.known == 0 && lines.other > 0 {
			return nil, failf(ExitFailed, "cannot make out a line of the %d", lines.other).because("they are neither mqx's nor in the form of RocketMQ's logs").try("mqx logs errors --help")
		}
		return rows(lines), nil
	})
}

// maxLogLine is how much of a line is looked at.
const maxLogLine = 64 << 10

// logLines are lines that have been read, kept by what they have in common.
type logLines struct {
	known, other int
	found        map[logKey]*logSum
}

func (l *logLines) readFile(a *app, name string) error {
	in := a.In
	if name != "-" {
		f, err := openInput("log", name, "ls ~/logs/rocketmqlogs")
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // it was read
		in = f
	}
	r := bufio.NewReaderSize(in, maxLogLine)
	for {
		line, err := r.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		if e, ok := parseLogLine(strings.TrimRight(string(line), "\r\n")); ok {
			l.known++
			l.add(&e, name)
		} else if len(line) > 0 {
			l.other++
		}
		for long { // the rest of a line that is longer
			_, err = r.ReadSlice('\n')
			long = errors.Is(err, bufio.ErrBufferFull)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return failf(ExitFailed, "cannot read log %q: %w", name, err)
		}
	}
}

// maxLogKinds bounds the kinds of lines that are kept; what is more counts as one.
const maxLogKinds = 10_000

func (l *logLines) add(e *logEntry, file string) {
	if l.found == nil {
		l.found = map[logKey]*logSum{}
	}
	key := logKey{level: e.level, text: e.kind(), stage: e.stage, timed: e.timed, request: e.request != ""}
	s := l.found[key]
	if s == nil {
		if len(l.found) >= maxLogKinds {
			key = logKey{level: e.level, text: "(other lines)", timed: e.timed}
		}
		if s = l.found[key]; s == nil {
			s = &logSum{}
			l.found[key] = s
		}
	}
	s.take(e, file)
}

// logKey is what lines have in common.
type logKey struct {
	level, text, stage string
	timed, request     bool // request: a slow one of mqx, text names it
}

type logSum struct {
	count       int
	first, last time.Time
	example     string
	files       []string
	took        []time.Duration // at most maxLogTimes
}

// maxLogTimes bounds the times that are kept of one kind.
const maxLogTimes = 100_000

func (s *logSum) take(e *logEntry, file string) {
	s.count++
	if !e.at.IsZero() && (s.first.IsZero() || e.at.Before(s.first)) {
		s.first = e.at
	}
	if !e.at.Before(s.last) {
		s.last, s.example = e.at, e.text
	}
	if !slices.Contains(s.files, file) {
		s.files = append(s.files, file)
	}
	if e.timed && len(s.took) < maxLogTimes {
		s.took = append(s.took, e.took)
	}
}

func (l *logLines) errors(level string) (rows [][]any) {
	type row struct {
		logKey
		*logSum
	}
	var list []row
	merged := map[logKey]*logSum{}
	for k, s := range l.found {
		if k.level == "error" || k.level == "warn" && level == "warn" {
			if k.request {
				k.text = "slow request " + k.text
			}
			k.stage, k.timed, k.request = "", false, false
			if m := merged[k]; m != nil {
				m.merge(s)
				continue
			}
			one := *s
			merged[k] = &one
		}
	}
	for k, s := range merged {
		list = append(list, row{k, s})
	}
	sorted.By(list, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.level, b.level), cmp.Compare(a.text, b.text))
	})
	for _, r := range list {
		rows = append(rows, []any{r.count, r.level, r.text, r.first, r.last, r.example, listOf(r.files)})
	}
	return rows
}

func (s *logSum) merge(o *logSum) {
	s.count += o.count
	if s.first.IsZero() || !o.first.IsZero() && o.first.Before(s.first) {
		s.first = o.first
	}
	if o.last.After(s.last) {
		s.last, s.example = o.last, o.example
	}
	s.files = append(slices.Clone(s.files), o.files...)
	slices.Sort(s.files)
	s.files = slices.Compact(s.files)
}

func (l *logLines) slow(above time.Duration) (rows [][]any) {
	type row struct {
		logKey
		*logSum
		count      int
		total, max time.Duration
	}
	var list []row
	for k, s := range l.found {
		r := row{logKey: k, logSum: s}
		for _, d := range s.took {
			if d >= above {
				r.count, r.total, r.max = r.count+1, r.total+d, max(r.max, d)
			}
		}
		if r.count > 0 {
			list = append(list, r)
		}
	}
	sorted.By(list, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(a.text, b.text), cmp.Compare(a.stage, b.stage))
	})
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	for _, r := range list {
		rows = append(rows, []any{
			r.count, r.text, orUnknown(r.stage), ms(r.total), ms(r.total / time.Duration(r.count)), ms(r.max), r.first, r.last, listOf(r.files),
		})
	}
	return rows
}
