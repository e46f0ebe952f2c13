package cmd

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/internal/render"
	"mqx/internal/words"
	"mqx/store/inspect"
)

var storeFindingSchema = render.Schema{Kind: "StoreFindingList", Name: "kind", Fields: []render.Field{
	{Name: "level", Doc: "finding, or note for what is worth knowing and right"},
	{Name: "kind", Doc: "what it is; docs/store.md lists the kinds"},
	{Name: "file", Whole: true, Doc: "name in the directory"},
	{Name: "offset", Kind: render.Int, Doc: "byte in the file where it begins"},
	{Name: "physical", Kind: render.Int, Wide: true, Doc: "position in the log where it begins"},
	{Name: "messages", Kind: render.Int, Doc: "messages that are affected, unknown when nothing says how many"},
	{Name: "affected", Kind: render.List, Doc: "queues and queue offsets of them"},
	{Name: "what", Whole: true, Doc: "what is wrong"},
	{Name: "mend", Wide: true, Doc: "what mqx store repair would do"},
	{Name: "derived", Kind: render.Bool, Wide: true, Doc: "the mend only builds again what follows from the rest"},
}}

var storeCoverageSchema = render.Schema{Kind: "StoreCoverageList", Name: "part", Fields: []render.Field{
	{Name: "part", Whole: true, Doc: "part of a store directory"},
	{Name: "covered", Kind: render.Bool, Doc: "a change in any byte of it is found"},
	{Name: "by", Whole: true, Doc: "what covers it, or what does not"},
}}

// verifyFlags are the flags of all commands that verify.
type verifyFlags struct {
	delays  string
	noIndex bool
	logSize int64
	workers int
}

func (v *verifyFlags) add(c *cobra.Command) {
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.StringVar(&v.delays, "delay-levels", "", "messageDelayLevel of the broker, when it is not the default")
		f.BoolVar(&v.noIndex, "no-index", false, "leave the index out (messageIndexEnable=false)")
		f.Int64Var(&v.logSize, "commitlog-file-size", 0, "mappedFileSizeCommitLog in bytes, for a log of one file that may have been cut")
		f.IntVar(&v.workers, "workers", 0, "files to read at the same time (default: one for each processor, at most 4)")
	})
}

func (v *verifyFlags) options(p *progressLine) inspect.VerifyOptions {
	return inspect.VerifyOptions{Workers: v.workers, DelayLevels: v.delays, NoIndex: v.noIndex, LogFileSize: v.logSize, OnProgress: p.set}
}

// verifyOptions are the flags of mqx store verify.
type verifyOptions struct {
	store    storeFlags
	verify   verifyFlags
	pace     paceFlag
	output   outputFlags
	coverage bool
}

func newStoreVerifyCmd(a *app) *cobra.Command {
	o := &verifyOptions{}
	c := &cobra.Command{
		Use:   "verify DIR",
		Short: "Read all of a store and say what does not agree",
		Long: `Compares every record with its checksum and place, every unit and index entry with
the log, and checks the configuration files. Changes nothing and takes no lock; beside a
running broker it looks at what was there when it began. Exit code 6 when there are findings.

With -o nagios it is the check of a monitoring system: one line, and the exit codes of that
form, 0 OK: no finding; 1 WARNING: all that is found can be built again from the rest;
2 CRITICAL: a mend would lose something; 3 UNKNOWN: the store could not be verified.`,
		Example: `  mqx store verify ~/store
  mqx store verify ~/store -o nagios
  mqx store verify ~/store -o json | jq -r '.items[] | select(.level == "finding") | .what'
  mqx store verify --coverage`,
		Args: func(c *cobra.Command, args []string) error {
			if o.coverage {
				return exactArgs()(c, args)
			}
			return exactArgs("DIR")(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if o.coverage {
				if o.output.form == formNagios {
					return usagef("cannot use -o nagios with --coverage").because("there is nothing to check without a directory").try("mqx store verify DIR -o nagios")
				}
				return runStoreCoverage(a, o)
			}
			if err := o.pace.check(); err != nil {
				return err
			}
			return runStoreVerify(a, c, o, args[0])
		},
	}
	o.store.add(c)
	o.verify.add(c)
	o.pace.add(c)
	grouped(c, groupOutput, func(f *pflag.FlagSet) {
		f.BoolVar(&o.coverage, "coverage", false, "say what verify covers and what nothing covers, without a directory")
	})
	o.output.addRows(c)
	o.output.add(c)
	offersNagios(c)
	return c
}

func runStoreCoverage(a *app, o *verifyOptions) error {
	out, closeOut, err := a.open(&o.output)
	if err != nil {
		return err
	}
	w, err := a.renderer(out, &o.output, storeCoverageSchema, false)
	if err != nil {
		return err
	}
	if !w.Help() {
		for _, row := range inspect.CoverageTable() {
			if err := w.Row(row.Part, row.Covered, row.By); err != nil {
				return err
			}
		}
	}
	return closed(w.Close(), closeOut)
}

func runStoreVerify(a *app, c *cobra.Command, o *verifyOptions, dir string) error {
	if o.output.form == formNagios {
		return runStoreVerifyNagios(a, c, o, dir)
	}
	return a.storeRows(c, &o.store, dir, &o.output, storeOutput{schema: storeFindingSchema}, func(ctx context.Context, d *inspect.Dir, w *render.Writer) error {
		a.beside(d, &o.pace)
		bar := newProgressLine(a, "verify")
		r, err := inspect.Verify(ctx, d, o.verify.options(bar))
		bar.end()
		if err != nil {
			return err
		}
		for _, f := range r.Findings {
			if err := findingRow(w, f); err != nil {
				return err
			}
		}
		a.noteReport(r)
		if r.Damaged() {
			return silentError{ExitCheckFailed}
		}
		return nil
	})
}

// runStoreVerifyNagios is the check of a monitoring system.
func runStoreVerifyNagios(a *app, c *cobra.Command, o *verifyOptions, dir string) error {
	if o.output.match != "" || o.output.sort != "" || o.output.limit != 0 || o.output.strings {
		return usagef("cannot use -o nagios with --match, --sort, --limit or --strings").because("it is one line about all of the store").try("-o json")
	}
	ctx, cancel := a.deadline(c, false)
	defer cancel()
	d, err := a.openStore(&o.store, dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	a.beside(d, &o.pace)
	r, err := inspect.Verify(ctx, d, o.verify.options(newProgressLine(a, "verify")))
	if err != nil {
		return storeFailure(dir, a.withTimeout(ctx, err))
	}
	out, closeOut, err := a.open(&o.output)
	if err != nil {
		return err
	}
	state, text, figures := nagiosReport(r)
	if err := closed(nagiosLine(out, state, text, figures), closeOut); err != nil {
		return err
	}
	if state != nagiosOK {
		return silentError{state}
	}
	return nil
}

func findingRow(w *render.Writer, f *inspect.Finding) error {
	level := "finding"
	if f.Note {
		level = "note"
	}
	affected := make([]string, len(f.Affected))
	for i, x := range f.Affected {
		affected[i] = x.String()
	}
	return w.Row(level, string(f.Kind), orUnknown(f.File), knownInt(f.Offset), knownInt(f.Phys), knownInt(f.Messages), affected, f.What, orUnknown(f.Mend), f.Derived)
}

// knownInt is a number, unknown when it is negative.
func knownInt(n int64) any {
	if n < 0 {
		return nil
	}
	return n
}

// noteReport says what was looked at.
func (a *app) noteReport(r *inspect.Report) {
	findings := 0
	for _, f := range r.Findings {
		if !f.Note {
			findings++
		}
	}
	a.note("%s in the log from %d to %d, %s, %s of the index: %s", words.Count(r.Records, "record"), r.LogMin, r.LogEnd,
		words.Count(r.Units, "queue unit"), words.Count(r.Entries, "entry"), words.Count(int64(findings), "finding"))
	if r.Total > len(r.Findings) {
		a.warn("only the first %d of %d findings are shown", len(r.Findings), r.Total)
	}
}

// progressLine shows on a terminal how far a long reading is.
type progressLine struct {
	a     *app
	what  string
	began time.Time
	mu    struct {
		sync.Mutex
		shown time.Time
		width int
	}
}

func newProgressLine(a *app, what string) *progressLine {
	return &progressLine{a: a, what: what, began: time.Now()}
}

const progressEvery = 200 * time.Millisecond

// set shows done of total bytes. It may be called by several goroutines.
func (p *progressLine) set(done, total int64) {
	if !p.a.ErrTTY {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.mu.shown) < progressEvery {
		return
	}
	p.mu.shown = now
	text := progressText(p.what, done, total, now.Sub(p.began))
	fmt.Fprintf(p.a.Err, "\r%s%s", text, strings.Repeat(" ", max(0, p.mu.width-len(text))))
	p.mu.width = len(text)
}

// progressText is the line: share, bytes, rate, time left.
func progressText(what string, done, total int64, took time.Duration) string {
	const mib = 1 << 20
	rate := float64(done) / max(took.Seconds(), 0.001)
	left := "?"
	if rate > 0 {
		left = (time.Duration(float64(total-done)/rate) * time.Second).String()
	}
	share := 0.0
	if total > 0 {
		share = 100 * float64(done) / float64(total)
	}
	return fmt.Sprintf("%s %3.0f%%  %d of %d MiB  %.0f MiB/s  %s left", what, share, done/mib, total/mib, rate/mib, left)
}

// step shows done of total bytes of one of several parts of the work. It belongs to one goroutine.
func (p *progressLine) step(what string, done, total int64) {
	if p.what != what {
		p.end()
		p.what, p.began = what, time.Now()
	}
	p.set(done, total)
}

// end takes the line away.
func (p *progressLine) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.width > 0 {
		fmt.Fprintf(p.a.Err, "\r%s\r", strings.Repeat(" ", p.mu.width))
	}
	p.mu.width = 0
}
