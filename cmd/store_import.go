package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/internal/render"
	"mqx/internal/words"
	"mqx/store"
	"mqx/store/inspect"
)

var storeImportSchema = render.Schema{Kind: "StoreImport", Name: "store", Fields: []render.Field{
	{Name: "store", Whole: true, Doc: "directory that is imported into"},
	{Name: "new", Kind: render.Bool, Doc: "the directory becomes a store; else messages are added to one"},
	{Name: "whole", Kind: render.Bool, Doc: "the same log came of the lines, with all positions and offsets"},
	{Name: "lines", Kind: render.Int, Doc: "lines read: those imported, those skipped and those resumed; unknown in a plan of lines that come on stdin"},
	{Name: "messages", Kind: render.Int, Doc: "messages imported, those resumed among them"},
	{Name: "records", Kind: render.Int, Wide: true, Doc: "records of the log that hold them"},
	{Name: "resumed", Kind: render.Int, Doc: "messages that an import of the same lines had stored before it was interrupted"},
	{Name: "linesSkipped", Title: "SKIPPED", Kind: render.Int, Doc: "lines that were left out"},
	{Name: "skipped", Title: "REASONS", Kind: render.Object, Doc: "lines left out by reason: system-topic, half-message, batch-queue, placeholder"},
	{Name: "topics", Kind: render.Int, Doc: "topics of the messages"},
	{Name: "newTopics", Kind: render.List, Wide: true, Doc: "topics that got an entry in topics.json"},
	{Name: "widenedTopics", Kind: render.List, Wide: true, Doc: "topics whose entry got more queues"},
	{Name: "firstTime", Title: "FIRST", Kind: render.Time, Wide: true, Doc: "store time of the oldest line"},
	{Name: "lastTime", Title: "LAST", Kind: render.Time, Wide: true, Doc: "store time of the newest line"},
	{Name: "logBytes", Kind: render.Size, Doc: "what the log grew by, or would"},
	{Name: "logFrom", Kind: render.Int, Wide: true, Doc: "position of the log where it begins; unknown in a plan of an addition"},
	{Name: "logTo", Kind: render.Int, Wide: true, Doc: "position of the log where it ends"},
	{Name: "done", Kind: render.Bool, Doc: "it was done; else this is the plan"},
}}

// importOptions are the flags of mqx store import.
type importOptions struct {
	output   outputFlags
	safety   safetyFlags
	plan     inspect.PlanOptions
	logFile  int64
	delays   string
	renumber bool
	abandon  bool
}

func newStoreImportCmd(a *app) *cobra.Command {
	o := &importOptions{}
	c := &cobra.Command{
		Use:   "import DIR [FILE | -]",
		Short: "Make a store of exported messages, or add them to a stopped one",
		Long: `Takes the lines of mqx store export, from a file or stdin. A directory that is empty
or does not exist becomes a store: lines of a whole export make the same log again, to
the byte, other lines get positions and offsets of their own and keep their times. That
is all or nothing: an interrupted import has left an empty directory, and begins anew.

Into a store that no broker has open the messages are added behind what is there, with
the time of the import as store time. The same command goes on where one of the same
lines was interrupted: each message is stored once.

A file is read before anything is done, so that a wrong line changes nothing; lines on
stdin are taken as they come. An import that makes no store of an empty directory leaves
it as it was; where no line came at all, the exit code is 2. Configuration, groups and
consumer offsets are not imported: topics get an entry in topics.json.`,
		Example: `  mqx store import /data/copy all.ndjson --yes
  mqx store import /data/copy all.ndjson --dry-run -o json
  zstdcat all.ndjson.zst | mqx store import /data/copy --yes
  mqx store export /old/store -t ORDERS | mqx store import /data/store --yes`,
		Args: optionalArg("DIR"),
		RunE: func(c *cobra.Command, args []string) error { return runStoreImport(a, c, o, args) },
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.BoolVar(&o.renumber, "renumber", false, "give new positions and offsets also to the lines of a whole export")
		f.Int64Var(&o.logFile, "commitlog-file-size", 0, "mappedFileSizeCommitLog of a new store, when the lines do not say it (default 1 GiB)")
		f.Int64Var(&o.plan.QueueFileBytes, "consumequeue-file-size", 0, "mappedFileSizeConsumeQueue of new queues (default 6000000)")
		f.Int32Var(&o.plan.IndexSlots, "index-slots", 0, "maxHashSlotNum of new index files (default 5000000)")
		f.Int32Var(&o.plan.IndexEntries, "index-entries", 0, "maxIndexNum of new index files (default 20000000)")
		f.StringVar(&o.delays, "delay-levels", "", "messageDelayLevel of the broker, when it is not the default")
	})
	o.output.add(c)
	o.safety.addAnswers(c, false)
	o.safety.addDry(c)
	grouped(c, groupSafety, func(f *pflag.FlagSet) {
		f.BoolVar(&o.abandon, "abandon", false, "leave an import of other lines that was interrupted at what it had stored")
	})
	return c
}

// importFile is a file of lines.
type importFile struct{ *os.File }

// Size is its length, for the progress line.
func (f importFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// source says how the lines are opened, and whether that can be done only once.
func (o *importOptions) source(a *app, args []string) (open func() (io.ReadCloser, error), once bool, err error) {
	if len(args) < 2 || args[1] == "-" {
		return func() (io.ReadCloser, error) { return io.NopCloser(a.In), nil }, true, nil
	}
	const what, try = "lines of", "mqx store export DIR -O FILE"
	st, err := os.Stat(args[1])
	if err != nil {
		return nil, false, inputFailure(what, args[1], try, err)
	}
	if st.IsDir() {
		return nil, false, inputFailure(what, args[1], try, syscall.EISDIR)
	}
	return func() (io.ReadCloser, error) {
		f, err := os.Open(args[1])
		if err != nil {
			return nil, inputFailure(what, args[1], try, err)
		}
		return importFile{f}, nil
	}, !st.Mode().IsRegular(), nil
}

func runStoreImport(a *app, c *cobra.Command, o *importOptions, args []string) error {
	dir := args[0]
	if _, err := a.renderer(io.Discard, &o.output, storeImportSchema, false); err != nil {
		return err // before anything is done
	}
	if o.output.help() {
		return o.row(a, nil, false)
	}
	if a.global.readOnly && !o.safety.planOnly() {
		return failf(ExitDenied, "cannot import into %q: refused by --read-only", dir).because("--read-only allows no change").try("the same with --dry-run")
	}
	open, once, err := o.source(a, args)
	if err != nil {
		return err
	}
	if once && !o.safety.planOnly() && !o.safety.yes && o.safety.confirm == "" {
		return usagef("not confirmed, nothing was done").because("stdin has the lines, so that nobody can be asked").try("--yes")
	}
	ctx, cancel := a.deadline(c, false)
	defer cancel()
	bar := newProgressLine(a, "check")
	p, err := inspect.Import(ctx, dir, inspect.ImportOptions{
		Open: open, Once: once, Renumber: o.renumber, Abandon: o.abandon, LogFileBytes: o.logFile, Plan: o.plan, DelayLevels: o.delays,
		OnProgress: func(what string, done, total int64) { bar.step(what, done, total) },
		Agree: func(p *inspect.ImportPlan) error {
			bar.end()
			if o.safety.planOnly() {
				return errPlanOnly
			}
			o.show(a, p)
			return a.confirmed(&o.safety, act{name: dir}, "")
		},
	})
	bar.end()
	planned := errors.Is(err, errPlanOnly)
	if err != nil && !planned {
		return importFailure(dir, a.withTimeout(ctx, err))
	}
	if err := o.row(a, p, !planned && p.Records > 0); err != nil {
		return err
	}
	if p.Lines == 0 && !p.Finished && !planned {
		a.warn("there was no line to import: %s is as it was", dir)
	}
	if p.Finished {
		a.warn("an import that was interrupted when its store was whole has been put in its place; these lines were not read")
	}
	if planned && o.safety.exitCode {
		return silentError{ExitCheckFailed}
	}
	return nil
}

// show says on stderr what is about to be done.
func (o *importOptions) show(a *app, p *inspect.ImportPlan) {
	what := "make a store of what comes"
	if !p.New {
		what = "add what comes to the store, with new offsets and the time of now"
	}
	fmt.Fprintf(a.Err, "Plan for store %s: %s\n", p.Dir, what)
	switch {
	case p.Finished:
		fmt.Fprintf(a.Err, "  put %s of an import that was interrupted in its place\n", words.Count(p.Messages, "message"))
		return
	case !p.Known:
		fmt.Fprintln(a.Err, "  the lines come on stdin: their number is not known")
		return
	}
	how := "new offsets, times kept"
	if p.Whole {
		how = "the same log again, with all positions and offsets"
	} else if !p.New {
		how = "behind what is there"
	}
	fmt.Fprintf(a.Err, "  %s of %s, %s of log: %s\n", words.Count(p.Messages, "message"), words.Count(int64(len(p.Topics)), "topic"), words.Count(p.LogBytes, "byte"), how)
	for _, why := range slices.Sorted(maps.Keys(p.Skipped)) {
		fmt.Fprintf(a.Err, "  %s left out: %s\n", words.Count(p.Skipped[why], "line"), why)
	}
	for what, names := range map[string][]string{"topics that get an entry": p.NewTopics, "topics that get more queues": p.MoreQueues} {
		if len(names) > 0 {
			fmt.Fprintf(a.Err, "  %s: %s\n", what, strings.Join(names, " "))
		}
	}
}

func (o *importOptions) row(a *app, p *inspect.ImportPlan, done bool) error {
	out, closeOut, err := a.open(&o.output)
	if err != nil {
		return err
	}
	w, err := a.renderer(out, &o.output, storeImportSchema, false)
	if err != nil {
		return closed(err, closeOut)
	}
	if p != nil {
		skipped := int64(0)
		for _, n := range p.Skipped {
			skipped += n
		}
		known := func(n int64) any {
			if !done && !p.Known {
				return nil
			}
			return n
		}
		from, to := known(p.From), known(p.To)
		if !p.New && !done {
			from, to = nil, nil
		}
		if err := w.Row(p.Dir, p.New, p.Whole, known(p.Lines), known(p.Messages), known(p.Records), known(p.Resumed), known(skipped), p.Skipped,
			known(int64(len(p.Topics))), list(p.NewTopics), list(p.MoreQueues), whenMs(p.First), whenMs(p.Last), known(p.LogBytes), from, to, done); err != nil {
			return closed(err, closeOut)
		}
	}
	return closed(w.Close(), closeOut)
}

func list(names []string) []string {
	if names == nil {
		return []string{}
	}
	return names
}

// importFailure finds the exit code of an error of an import.
func importFailure(dir string, err error) error {
	if _, ok := errors.AsType[*Failure](err); ok || errors.Is(err, context.Canceled) {
		return err
	}
	if x, ok := errors.AsType[*inspect.LineError](err); ok {
		f := usagef("%w", err)
		if errors.Is(err, inspect.ErrGap) {
			return f.because("lines of a whole export have to be complete and in order").try("--renumber gives the messages new positions and offsets")
		}
		return f.because("it is no message that can be imported").try("sed -n %dp shows it; docs/format/export.md has the form", x.Line)
	}
	switch {
	case errors.Is(err, inspect.ErrNoTarget):
		return usagef("%w", err).because("an import does not mix with what is there").try("a directory that is empty or does not exist")
	case errors.Is(err, inspect.ErrNoLines):
		return usagef("%w", err).because("the input ended before a line came; the directory is as it was").try("mqx store export DIR -O FILE makes lines of a store")
	case errors.Is(err, inspect.ErrNotStopped):
		return failf(ExitFailed, "%w", err).because("its last broker did not close it, and opening it recovers it").
			try("start and stop the broker once, or mqx store repair %s", dir)
	case errors.Is(err, inspect.ErrOtherImport):
		return failf(ExitFailed, "%w", err).because("it had stored some of its messages").try("the command with its lines, or --abandon to leave it at that")
	case errors.Is(err, fs.ErrPermission):
		return failf(ExitDenied, "%w", err).because("this user may not write there").try("the user that the broker runs as, for example with sudo -u")
	}
	if x, ok := errors.AsType[*store.LockedError](err); ok {
		f := failf(ExitDenied, "cannot import into %q: process %d has it open", dir, x.PID)
		if x.PID <= 0 {
			f = failf(ExitDenied, "cannot import into %q: a process has it open", dir)
		}
		return f.because("the lock of the directory is held by a broker or another command of mqx store").try("stop the broker, or wait for the command, then the same command; or mqx produce TOPIC --input ndjson")
	}
	if x, ok := errors.AsType[*inspect.NoSpaceError](err); ok {
		return failf(ExitFailed, "cannot import into %q: it takes about %s, %d are free on its volume", dir, words.Count(x.Need, "byte"), x.Free).
			because("a volume that fills up stops a broker").try("free %s, or a directory on a larger volume", words.Count(x.Need-x.Free, "byte"))
	}
	if _, ok := errors.AsType[*inspect.UnsupportedError](err); ok {
		return failf(ExitFailed, "%w", err).because("such a part is not served by mqx").try("mqx store import into a new directory")
	}
	return storeFailure(dir, err)
}

var errPlanOnly = failf(ExitOK, "only the plan was asked for")
