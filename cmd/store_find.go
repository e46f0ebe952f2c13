package cmd

import (
	"context"
	"errors"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/internal/render"
	"mqx/message"
	"mqx/store/inspect"
)

type storeGetOptions struct {
	store  storeFlags
	output outputFlags
	show   messageFlags
	topic  string
}

func newStoreGetCmd(a *app) *cobra.Command {
	o := &storeGetOptions{}
	c := &cobra.Command{
		Use:   "get DIR OFFSET|ID",
		Short: "Print the message at a position of the commit log, or with an id",
		Long: `OFFSET is a position of the log. ID is an offset id, which says the position, or
the unique id of a producer, which is looked for in the key index and, for what
the index does not cover, in the log; which of them it was is the field foundBy.`,
		Example: `  mqx store get /data/store 281916 -o json
  mqx store get /data/store 7F000001000078BF0000000000044D3C
  mqx store get /data/store C000020272F74E0E2F2A9518AA780000 --body hex -o wide`,
		Args: exactArgs("DIR", "OFFSET|ID"),
		RunE: func(c *cobra.Command, args []string) error {
			if args[1] == "" {
				return usagef("cannot find a message without a word of it").because("OFFSET|ID is empty").try("mqx store log DIR shows both")
			}
			return runStoreGet(a, c, o, args[0], args[1])
		},
	}
	o.store.add(c)
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.StringVarP(&o.topic, "topic", "t", "", "topic of the unique id: only its keys are looked at")
	})
	o.show.add(c)
	o.output.add(c)
	return c
}

func runStoreGet(a *app, c *cobra.Command, o *storeGetOptions, dir, what string) error {
	if err := o.show.check(); err != nil {
		return err
	}
	return a.storeRows(c, &o.store, dir, &o.output, storeOutput{schema: storeFindSchema, records: true}, func(ctx context.Context, d *inspect.Dir, w *render.Writer) error {
		found := 0
		row := func(v message.View, how inspect.How, m inspect.Match) error {
			return o.show.storeRecordRows(v, m, w.Lean(), func(r []any) error { found++; return w.Row(append(r, string(how))...) })
		}
		why, err := storeGet(ctx, a, d, o.topic, what, row)
		if err != nil {
			return err
		}
		if found == 0 {
			f := failf(ExitNotFound, "cannot find %q in store %q", what, dir).because(why)
			if off, err := strconv.ParseInt(what, 10, 64); err == nil && off >= 0 {
				return f.try("mqx store log %s --start %d shows what is next", dir, off)
			}
			return f.try("mqx store find %s --key %s, or --body-text", dir, what)
		}
		return nil
	})
}

// storeGet looks for a position, an offset id, and a unique id, in this order. why says what was tried.
func storeGet(ctx context.Context, a *app, d *inspect.Dir, topic, what string, row func(message.View, inspect.How, inspect.Match) error) (why string, err error) {
	if off, err := strconv.ParseInt(what, 10, 64); err == nil && off >= 0 && len(what) < message.IDLenV4 {
		return getAt(d, off, row)
	}
	host, phys, err := message.ParseOffsetID(what)
	if err == nil {
		v, err := d.Log().Record(phys)
		if err == nil && v.StoreHost() == host {
			return "", row(v, inspect.ByOffset, inspect.Match{})
		}
		if err != nil && !errors.Is(err, inspect.ErrNoRecord) {
			return "", err
		}
	}
	m := inspect.Match{Topic: topic, Key: what, ID: what}
	plan, err := d.Find(ctx, m, inspect.ScanOptions{}, func(v message.View, how inspect.How) error { return row(v, how, m) })
	sayPlan(a, plan)
	return "neither a position in the log, nor an offset id of one of its records, nor the unique id of a message", err
}

func getAt(d *inspect.Dir, off int64, row func(message.View, inspect.How, inspect.Match) error) (why string, err error) {
	v, err := d.Log().Record(off)
	if err == nil {
		return "", row(v, inspect.ByOffset, inspect.Match{})
	}
	if !errors.Is(err, inspect.ErrNoRecord) {
		return "", err
	}
	return err.Error(), nil
}

// sayPlan tells whether the index was of use.
func sayPlan(a *app, p inspect.Plan) {
	if p.Index {
		a.note("by the key index for positions %d to %d, by scan for the rest", p.From, p.To)
		return
	}
	a.note("by scan: %s", p.Why)
}

type storeFindOptions struct {
	store  storeFlags
	output outputFlags
	show   messageFlags
	sel    selectFlags
	count  int64
}

func newStoreFindCmd(a *app) *cobra.Command {
	o := &storeFindOptions{}
	c := &cobra.Command{
		Use:   "find DIR",
		Short: "Find messages by key, id, text or expression",
		Long: `A key is looked for in the key index, for the part of the log that the index
covers, and in the log for the rest; everything else by a scan of the log. The
field foundBy says which, and -v says why. Exit code 7 when nothing was found.

--body TEXT is --body-text TEXT, unless TEXT is one of the forms in which bodies are
written: text, hex, base64, none.`,
		Example: `  mqx store find /data/store -t ORDERS --key order-4711
  mqx store find /data/store --id C000020272F74E0E2F2A9518AA780000 -o json
  mqx store find /data/store --body '"amount":99' --start @-1d -o ndjson
  mqx store find /data/store -t ORDERS --where "region = 'eu'" --count 1`,
		Args: exactArgs("DIR"),
		RunE: func(c *cobra.Command, args []string) error { return runStoreFind(a, c, o, args[0]) },
	}
	o.store.add(c)
	o.sel.add(c)
	grouped(c, groupRange, func(f *pflag.FlagSet) { f.Int64Var(&o.count, "count", 0, "stop after this many messages") })
	o.show.add(c)
	o.output.addRows(c)
	o.output.add(c)
	return c
}

func runStoreFind(a *app, c *cobra.Command, o *storeFindOptions, dir string) error {
	o.bodyText(c)
	if err := o.show.check(); err != nil {
		return err
	}
	if err := o.sel.empty(c); err != nil {
		return err
	}
	if _, _, err := render.ParseForm(o.output.form); err != nil {
		return usagef("%w", err).try("-o help for the fields, mqx help output for the forms")
	}
	if o.sel.key == "" && o.sel.id == "" && o.sel.body == "" && o.sel.where == "" && o.sel.tag == "" {
		return usagef("cannot find a message without a word of it: what is looked for is missing").try("--key, --id, --body-text, --tag or --where")
	}
	n := int64(0)
	return a.storeRows(c, &o.store, dir, &o.output, storeOutput{schema: storeFindSchema, stream: true}, func(ctx context.Context, d *inspect.Dir, w *render.Writer) error {
		r, err := o.sel.resolve(ctx, a, c, d)
		if err != nil {
			return err
		}
		row := func(v message.View, how inspect.How, m inspect.Match) error {
			return o.show.storeRecordRows(v, m, w.Lean(), func(row []any) error {
				if err := w.Row(append(row, string(how))...); err != nil {
					return err
				}
				if n++; o.count > 0 && n >= o.count || w.Full() {
					return inspect.ErrStop
				}
				return nil
			})
		}
		if err := findRecords(ctx, a, d, r, row); err != nil {
			return err
		}
		if n == 0 {
			return failf(ExitNotFound, "cannot find such a message in store %q%s", dir, o.sel.said()).because("no record of the log is all of that").try("mqx store log %s", dir)
		}
		return nil
	})
}

// bodyText takes --body for --body-text where its value is none of the forms in which bodies are written, and nothing else
// says a text.
func (o *storeFindOptions) bodyText(c *cobra.Command) {
	if c.Flags().Changed("body") && o.show.body != "" && o.show.check() != nil && !c.Flags().Changed("body-text") {
		o.sel.body, o.show.body = o.show.body, "text"
	}
}

func findRecords(ctx context.Context, a *app, d *inspect.Dir, r storeRange, row func(message.View, inspect.How, inspect.Match) error) error {
	if id := r.match.ID; id != "" {
		if host, phys, err := message.ParseOffsetID(id); err == nil {
			if v, err := d.Log().Record(phys); err == nil && v.StoreHost() == host {
				m := r.match
				m.ID = ""
				if m.Func()(v) {
					return row(v, inspect.ByOffset, m)
				}
				return nil
			}
		}
		if r.match.Key == "" {
			r.match.Key = id
		}
	}
	r.scan.OnBreak = a.sayBreak(d)
	plan, err := d.Find(ctx, r.match, r.scan, func(v message.View, how inspect.How) error { return row(v, how, r.match) })
	sayPlan(a, plan)
	return err
}
