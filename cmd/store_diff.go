package cmd

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/internal/render"
	"mqx/internal/words"
	"mqx/store/inspect"
)

var storeDiffSchema = render.Schema{Kind: "StoreDifferenceList", Name: "kind", Fields: []render.Field{
	{Name: "level", Doc: "difference, or note for what is worth knowing and none"},
	{Name: "kind", Doc: "what it is; docs/store.md lists the kinds"},
	{Name: "side", Doc: "first or second: only that store has it; both: each has something else"},
	{Name: "name", Whole: true, Doc: "queue or configuration file"},
	{Name: "from", Kind: render.Int, Doc: "position of the log, or offset of the queue, where it begins"},
	{Name: "to", Kind: render.Int, Doc: "where it ends"},
	{Name: "topic", Doc: "topic of a message"},
	{Name: "queueId", Title: "QUEUE", Kind: render.Int, Doc: "queue of a message"},
	{Name: "queueOffset", Title: "OFFSET", Kind: render.Int, Doc: "offset of a message in its queue"},
	{Name: "msgId", Title: "MESSAGE ID", Whole: true, Doc: "id of a message: the unique id its producer gave it, else the offset id"},
	{Name: "physicalOffset", Title: "POSITION", Kind: render.Int, Wide: true, Doc: "position of a message in the log of the store that has it"},
	{Name: "first", Wide: true, Doc: "value, or number of records, in the first store"},
	{Name: "second", Wide: true, Doc: "the same in the second store"},
	{Name: "what", Whole: true, Doc: "what differs"},
}}

// diffOptions are the flags of mqx store diff.
type diffOptions struct {
	store, second storeFlags
	output        outputFlags
	only          []string
	pace          paceFlag
}

// diffParts are what --only takes.
var diffParts = []string{"log", "messages", "queues", "config"}

func newStoreDiffCmd(a *app) *cobra.Command {
	o := &diffOptions{}
	c := &cobra.Command{
		Use:   "diff DIR DIR2",
		Short: "Compare two stores: replicas, a backup, before and after",
		Long: `Tells where the logs part, which messages only one store has, which queues, offsets
and settings differ. Messages are compared by position, and where the logs are not the
same by their ids. That one log begins later (retention) or has files of another size is
no difference; the index and the timer's files follow from the log and are not compared.
Reads only, also beside running brokers: then the newest messages differ. Exit code 6
when there are differences.`,
		Example: `  mqx store diff /data/store /backup/store
  mqx store diff /master/store /slave/store --only log,messages -o ndjson
  mqx store diff /data/store /backup/store --match 'kind = message' -o name`,
		Args: exactArgs("DIR", "DIR2"),
		RunE: func(c *cobra.Command, args []string) error { return runStoreDiff(a, c, o, args) },
	}
	o.store.add(c)
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.StringArrayVar(&o.second.commitLog, "commitlog2", nil, "the same of DIR2")
	})
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.StringSliceVar(&o.only, "only", nil, "compare only these: log, messages, queues, config")
	})
	o.pace.add(c)
	o.output.addRows(c)
	o.output.add(c)
	return c
}

func runStoreDiff(a *app, c *cobra.Command, o *diffOptions, dirs []string) error {
	for _, part := range o.only {
		if !slices.Contains(diffParts, part) {
			return notOneOf("--only", part, diffParts...)
		}
	}
	without := func(part string) bool { return len(o.only) > 0 && !slices.Contains(o.only, part) }
	if err := o.pace.check(); err != nil {
		return err
	}
	return a.storeRows(c, &o.store, dirs[0], &o.output, storeOutput{schema: storeDiffSchema, stream: true}, func(ctx context.Context, first *inspect.Dir, w *render.Writer) error {
		o.second.slots = o.store.slots
		second, err := a.openStore(&o.second, dirs[1])
		if err != nil {
			return err
		}
		defer func() { _ = second.Close() }()
		for _, d := range []*inspect.Dir{first, second} {
			a.beside(d, &o.pace)
			if d.InUse().Locked {
				a.warn("%s is in use: what its broker does meanwhile is not in the comparison, or in one half of it", d.Root())
			}
		}
		bar := newProgressLine(a, "compare")
		r, err := inspect.Diff(ctx, first, second, inspect.DiffOptions{
			NoLog: without("log") && without("messages"), NoMessages: without("messages"), NoQueues: without("queues"), NoConfig: without("config"),
			OnProgress: bar.set,
		}, func(x inspect.Difference) error {
			bar.end()
			return diffRow(w, &x)
		})
		bar.end()
		if err != nil {
			return err
		}
		a.note("%s the same; %s, %s only in %s, %d only in %s", words.Count(r.Same, "record"), words.Count(r.Differences, "difference"),
			words.Count(r.OnlyFirst, "message"), dirs[0], r.OnlySecond, dirs[1])
		if r.Differences > 0 {
			return silentError{ExitCheckFailed}
		}
		return nil
	})
}

func diffRow(w *render.Writer, x *inspect.Difference) error {
	level := "difference"
	if x.Note {
		level = "note"
	}
	var topic, queue any
	if x.Topic != "" {
		topic, queue = x.Topic, x.Queue
	}
	return w.Row(level, string(x.Kind), string(x.Side), orUnknown(x.Name), knownInt(x.From), knownInt(x.To), topic, queue,
		knownInt(x.QueueOffset), orUnknown(x.MsgID), knownInt(x.Phys), orUnknown(x.First), orUnknown(x.Second), x.What)
}
