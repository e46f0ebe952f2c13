package cmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/render"
	"mqx/store/inspect"
)

var storeOffsetSchema = render.Schema{Kind: "StoreOffsetList", Name: "group", Fields: []render.Field{
	{Name: "group", Doc: "consumer group"},
	{Name: "topic", Doc: "topic"},
	{Name: "queueId", Title: "QUEUE", Kind: render.Int, Doc: "queue"},
	{Name: "offset", Kind: render.Int, Doc: "committed offset: the next message that the group gets"},
	{Name: "minOffset", Title: "MIN", Kind: render.Int, Doc: "offset of the oldest message there is"},
	{Name: "maxOffset", Title: "MAX", Kind: render.Int, Doc: "offset that the next message gets"},
	{Name: "lag", Kind: render.Int, Doc: "messages that the group has not consumed and that are still there"},
	{Name: "state", Doc: "ok; negative; below-min: its messages have expired; beyond: above the maximum; no-queue; no-topic; bad-entry"},
	{Name: "configured", Kind: render.Bool, Wide: true, Doc: "the group is in subscriptionGroup.json"},
}}

var storeConfigSchema = render.Schema{Kind: "StoreConfigList", Name: "file", Fields: []render.Field{
	{Name: "file", Doc: "configuration file"},
	{Name: "state", Doc: "ok; backup: only its backup can be read; bad: neither can; missing"},
	{Name: "entries", Kind: render.Int, Doc: "entries in the copy that a broker takes"},
	{Name: "size", Kind: render.Size, Doc: "length of the file"},
	{Name: "modified", Kind: render.Time, Doc: "its last change"},
	{Name: "backup", Doc: "same, differs, bad or missing"},
	{Name: "changed", Kind: render.List, Doc: "entries that the backup has otherwise, or not, or alone"},
	{Name: "error", Wide: true, Doc: "what is wrong with the file"},
	{Name: "backupError", Wide: true, Doc: "what is wrong with the backup"},
	{Name: "leftover", Kind: render.Bool, Wide: true, Doc: "a writing that did not end has left its .tmp"},
}}

var storeTopicConfigSchema = render.Schema{Kind: "StoreTopicConfigList", Name: "topic", Fields: []render.Field{
	{Name: "topic", Doc: "topic"},
	{Name: "readQueues", Title: "READ", Kind: render.Int, Doc: "queues to read"},
	{Name: "writeQueues", Title: "WRITE", Kind: render.Int, Doc: "queues to write"},
	{Name: "perm", Doc: "r, w, rw or none"},
	{Name: "order", Kind: render.Bool, Doc: "marked as ordered"},
	{Name: "attributes", Kind: render.Object, Doc: "attributes"},
}}

var storeGroupConfigSchema = render.Schema{Kind: "StoreGroupConfigList", Name: "group", Fields: []render.Field{
	{Name: "group", Doc: "consumer group"},
	{Name: "consumeEnable", Title: "CONSUME", Kind: render.Bool, Doc: "may consume"},
	{Name: "broadcast", Kind: render.Bool, Doc: "may consume as broadcast"},
	{Name: "orderly", Kind: render.Bool, Doc: "consumes in order"},
	{Name: "retryQueues", Kind: render.Int, Doc: "queues of its retry topic"},
	{Name: "retryMaxTimes", Title: "RETRIES", Kind: render.Int, Doc: "retries before the dead letter queue"},
}}

var storeDelaySchema = render.Schema{Kind: "StoreDelayList", Name: "level", Fields: []render.Field{
	{Name: "level", Kind: render.Int, Doc: "delay level"},
	{Name: "offset", Kind: render.Int, Doc: "next message to deliver"},
	{Name: "maxOffset", Title: "MAX", Kind: render.Int, Doc: "where the queue of the level ends; unknown without one"},
	{Name: "waiting", Kind: render.Int, Doc: "messages that wait"},
}}

type storeOffsetsOptions struct {
	store  storeFlags
	output outputFlags
	group  string
	topic  string
}

func newStoreOffsetsCmd(a *app) *cobra.Command {
	o := &storeOffsetsOptions{}
	c := &cobra.Command{
		Use:   "offsets DIR",
		Short: "Show the committed offsets of all groups against the queues: the lag of a broker that is gone",
		Example: `  mqx store offsets /data/store --sort -lag --limit 10
  mqx store offsets /data/store -g billing -t ORDERS
  mqx store offsets /data/store --match 'state!=ok'`,
		Long: `What the files say. A running broker writes committed offsets down every
flushConsumerOffsetInterval (5 s): beside one they are as old as the file, which is
told on stderr, and mqx admin offset get has them as they are now.`,
		Args: exactArgs("DIR"),
		RunE: func(c *cobra.Command, args []string) error { return runStoreOffsets(a, c, o, args[0]) },
	}
	o.store.add(c)
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.StringVarP(&o.group, "group", "g", "", "only this group")
		f.StringVarP(&o.topic, "topic", "t", "", "only this topic")
	})
	o.output.addRows(c)
	o.output.add(c)
	o.output.addWatch(c)
	return c
}

func runStoreOffsets(a *app, c *cobra.Command, o *storeOffsetsOptions, dir string) error {
	return a.storeRows(c, &o.store, dir, &o.output, storeOutput{schema: storeOffsetSchema}, func(ctx context.Context, d *inspect.Dir, w *render.Writer) error {
		for _, name := range []string{"consumerOffset.json", "lmqConsumerOffset.json"} {
			if err := readableConfig(d, name); err != nil {
				return err
			}
		}
		lags, err := d.Lags(ctx)
		if err != nil {
			return err
		}
		sayOffsetsAge(a, d)
		groups, n := []string{}, 0
		for _, l := range lags {
			groups = append(groups, l.Group)
			if o.group != "" && l.Group != o.group || o.topic != "" && l.Topic != o.topic {
				continue
			}
			n++
			low, high, lag := any(nil), any(nil), any(nil)
			if l.HasQueue {
				low, high, lag = l.Min, l.Max, l.Lag
			}
			if err := w.Row(l.Group, l.Topic, l.Queue, l.Offset, low, high, lag, string(l.State), l.Configured); err != nil {
				return err
			}
		}
		if n == 0 && o.group != "" {
			f := notFoundIn(dir, "group", o.group, unique(groups))
			f.Try = "mqx store offsets " + dir
			return f
		}
		return nil
	})
}

// sayOffsetsAge says how old offsets are that a running broker has not written down again yet.
func sayOffsetsAge(a *app, d *inspect.Dir) {
	if !d.InUse().Locked {
		return
	}
	st, err := os.Stat(d.Path(filepath.Join("config", "consumerOffset.json")))
	if err != nil {
		a.warn("%s has it open and has not written its offsets down yet: mqx admin offset get has them", d.InUse().Who())
		return
	}
	a.warn("%s has it open: offsets are those of %s, when it wrote them down; mqx admin offset get has them as they are now", d.InUse().Who(), st.ModTime().Format(time.RFC3339))
}

// readableConfig refuses where a broker would take neither of the two copies.
func readableConfig(d *inspect.Dir, name string) error {
	j, err := d.JSON(name)
	if err != nil {
		return err
	}
	if j.Main == nil && j.Backup == nil {
		return nil
	}
	if j.Good() == nil {
		return failf(ExitCheckFailed, "cannot read config/%s nor its backup: %w", name, errors.Join(copyError(j.Main), copyError(j.Backup))).because("a broker could take neither of them").
			try("mqx store config %s -o wide", d.Root())
	}
	return nil
}

func copyError(c *inspect.JSONCopy) error {
	if c == nil {
		return nil
	}
	return c.Err
}

type storeConfigOptions struct {
	store  storeFlags
	output outputFlags
	show   string
}

func newStoreConfigCmd(a *app) *cobra.Command {
	o := &storeConfigOptions{}
	c := &cobra.Command{
		Use:   "config DIR",
		Short: "Show topics, groups and delay progress of a store, and its files against their backups",
		Example: `  mqx store config /data/store
  mqx store config /data/store --show topics --match 'writeQueues>8'
  mqx store config /data/store --match 'state!=ok || backup=differs' -o wide`,
		Args: exactArgs("DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.storeShow(c, &o.store, args[0], &o.output, o.show, storeConfigKinds)
		},
	}
	o.store.add(c)
	addShow(c, &o.show, storeConfigKinds)
	o.output.addRows(c)
	o.output.add(c)
	return c
}

var storeConfigKinds = []storeKind{
	{"files", storeOutput{schema: storeConfigSchema}, rowsOf(configFileRows)},
	{"topics", storeOutput{schema: storeTopicConfigSchema}, rowsOf(configTopicRows)},
	{"groups", storeOutput{schema: storeGroupConfigSchema}, rowsOf(configGroupRows)},
	{"delay", storeOutput{schema: storeDelaySchema}, rowsOf(configDelayRows)},
}

func configFileRows(_ context.Context, d *inspect.Dir) ([][]any, error) {
	names, err := d.JSONNames()
	if err != nil {
		return nil, err
	}
	var rows [][]any
	for _, name := range names {
		j, err := d.JSON(name)
		if err != nil {
			return nil, err
		}
		rows = append(rows, configFileRow(j))
	}
	return rows, nil
}

func configFileRow(j *inspect.JSONFile) []any {
	good := j.Good()
	state := "ok"
	switch {
	case j.Main == nil && j.Backup == nil:
		state = "missing"
	case good == nil:
		state = "bad"
	case good == j.Backup:
		state = "backup"
	}
	entries, size, modified := any(nil), any(nil), whenMs(0)
	if good != nil {
		entries = len(configEntries(good.Tree))
	}
	if j.Main != nil && !errors.Is(j.Main.Err, inspect.ErrNoFile) {
		size, modified = j.Main.Size, j.Main.ModTime
	}
	backup, changed := "same", any(nil)
	switch {
	case j.Backup == nil:
		backup = "missing"
	case j.Backup.Err != nil:
		backup = "bad"
	case j.Main != nil && j.Main.Err == nil:
		names := differing(configEntries(j.Main.Tree), configEntries(j.Backup.Tree))
		if changed = names; len(names) > 0 || string(j.Main.Data) != string(j.Backup.Data) {
			backup = "differs"
		}
	}
	return []any{j.Name, state, entries, size, modified, backup, changed, errorText(copyError(j.Main)), errorText(copyError(j.Backup)), j.Leftover}
}

func errorText(err error) any {
	if err == nil {
		return nil
	}
	return err.Error()
}

// configEntries are the entries of all tables of a configuration file, but its data version.
func configEntries(tree any) map[string]any {
	out := map[string]any{}
	m, _ := tree.(map[string]any)
	for table, v := range m {
		if table == "dataVersion" {
			continue
		}
		if entries, ok := v.(map[string]any); ok {
			for name, e := range entries {
				key := name
				if _, twice := out[key]; twice {
					key = table + "." + name
				}
				out[key] = e
			}
			continue
		}
		out[table] = v
	}
	return out
}

// differing are the names whose values differ between two tables, sorted; never nil.
func differing(a, b map[string]any) []string {
	out := []string{}
	for name, v := range a {
		if w, ok := b[name]; !ok || !reflect.DeepEqual(v, w) {
			out = append(out, name)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func configTopicRows(_ context.Context, d *inspect.Dir) ([][]any, error) {
	if err := readableConfig(d, "topics.json"); err != nil {
		return nil, err
	}
	topics, err := d.Topics()
	if err != nil {
		return nil, err
	}
	var rows [][]any
	for _, name := range slices.Sorted(maps.Keys(topics)) {
		t := topics[name]
		rows = append(rows, []any{name, t.ReadQueues, t.WriteQueues, admin.PermText(int(t.Perm)), t.Order, t.Attributes})
	}
	return rows, nil
}

func configGroupRows(_ context.Context, d *inspect.Dir) ([][]any, error) {
	if err := readableConfig(d, "subscriptionGroup.json"); err != nil {
		return nil, err
	}
	groups, err := d.Groups()
	if err != nil {
		return nil, err
	}
	var rows [][]any
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		g := groups[name]
		rows = append(rows, []any{name, g.ConsumeEnable, g.Broadcast, g.Orderly, g.RetryQueues, g.RetryMax})
	}
	return rows, nil
}

func configDelayRows(ctx context.Context, d *inspect.Dir) ([][]any, error) {
	if err := readableConfig(d, "delayOffset.json"); err != nil {
		return nil, err
	}
	offsets, err := d.DelayOffsets()
	if err != nil {
		return nil, err
	}
	var rows [][]any
	for _, o := range offsets {
		high, waiting := any(nil), any(nil)
		q, err := d.Queue(inspect.QueueKey{Topic: "SCHEDULE_TOPIC_XXXX", ID: o.Level - 1})
		if err == nil {
			e, err := q.Ends(ctx)
			if err != nil {
				return nil, fmt.Errorf("cannot read delay level %d: %w", o.Level, err)
			}
			high, waiting = e.Max, max(e.Max-max(o.Offset, e.Min), 0)
		}
		rows = append(rows, []any{o.Level, o.Offset, high, waiting})
	}
	return rows, nil
}
