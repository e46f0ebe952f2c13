package cmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/client"
	"mqx/internal/render"
	"mqx/internal/words"
	"mqx/message"
)

var messageExportSchema = render.Schema{Kind: "MessageExport", Name: "topic", Fields: []render.Field{
	{Name: "topic", Doc: "topic that was read"},
	{Name: "file", Whole: true, Doc: "file that was written"},
	{Name: "read", Kind: render.Int, Doc: "messages read: those written and the others"},
	{Name: "written", Kind: render.Int, Doc: "messages that were wanted, each a line"},
	{Name: "others", Kind: render.Int, Doc: "messages that were not wanted"},
	{Name: "unreadable", Kind: render.Int, Doc: "records that could not be read; how many messages they held is not known"},
	{Name: "bytes", Kind: render.Size, Doc: "size of the lines"},
}}

// messageExportOptions are the flags of mqx admin message export.
type messageExportOptions struct {
	target targetFlags
	form   outputFlags // how the counts are printed; file is that of the messages
	sel    messageSelection
	key    string
	limit  int64
	rate   float64
	redact bool
}

func newMessageExportCmd(a *app) *cobra.Command {
	o := &messageExportOptions{}
	c := &cobra.Command{
		Use:   "export TOPIC",
		Short: "Write the messages of a topic as NDJSON, for mqx produce and mqx store import",
		Long: `Reads the queues of all brokers beside any group, in the order of their store times, and
writes a line of JSON a message: the form of mqx store export for a part of a log, without
positions in it. Nothing is committed. It ends where the queues end when it begins.

The counts come at the end, on stderr, or with -O on stdout in the form that -o names.
Brokers that do not answer and records that cannot be read end in exit code 3, or 0 with
--partial ok.`,
		Example: `  mqx admin message export ORDERS -O orders.ndjson
  mqx admin message export ORDERS --start @-1h --where "region = 'eu'" | gzip > eu.ndjson.gz
  mqx admin message export ORDERS -n 10.0.0.1:9876 | mqx produce ORDERS --input ndjson -n 10.0.9.1:9876`,
		Args:              exactArgs("TOPIC"),
		ValidArgsFunction: completeTopics(a, &o.target),
		RunE:              func(c *cobra.Command, args []string) error { return runMessageExport(a, c, o, args[0]) },
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) { o.target.add(f) })
	o.sel.add(c)
	grouped(c, groupRange, func(f *pflag.FlagSet) {
		f.Int64Var(&o.limit, "limit", 0, "write at most this many messages")
		f.Float64Var(&o.rate, "rate", 0, "read at most this many messages a second (default: as fast as it goes)")
	})
	grouped(c, groupFilter, func(f *pflag.FlagSet) { f.StringVar(&o.key, "key", "", "only messages with this key") })
	grouped(c, groupOutput, func(f *pflag.FlagSet) {
		f.StringVarP(&o.form.form, "output", "o", "table", "form of the counts: table, wide, json, ndjson, yaml, csv, name, template=TEXT; help lists the fields")
		f.StringVarP(&o.form.file, "output-file", "O", "", "write the messages to this file, which is there when it is whole")
		f.BoolVar(&o.form.strings, "strings", false, "add every integer of the counts once more as text")
		f.BoolVar(&o.redact, "redact", false, "hide bodies and the values of properties: the lines cannot be read back")
	})
	completeFlag(c, "broker", completeBrokers(a, &o.target))
	return c
}

func runMessageExport(a *app, c *cobra.Command, o *messageExportOptions, topic string) error {
	if err := o.check(c); err != nil {
		return err
	}
	toFile := o.form.file != "" && o.form.file != "-"
	counts := o.form
	counts.file = ""
	w, err := a.renderer(a.Out, &counts, messageExportSchema, false)
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
	var missing problems
	rc, err := o.reader(a, c, topic, &missing)
	if err != nil {
		return err
	}
	r, err := client.NewReader(rc)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	out, finish, err := a.exportTarget(o.form.file)
	if err != nil {
		return err
	}
	x := &messageExport{o: o, pace: admin.NewPace(o.rate), out: bufio.NewWriterSize(out, messageExportChunk)}
	unreadable, err := x.run(ctx, r)
	if err = finish(err); err != nil {
		if interrupted(err) {
			return x.interrupted(o.form.file)
		}
		return a.withTimeout(ctx, err)
	}
	return x.finished(a, w, topic, toFile, unreadable, missing)
}

// interrupted says what a signal has left behind.
func (x *messageExport) interrupted(file string) error {
	f := failf(ExitInterrupted, "interrupted after %s", words.Count(x.written, "message"))
	if file == "" || file == "-" {
		return f.because("they may have been written in part: the last line counts when it is whole").try("the same command, from its beginning")
	}
	return f.because("the file comes into being whole or not at all").try("the same command, from its beginning, or a smaller part with --start and --end")
}

func (o *messageExportOptions) check(c *cobra.Command) error {
	if c.Flags().Changed("limit") && o.limit < 1 {
		return usagef("cannot use --limit %d: it must be at least 1", o.limit).try("no --limit: all messages")
	}
	if err := checkRate(c, o.rate); err != nil {
		return err
	}
	return o.sel.check(c)
}

// reader is what is read.
func (o *messageExportOptions) reader(a *app, c *cobra.Command, topic string, missing *problems) (client.ReaderConfig, error) {
	cfg, err := a.clientConfig(c.Context(), &o.target)
	if err != nil {
		return client.ReaderConfig{}, err
	}
	rc, err := o.sel.reads(a, topic)
	rc.Config, rc.Missing = cfg, a.collectMissing(missing)
	return rc, err
}

// messageExportChunk of lines is written at once.
const messageExportChunk = 256 << 10

// messageExport writes messages and counts them.
type messageExport struct {
	o                    *messageExportOptions
	pace                 *admin.Pace
	out                  *bufio.Writer
	line                 []byte
	read, written, bytes int64
}

// run writes what is wanted, and returns how many records could not be read.
func (x *messageExport) run(ctx context.Context, r *client.Reader) (unreadable int, err error) {
	err = r.Read(ctx, func(m *client.Received) error {
		if !x.pace.Wait(ctx) {
			return ctx.Err()
		}
		return x.take(m)
	})
	if broken, ok := errors.AsType[*client.BrokenError](err); ok {
		unreadable, err = broken.Count, nil
	}
	if err == nil {
		err = x.out.Flush()
	}
	return unreadable, err
}

func (x *messageExport) take(m *client.Received) error {
	x.read++
	if !x.wanted(&m.Message) {
		return nil
	}
	l := m.Line()
	if x.o.redact {
		l.Redact()
	}
	var err error
	if x.line, err = message.AppendLine(x.line[:0], &l); err != nil {
		return err
	}
	n, err := x.out.Write(x.line)
	if err == nil && n < len(x.line) {
		err = io.ErrShortWrite
	}
	x.written++
	x.bytes += int64(n)
	if err == nil && x.written == x.o.limit {
		return client.ErrStop
	}
	return err
}

func (x *messageExport) wanted(m *message.Message) bool {
	return x.o.sel.wants(m) && (x.o.key == "" || slices.Contains(m.Keys(), x.o.key))
}

func (x *messageExport) finished(a *app, w *render.Writer, topic string, toFile bool, unreadable int, missing problems) error {
	for _, p := range missing {
		w.Problem(p)
	}
	if toFile {
		if err := w.Row(topic, x.o.form.file, x.read, x.written, x.read-x.written, int64(unreadable), x.bytes); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(a.Err, "%s read, %d written, %d others, %s unreadable\n", words.Count(x.read, "message"), x.written, x.read-x.written, words.Count(int64(unreadable), "record"))
	}
	if unreadable > 0 && a.global.partial != "ok" {
		return silentError{ExitPartial}
	}
	return a.partialCode(missing)
}
