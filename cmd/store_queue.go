package cmd

import (
	"context"
	"errors"
	"math"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/internal/render"
	"mqx/message"
	"mqx/store/consumequeue"
	"mqx/store/inspect"
)

var storeQueueSchema = render.Schema{Kind: "StoreQueueList", Name: "topic", Fields: []render.Field{
	{Name: "topic", Doc: "topic"},
	{Name: "queueId", Title: "QUEUE", Kind: render.Int, Doc: "queue"},
	{Name: "kind", Doc: "simple or batch"},
	{Name: "minOffset", Title: "MIN", Kind: render.Int, Doc: "offset of the oldest message there is"},
	{Name: "maxOffset", Title: "MAX", Kind: render.Int, Doc: "offset that the next message gets"},
	{Name: "messages", Kind: render.Int, Doc: "messages that have a unit, from minimum to maximum"},
	{Name: "units", Kind: render.Int, Doc: "units of records"},
	{Name: "gaps", Kind: render.Int, Doc: "places between units that were never written, or whose file is missing"},
	{Name: "duplicates", Kind: render.Int, Doc: "units that do not point behind the record of the one before"},
	{Name: "beyond", Kind: render.Int, Doc: "units that point behind the end of the log"},
	{Name: "below", Kind: render.Int, Wide: true, Doc: "units that point before the start of the log, which is what retention leaves"},
	{Name: "fillers", Kind: render.Int, Wide: true, Doc: "units that stand for no record"},
	{Name: "files", Kind: render.Int, Wide: true, Doc: "its files"},
	{Name: "fileSize", Kind: render.Size, Wide: true, Doc: "their size"},
	{Name: "firstPhysical", Title: "FIRST", Kind: render.Int, Wide: true, Doc: "where its first unit of a record points to"},
	{Name: "lastPhysical", Title: "LAST", Kind: render.Int, Wide: true, Doc: "where its last one points to"},
}}

var storeUnitSchema = render.Schema{Kind: "StoreUnitList", Name: "queueOffset", Fields: []render.Field{
	{Name: "topic", Wide: true, Doc: "topic"},
	{Name: "queueId", Title: "QUEUE", Kind: render.Int, Wide: true, Doc: "queue"},
	{Name: "unit", Kind: render.Int, Wide: true, Doc: "number of the unit"},
	{Name: "queueOffset", Title: "OFFSET", Kind: render.Int, Doc: "queue offset of its message, of a batch the first one"},
	{Name: "messages", Kind: render.Int, Doc: "messages of the unit"},
	{Name: "physicalOffset", Title: "POSITION", Kind: render.Int, Doc: "where it points to in the log"},
	{Name: "size", Kind: render.Size, Doc: "size of the record"},
	{Name: "tagsCode", Kind: render.Int, Doc: "hash of the tag, time of delivery of a delay level, or place of the extension unit"},
	{Name: "realTagsCode", Kind: render.Int, Wide: true, Doc: "the hash that the extension unit holds; unknown without one"},
	{Name: "bitMap", Wide: true, Doc: "bit map of the extension unit, hex"},
	{Name: "storeTime", Title: "STORED", Kind: render.Time, Doc: "store time of the record"},
	{Name: "tag", Doc: "tag of the record"},
	{Name: "msgId", Title: "MESSAGE ID", Wide: true, Doc: "unique id of the record"},
	{Name: "state", Doc: "ok; filler; empty; gone: before the start of the log; beyond: behind its end; no-record; wrong-record, wrong-size, wrong-tag"},
}}

type storeQueueOptions struct {
	store  storeFlags
	output outputFlags
	start  string
	end    string
}

func newStoreQueueCmd(a *app) *cobra.Command {
	o := &storeQueueOptions{}
	c := &cobra.Command{
		Use:   "queue DIR [TOPIC [QUEUE]]",
		Short: "Show consume queues, or the units of one and what they point to",
		Example: `  mqx store queue /data/store --match 'gaps>0 || beyond>0 || duplicates>0'
  mqx store queue /data/store ORDERS
  mqx store queue /data/store ORDERS 3 --start 4700 --end 4720
  mqx store queue /data/store ORDERS 3 --match 'state!=ok' -o csv`,
		Args: rangeArgs(2, "DIR"),
		RunE: func(c *cobra.Command, args []string) error { return runStoreQueue(a, c, o, args) },
	}
	o.store.add(c)
	grouped(c, groupRange, func(f *pflag.FlagSet) {
		f.StringVar(&o.start, "start", "", "first offset of the queue")
		f.StringVar(&o.end, "end", "", "offset to stop before")
	})
	o.output.addRows(c)
	o.output.add(c)
	return c
}

func runStoreQueue(a *app, c *cobra.Command, o *storeQueueOptions, args []string) error {
	from, err := queueOffset(o.start, 0)
	if err != nil {
		return err
	}
	to, err := queueOffset(o.end, math.MaxInt64)
	if err != nil {
		return err
	}
	if len(args) < 3 {
		return a.storeRows(c, &o.store, args[0], &o.output, storeOutput{schema: storeQueueSchema}, func(ctx context.Context, d *inspect.Dir, w *render.Writer) error {
			return queueSummaries(ctx, d, w, args[1:])
		})
	}
	id, err := strconv.ParseInt(args[2], 10, 32)
	if err != nil || id < 0 {
		return usagef("cannot read queue %q: a number from 0 to %d", args[2], math.MaxInt32).try("%s %s %s 0", c.CommandPath(), args[0], args[1])
	}
	return a.storeRows(c, &o.store, args[0], &o.output, storeOutput{schema: storeUnitSchema, stream: true}, func(ctx context.Context, d *inspect.Dir, w *render.Writer) error {
		keys, err := d.Queues()
		if err != nil {
			return err
		}
		found := false
		for _, k := range keys {
			if k.Topic != args[1] || k.ID != int32(id) {
				continue
			}
			found = true
			if err := queueUnits(ctx, d, w, k, from, to); err != nil {
				return err
			}
		}
		if !found {
			return notFoundIn(args[0], "queue", args[1]+"/"+args[2], nil)
		}
		return nil
	})
}

func queueOffset(text string, none int64) (int64, error) {
	switch text {
	case "":
		return none, nil
	case "start":
		return 0, nil
	case "end":
		return math.MaxInt64, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, usagef("cannot read offset %q: start, end or a number", text).try("--start 100 --end 200")
	}
	return n, nil
}

func queueSummaries(ctx context.Context, d *inspect.Dir, w *render.Writer, topic []string) error {
	keys, err := d.Queues()
	if err != nil {
		return err
	}
	end, err := storeEnd(ctx, d)
	if err != nil {
		return err
	}
	found := false
	for _, k := range keys {
		if len(topic) > 0 && k.Topic != topic[0] {
			continue
		}
		found = true
		q, err := d.Queue(k)
		if err != nil {
			return err
		}
		b, err := q.Bounds(ctx)
		if err != nil {
			return err
		}
		row, err := queueRow(ctx, q, b, end)
		if err != nil {
			return err
		}
		if err := w.Row(row...); err != nil {
			return err
		}
	}
	if !found && len(topic) > 0 {
		return notFoundIn(d.Root(), "topic", topic[0], topicNames(d))
	}
	return nil
}

func queueRow(ctx context.Context, q *inspect.Queue, b inspect.Bounds, logEnd int64) ([]any, error) {
	last, duplicates, beyond := int64(-1), 0, 0
	err := q.Units(ctx, 0, math.MaxInt64, func(u inspect.Unit) error {
		if !u.Written() || u.Filler() {
			return nil
		}
		if u.Phys < last || u.Phys == last && last > 0 {
			duplicates++
		}
		if u.End() > logEnd {
			beyond++
		}
		last = u.Phys
		return nil
	})
	kind := "simple"
	if q.Batch {
		kind = "batch"
	}
	first, lastPhys := any(nil), any(nil)
	if !b.Empty {
		first, lastPhys = b.First.Phys, b.Last.Phys
	}
	return []any{
		q.Topic, q.ID, kind, b.Min, b.Max, b.Messages, b.Units, b.Gaps, duplicates, beyond, b.Below, b.Fillers,
		len(q.Files()), q.FileSize(), first, lastPhys,
	}, err
}

func queueUnits(ctx context.Context, d *inspect.Dir, w *render.Writer, k inspect.QueueKey, from, to int64) error {
	q, err := d.Queue(k)
	if err != nil {
		return err
	}
	end, err := storeEnd(ctx, d)
	if err != nil {
		return err
	}
	ends, err := q.Ends(ctx)
	if err != nil {
		return err
	}
	first := from
	if k.Batch {
		first = 0 // units are numbered otherwise than messages
	}
	return q.Units(ctx, first, math.MaxInt64, func(u inspect.Unit) error {
		if u.Offset >= to || u.Zero() && u.N >= ends.Max {
			return inspect.ErrStop
		}
		if k.Batch && u.Next() <= from || k.Batch && !u.Written() {
			return nil
		}
		row, err := unitRow(d, q, u, end)
		if err != nil {
			return err
		}
		if err := w.Row(row...); err != nil {
			return err
		}
		if w.Full() {
			return inspect.ErrStop
		}
		return nil
	})
}

func unitRow(d *inspect.Dir, q *inspect.Queue, u inspect.Unit, logEnd int64) ([]any, error) {
	state, v, err := unitState(d, q, u, logEnd)
	if err != nil {
		return nil, err
	}
	ext, has, err := q.Ext(u.TagsCode)
	if err != nil {
		return nil, err
	}
	tagsCode, bits := any(nil), any(nil)
	if has {
		tagsCode, bits = ext.TagsCode, hexText(ext.BitMap)
	}
	stored, tag, id := whenMs(0), any(nil), any(nil)
	if v != nil {
		r := storedRecord(v)
		stored, tag, id = whenMs(v.StoreTimestamp()), r.Tags(), orUnknown(r.UniqKey())
	}
	return []any{q.Topic, q.ID, u.N, u.Offset, u.Count, u.Phys, u.Size, u.TagsCode, tagsCode, bits, stored, tag, id, state}, nil
}

// unitState compares a unit with its record.
func unitState(d *inspect.Dir, q *inspect.Queue, u inspect.Unit, logEnd int64) (state string, v message.View, err error) {
	switch {
	case u.Zero():
		return "empty", nil, nil
	case u.Filler():
		return "filler", nil, nil
	case u.Phys < d.Log().Min():
		return "gone", nil, nil
	case u.Phys >= logEnd:
		return "beyond", nil, nil
	}
	v, err = d.Log().Record(u.Phys)
	if errors.Is(err, inspect.ErrNoRecord) {
		return "no-record", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	switch {
	case !q.Points(u, v):
		return "wrong-record", v, nil
	case v.Size() != u.Size:
		return "wrong-size", v, nil
	case !consumequeue.IsExtAddr(u.TagsCode) && !q.Batch && q.Topic != "SCHEDULE_TOPIC_XXXX" && u.TagsCode != tagsCode(v):
		return "wrong-tag", v, nil
	}
	return "ok", v, nil
}

func tagsCode(v message.View) int64 {
	tags, _ := v.Property(message.PropTags)
	return message.TagsCode(tags)
}
