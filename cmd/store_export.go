package cmd

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/internal/render"
	"mqx/internal/vfs"
	"mqx/internal/words"
	"mqx/store/inspect"
)

var storeExportSchema = render.Schema{Kind: "StoreExport", Name: "store", Fields: []render.Field{
	{Name: "store", Whole: true, Doc: "directory that was read"},
	{Name: "file", Whole: true, Doc: "file that was written; unknown when it was stdout"},
	{Name: "whole", Kind: render.Bool, Doc: "an import makes the same log again, with all positions; else it gives new ones"},
	{Name: "messages", Kind: render.Int, Doc: "lines written: an inner batch is one record and several messages"},
	{Name: "recordsRead", Title: "READ", Kind: render.Int, Doc: "readable records in the range that was looked at: those matched and those not"},
	{Name: "recordsMatched", Title: "MATCHED", Kind: render.Int, Doc: "records that were wanted: those written and those skipped"},
	{Name: "recordsNotMatched", Title: "OTHERS", Kind: render.Int, Wide: true, Doc: "records that were not wanted"},
	{Name: "recordsWritten", Title: "WRITTEN", Kind: render.Int, Doc: "records written"},
	{Name: "recordsSkipped", Title: "SKIPPED", Kind: render.Int, Doc: "records that were wanted and not written"},
	{Name: "skipped", Title: "REASONS", Kind: render.Object, Doc: "records skipped by reason: undecodable, placeholder"},
	{Name: "unreadable", Kind: render.Int, Doc: "ranges of the log that hold no readable record; what they held is not known"},
	{Name: "unreadableBytes", Title: "UNREADABLE BYTES", Kind: render.Size, Wide: true, Doc: "length of these ranges"},
	{Name: "bytes", Kind: render.Size, Doc: "size of the lines"},
	{Name: "logFrom", Kind: render.Int, Wide: true, Doc: "position of the log where the reading began"},
	{Name: "logTo", Kind: render.Int, Wide: true, Doc: "position of the log where it ended"},
}}

// exportOptions are the flags of mqx store export.
type exportOptions struct {
	store  storeFlags
	sel    selectFlags
	topics []string
	form   outputFlags // how the counts are printed; file is that of the messages
	redact bool
}

func newStoreExportCmd(a *app) *cobra.Command {
	o := &exportOptions{}
	c := &cobra.Command{
		Use:   "export DIR",
		Short: "Write the messages of a store as NDJSON, for mqx store import and mqx produce",
		Long: `One line of JSON a message, in the order of the log; docs/format/export.md lists the
members. Without a filter or range the export is whole: every record, also of system
topics, with what it takes to make the same log again, to the byte. An export of a part
is renumbered when it is imported: its messages get new offsets.

The counts come at the end, on stderr, or with -O on stdout in the form that -o names.
Records that cannot be read end in exit code 3, or 0 with --partial ok. Configuration
and consumer offsets are no part of an export.`,
		Example: `  mqx store export /data/store -O all.ndjson
  mqx store export /data/store -t ORDERS -t PAYMENTS --start @-1h -O part.ndjson -o json
  mqx store export /data/store | zstd > all.ndjson.zst
  mqx store export /data/store -t ORDERS | mqx produce ORDERS --input ndjson -n 10.0.0.1:9876`,
		Args: exactArgs("DIR"),
		RunE: func(c *cobra.Command, args []string) error { return runStoreExport(a, c, o, args[0]) },
	}
	o.store.add(c)
	o.sel.add(c, "topic")
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.StringArrayVarP(&o.topics, "topic", "t", nil, "only messages of this topic; may be repeated")
	})
	grouped(c, groupOutput, func(f *pflag.FlagSet) {
		f.StringVarP(&o.form.form, "output", "o", "table", "form of the counts: table, wide, json, ndjson, yaml, csv, name, template=TEXT; help lists the fields")
		f.StringVarP(&o.form.file, "output-file", "O", "", "write the messages to this file, which is there when it is whole")
		f.BoolVar(&o.form.strings, "strings", false, "add every integer of the counts once more as text")
		f.BoolVar(&o.redact, "redact", false, "hide bodies and the values of properties: the lines cannot be imported")
	})
	return c
}

// whole: everything is asked for.
func (o *exportOptions) whole(c *cobra.Command) bool {
	for _, name := range []string{"topic", "queue", "tag", "key", "id", "body-text", "where", "start", "end", "redact"} {
		if c.Flags().Changed(name) {
			return false
		}
	}
	return true
}

func runStoreExport(a *app, c *cobra.Command, o *exportOptions, dir string) error {
	toFile := o.form.file != "" && o.form.file != "-"
	counts := o.form
	counts.file = ""
	w, _, err := a.storeWriter(&counts, storeOutput{schema: storeExportSchema, records: true})
	if err != nil {
		return err
	}
	if w.Help() {
		return w.Close()
	}
	if !toFile && c.Flags().Changed("output") {
		return usagef("cannot print the counts with -o %s: stdout has the messages", o.form.form).try("-O FILE for the messages")
	}
	ctx, cancel := a.deadline(c, false)
	defer cancel()
	d, err := a.openStore(&o.store, dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if len(o.topics) == 1 {
		o.sel.topic = o.topics[0]
	}
	if err := o.known(dir, d); err != nil {
		return err
	}
	r, err := o.sel.resolve(ctx, a, c, d)
	if err != nil {
		return storeFailure(dir, err)
	}
	r.match.Topics = o.topics
	bar := newProgressLine(a, "export")
	read, total := atomic.Int64{}, exportBytes(d, r.scan)
	r.scan.OnBreak = a.sayBreak(d)
	r.scan.OnRead = func(n int64) { bar.set(min(read.Add(n), total), total) }
	out, finish, err := a.exportTarget(o.form.file)
	if err != nil {
		return err
	}
	n, err := d.Export(ctx, out, inspect.ExportOptions{Match: r.match, Scan: r.scan, Whole: o.whole(c), Redact: o.redact})
	bar.end()
	if err = finish(err); err != nil {
		return storeFailure(dir, a.withTimeout(ctx, err))
	}
	return o.counts(a, w, dir, toFile, n, o.whole(c))
}

// known refuses topics of which nothing is known.
func (o *exportOptions) known(dir string, d *inspect.Dir) error {
	names, err := d.TopicNames()
	if err != nil || len(names) == 0 {
		return nil //nolint:nilerr // the log alone says it
	}
	for _, t := range o.topics {
		if !slices.Contains(names, t) {
			return notFoundIn(dir, "topic", t, names)
		}
	}
	return nil
}

// exportBytes is how much of the log is read, about.
func exportBytes(d *inspect.Dir, s inspect.ScanOptions) int64 {
	from, to := max(s.From, d.Log().Min()), d.Log().Limit()
	if s.To > 0 {
		to = min(to, s.To)
	}
	return max(to-from, 1)
}

// exportTarget is where messages go. What finish is told of decides whether a file stays: it takes its name when it is
// whole, and is removed when not.
func (a *app) exportTarget(path string) (out io.Writer, finish func(error) error, err error) {
	if path == "" || path == "-" {
		return a.Out, func(err error) error { return err }, nil
	}
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, nil, outputFailure(path, err)
		}
		return f, func(err error) error { return errors.Join(err, f.Close()) }, nil
	}
	part := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d.part", filepath.Base(path), os.Getpid()))
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return nil, nil, outputFailure(path, err)
	}
	return f, func(err error) error {
		if err == nil {
			err = f.Sync()
		}
		err = errors.Join(err, f.Close())
		if err == nil {
			err = os.Rename(f.Name(), path)
		}
		if err != nil {
			return errors.Join(err, os.Remove(f.Name()))
		}
		return vfs.OS.SyncDir(filepath.Dir(path))
	}, nil
}

// exitOfFile is the exit code of a file of the user's that cannot be opened.
func exitOfFile(err error) Exit {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return ExitNotFound
	case errors.Is(err, os.ErrPermission):
		return ExitDenied
	}
	return ExitFailed
}

func (o *exportOptions) counts(a *app, w *render.Writer, dir string, toFile bool, n inspect.ExportCounts, asked bool) error {
	skipped := n.Matched - n.Written
	var reasons []string
	for _, why := range slices.Sorted(maps.Keys(n.Skipped)) {
		reasons = append(reasons, fmt.Sprintf("%d %s", n.Skipped[why], why))
	}
	switch {
	case asked && !n.Whole:
		a.warn("something of the log is missing between its records: an import takes --renumber")
	case !asked && !o.redact:
		a.note("a part of the log: an import gives the messages new offsets")
	}
	if toFile {
		if err := w.Row(dir, o.form.file, n.Whole, n.Messages, n.Read, n.Matched, n.NotMatched, n.Written, skipped, n.Skipped,
			n.Unreadable, n.UnreadableBytes, n.Bytes, n.From, n.To); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
	} else {
		why := ""
		if len(reasons) > 0 {
			why = " (" + strings.Join(reasons, ", ") + ")"
		}
		fmt.Fprintf(a.Err, "%s read, %d matched, %d written as %s, %d skipped%s, %d unreadable in %s\n", words.Count(n.Read, "record"),
			n.Matched, n.Written, words.Count(n.Messages, "message"), skipped, why, n.UnreadableBytes, words.Count(n.Unreadable, "range"))
	}
	if (skipped > 0 || n.Unreadable > 0) && a.global.partial != "ok" {
		return silentError{ExitPartial}
	}
	return nil
}
