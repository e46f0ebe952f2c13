package cmd

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/internal/render"
	"mqx/internal/words"
	"mqx/message"
	"mqx/store/inspect"
)

type storeLogOptions struct {
	store  storeFlags
	output outputFlags
	show   messageFlags
	sel    selectFlags
	follow bool
	count  int64
}

func newStoreLogCmd(a *app) *cobra.Command {
	o := &storeLogOptions{}
	c := &cobra.Command{
		Use:   "log DIR",
		Short: "Print the messages of a commit log in the order in which they were stored",
		Long: `Every record is shown: also half messages, those of system topics, and those that
no queue points to. Positions are bytes of the log; with -t and -q they are
offsets of that queue. What is no record is said on stderr and passed over.

-f goes on as a running broker stores messages, each once, from the end of the
log unless --start is given.`,
		Example: `  mqx store log /data/store -t ORDERS --start @-1h
  mqx store log /data/store -t ORDERS -q 3 --start 4711 --count 1 -o json
  mqx store log /data/store --tag 'created || paid' --where "region = 'eu'" -o ndjson
  mqx store log /data/store -f -o template='{{.topic}} {{.body}}'`,
		Args: exactArgs("DIR"),
		RunE: func(c *cobra.Command, args []string) error { return runStoreLog(a, c, o, args[0]) },
	}
	o.store.add(c)
	o.sel.add(c)
	grouped(c, groupRange, func(f *pflag.FlagSet) {
		f.Int64Var(&o.count, "count", 0, "stop after this many messages")
		f.BoolVarP(&o.follow, "follow", "f", false, "keep going as messages come")
	})
	o.show.add(c)
	o.output.addRows(c)
	o.output.add(c)
	return c
}

func (o *storeLogOptions) check() error {
	if err := o.show.check(); err != nil {
		return err
	}
	if !o.follow {
		return nil
	}
	form, _, err := render.ParseForm(o.output.form)
	if err == nil && o.count == 0 && o.output.limit == 0 && (form == render.FormJSON || form == render.FormYAML || o.output.sort != "") {
		return usagef("cannot follow into one document or sorted rows: there is no end").try("-o ndjson")
	}
	if o.sel.end != "" {
		return usagef("cannot use --end with --follow: there is no end").try("without --follow")
	}
	return nil
}

func runStoreLog(a *app, c *cobra.Command, o *storeLogOptions, dir string) error {
	if err := o.check(); err != nil {
		return err
	}
	n := int64(0)
	return a.storeRows(c, &o.store, dir, &o.output, storeOutput{schema: storeLogSchema, stream: true, live: o.follow}, func(ctx context.Context, d *inspect.Dir, w *render.Writer) error {
		if o.follow && o.sel.start == "" {
			o.sel.start = "end"
		}
		r, err := o.sel.resolve(ctx, a, c, d)
		if err != nil {
			return err
		}
		take := func(v message.View) error {
			return o.show.storeRecordRows(v, r.match, w.Lean(), func(row []any) error {
				if err := w.Row(row...); err != nil {
					return err
				}
				if n++; o.count > 0 && n >= o.count || w.Full() {
					return inspect.ErrStop
				}
				return nil
			})
		}
		if o.follow {
			if err := o.sel.known(dir, d); err != nil {
				a.warn("%v; it may come", err)
			}
			return o.followLog(ctx, a, d, r, take)
		}
		r.scan.OnBreak = a.sayBreak(d)
		some := false
		if o.count == 0 && w.Encoder() != nil {
			_, err = d.Log().Convert(ctx, r.scan, r.match.Func(), o.show.format(w, r.match), func(b []byte) error { some = true; return w.Lines(b) })
		} else {
			_, err = d.Log().Scan(ctx, r.scan, r.match.Func(), func(_ int64, v message.View) error { some = true; return take(v) })
		}
		if err == nil && !some {
			return o.sel.known(dir, d)
		}
		return err
	})
}

// sayBreak tells of what is no record.
func (a *app) sayBreak(d *inspect.Dir) func(inspect.Break) error {
	return func(b inspect.Break) error {
		switch b.Kind {
		case inspect.BreakHole:
			a.warn("no log file from %d to %d", b.From, b.To)
		case inspect.BreakRot:
			a.warn("no readable record from %d to %d (%s): %v", b.From, b.To, d.Rel(b.Path), b.Err)
		case inspect.BreakTorn:
			a.warn("the log ends at %d with %s that are no record (%s): %v", b.From, words.Count(b.To-b.From, "byte"), d.Rel(b.Path), b.Err)
		}
		return nil
	}
}

// followLog goes on behind what was there. Ctrl-C is an interruption, an end by --timeout or SIGTERM is in order.
func (o *storeLogOptions) followLog(ctx context.Context, a *app, d *inspect.Dir, r storeRange, take func(message.View) error) error {
	a.note("following the log from %d on", r.scan.From)
	err := d.Follow(ctx, inspect.FollowOptions{From: r.scan.From, OnBreak: a.sayBreak(d)}, r.match.Func(), func(_ int64, v message.View) error { return take(v) })
	if err == nil || ctx.Err() == nil {
		return err
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || terminated() {
		if o.count > 0 {
			return failf(ExitWaited, "waited in vain: fewer than %s came", words.Count(o.count, "message")).because("--timeout is over").try("a longer --timeout")
		}
		return nil
	}
	return err
}
