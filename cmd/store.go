package cmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/internal/render"
	"mqx/internal/vfs"
	"mqx/store/inspect"
)

func newStoreCmd(a *app) *cobra.Command {
	g := asGroup(
		&cobra.Command{
			Use: "store", Short: "Look into, verify and repair a store directory, mqx's or Apache's",
			Long: `Works on the directory alone, with the broker stopped, running or gone. Reading
takes no lock and changes nothing. docs/store.md is the runbook.`,
			Example: `  mqx store info ~/store
  mqx store verify ~/store -o nagios
  mqx store find ~/store -t ORDERS --key order-4711`,
		},
	)
	if !a.builds("store") {
		return g
	}
	g.AddCommand(
		newStoreInfoCmd(a), newStoreLogCmd(a), newStoreGetCmd(a), newStoreFindCmd(a),
		newStoreQueueCmd(a), newStoreIndexCmd(a), newStoreOffsetsCmd(a), newStoreConfigCmd(a), newStoreTimerCmd(a),
		newStoreVerifyCmd(a), newStoreRepairCmd(a), newStoreRebuildCmd(a), newStoreExportCmd(a), newStoreImportCmd(a), newStoreDiffCmd(a), newStorePreflightCmd(a),
	)
	for _, c := range g.Commands() {
		c.PreRunE = checkStoreFlags
		for _, part := range c.Commands() {
			part.PreRunE = checkStoreFlags
		}
	}
	return g
}

// storeFlags say which store directory is meant, and what cannot be told from it.
type storeFlags struct {
	commitLog []string
	slots     int32
}

func (s *storeFlags) add(c *cobra.Command) {
	addCommitLog(c, &s.commitLog)
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.Int32Var(&s.slots, "index-slots", 0, "maxHashSlotNum of the index, when it cannot be told from the files")
	})
	c.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
}

func addCommitLog(c *cobra.Command, dirs *[]string) {
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.StringArrayVar(dirs, "commitlog", nil, "directory of the commit log (storePathCommitLog) when it is not DIR/commitlog; may be repeated")
	})
}

// openStore opens a store directory for reading.
func (a *app) openStore(s *storeFlags, dir string) (*inspect.Dir, error) {
	if err := checkLogDirs(s.commitLog); err != nil {
		return nil, err
	}
	d, err := inspect.Open(dir, inspect.Options{CommitLogDirs: s.commitLog, IndexSlots: s.slots})
	if err != nil {
		return nil, storeFailure(dir, err)
	}
	a.note("store %s%s", dir, storeState(d))
	if !d.Has(inspect.KindMultiPath) && len(d.Log().Files()) == 0 {
		if keys, err := d.Queues(); err == nil && len(keys) > 0 {
			a.warn("%s has queues and no commit log: if storePathCommitLog names another directory, say so with --commitlog DIR", dir)
		}
	}
	return d, nil
}

// paceFlag says how much may be taken from a broker that works on the directory.
type paceFlag struct{ percent int }

const defaultPace = 20

func (p *paceFlag) add(c *cobra.Command) {
	grouped(c, groupSafety, func(f *pflag.FlagSet) {
		f.IntVar(&p.percent, "pace", defaultPace, "beside a running broker: how much of the time of one processor to take at most, in percent; 100: no rests")
	})
}

func (p *paceFlag) check() error {
	if p.percent < 1 || p.percent > 100 {
		return usagef("cannot use --pace %d", p.percent).because("it is a share in percent, from 1 to 100").try("--pace %d", defaultPace)
	}
	return nil
}

// beside lets the broker that has a store open come first, when all of the store is going to be read.
func (a *app) beside(d *inspect.Dir, p *paceFlag) {
	u := d.InUse()
	if !u.Locked || u.PID == os.Getpid() {
		return
	}
	vfs.StepBack()
	if p.percent < 100 {
		runtime.GOMAXPROCS(1)
		d.SetPace(float64(p.percent) / 100)
		a.note("beside its broker %s is read at a low rank and with rests, in at most %d %% of the time of one processor; --pace 100: without rests", d.Root(), p.percent)
	}
}

func storeState(d *inspect.Dir) string {
	u := d.InUse()
	switch {
	case u.Locked && u.PID > 0:
		return fmt.Sprintf(", in use by process %d", u.PID)
	case u.Locked:
		return ", in use"
	case u.Abort:
		return ", not stopped cleanly"
	}
	return ""
}

// storeFailure finds the exit code of an error of reading a store, and what a person can do about it.
func storeFailure(dir string, err error) error {
	if _, ok := errors.AsType[*Failure](err); ok || errors.Is(err, context.Canceled) {
		return err
	}
	switch {
	case errors.Is(err, inspect.ErrNotStore):
		f := usagef("%w", err)
		if name := storeInside(dir); name != "" {
			return f.try("%s", name)
		}
		return f.try("the directory that storePathRootDir names, usually ~/store")
	case errors.Is(err, fs.ErrNotExist):
		if _, stat := os.Stat(dir); stat == nil {
			return failf(ExitFailed, "%w", err).because("a file has gone since the directory was opened, which happens while a broker is running").try("the same command once more")
		}
		return failf(ExitNotFound, "%w", err).because("there is no such directory").try("the directory that storePathRootDir names, usually ~/store")
	case errors.Is(err, inspect.ErrOtherLog):
		return failf(ExitFailed, "%w", err).because("the directory was emptied, replaced or cut while it was followed").try("the same command once more")
	case errors.Is(err, vfs.ErrSpecial), errors.Is(err, vfs.ErrDangling), errors.Is(err, inspect.ErrNoFile):
		return failf(ExitFailed, "%w", err).because("a store is made of files and directories").try("move it away, then mqx store verify %s", dir)
	case errors.Is(err, syscall.ENOSPC):
		return failf(ExitFailed, "%w", err).because("the disk is full").try("free space, then the same command once more")
	case errors.Is(err, syscall.ENOTDIR):
		return failf(ExitFailed, "%w", err).because("there is a file where a directory is needed").try("mqx store verify %s", dir)
	case errors.Is(err, syscall.EIO):
		return failf(ExitFailed, "%w", err).because("the disk cannot read or write it").try("mqx store repair %s --copy-to a directory on another disk", dir)
	case errors.Is(err, syscall.EROFS):
		return failf(ExitDenied, "%w", err).because("it lies on a file system that is mounted read-only").try("mount it for writing, or take a directory elsewhere (--copy-to of mqx store repair)")
	case errors.Is(err, fs.ErrPermission):
		return failf(ExitDenied, "%w", err).because("this user may not read it").try("the user that the broker runs as, for example with sudo -u")
	}
	return failf(ExitFailed, "%w", err).because("it is not as it should be").try("mqx store verify %s", dir)
}

// storeInside is a store directory in dir, "" for none.
func storeInside(dir string) string {
	for _, name := range []string{"store", "rocketmq/store", ".."} {
		if _, err := os.Stat(filepath.Join(dir, name, "commitlog")); err == nil {
			return filepath.Join(dir, name)
		}
	}
	return ""
}

// storeRows runs a command that prints records of a store: no limit of time unless --timeout is given, exit code by
// storeFailure.
func (a *app) storeRows(c *cobra.Command, s *storeFlags, dir string, o *outputFlags, opt storeOutput, fetch func(ctx context.Context, d *inspect.Dir, w *render.Writer) error) error {
	if o.watch && o.interval <= 0 {
		return usagef("cannot use --interval %s: it must be more than nothing", o.interval).try("--interval 2s")
	}
	w, closeOut, err := a.storeWriter(o, opt)
	if err != nil {
		return err
	}
	if w.Help() {
		return closed(w.Close(), closeOut)
	}
	ctx, cancel := a.deadline(c, false)
	defer cancel()
	d, err := a.openStore(s, dir)
	if err != nil {
		return closed(err, closeOut)
	}
	defer func() { _ = d.Close() }()
	err = fetch(ctx, d, w)
	silent, isSilent := errors.AsType[silentError](err)
	if err != nil && !isSilent {
		return closed(storeFailure(dir, a.withTimeout(ctx, err)), closeOut)
	}
	if err := closed(w.Close(), closeOut); err != nil {
		return err
	}
	if isSilent {
		return silent
	}
	return nil
}

// storeOutput is how a store command prints.
type storeOutput struct {
	schema  render.Schema
	stream  bool // rows come one by one, as far as the form allows it
	live    bool // and are printed at once
	records bool // the record stands alone
}

func (a *app) storeWriter(o *outputFlags, opt storeOutput) (*render.Writer, func() error, error) {
	form, text, err := render.ParseForm(o.form)
	if err != nil {
		return nil, nil, usagef("%w", err).try("-o help for the fields, mqx help output for the forms")
	}
	out, closeOut, err := a.open(o)
	if err != nil {
		return nil, nil, err
	}
	tty := a.OutTTY && (o.file == "" || o.file == "-")
	if opt.stream && !tty && !opt.live {
		late, closeFile := newLateWriter(out), closeOut
		out, closeOut = late, func() error { return errors.Join(late.Close(), closeFile()) }
	}
	w, err := render.New(out, opt.schema, render.Options{
		Form: form, Template: text, TTY: tty, Width: a.Width, Color: a.color(tty),
		NoHeaders: a.global.noHeaders, Strings: o.strings, Match: o.match, Sort: o.sort, Limit: o.limit,
		Stream:  opt.stream && o.sort == "",
		Records: opt.records, Now: time.Now(),
	})
	if err != nil {
		return nil, nil, errors.Join(usagef("%w", err).try("-o help for the fields"), closeOut())
	}
	return w, closeOut, nil
}

// selectFlags choose records of a log.
type selectFlags struct {
	topic string
	queue int32
	tag   string
	key   string
	id    string
	body  string
	where string
	start string
	end   string
}

func (s *selectFlags) add(c *cobra.Command, without ...string) {
	add := func(f *pflag.FlagSet, name, short, usage string, to *string) {
		for _, w := range without {
			if w == name {
				return
			}
		}
		f.StringVarP(to, name, short, "", usage)
	}
	grouped(c, groupRange, func(f *pflag.FlagSet) {
		add(f, "start", "", "first message: start, end, a position in the log, or @TIME; with -t and -q an offset of the queue", &s.start)
		add(f, "end", "", "message to stop before, the same way", &s.end)
	})
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		add(f, "topic", "t", "only messages of this topic", &s.topic)
		f.Int32VarP(&s.queue, "queue", "q", 0, "only this queue")
		add(f, "tag", "", "only messages with this tag; a || b for one of several", &s.tag)
		add(f, "key", "", "only messages with this key or unique id", &s.key)
		add(f, "id", "", "only the message with this id, unique or offset id", &s.id)
		add(f, "body-text", "", "only messages whose body holds this text", &s.body)
		add(f, "where", "", "only messages that fulfil this SQL92 expression over their properties", &s.where)
	})
}

// notFoundIn says that a store has not what was named.
func notFoundIn(dir, kind, name string, known []string) *Failure {
	f := failf(ExitNotFound, "cannot find %s %q in store %q", kind, name, dir).because("the store has no " + kind + " of that name")
	if near := nearest(name, known); near != "" {
		return f.try("%s", near)
	}
	return f.try("mqx store info %s --show topics", dir)
}

// topicNames are the topics that have queues or a configuration, for hints.
func topicNames(d *inspect.Dir) []string {
	names, err := d.TopicNames()
	if err != nil {
		return nil
	}
	return names
}

// rangeArgs asks for the arguments named and takes up to optional more.
func rangeArgs(optional int, names ...string) cobra.PositionalArgs {
	exact := exactArgs(names...)
	return func(c *cobra.Command, args []string) error {
		if len(args) > len(names) && len(args) <= len(names)+optional {
			return nil
		}
		return exact(c, args)
	}
}

// storeKind is one thing that a command of a store can list: what --show names.
type storeKind struct {
	name string
	out  storeOutput
	rows func(ctx context.Context, d *inspect.Dir, w *render.Writer) error
}

// addShow adds --show, the first kind being what is listed without it.
func addShow(c *cobra.Command, to *string, kinds []storeKind) {
	names := kindNames(kinds)
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.StringVar(to, "show", names[0], "what to list: "+strings.Join(names[:len(names)-1], ", ")+" or "+names[len(names)-1])
	})
	completeFlag(c, "show", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}

func kindNames(kinds []storeKind) []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// storeShow runs a command of a store that lists what --show names.
func (a *app) storeShow(c *cobra.Command, s *storeFlags, dir string, o *outputFlags, show string, kinds []storeKind) error {
	i := slices.IndexFunc(kinds, func(k storeKind) bool { return k.name == show })
	if i < 0 {
		return notOneOf("--show", show, kindNames(kinds)...)
	}
	return a.storeRows(c, s, dir, o, kinds[i].out, kinds[i].rows)
}

// rowsOf is the rows of a kind that are at hand all at once.
func rowsOf(list func(ctx context.Context, d *inspect.Dir) ([][]any, error)) func(context.Context, *inspect.Dir, *render.Writer) error {
	return func(ctx context.Context, d *inspect.Dir, w *render.Writer) error {
		rows, err := list(ctx, d)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := w.Row(row...); err != nil {
				return err
			}
		}
		return nil
	}
}
