package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/client"
	"mqx/filter"
	"mqx/internal/render"
	"mqx/internal/words"
)

// consumeOptions are the flags of mqx consume.
type consumeOptions struct {
	target targetFlags
	output outputFlags
	show   messageFlags

	sel     messageSelection
	group   string
	commit  bool
	count   int64
	follow  bool
	confirm string
}

func newConsumeCmd(a *app) *cobra.Command {
	o := &consumeOptions{}
	c := &cobra.Command{
		Use:   "consume TOPIC",
		Short: "Print the messages of a topic",
		Long: `Reads the queues beside any group and commits nothing: who consumes the topic
does not notice. It ends where the queues ended when it began; -f keeps going.
With -g GROUP alone it still reads beside the group, and begins where the group
stands: what the group has not consumed is shown, and stays to be consumed.
With -g GROUP --commit it joins the group as a member, gets its share of the
queues, and commits what it has written to stdout.

--where takes the SQL92 of RocketMQ over the properties of a message. It is
decided here, so that it works with every broker; with --commit it is the
subscription of the group, and the broker decides.`,
		Example: `  mqx consume ORDERS --count 10
  mqx consume ORDERS -f --tag 'created || paid'
  mqx consume ORDERS --start @-15m -o ndjson | jq -r .body
  mqx consume ORDERS --where "region = 'eu' AND amount BETWEEN 10 AND 20" -o name
  mqx consume ORDERS -g billing --count 5
  mqx consume ORDERS -b broker-a -q 3 --start 4711 --count 1 -o json
  mqx consume ORDERS -g billing --commit -f -o template='{{.body}}' | ./handle`,
		Args:              exactArgs("TOPIC"),
		ValidArgsFunction: completeTopics(a, &o.target),
		RunE:              func(c *cobra.Command, args []string) error { return runConsume(a, c, o, args[0]) },
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
	})
	o.sel.addPlaces(c)
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.StringVarP(&o.group, "group", "g", "", "begin where this group stands; with --commit join it")
		f.BoolVar(&o.commit, "commit", false, "with -g: join the group and commit what has been printed")
	})
	c.Flags().Lookup("start").Usage += "; with -g: where the group stands unless it is given"
	grouped(c, groupRange, func(f *pflag.FlagSet) {
		f.Int64Var(&o.count, "count", 0, "stop after this many messages")
		f.BoolVarP(&o.follow, "follow", "f", false, "keep going as messages come")
	})
	o.sel.addMatch(c)
	o.show.add(c)
	o.output.addRows(c)
	o.output.add(c)
	addConfirm(c, &o.confirm, "the group, with --commit")
	completeFlag(c, "broker", completeBrokers(a, &o.target))
	completeFlag(c, "group", completeGroups(a, &o.target))
	return c
}

func (o *consumeOptions) check(c *cobra.Command) error {
	if err := o.sel.check(c); err != nil {
		return err
	}
	if err := o.show.check(); err != nil {
		return err
	}
	if c.Flags().Changed("count") && o.count < 1 {
		return usagef("cannot use --count %d: it must be at least 1", o.count).try("no --count: all messages until where the queues end now")
	}
	if !o.commit {
		return nil
	}
	if o.group == "" {
		return usagef("cannot commit without a group: offsets are those of a group").try("-g GROUP --commit")
	}
	if o.sel.where != "" && o.sel.tag != "" {
		return usagef("cannot use --where with --tag and --commit: a group has one of them as its subscription").try("--where \"TAGS = 'a' AND ...\"")
	}
	for _, name := range []string{"broker", "queue", "start", "end"} {
		if c.Flags().Changed(name) {
			return usagef("cannot use --%s with --commit: a member of a group reads the queues it is given from where the group stands", name).try("leave --%s out, or --commit", name)
		}
	}
	if !o.follow && !o.bounded() {
		return usagef("cannot consume without an end: a member of a group has no end to stop at").try("-f, or --count N")
	}
	return nil
}

// compileWhere reads --where; nil without one. A mistake in it is told with its place.
func compileWhere(where string) (*filter.Expression, error) {
	if where == "" {
		return nil, nil //nolint:nilnil // no expression, no mistake
	}
	expr, err := filter.Compile(where)
	if bad, ok := errors.AsType[*filter.SyntaxError](err); ok {
		line, column := bad.Position()
		return nil, usagef("cannot use --where %q", where).because(fmt.Sprintf("line %d, column %d: %s", line, column, bad.Reason)).
			try(`--where "colour = 'red' AND amount > 10"`)
	}
	if err != nil {
		return nil, usagef("cannot use --where %q: %w", where, err)
	}
	if rest := expr.Rest(); rest != "" {
		column := utf8.RuneCountInString(where[:max(0, strings.LastIndex(where, rest))]) + 1
		return nil, usagef("cannot use --where %q", where).because(fmt.Sprintf("column %d: %q stands behind the end of the expression", column, rest)).
			try("AND or OR before it, or leave it out")
	}
	return expr, nil
}

// bounded: the command ends after a number of messages.
func (o *consumeOptions) bounded() bool { return o.count > 0 || o.output.limit > 0 }

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
	if o.follow && !o.bounded() {
		return false, usagef("cannot follow into %s: there is no end", held).try("-o ndjson")
	}
	return document, nil
}

func runConsume(a *app, c *cobra.Command, o *consumeOptions, topic string) error {
	if err := o.check(c); err != nil {
		return err
	}
	for _, p := range []string{o.sel.start, o.sel.end} { // before a header is printed
		if _, err := parsePosition(cmp.Or(p, "end"), time.Now()); err != nil {
			return err
		}
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
	if o.commit {
		if err := a.mayWrite(&o.target, o.confirm, o.group); err != nil {
			return err
		}
	}
	cfg, err := a.clientConfig(c.Context(), &o.target)
	if err != nil {
		return err
	}
	ctx, cancel := a.deadline(c, false)
	defer cancel()
	h := &handOff{w: w, show: o.show, count: o.count, filter: o.sel.filter}
	var missing problems
	if o.commit {
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
	a.note("%s", words.Count(h.n, "message"))
	return a.partialCode(missing)
}

// ending: following without a count ends in order with --timeout and SIGTERM, everything
// else ends too early then. Ctrl-C is an interruption.
func (o *consumeOptions) ending(ctx context.Context, a *app, err error, h *handOff) error {
	if err == nil && o.follow && !o.bounded() {
		err = ctx.Err() // it has no other end
	}
	if err == nil || ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		return a.withTimeout(ctx, err)
	}
	late := errors.Is(err, context.DeadlineExceeded)
	switch {
	case o.follow && !o.bounded() && (late || terminated()):
		return nil
	case late && o.bounded():
		return failf(ExitWaited, "waited %s in vain: %d of %d messages came", a.global.timeout, h.n, max(o.count, int64(o.output.limit)))
	default:
		return a.withTimeout(ctx, err)
	}
}

// read reads the queues beside any group, and goes on without brokers that do not answer.
func (o *consumeOptions) read(ctx context.Context, a *app, c *cobra.Command, cfg client.Config, topic string, h *handOff, missing *problems) error {
	now := time.Now()
	start, err := parsePosition(o.sel.start, now)
	if err != nil {
		return err
	}
	rc := client.ReaderConfig{
		Config: cfg, Topic: topic, Brokers: o.sel.brokers, Queue: o.sel.queue, HasQueue: o.sel.hasQueue,
		Start: start, Tag: o.sel.tag, Follow: o.follow, Missing: a.collectMissing(missing),
	}
	from := showPosition(start)
	if o.group != "" && !c.Flags().Changed("start") {
		rc.StartGroup = o.group
		from = "where group " + o.group + " stands"
	}
	end := "where it ends now"
	if o.sel.end != "" {
		p, err := parsePosition(o.sel.end, now)
		if err != nil {
			return err
		}
		rc.End = &p
		end = showPosition(p)
	} else if o.follow {
		end = "no end"
	}
	a.note("topic %s from %s to %s", topic, from, end)
	if o.sel.filter != nil {
		a.note("only messages with %s", o.sel.filter)
	}
	r, err := client.NewReader(rc)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	return r.Read(ctx, func(m *client.Received) error { return h.take(m) })
}

// collectMissing tells of brokers that did not answer, and keeps them for the document and the exit code.
func (a *app) collectMissing(missing *problems) func(broker string, err error) {
	return func(broker string, err error) {
		p := render.Problem{Target: broker, Message: err.Error()}
		a.missing(p)
		*missing = append(*missing, p)
	}
}

// join reads as a member of the group.
func (o *consumeOptions) join(ctx context.Context, cfg client.Config, topic string, h *handOff) error {
	cc := client.ConsumerConfig{Config: cfg, Group: o.group, From: client.FromFirst, Subscriptions: []client.Subscription{{Topic: topic, Tag: o.sel.tag, SQL: o.sel.where}}}
	if o.bounded() {
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
	w      *render.Writer
	show   messageFlags
	filter *filter.Expression
	count  int64
	n      int64
}

// take prints one message; client.ErrStop says that it was the last.
func (h *handOff) take(m *client.Received) error {
	if h.filter != nil && !h.filter.MatchMap(m.Properties) {
		return nil
	}
	if err := h.w.Row(h.show.row(m)...); err != nil {
		return err
	}
	h.n++
	if h.count > 0 && h.n >= h.count || h.w.Full() {
		return client.ErrStop
	}
	return nil
}
