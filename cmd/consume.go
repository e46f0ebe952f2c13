package cmd

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/client"
	"mqx/internal/render"
)

// consumeOptions are the flags of mqx consume.
type consumeOptions struct {
	target targetFlags
	output outputFlags
	show   messageFlags

	group   string
	commit  bool
	brokers []string
	queue   int32
	start   string
	end     string
	tag     string
	where   string
	count   int64
	follow  bool
}

func newConsumeCmd(a *app) *cobra.Command {
	o := &consumeOptions{}
	c := &cobra.Command{
		Use:   "consume TOPIC",
		Short: "Print the messages of a topic",
		Long: `Reads the queues beside any group and commits nothing: who consumes the topic
does not notice. It ends where the queues ended when it began; -f keeps going.
With -g GROUP --commit it joins the group as a member, gets its share of the
queues, and commits what it has written to stdout.`,
		Example: `  mqx consume ORDERS --count 10
  mqx consume ORDERS -f --tag 'created || paid'
  mqx consume ORDERS --start @-15m -o ndjson | jq -r .body
  mqx consume ORDERS -b broker-a -q 3 --start 4711 --count 1 -o json
  mqx consume ORDERS -g billing --commit -f -o template='{{.body}}' | ./handle`,
		Args:              exactArgs("TOPIC"),
		ValidArgsFunction: completeTopics(a, &o.target),
		RunE:              func(c *cobra.Command, args []string) error { return runConsume(a, c, o, args[0]) },
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		f.StringArrayVarP(&o.brokers, "broker", "b", nil, "read from this broker only; may be repeated")
		f.Int32VarP(&o.queue, "queue", "q", 0, "read this queue only")
		f.StringVarP(&o.group, "group", "g", "", "read in the name of this group")
		f.BoolVar(&o.commit, "commit", false, "with -g: join the group and commit what has been printed")
	})
	grouped(c, groupRange, func(f *pflag.FlagSet) {
		f.StringVar(&o.start, "start", "start", "first message: start, end, an offset, or @TIME")
		f.StringVar(&o.end, "end", "", "message to stop before: end, an offset, or @TIME (default: where each queue ends now)")
		f.Int64Var(&o.count, "count", 0, "stop after this many messages")
		f.BoolVarP(&o.follow, "follow", "f", false, "keep going as messages come")
	})
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.StringVar(&o.tag, "tag", "", "only messages with this tag; a || b for one of several")
		f.StringVar(&o.where, "where", "", "only messages that fulfil this SQL92 expression (not there yet)")
	})
	hideFlags(c, "where")
	o.show.add(c)
	o.output.addRows(c)
	o.output.add(c)
	completeFlag(c, "broker", completeBrokers(a, &o.target))
	completeFlag(c, "group", completeGroups(a, &o.target))
	return c
}

func (o *consumeOptions) check(c *cobra.Command) error {
	if o.where != "" {
		return failf(ExitFailed, "cannot filter with --where: SQL92 expressions are not there yet").try("--tag, or --match on the rows")
	}
	if err := o.show.check(); err != nil {
		return err
	}
	if o.count < 0 || c.Flags().Changed("queue") && o.queue < 0 {
		return usagef("cannot use --count %d and --queue %d: they must not be negative", o.count, o.queue)
	}
	if !o.commit {
		return nil
	}
	if o.group == "" {
		return usagef("cannot commit without a group: offsets are those of a group").try("-g GROUP --commit")
	}
	for _, name := range []string{"broker", "queue", "start", "end"} {
		if c.Flags().Changed(name) {
			return usagef("cannot use --%s with --commit: a member of a group reads the queues it is given from where the group stands", name).try("leave --%s out, or --commit", name)
		}
	}
	if !o.follow && !o.counted() {
		return usagef("cannot consume without an end: a member of a group has no end to stop at").try("-f, or --count N")
	}
	return nil
}

// counted: the command ends after a number of messages.
func (o *consumeOptions) counted() bool { return o.count > 0 || o.output.limit > 0 }

// checkForm refuses forms that hold rows back until an end that does not come,
// or that comes after the messages have been committed.
func (o *consumeOptions) checkForm() (document bool, err error) {
	form, _, err := render.ParseForm(o.output.form)
	if err != nil {
		return false, usagef("%w", err)
	}
	document = form == render.FormJSON || form == render.FormYAML
	var held string
	switch {
	case document:
		held = "one " + string(form) + " document"
	case o.output.sort != "":
		held = "sorted rows"
	default:
		return false, nil
	}
	if o.commit {
		return false, usagef("cannot print %s with --commit: it is printed at the end, and a message is committed only after it has been printed", held).try("-o ndjson")
	}
	if o.follow && !o.counted() {
		return false, usagef("cannot follow into %s: there is no end", held).try("-o ndjson")
	}
	return document, nil
}

func runConsume(a *app, c *cobra.Command, o *consumeOptions, topic string) error {
	if err := o.check(c); err != nil {
		return err
	}
	document, err := o.checkForm()
	if err != nil {
		return err
	}
	out, closeOut, err := a.open(&o.output)
	if err != nil {
		return err
	}
	w, err := a.renderer(out, &o.output, messageSchema, !document && o.output.sort == "")
	if err != nil {
		return err
	}
	if w.Help() {
		return w.Close()
	}
	cfg, err := a.clientConfig(&o.target)
	if err != nil {
		return err
	}
	ctx, cancel := a.deadline(c, false)
	defer cancel()
	h := &handOff{w: w, show: o.show, count: o.count}
	var missing problems
	if o.commit {
		if a.global.readOnly {
			return failf(ExitDenied, "refused by --read-only: --commit moves the offsets of group %s", o.group)
		}
		err = o.join(ctx, cfg, topic, h)
	} else {
		err = o.read(ctx, a, c, cfg, topic, h, &missing)
	}
	for _, p := range missing {
		w.Problem(p)
	}
	err = errors.Join(o.ending(ctx, a, err, h), w.Close(), closeOut())
	if err != nil {
		return err
	}
	a.note("%s", counted(h.n, "message"))
	return a.partialCode(missing)
}

// ending: following without a count ends in order with --timeout and SIGTERM, everything
// else ends too early then. Ctrl-C is an interruption.
func (o *consumeOptions) ending(ctx context.Context, a *app, err error, h *handOff) error {
	if err == nil || ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		return a.withTimeout(ctx, err)
	}
	late := errors.Is(err, context.DeadlineExceeded)
	switch {
	case o.follow && !o.counted() && (late || terminated()):
		return nil
	case late && o.counted():
		return failf(ExitWaited, "waited %s in vain: %d of %d messages came", a.global.timeout, h.n, max(o.count, int64(o.output.limit)))
	default:
		return a.withTimeout(ctx, err)
	}
}

// read reads the queues beside any group, and goes on without brokers that do not answer.
func (o *consumeOptions) read(ctx context.Context, a *app, c *cobra.Command, cfg client.Config, topic string, h *handOff, missing *problems) error {
	now := time.Now()
	start, err := parsePosition(o.start, now)
	if err != nil {
		return err
	}
	rc := client.ReaderConfig{
		Config: cfg, Topic: topic, Brokers: o.brokers, Queue: o.queue, HasQueue: c.Flags().Changed("queue"),
		Start: start, Tag: o.tag, Group: o.group, Follow: o.follow,
		Missing: func(broker string, err error) {
			p := render.Problem{Target: broker, Message: err.Error()}
			a.missing(p)
			*missing = append(*missing, p)
		},
	}
	end := "where it ends now"
	if o.end != "" {
		p, err := parsePosition(o.end, now)
		if err != nil {
			return err
		}
		rc.End = &p
		end = showPosition(p)
	} else if o.follow {
		end = "no end"
	}
	a.note("topic %s from %s to %s", topic, showPosition(start), end)
	r, err := client.NewReader(rc)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	return r.Read(ctx, func(m *client.Received) error { return h.take(m) })
}

// join reads as a member of the group.
func (o *consumeOptions) join(ctx context.Context, cfg client.Config, topic string, h *handOff) error {
	cc := client.ConsumerConfig{Config: cfg, Group: o.group, From: client.FromFirst, Subscriptions: []client.Subscription{{Topic: topic, Tag: o.tag}}}
	if o.counted() {
		cc.Batch = 1 // what is handed over beyond the number asked for would be committed unprinted
	}
	consumer, err := client.NewConsumer(cc)
	if err != nil {
		return err
	}
	return consumer.Run(ctx, func(_ context.Context, ms []*client.Received) error {
		for _, m := range ms {
			if err := h.take(m); err != nil {
				return err
			}
		}
		return nil
	})
}

// handOff prints messages until enough have come.
type handOff struct {
	w     *render.Writer
	show  messageFlags
	count int64
	n     int64
}

// take prints one message; client.ErrStop says that it was the last.
func (h *handOff) take(m *client.Received) error {
	if err := h.w.Row(h.show.row(m)...); err != nil {
		return err
	}
	h.n++
	if h.count > 0 && h.n >= h.count || h.w.Full() {
		return client.ErrStop
	}
	return nil
}
