package cmd

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"mqx/internal/render"
	"mqx/store/inspect"
	"mqx/store/timer"
)

var storeDueSchema = render.Schema{Kind: "StoreDueList", Name: "physicalOffset", Fields: []render.Field{
	{Name: "due", Kind: render.Time, Doc: "when it is to be delivered"},
	{Name: "topic", Doc: "topic it will go to; unknown when its record is lost"},
	{Name: "queueId", Title: "QUEUE", Kind: render.Int, Doc: "queue it will go to"},
	{Name: "msgId", Title: "MESSAGE ID", Doc: "its unique id"},
	{Name: "source", Doc: "wheel: in the timer wheel; queue: in the timer topic, not yet in the wheel; level: in the queue of a delay level"},
	{Name: "level", Kind: render.Int, Doc: "delay level"},
	{Name: "state", Doc: "waits; rolls: the wheel does not reach its time; cancels; cancelled; lost: its record cannot be read"},
	{Name: "physicalOffset", Title: "POSITION", Kind: render.Int, Doc: "position of its record in the log"},
}}

var storeSlotSchema = render.Schema{Kind: "StoreTimerSlotList", Name: "slot", Fields: []render.Field{
	{Name: "wheel", Wide: true, Doc: "file: timerwheel, or a snapshot of it"},
	{Name: "slot", Kind: render.Int, Doc: "number of the slot"},
	{Name: "time", Kind: render.Time, Doc: "time it stands for; unknown when nothing tells the precision"},
	{Name: "tick", Kind: render.Int, Wide: true, Doc: "time divided by the precision"},
	{Name: "first", Kind: render.Int, Doc: "position of its first unit in the timer log"},
	{Name: "last", Kind: render.Int, Doc: "position of its last unit"},
	{Name: "messages", Kind: render.Int, Doc: "messages less cancellations"},
	{Name: "magic", Kind: render.Int, Wide: true, Doc: "magic"},
	{Name: "state", Doc: "waits; passed; misplaced: it does not belong there"},
}}

var storeTimerUnitSchema = render.Schema{Kind: "StoreTimerUnitList", Name: "unit", Fields: []render.Field{
	{Name: "unit", Title: "POSITION", Kind: render.Int, Doc: "position of the unit in the timer log"},
	{Name: "previous", Kind: render.Int, Doc: "unit before it in its slot, -1 for none"},
	{Name: "kind", Doc: "waits, rolls or cancels"},
	{Name: "written", Kind: render.Time, Doc: "when it was put in"},
	{Name: "due", Kind: render.Time, Doc: "time of its slot"},
	{Name: "physicalOffset", Title: "RECORD", Kind: render.Int, Doc: "position of its record in the commit log"},
	{Name: "size", Kind: render.Size, Doc: "size of that record"},
	{Name: "topicHash", Kind: render.Int, Wide: true, Doc: "hash of the topic it will go to"},
	{Name: "magic", Kind: render.Int, Wide: true, Doc: "magic"},
}}

var storeTimerSchema = render.Schema{Kind: "StoreTimer", Name: "dir", Fields: []render.Field{
	{Name: "dir", Doc: "the store directory"},
	{Name: "waiting", Kind: render.Int, Doc: "messages that wait, in wheel, timer topic and delay levels"},
	{Name: "overdue", Kind: render.Int, Doc: "those of them whose time has come"},
	{Name: "next", Kind: render.Time, Doc: "when the next one is due"},
	{Name: "lastDue", Kind: render.Time, Doc: "when the last one is due"},
	{Name: "readTime", Kind: render.Time, Doc: "slots before have been passed (lastReadTimeMs)"},
	{Name: "logFlushed", Kind: render.Int, Doc: "the wheel on disk knows the timer log up to here (lastTimerLogFlushPos)"},
	{Name: "queueOffset", Kind: render.Int, Doc: "next message of the timer topic (lastTimerQueueOffset)"},
	{Name: "masterQueueOffset", Kind: render.Int, Doc: "the same of the master (masterTimerQueueOffset)"},
	{Name: "precisionMs", Kind: render.Int, Doc: "width of a slot; unknown when no slot tells"},
	{Name: "logFiles", Kind: render.Int, Doc: "files of the timer log"},
	{Name: "counts", Kind: render.Object, Doc: "waiting messages by topic, as timermetrics counts them"},
}}

type storeTimerOptions struct {
	store  storeFlags
	output outputFlags
	show   string
}

func newStoreTimerCmd(a *app) *cobra.Command {
	o := &storeTimerOptions{}
	c := &cobra.Command{
		Use:   "timer DIR",
		Short: "Show the delayed messages of a store: what is due when",
		Long: `Lists what waits in the timer wheel, in the timer topic behind it, and in the
queues of the delay levels, the next first.`,
		Example: `  mqx store timer /data/store --limit 20
  mqx store timer /data/store --show summary
  mqx store timer /data/store --match 'topic=ORDERS && due<2026-01-02T00:00:00Z'
  mqx store timer /data/store --show slots --match 'state=waits'`,
		Args: exactArgs("DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.storeShow(c, &o.store, args[0], &o.output, o.show, storeTimerKinds)
		},
	}
	o.store.add(c)
	addShow(c, &o.show, storeTimerKinds)
	o.output.addRows(c)
	o.output.add(c)
	return c
}

var storeTimerKinds = []storeKind{
	{"due", storeOutput{schema: storeDueSchema}, dueRows},
	{"summary", storeOutput{schema: storeTimerSchema, records: true}, timerRow},
	{"slots", storeOutput{schema: storeSlotSchema, stream: true}, slotRows},
	{"units", storeOutput{schema: storeTimerUnitSchema, stream: true}, timerUnitRows},
}

func dueState(x *inspect.Due) string {
	switch {
	case x.Lost:
		return "lost"
	case x.Cancels != "":
		return "cancels"
	case x.Cancelled:
		return "cancelled"
	case x.Rolls:
		return "rolls"
	}
	return "waits"
}

func dueRows(ctx context.Context, d *inspect.Dir, w *render.Writer) error {
	dues, err := d.Dues(ctx)
	if err != nil {
		return err
	}
	for i := range dues {
		x := &dues[i]
		queue, level := any(nil), any(nil)
		if x.Topic != "" {
			queue = x.Queue
		}
		if x.Level > 0 {
			level = x.Level
		}
		if err := w.Row(whenMs(x.Time), orUnknown(x.Topic), queue, orUnknown(x.UniqKey), string(x.Source), level, dueState(x), x.Phys); err != nil {
			return err
		}
	}
	return nil
}

func timerRow(ctx context.Context, d *inspect.Dir, w *render.Writer) error {
	v, err := d.TimerView()
	if err != nil {
		return err
	}
	dues, err := d.Dues(ctx)
	if err != nil {
		return err
	}
	waiting, overdue, next, last := 0, 0, int64(0), int64(0)
	for i := range dues {
		if s := dueState(&dues[i]); s == "cancels" || s == "cancelled" {
			continue
		}
		waiting++
		if dues[i].Time <= d.Now().UnixMilli() {
			overdue++
		}
		if next == 0 {
			next = dues[i].Time
		}
		last = dues[i].Time
	}
	row := []any{d.Root(), waiting, overdue, whenMs(next), whenMs(last), nil, nil, nil, nil, nil, len(v.Log), nil}
	if c := v.Checkpoint; v.HasCheckpoint {
		row[5], row[6], row[7], row[8] = whenMs(c.ReadTime), c.LogFlushed, c.QueueOffset, c.MasterQueueOffset
	}
	if v.PrecisionMs > 0 {
		row[9] = v.PrecisionMs
	}
	if v.HasMetrics {
		counts := map[string]int64{}
		for topic, m := range v.Metrics.Topics {
			counts[topic] = m.Count
		}
		row[11] = counts
	}
	return w.Row(row...)
}

func slotRows(ctx context.Context, d *inspect.Dir, w *render.Writer) error {
	v, err := d.TimerView()
	if err != nil {
		return err
	}
	for _, wheel := range v.Wheels {
		var failed error
		err := v.Slots(wheel, func(index int, s timer.Slot) bool {
			at := s.Tick * v.PrecisionMs
			state := "waits"
			switch {
			case index != timer.SlotIndex(s.Tick):
				state = "misplaced"
			case at < v.Checkpoint.ReadTime:
				state = "passed"
			}
			failed = errors.Join(w.Row(wheel.Name, index, whenMs(at), s.Tick, s.First, s.Last, s.Num, s.Magic, state), ctx.Err())
			return failed == nil && !w.Full()
		})
		if err := errors.Join(err, failed); err != nil {
			return err
		}
	}
	return nil
}

func timerUnitRows(ctx context.Context, d *inspect.Dir, w *render.Writer) error {
	v, err := d.TimerView()
	if err != nil {
		return err
	}
	var failed error
	_, err = v.Units(0, func(pos int64, u timer.Unit) bool {
		kind := "waits"
		switch {
		case u.Cancels():
			kind = "cancels"
		case u.Rolls():
			kind = "rolls"
		}
		failed = errors.Join(w.Row(pos, u.Prev, kind, whenMs(u.WriteTime), whenMs(u.Time()), u.Phys, u.Size, u.TopicHash, u.Magic), ctx.Err())
		return failed == nil && !w.Full()
	})
	return errors.Join(err, failed)
}
