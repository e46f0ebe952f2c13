package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/client"
	"mqx/filter"
	"mqx/internal/render"
	"mqx/internal/words"
	"mqx/message"
)

// messageFindOptions are the flags of mqx admin message find.
type messageFindOptions struct {
	target targetFlags
	output outputFlags
	show   messageFlags
	sel    messageSelection

	key string
	id  string
	max int
}

// messageSelection chooses messages of a topic, the same wherever messages are chosen.
type messageSelection struct {
	brokers []string
	queue   int32
	start   string
	end     string
	tag     string
	where   string
	text    string

	hasQueue bool
	filter   *filter.Expression // of where; nil without one
	tags     []string
}

func (s *messageSelection) add(c *cobra.Command) {
	s.addPlaces(c)
	s.addFilters(c)
}

// addPlaces adds the flags that choose by where a message is.
func (s *messageSelection) addPlaces(c *cobra.Command) {
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.StringArrayVarP(&s.brokers, "broker", "b", nil, "read from this broker only, by name or address; may be repeated")
		f.Int32VarP(&s.queue, "queue", "q", 0, "read this queue only")
	})
	grouped(c, groupRange, func(f *pflag.FlagSet) {
		f.StringVar(&s.start, "start", "start", "first message: start, end, an offset, or @TIME")
		f.StringVar(&s.end, "end", "", "message to stop before: end, an offset, or @TIME (default: where each queue ends now)")
	})
}

// addMatch adds the flags that choose by tag and properties, which brokers can do too.
func (s *messageSelection) addMatch(c *cobra.Command) {
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.StringVar(&s.tag, "tag", "", "only messages with this tag; a || b for one of several")
		f.StringVar(&s.where, "where", "", "only messages that fulfil this SQL92 expression over their properties")
	})
}

// addFilters adds the flags that choose by what a message is.
func (s *messageSelection) addFilters(c *cobra.Command) {
	s.addMatch(c)
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.StringVar(&s.text, "text", "", "only messages whose body holds this text")
	})
}

func (s *messageSelection) check(c *cobra.Command) (err error) {
	if s.filter, err = compileWhere(s.where); err != nil {
		return err
	}
	s.hasQueue = c.Flags().Changed("queue")
	if s.hasQueue && s.queue < 0 {
		return usagef("cannot use --queue %d: it must not be negative", s.queue).try("no --queue: all queues")
	}
	if !filter.IsAllTags(s.tag) {
		s.tags = filter.SplitTags(s.tag)
	}
	return nil
}

// wants decides here and not at the broker, so that what is not wanted can be counted, and brokers that filter by
// hash only do not matter.
func (s *messageSelection) wants(m *message.Message) bool {
	return (len(s.tags) == 0 || slices.Contains(s.tags, m.Tags())) && (s.filter == nil || s.filter.MatchMap(m.Properties)) &&
		(s.text == "" || bytes.Contains(m.Body, []byte(s.text)))
}

// reads is what is read for it.
func (s *messageSelection) reads(a *app, topic string) (rc client.ReaderConfig, err error) {
	now := time.Now()
	rc = client.ReaderConfig{Topic: topic, Brokers: s.brokers, Queue: s.queue, HasQueue: s.hasQueue, Ordered: true}
	if rc.Start, err = parsePosition(s.start, now); err != nil {
		return rc, err
	}
	end := "where it ends now"
	if s.end != "" {
		p, err := parsePosition(s.end, now)
		if err != nil {
			return rc, err
		}
		rc.End, end = &p, showPosition(p)
	}
	a.note("topic %s from %s to %s", topic, showPosition(rc.Start), end)
	return rc, nil
}

func newMessageFindCmd(a *app) *cobra.Command {
	o := &messageFindOptions{}
	c := &cobra.Command{
		Use:   "find TOPIC",
		Short: "Find messages by key, id, time, tag, properties or text",
		Long: `With --key or --id the indexes of the brokers are asked; --start and --end are then times
(@TIME). Without them the queues are read from --start to --end beside any group, which
takes as long as there are messages. --tag, --where and --text narrow both.

There is no window that is not said: all of what the brokers keep is looked through, unless
--start or --end say otherwise. Nothing found ends in exit code 7, and says who was asked.`,
		Example: `  mqx admin message find ORDERS --key order-4711
  mqx admin message find ORDERS --id C0000202270B4E0E2F2A9530AA7E0022 -o json
  mqx admin message find ORDERS --start @-1h --where "region = 'eu'" --text refund --limit 20
  mqx admin message find ORDERS -b broker-a -q 3 --start 4711 --end 4712 -o json`,
		Args:              exactArgs("TOPIC"),
		ValidArgsFunction: completeTopics(a, &o.target),
		RunE:              func(c *cobra.Command, args []string) error { return runMessageFind(a, c, o, args[0]) },
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) { o.target.add(f) })
	o.sel.add(c)
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.StringVar(&o.key, "key", "", "messages with this key")
		f.StringVar(&o.id, "id", "", "messages with this unique id")
		f.IntVar(&o.max, "max", admin.DefaultQueryMax, "with --key: ask each broker for this many")
	})
	o.show.add(c)
	o.output.addRows(c)
	o.output.add(c)
	completeFlag(c, "broker", completeBrokers(a, &o.target))
	return c
}

func runMessageFind(a *app, c *cobra.Command, o *messageFindOptions, topic string) error {
	if err := o.check(c); err != nil {
		return err
	}
	client, err := a.adminClient(c.Context(), &o.target)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	fetch := func(ctx context.Context, w *render.Writer) (problems, error) {
		h := &handOff{w: w, show: o.show}
		if o.key != "" || o.id != "" {
			return o.byIndex(ctx, a, client, topic, h)
		}
		return o.scan(ctx, a, c, client, topic, h)
	}
	return a.list(c, &o.output, messageSchema, fetch)
}

func (o *messageFindOptions) check(c *cobra.Command) error {
	if err := o.show.check(); err != nil {
		return err
	}
	if o.key != "" && o.id != "" {
		return usagef("cannot look for --key and --id at once").try("one of them")
	}
	if o.max < 1 || o.max > 10_000 {
		return usagef("cannot use --max %d: 1 to 10000 are possible", o.max)
	}
	return o.sel.check(c)
}

// times are --start and --end for an index, which knows times only.
func (o *messageFindOptions) times() (begin, end time.Time, err error) {
	now := time.Now()
	for _, p := range []struct {
		flag, text string
		to         *time.Time
	}{{"--start", o.sel.start, &begin}, {"--end", o.sel.end, &end}} {
		if p.text == "" || p.text == "start" && p.flag == "--start" || p.text == "end" && p.flag == "--end" {
			continue
		}
		pos, err := parsePosition(p.text, now)
		if err != nil {
			return begin, end, err
		}
		if pos.Kind != client.AtTime {
			return begin, end, usagef("cannot use %s %s with --key or --id: an index knows times only", p.flag, p.text).try("%s @-1h", p.flag)
		}
		*p.to = pos.Time
	}
	return begin, end, nil
}

func (o *messageFindOptions) byIndex(ctx context.Context, a *app, c *admin.Client, topic string, h *handOff) (problems, error) {
	begin, end, err := o.times()
	if err != nil {
		return nil, err
	}
	q := admin.KeyQuery{Topic: topic, Brokers: o.sel.brokers, Key: o.key, Begin: begin, End: end, Max: o.max}
	if o.id != "" {
		ref, err := admin.ParseMessageRef(o.id, topic)
		if err != nil || ref.ID == "" {
			return nil, noMessage(errors.Join(err, idForm(o.id)))
		}
		q.Key, q.Unique = ref.ID, true
	}
	f, err := c.FindByKey(ctx, q)
	if err != nil {
		return nil, err
	}
	a.tellAsked(f.Asked)
	if err := allFailed(len(f.Asked)-len(f.Errors), f.Errors); err != nil {
		return nil, err
	}
	if f.More {
		a.warn("some broker gave %s, and may have more: --max", words.Count(o.max, "message"))
	}
	kept := slices.DeleteFunc(f.Messages, func(m *client.Received) bool {
		return !o.sel.wants(&m.Message) || o.sel.hasQueue && m.Queue.QueueID != o.sel.queue
	})
	if len(kept)+len(f.Errors) == 0 {
		return nil, noMessage(&admin.MessageNotFoundError{What: fmt.Sprintf("message with %s in topic %s", q.Key, topic), Asked: f.Asked})
	}
	return targetProblems(f.Errors), printMessages(h, kept)
}

func idForm(text string) error {
	return &message.IDError{Text: text, Why: "--id takes a unique id"}
}

// scan reads the queues.
func (o *messageFindOptions) scan(ctx context.Context, a *app, c *cobra.Command, ac *admin.Client, topic string, h *handOff) (missing problems, err error) {
	rc, err := o.sel.reads(a, topic)
	if err != nil {
		return nil, err
	}
	if rc.Config, err = a.clientConfig(c.Context(), &o.target); err != nil {
		return nil, err
	}
	rc.Missing = a.collectMissing(&missing)
	r, err := client.NewReader(rc)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	asked, err := ac.TopicBrokers(ctx, topic)
	if err != nil {
		return nil, err
	}
	if len(rc.Brokers) > 0 {
		asked = slices.DeleteFunc(asked, func(b admin.Broker) bool {
			return !slices.Contains(rc.Brokers, b.Name) && !slices.Contains(rc.Brokers, b.Addr)
		})
	}
	a.tellAsked(asked)
	scan, cancel := a.deadline(c, false) // a whole topic takes its time
	defer cancel()
	read := 0
	err = r.Read(scan, func(m *client.Received) error {
		read++
		if !o.sel.wants(&m.Message) {
			return nil
		}
		return h.take(m)
	})
	a.note("%s read, %d found", words.Count(int64(read), "message"), h.n)
	if err == nil && h.n == 0 && len(missing) == 0 {
		return nil, noMessage(&admin.MessageNotFoundError{What: fmt.Sprintf("such a message in topic %s (%d read)", topic, read), Asked: asked})
	}
	return missing, err
}
