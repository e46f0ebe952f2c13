package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/internal/render"
	"mqx/store/inspect"
)

var storeInfoSchema = render.Schema{Kind: "StoreInfo", Name: "dir", Fields: []render.Field{
	{Name: "dir", Doc: "the directory"},
	{Name: "state", Doc: "clean: closed in order; in-use: a process has it locked; dirty: not closed, and nobody has it"},
	{Name: "pid", Kind: render.Int, Doc: "process that holds the lock, or left abort behind"},
	{Name: "writer", Doc: "who wrote it, as far as its files show"},
	{Name: "broker", Doc: "broker address in the newest record"},
	{Name: "cluster", Doc: "cluster in the newest record"},
	{Name: "kinds", Kind: render.List, Doc: "traits that not every reader understands"},
	{Name: "foreign", Kind: render.List, Doc: "those of them that mqx neither serves nor repairs"},
	{Name: "logMin", Kind: render.Int, Doc: "first position of the commit log"},
	{Name: "logEnd", Kind: render.Int, Doc: "position behind its last record"},
	{Name: "logTail", Doc: "end: only zeros follow; torn: bytes follow that are no record"},
	{Name: "logFiles", Kind: render.Int, Doc: "files of the commit log"},
	{Name: "holes", Kind: render.Int, Doc: "places between log files where one or more are missing"},
	{Name: "firstStored", Kind: render.Time, Doc: "store time of the first record"},
	{Name: "lastStored", Kind: render.Time, Doc: "store time of the last record"},
	{Name: "topics", Kind: render.Int, Doc: "topics with queues"},
	{Name: "queues", Kind: render.Int, Doc: "consume queues"},
	{Name: "messages", Kind: render.Int, Doc: "messages in all queues"},
	{Name: "indexFiles", Kind: render.Int, Doc: "files of the key index"},
	{Name: "indexEntries", Kind: render.Int, Doc: "entries in them; unknown when one is damaged"},
	{Name: "indexEnd", Kind: render.Int, Doc: "newest record that the index knows"},
	{Name: "checkpointLog", Kind: render.Time, Doc: "physicMsgTimestamp of the checkpoint"},
	{Name: "checkpointQueues", Kind: render.Time, Doc: "logicsMsgTimestamp of the checkpoint"},
	{Name: "checkpointIndex", Kind: render.Time, Doc: "indexMsgTimestamp of the checkpoint"},
	{Name: "checkpointQueuePos", Kind: render.Int, Doc: "logicsPhysicalOffset of the checkpoint"},
	{Name: "checkpointConfirm", Kind: render.Int, Doc: "confirmPhyOffset of the checkpoint"},
	{Name: "checkpointMaster", Kind: render.Int, Doc: "masterFlushedOffset of the checkpoint"},
	{Name: "checkpoint", Doc: "ok; behind: older than the content; ahead: it claims more than is there; missing"},
	{Name: "bytes", Kind: render.Size, Doc: "length of all files; they may be sparse"},
	{Name: "diskUsedPct", Kind: render.Float, Doc: "how full the volume of the commit log is, in percent"},
	{Name: "diskFree", Kind: render.Size, Doc: "what is free there"},
	{Name: "nextExpired", Doc: "log file that the retention deletes next"},
	{Name: "nextExpiry", Kind: render.Time, Doc: "when it may, by --reserved"},
	{Name: "settings", Kind: render.Object, Doc: "what the files tell of broker.conf"},
}}

var storeFileSchema = render.Schema{Kind: "StoreFileList", Name: "file", Fields: []render.Field{
	{Name: "file", Doc: "name in the directory"},
	{Name: "start", Kind: render.Int, Doc: "first position of the log"},
	{Name: "size", Kind: render.Size, Doc: "its length"},
	{Name: "modified", Kind: render.Time, Doc: "last change"},
	{Name: "firstStored", Kind: render.Time, Doc: "store time of its first record; unknown when no record begins it"},
	{Name: "expires", Kind: render.Time, Doc: "when the retention may delete it, by --reserved"},
}}

var storeTopicSchema = render.Schema{Kind: "StoreTopicList", Name: "topic", Fields: []render.Field{
	{Name: "topic", Doc: "topic"},
	{Name: "queues", Kind: render.Int, Doc: "consume queues"},
	{Name: "messages", Kind: render.Int, Doc: "messages in them"},
	{Name: "batch", Kind: render.Bool, Doc: "its queues are batch queues"},
	{Name: "configured", Kind: render.Bool, Doc: "it is in topics.json"},
	{Name: "firstPhysical", Title: "FIRST", Kind: render.Int, Doc: "position of its oldest record in the log"},
	{Name: "lastPhysical", Title: "LAST", Kind: render.Int, Doc: "position of its newest record in the log"},
}}

var storePartSchema = render.Schema{Kind: "StorePartList", Name: "part", Fields: []render.Field{
	{Name: "part", Doc: "directory inside the store"},
	{Name: "files", Kind: render.Int, Doc: "files in it"},
	{Name: "bytes", Kind: render.Size, Doc: "their length; they may be sparse"},
}}

type storeInfoOptions struct {
	store    storeFlags
	output   outputFlags
	show     string
	reserved time.Duration
}

func newStoreInfoCmd(a *app) *cobra.Command {
	o := &storeInfoOptions{}
	c := &cobra.Command{
		Use:   "info DIR",
		Short: "What a store directory holds, and how it was left",
		Long: `Looks at file names, heads of files, the ends of the queues and the end of the
log; it does not read the log. ` + "`mqx store verify`" + ` does.`,
		Example: `  mqx store info /data/store
  mqx store info /data/store --show topics --sort -messages --limit 10
  mqx store info /data/store --show files -o csv
  mqx store info /data/store -o json | jq -r '.items[0].state'`,
		Args: exactArgs("DIR"),
		RunE: func(c *cobra.Command, args []string) error { return runStoreInfo(a, c, o, args[0]) },
	}
	o.store.add(c)
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.StringVar(&o.show, "show", "summary", "what to list: summary, topics, files (of the log) or parts")
		f.DurationVar(&o.reserved, "reserved", 72*time.Hour, "how long log files are kept (fileReservedTime)")
	})
	o.output.addRows(c)
	o.output.add(c)
	completeFlag(c, "show", cobra.FixedCompletions([]string{"summary", "topics", "files", "parts"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func runStoreInfo(a *app, c *cobra.Command, o *storeInfoOptions, dir string) error {
	rows := map[string]struct {
		schema render.Schema
		rows   func(d *inspect.Dir, i *inspect.Info) [][]any
	}{
		"summary": {storeInfoSchema, func(d *inspect.Dir, i *inspect.Info) [][]any { return [][]any{storeInfoRow(d, i, o.reserved)} }},
		"topics":  {storeTopicSchema, func(_ *inspect.Dir, i *inspect.Info) [][]any { return storeTopicRows(i) }},
		"files":   {storeFileSchema, func(d *inspect.Dir, i *inspect.Info) [][]any { return storeFileRows(d, i, o.reserved) }},
		"parts":   {storePartSchema, func(_ *inspect.Dir, i *inspect.Info) [][]any { return storePartRows(i) }},
	}
	show, ok := rows[o.show]
	if !ok {
		return usagef("cannot use --show %q: summary, topics, files or parts", o.show).try("--show topics")
	}
	out := storeOutput{schema: show.schema, records: o.show == "summary"}
	return a.storeRows(c, &o.store, dir, &o.output, out, func(ctx context.Context, d *inspect.Dir, w *render.Writer) error {
		i, err := d.Info(ctx)
		if err != nil {
			return err
		}
		for _, row := range show.rows(d, i) {
			if err := w.Row(row...); err != nil {
				return err
			}
		}
		return nil
	})
}

func storeInfoRow(d *inspect.Dir, i *inspect.Info, reserved time.Duration) []any {
	state := "clean"
	switch {
	case i.InUse.Locked:
		state = "in-use"
	case i.InUse.Abort:
		state = "dirty"
	}
	pid := any(nil)
	if i.InUse.PID > 0 {
		pid = i.InUse.PID
	}
	kinds, foreign := []string{}, []string{}
	for _, k := range i.Kinds {
		kinds = append(kinds, string(k.Name))
	}
	for _, k := range d.Foreign() {
		foreign = append(foreign, string(k.Name))
	}
	topics, queues, messages := 0, 0, int64(0)
	for _, t := range i.Topics {
		if t.Queues > 0 {
			topics++
		}
		queues += t.Queues
		messages += t.Messages
	}
	entries, indexEnd := storeIndexSums(i)
	bytes := int64(0)
	for _, p := range i.Parts {
		bytes += p.Bytes
	}
	used, free := any(nil), any(nil)
	if i.VolumeKnown {
		used, free = 100*i.Volume.Used(), i.Volume.Free
	}
	next, due := any(nil), time.Time{}
	if f, at, ok := i.NextExpiry(reserved); ok {
		next, due = d.Rel(f.Path), at
	}
	cp := i.Checkpoint
	return []any{
		d.Root(), state, pid, i.Writer, orUnknown(i.Broker), orUnknown(i.Cluster), unique(kinds), unique(foreign),
		i.LogMin, i.LogEnd, string(i.Tail), len(i.LogFiles), len(i.Holes), placeTime(i.First), placeTime(i.Last),
		topics, queues, messages, len(i.Index), entries, indexEnd,
		whenMs(cp.PhysicTime), whenMs(cp.LogicsTime), whenMs(cp.IndexTime), cp.LogicsPhysOffset, cp.ConfirmPhys, cp.MasterFlushed,
		checkpointState(i), bytes, used, free, next, due, i.Settings,
	}
}

func placeTime(p *inspect.Place) time.Time {
	if p == nil {
		return time.Time{}
	}
	return whenMs(p.Time)
}

// storeIndexSums are the entries of all index files and the newest record they know; nil where one cannot be read.
func storeIndexSums(i *inspect.Info) (entries, end any) {
	sum, last := int64(0), int64(-1)
	for _, x := range i.Index {
		if x.Err != nil {
			return nil, nil
		}
		sum += int64(x.Head.Count) - 1
		if x.Head.Count > 1 {
			last = max(last, x.Head.EndPhys)
		}
	}
	if last < 0 {
		return sum, nil
	}
	return sum, last
}

// checkpointState compares the checkpoint with the content. One of zeros says nothing, and so cannot be wrong.
func checkpointState(i *inspect.Info) string {
	cp := i.Checkpoint
	switch {
	case !i.HasCheckpoint:
		return "missing"
	case i.Last == nil:
		if cp.LogicsPhysOffset > 0 {
			return "ahead"
		}
	case cp.LogicsPhysOffset > i.Last.Phys || cp.PhysicTime > i.Last.Time:
		return "ahead"
	case cp.PhysicTime < i.Last.Time:
		return "behind"
	}
	return "ok"
}

func storeTopicRows(i *inspect.Info) [][]any {
	var rows [][]any
	for _, t := range i.Topics {
		rows = append(rows, []any{t.Topic, t.Queues, t.Messages, t.Batch, t.Configured, orNone(t.Min), orNone(t.Max)})
	}
	return rows
}

// orNone is a position that is unknown when it is negative.
func orNone(n int64) any {
	if n < 0 {
		return nil
	}
	return n
}

func storeFileRows(d *inspect.Dir, i *inspect.Info, reserved time.Duration) [][]any {
	var rows [][]any
	for n, f := range i.LogFiles {
		first := time.Time{}
		if v, err := d.Log().Record(f.Start); err == nil {
			first = whenMs(v.StoreTimestamp())
		}
		expires := f.ModTime.Add(reserved)
		if n == len(i.LogFiles)-1 {
			expires = time.Time{} // the newest file stays
		}
		rows = append(rows, []any{d.Rel(f.Path), f.Start, f.Size + f.Over, f.ModTime, first, expires})
	}
	return rows
}

func storePartRows(i *inspect.Info) [][]any {
	var rows [][]any
	for _, p := range i.Parts {
		rows = append(rows, []any{p.Name, p.Files, p.Bytes})
	}
	return rows
}
