package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/render"
)

// outputFlags are the flags of every command that prints records.
type outputFlags struct {
	form    string
	file    string
	strings bool

	match string
	sort  string
	limit int

	watch    bool
	interval time.Duration
}

// help: only the fields are asked for.
func (o *outputFlags) help() bool { return o.form == string(render.FormHelp) }

// check refuses a form that is none before anything else is looked at.
func (o *outputFlags) check() error {
	if _, _, err := render.ParseForm(o.form); err != nil {
		return usagef("%w", err)
	}
	return nil
}

// checkForm refuses a form of the output that is none, before anything else is looked at.
// Apache's commands have options of that name with other meanings.
func checkForm(c *cobra.Command) error {
	f := c.Flags().Lookup("output")
	if f == nil || f.Shorthand != "o" || asksNagios(c) || c.HasParent() && c.Parent().Name() == "mqadmin" {
		return nil
	}
	return (&outputFlags{form: f.Value.String()}).check()
}

// add adds the flags of the form of the output.
func (o *outputFlags) add(c *cobra.Command) {
	grouped(c, groupOutput, func(f *pflag.FlagSet) {
		f.StringVarP(&o.form, "output", "o", "table", "table, wide, json, ndjson, yaml, csv, name, template=TEXT; help lists the fields")
		f.StringVarP(&o.file, "output-file", "O", "", "write the output to this file")
		f.BoolVar(&o.strings, "strings", false, "add every integer of a document once more as text")
	})
	err := c.RegisterFlagCompletionFunc("output", func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		if _, offered := c.Flags().Lookup("output").Annotations[nagiosAnnotation]; offered {
			return append(render.Forms(), formNagios), cobra.ShellCompDirectiveNoFileComp
		}
		return render.Forms(), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err)
	}
}

// addRows adds the flags that choose and order the rows.
func (o *outputFlags) addRows(c *cobra.Command) {
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.StringVar(&o.match, "match", "", "print only rows that match; see mqx help match")
		f.StringVar(&o.sort, "sort", "", "sort by this field; -FIELD the other way round")
		f.IntVar(&o.limit, "limit", 0, "print only the first N rows")
	})
}

// addWatch adds the flags that repeat a read.
func (o *outputFlags) addWatch(c *cobra.Command) {
	grouped(c, groupOutput, func(f *pflag.FlagSet) {
		f.BoolVar(&o.watch, "watch", false, "repeat until interrupted, or as long as --timeout says")
		f.DurationVar(&o.interval, "interval", 2*time.Second, "time between repetitions of --watch")
	})
}

// open opens where the output goes. The function returned closes it.
func (a *app) open(o *outputFlags) (io.Writer, func() error, error) {
	if o.file == "" || o.file == "-" {
		return a.Out, func() error { return nil }, nil
	}
	f, err := os.Create(o.file)
	if err != nil {
		return nil, nil, outputFailure(o.file, err)
	}
	return f, func() error {
		if err := f.Close(); err != nil {
			return fmt.Errorf("cannot write output file %q: %w", o.file, err)
		}
		return nil
	}, nil
}

// outputFailure finds the exit code of an output file that cannot be made, and says what a person can do.
func outputFailure(name string, err error) error {
	f := failf(exitOfFile(err), "cannot create output file %q: %w", name, err)
	if st, statErr := os.Stat(name); statErr == nil && st.IsDir() {
		return f.because("there is a directory of that name").try("-O %s", filepath.Join(name, "output"))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f.because("there is no directory "+filepath.Dir(name)).try("mkdir -p %s, then the same command", filepath.Dir(name))
	case errors.Is(err, fs.ErrPermission):
		return f.because("this user may not write there").try("-O a file in a directory of yours")
	}
	return f.because("it cannot be written there").try("-O a file elsewhere")
}

// renderer makes the Writer for records of the schema.
func (a *app) renderer(out io.Writer, o *outputFlags, s render.Schema, stream bool) (*render.Writer, error) {
	form, text, err := render.ParseForm(o.form)
	if err != nil {
		return nil, usagef("%w", err)
	}
	tty := a.OutTTY && (o.file == "" || o.file == "-")
	w, err := render.New(out, s, render.Options{
		Form: form, Template: text, TTY: tty, Width: a.Width, Color: a.color(tty),
		NoHeaders: a.global.noHeaders, Strings: o.strings,
		Match: o.match, Sort: o.sort, Limit: o.limit,
		Stream: stream, Now: time.Now(),
	})
	if err != nil {
		return nil, usagef("%w", err)
	}
	return w, nil
}

func (a *app) color(tty bool) bool {
	switch a.global.color {
	case "always":
		return true
	case "never":
		return false
	}
	return tty && a.env("NO_COLOR") == "" && a.env("TERM") != "dumb"
}

// problems are the parts of an answer that are missing.
type problems []render.Problem

// list prints the records that fetch gives: once, or again and again with
// --watch. Parts that are missing end in exit code 3.
func (a *app) list(c *cobra.Command, o *outputFlags, s render.Schema, fetch func(ctx context.Context, w *render.Writer) (problems, error)) error {
	if o.watch && o.interval <= 0 {
		return usagef("cannot use --interval %s: it must be more than nothing", o.interval).try("--interval 2s")
	}
	out, closeOut, err := a.open(o)
	if err != nil {
		return err
	}
	round := func() error {
		w, err := a.renderer(out, o, s, false)
		if err != nil {
			return err
		}
		if w.Help() {
			return w.Close()
		}
		ctx, cancel := a.deadline(c, true)
		defer cancel()
		ctx, asked := admin.WithRound(ctx)
		missing, err := fetch(ctx, w)
		if none, ok := errors.AsType[*noneError](err); ok && asked.AnsweredBesides(none.errs) {
			missing, err = targetProblems(none.errs), nil // the others have nothing, which is an answer
		}
		if err != nil {
			return a.withTimeout(ctx, err)
		}
		for _, p := range missing {
			w.Problem(p)
		}
		if err := w.Close(); err != nil {
			return err
		}
		return a.partial(missing)
	}
	if !o.watch {
		return closed(round(), closeOut)
	}
	ctx, cancel := a.deadline(c, false) // a limit that is given ends the repetition
	defer cancel()
	for {
		if a.OutTTY && o.file == "" {
			fmt.Fprint(a.Out, "\x1b[H\x1b[2J")
		}
		if err := round(); err != nil {
			if s, ok := errors.AsType[silentError](err); !ok || s.code != ExitPartial {
				return closed(err, closeOut)
			}
		}
		select {
		case <-ctx.Done():
			return closed(context.Cause(c.Context()), closeOut) // nil when its time is over
		case <-time.After(o.interval):
		}
		if !a.OutTTY || o.file != "" {
			a.global.noHeaders = true // there is one header line, whatever is repeated
		}
	}
}

// closed closes the output after a command that ended with err. What went wrong
// in closing is said even where the command has said all it had to.
func closed(err error, closeOut func() error) error {
	if closeErr := closeOut(); closeErr != nil {
		if _, silent := errors.AsType[silentError](err); silent || err == nil {
			return closeErr
		}
		return errors.Join(err, closeErr)
	}
	return err
}

// withTimeout says which limit a command ran into.
func (a *app) withTimeout(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && errors.Is(err, context.DeadlineExceeded) {
		_, told := errors.AsType[*Failure](err)
		f := asFailure(err)
		f.Code = ExitConnect
		if f.Why == "" || !told {
			f.Why = fmt.Sprintf("the command had %s", a.global.timeout)
			f.Try = "--timeout 30s"
		}
		return f
	}
	return err
}

// partial says which parts are missing and makes the exit code of it.
func (a *app) partial(missing problems) error {
	told := map[string]bool{}
	for _, p := range missing {
		a.missing(p)
		if p.Why != "" && !told[p.Why] {
			told[p.Why] = true
			fmt.Fprintf(a.Err, "why: %s\ntry: %s\n", oneLine(p.Why), oneLine(p.Try))
		}
	}
	return a.partialCode(missing)
}

// missing says which part is missing.
func (a *app) missing(p render.Problem) {
	who := p.Target
	if p.Addr != "" && p.Addr != p.Target {
		who += " (" + p.Addr + ")"
	}
	fmt.Fprintf(a.Err, "error: %s: %s\n", who, oneLine(p.Message))
}

// partialCode is the exit code of an answer of which parts are missing.
func (a *app) partialCode(missing problems) error {
	if len(missing) == 0 || a.global.partial == "ok" {
		return nil
	}
	return silentError{ExitPartial}
}
