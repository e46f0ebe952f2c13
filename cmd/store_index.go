package cmd

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/internal/render"
	"mqx/store/inspect"
)

var storeIndexSchema = render.Schema{Kind: "StoreIndexList", Name: "file", Fields: []render.Field{
	{Name: "file", Doc: "name, which is the time of its creation"},
	{Name: "state", Doc: "ok, or what is damaged"},
	{Name: "entries", Kind: render.Int, Doc: "entries in use"},
	{Name: "room", Kind: render.Int, Doc: "entries it has room for (maxIndexNum, less the one that is never used)"},
	{Name: "fillPct", Title: "FULL %", Kind: render.Float, Doc: "entries of the room, in percent"},
	{Name: "slots", Kind: render.Int, Wide: true, Doc: "slots (maxHashSlotNum)"},
	{Name: "usedSlots", Kind: render.Int, Doc: "slots in use, by its head"},
	{Name: "beginTime", Kind: render.Time, Doc: "store time of its first message"},
	{Name: "endTime", Kind: render.Time, Doc: "store time of its last message"},
	{Name: "beginPhysical", Title: "FIRST", Kind: render.Int, Doc: "position of its first message"},
	{Name: "endPhysical", Title: "LAST", Kind: render.Int, Doc: "position of its last message"},
	{Name: "longestChain", Kind: render.Int, Wide: true, Doc: "entries in its longest chain"},
	{Name: "slotSharing", Kind: render.Int, Wide: true, Doc: "entries that follow one of another hash in their slot"},
	{Name: "brokenLinks", Kind: render.Int, Doc: "entries and slots that are not chained as they should be"},
	{Name: "collisions", Kind: render.Int, Doc: "entries with the hash of another key; with --check"},
	{Name: "mismatches", Kind: render.Int, Doc: "entries whose record is not there or has no such key; with --check"},
	{Name: "expired", Kind: render.Int, Wide: true, Doc: "entries of records before the start of the log; with --check"},
	{Name: "size", Kind: render.Size, Wide: true, Doc: "length of the file"},
}}

var storeEntrySchema = render.Schema{Kind: "StoreIndexEntryList", Name: "entry", Fields: []render.Field{
	{Name: "entry", Kind: render.Int, Doc: "number of the entry"},
	{Name: "hash", Kind: render.Int, Doc: "hash of the key"},
	{Name: "slot", Kind: render.Int, Doc: "slot"},
	{Name: "physicalOffset", Title: "POSITION", Kind: render.Int, Doc: "position of the message"},
	{Name: "time", Kind: render.Time, Doc: "its store time, to the second"},
	{Name: "previous", Kind: render.Int, Doc: "entry before in the slot, 0 for none"},
	{Name: "key", Doc: "the key of that record that has the hash; unknown when there is none"},
}}

type storeIndexOptions struct {
	store  storeFlags
	output outputFlags
	check  bool
}

func newStoreIndexCmd(a *app) *cobra.Command {
	o := &storeIndexOptions{}
	c := &cobra.Command{
		Use:   "index DIR [FILE]",
		Short: "Show the files of the key index, or the entries of one",
		Example: `  mqx store index /data/store
  mqx store index /data/store --check --match 'mismatches>0 || brokenLinks>0'
  mqx store index /data/store 20261129225021865 --match 'key~order-47' -o csv`,
		Args: rangeArgs(1, "DIR"),
		RunE: func(c *cobra.Command, args []string) error { return runStoreIndex(a, c, o, args) },
	}
	o.store.add(c)
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.BoolVar(&o.check, "check", false, "compare every entry with its record, which reads the log for each")
	})
	o.output.addRows(c)
	o.output.add(c)
	return c
}

func runStoreIndex(a *app, c *cobra.Command, o *storeIndexOptions, args []string) error {
	if len(args) == 2 {
		return a.storeRows(c, &o.store, args[0], &o.output, storeOutput{schema: storeEntrySchema, stream: true}, func(ctx context.Context, d *inspect.Dir, w *render.Writer) error {
			return indexEntries(ctx, d, w, args[1])
		})
	}
	return a.storeRows(c, &o.store, args[0], &o.output, storeOutput{schema: storeIndexSchema}, func(ctx context.Context, d *inspect.Dir, w *render.Writer) error {
		files, err := d.Index()
		if err != nil {
			return err
		}
		for _, x := range files {
			if x.Err != nil {
				if err := w.Row(unreadableIndexRow(x)...); err != nil {
					return err
				}
				continue
			}
			row, err := indexRow(ctx, x, o.check)
			if err != nil {
				return err
			}
			if err := w.Row(row...); err != nil {
				return err
			}
		}
		return nil
	})
}

// unreadableIndexRow is the row of a file that could not be read.
func unreadableIndexRow(x *inspect.IndexFile) []any {
	row := make([]any, len(storeIndexSchema.Fields))
	row[0], row[1], row[len(row)-1] = x.Name, x.Err.Error(), x.Size
	return row
}

func indexRow(ctx context.Context, x *inspect.IndexFile, check bool) ([]any, error) {
	s, err := x.Stats(ctx, check)
	if err != nil {
		return nil, err
	}
	state := "ok"
	if s.BrokenLinks > 0 || s.Mismatches > 0 {
		state = "damaged"
	}
	h := x.Head
	room := int64(x.Entries) - 1
	collisions, mismatches, expired := any(nil), any(nil), any(nil)
	if s.HasMatch {
		collisions, mismatches, expired = s.Collisions, s.Mismatches, s.Expired
	}
	return []any{
		x.Name, state, s.Entries, room, 100 * float64(s.Entries) / float64(max(room, 1)), x.Slots, h.UsedSlots,
		whenMs(h.BeginTime), whenMs(h.EndTime), h.BeginPhys, h.EndPhys,
		s.LongestChain, s.SlotSharing, s.BrokenLinks, collisions, mismatches, expired, x.Size,
	}, nil
}

func indexEntries(ctx context.Context, d *inspect.Dir, w *render.Writer, name string) error {
	files, err := d.Index()
	if err != nil {
		return err
	}
	var names []string
	for _, x := range files {
		names = append(names, x.Name)
		if x.Name != name {
			continue
		}
		if x.Err != nil {
			return failf(ExitCheckFailed, "cannot read index file %q: %w", name, x.Err).because("it is damaged").try("mqx store rebuild index %s", d.Root())
		}
		return x.EachEntry(ctx, func(e inspect.IndexEntry) error {
			key, err := x.KeyOf(e)
			if err != nil {
				return err
			}
			at := whenMs(x.Head.BeginTime + int64(e.Diff)*1000)
			if err := w.Row(e.N, e.Hash, e.Hash%x.Slots, e.Phys, at, e.Prev, orUnknown(key)); err != nil {
				return err
			}
			if w.Full() {
				return inspect.ErrStop
			}
			return nil
		})
	}
	f := notFoundIn(d.Root(), "index file", name, names)
	if len(names) > 0 {
		f.Try = "mqx store index " + d.Root()
	}
	return f
}
