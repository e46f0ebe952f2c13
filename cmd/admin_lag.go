package cmd

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/render"
	"mqx/message"
	"mqx/remoting"
)

func newLagCmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{Use: "lag", Aliases: []string{"lags"}, Short: "How far consumer groups are behind"}, newLagGetCmd(a))
}

// The fields that all forms of a lag have.
var (
	lagField     = render.Field{Name: "lag", Kind: render.Int, Tone: render.WarnAbove(0), Doc: "messages that are not read; unknown where the offset of a queue is, or its end, and in sums when a broker did not answer"}
	lagAge       = render.Field{Name: "age", Kind: render.Duration, Doc: "how long ago the oldest of them was stored, in ms; unknown when it was not asked for (--age)"}
	lagExpires   = render.Field{Name: "expires", Tone: render.ToneOf(map[string]render.Tone{"yes": render.Bad}, render.Plain), Doc: "yes when retention deletes one of them before it is read at the present rate, no, or unknown"}
	lagInFlight  = render.Field{Name: "inFlight", Kind: render.Int, Wide: true, Doc: "messages that were handed out and are not committed"}
	lagLost      = render.Field{Name: "lost", Kind: render.Int, Tone: render.BadAbove(0), Doc: "messages that went before the group had read them; unknown in sums when a broker did not answer"}
	lagMarksDoc  = "what is odd; see mqx admin lag get --help"
	lagMarks     = render.Field{Name: "marks", Kind: render.List, Doc: lagMarksDoc}
	lagUnknown   = render.Field{Name: "unknown", Kind: render.Int, Tone: render.WarnAbove(0), Doc: "queues whose lag is not known"}
	lagMissing   = render.Field{Name: "missing", Kind: render.List, Wide: true, Doc: "brokers that did not answer: what is summed over brokers is unknown then"}
	lagKnown     = render.Field{Name: "lagKnown", Kind: render.Int, Wide: true, Doc: "messages that are not read in the queues whose lag is known"}
	lagGroupName = render.Field{Name: "group", Doc: "consumer group"}
)

var lagQueueSchema = render.Schema{Kind: "LagQueueList", Name: "topic", Fields: []render.Field{
	lagGroupName,
	{Name: "topic", Doc: "topic"},
	{Name: "broker", Doc: "broker that holds the queue"},
	{Name: "queueId", Title: "QUEUE", Kind: render.Int, Doc: "queue"},
	{Name: "maxOffset", Title: "END", Kind: render.Int, Doc: "offset the next message will get"},
	{Name: "offset", Kind: render.Int, Doc: "committed offset of the group; unknown when it never committed"},
	lagField, lagAge, lagExpires, lagLost, lagMarks, lagInFlight,
	{Name: "owner", Wide: true, Doc: "member that reads the queue; unknown when members were not asked or none says so"},
	{Name: "minOffset", Title: "START", Kind: render.Int, Wide: true, Doc: "offset of the oldest message there is"},
	{Name: "retry", Kind: render.Bool, Wide: true, Doc: "a retry topic of the group"},
	{Name: "cluster", Wide: true, Doc: "cluster of the broker"},
}}

var lagTopicSchema = render.Schema{Kind: "LagTopicList", Name: "topic", Fields: []render.Field{
	lagGroupName,
	{Name: "topic", Doc: "topic"},
	{Name: "queues", Kind: render.Int, Doc: "queues, over all brokers; unknown when one did not answer"},
	lagField, lagAge, lagExpires, lagLost, lagUnknown, lagMarks, lagInFlight, lagKnown,
	{Name: "retry", Kind: render.Bool, Wide: true, Doc: "a retry topic of the group"},
	lagMissing,
}}

var lagGroupSchema = render.Schema{Kind: "LagGroupList", Name: "group", Fields: []render.Field{
	lagGroupName,
	{Name: "members", Kind: render.Int, Tone: presence, Doc: "clients online"},
	{Name: "type", Doc: "how its members get messages: push, pull or pop; unknown when none is online"},
	{Name: "topics", Kind: render.Int, Doc: "topics it reads, without retry topics; unknown when a broker did not answer"},
	{Name: "lag", Kind: render.Int, Tone: render.WarnAbove(0), Doc: "messages that are not read, without retry topics; unknown where the offset of a queue is, or its end, and when a broker did not answer"},
	{Name: "retryLag", Title: "RETRY", Kind: render.Int, Tone: render.WarnAbove(0), Doc: "messages in its retry topics that are not read; unknown as the lag is"},
	lagAge, lagExpires, lagLost, lagUnknown, lagMarks, lagInFlight,
	{Name: "popInFlight", Kind: render.Int, Wide: true, Doc: "messages that members have popped and not acknowledged, as they say; unknown when they were not asked"},
	lagKnown,
	{Name: "model", Wide: true, Doc: "clustering or broadcasting; unknown when none is online"},
	{Name: "brokers", Kind: render.List, Wide: true, Doc: "brokers that told"},
	lagMissing,
}}

var lagClientSchema = render.Schema{Kind: "LagClientList", Name: "clientId", Fields: []render.Field{
	lagGroupName,
	{Name: "clientId", Title: "CLIENT", Doc: "client id"},
	{Name: "addr", Title: "ADDRESS", Whole: true, Doc: "where it connects from"},
	{Name: "queues", Kind: render.Int, Doc: "queues it reads, without retry topics; unknown when it does not say"},
	{Name: "lag", Kind: render.Int, Tone: render.WarnAbove(0), Doc: "messages in these queues that are not read"},
	{Name: "waitAck", Kind: render.Int, Doc: "messages it has popped and not acknowledged; unknown when it does not say"},
	{Name: "subscriptions", Kind: render.List, Doc: "what it subscribes to, as TOPIC:FILTER"},
	{Name: "marks", Kind: render.List, Doc: lagMarksDoc},
	{Name: "connections", Kind: render.List, Wide: true, Doc: "addresses, where one broker has several connections of this id"},
	{Name: "language", Wide: true, Doc: "language of the client"},
	{Name: "version", Wide: true, Doc: "version of the client"},
}}

var lagSchemas = map[string]render.Schema{"queue": lagQueueSchema, "topic": lagTopicSchema, "group": lagGroupSchema, "client": lagClientSchema}

var lagForms = []string{"queue", "topic", "group", "client"}

// lagGetOptions are the flags of mqx admin lag get.
type lagGetOptions struct {
	target    targetFlags
	output    outputFlags
	cluster   string
	broker    string
	groups    []string
	topics    []string
	queue     int32
	hasQueue  bool
	by        string
	age       bool
	members   bool
	all       bool
	warn      int64
	crit      int64
	warnAge   time.Duration
	critAge   time.Duration
	threshold bool // one of the four was given
}

func newLagGetCmd(a *app) *cobra.Command {
	o := &lagGetOptions{}
	c := &cobra.Command{
		Use:   "get",
		Short: "Show how far groups are behind: in messages, in time, and whether retention is faster",
		Long: `Without -g a line a group, all of them; with -g a line a queue; --by chooses another.
Offsets are read before the ends of queues, so that no lag is negative because of the time
between the two; what is not known is unknown and never 0.

The age of the oldest message, and whether retention deletes one before it is read, need two
more requests for each group and topic with a lag on each broker: they are made with -g, with
--age, and when --sort, --match or a limit name them. The members are asked what they read, one
request each, with -g, --members and --by client.

Marks of queues: never-committed, at-0, empty, beyond-end (the offset is behind the end of the
queue), below-start (messages went unread, see lost), no-such-queue, no-owner. Of groups also:
offline (no member), broadcast (members keep their offsets themselves), subscriptions (members
subscribe to different things), duplicate-id, no-queue (a member reads none), no-answer.

Where a broker does not answer, what is summed over brokers is unknown, missing names the broker,
and lagKnown is what the others tell.

With -o nagios it is the check of a monitoring system, for each group in whole: UNKNOWN, too, when
a broker does not answer, unless what the others tell is CRITICAL already.`,
		Example: `  mqx admin lag get
  mqx admin lag get -g billing --sort age --limit 5
  mqx admin lag get -g billing -t ORDERS --by topic -o json | jq '.items[0].lag'
  mqx admin lag get --match 'marks~offline' -o name
  mqx admin lag get -g billing --by client
  mqx admin lag get -g billing -o nagios --warn 1000 --crit 10000 --crit-age 1h`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return runLagGet(a, c, o) },
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		f.StringVarP(&o.cluster, "cluster", "c", "", "only this cluster")
		f.StringVarP(&o.broker, "broker", "b", "", "only this broker, by name or address")
		f.StringArrayVarP(&o.groups, "group", "g", nil, "only this group; may be repeated")
		f.StringArrayVarP(&o.topics, "topic", "t", nil, "only this topic, and of groups those that read it; may be repeated")
		f.Int32VarP(&o.queue, "queue", "q", 0, "only the queues with this id")
	})
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.StringVar(&o.by, "by", "", "a line a queue, topic, group or client (default queue with -g, else group)")
		f.BoolVar(&o.age, "age", false, "the age of the oldest message, and whether retention is faster than the group")
		f.BoolVar(&o.members, "members", false, "ask the members of groups what they read")
		f.BoolVar(&o.all, "all", false, "groups of the system as well")
		f.Int64Var(&o.warn, "warn", 0, "with -o nagios: WARNING from this many messages")
		f.Int64Var(&o.crit, "crit", 0, "with -o nagios: CRITICAL from this many messages")
		f.Var(durationFlag{&o.warnAge}, "warn-age", "with -o nagios: WARNING from this age of the oldest message")
		f.Var(durationFlag{&o.critAge}, "crit-age", "with -o nagios: CRITICAL from this age of the oldest message")
	})
	o.output.addRows(c)
	o.output.add(c)
	offersNagios(c)
	o.output.addWatch(c)
	completeFlag(c, "by", cobra.FixedCompletions(lagForms, cobra.ShellCompDirectiveNoFileComp))
	completeFlag(c, "group", completeGroups(a, &o.target))
	completeFlag(c, "topic", completeTopics(a, &o.target))
	completeFlag(c, "broker", completeBrokers(a, &o.target))
	return c
}

// check completes the flags and finds the schema.
func (o *lagGetOptions) check(c *cobra.Command) (render.Schema, error) {
	none := render.Schema{}
	if o.by == "" {
		o.by = "group"
		if len(o.groups) > 0 {
			o.by = "queue"
		}
	}
	schema, ok := lagSchemas[o.by]
	if !ok {
		return none, notOneOf("--by", o.by, lagForms...)
	}
	o.hasQueue = c.Flags().Changed("queue")
	if o.hasQueue && o.queue < 0 {
		return none, usagef("cannot use --queue %d: queues are counted from 0", o.queue)
	}
	for _, name := range []string{"warn", "crit", "warn-age", "crit-age"} {
		o.threshold = o.threshold || c.Flags().Changed(name)
	}
	nagios := o.output.form == formNagios
	switch {
	case o.threshold && !nagios:
		return none, usagef("cannot use --warn, --crit, --warn-age or --crit-age without -o nagios: they would have no effect").try("-o nagios")
	case nagios && !o.threshold:
		return none, usagef("cannot use -o nagios without a limit").because("nothing says from which lag on it is bad").try("--warn 1000 --crit 10000")
	case nagios && (o.output.match != "" || o.output.sort != "" || o.output.limit != 0 || o.output.strings || o.output.watch):
		return none, usagef("cannot use -o nagios with --match, --sort, --limit, --strings or --watch").because("it is one line about all that is chosen").try("-o json")
	case o.warn < 0 || o.crit < 0:
		return none, usagef("cannot use a limit below 0")
	}
	names := func(what string) bool {
		return strings.Contains(o.output.match, what) || strings.TrimPrefix(o.output.sort, "-") == what
	}
	o.age = o.age || len(o.groups) > 0 || names("age") || names("expires") || o.warnAge > 0 || o.critAge > 0
	o.members = o.members || len(o.groups) > 0 || o.by == "client"
	return schema, nil
}

func runLagGet(a *app, c *cobra.Command, o *lagGetOptions) error {
	schema, err := o.check(c)
	if err != nil {
		return err
	}
	client, err := a.adminClient(c.Context(), &o.target)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	if o.output.form == formNagios {
		return runLagNagios(a, c, o, client)
	}
	return a.list(c, &o.output, schema, func(ctx context.Context, w *render.Writer) (problems, error) {
		l, err := o.read(ctx, client)
		if err != nil {
			return nil, err
		}
		if err := allFailed(len(l.Groups), l.Errors); err != nil {
			return nil, err
		}
		a.explainEmpty(ctx, client, len(l.Groups))
		for i := range l.Groups {
			for _, row := range lagRows(o.by, &l.Groups[i], l.Errors) {
				if err := w.Row(row...); err != nil {
					return nil, err
				}
			}
		}
		return targetProblems(l.Errors), nil
	})
}

func (o *lagGetOptions) read(ctx context.Context, client *admin.Client) (*admin.Lag, error) {
	l, err := client.GetLag(ctx, admin.LagOptions{
		Target: admin.Target{Cluster: o.cluster, Broker: o.broker}, Groups: o.groups, Topics: o.topics, Builtin: o.all, Ages: o.age, Members: o.members,
	})
	if err != nil || !o.hasQueue {
		return l, err
	}
	for i := range l.Groups {
		g := &l.Groups[i]
		g.Queues = slices.DeleteFunc(g.Queues, func(q admin.QueueLag) bool { return q.QueueID.QueueID != o.queue })
	}
	return l, nil
}

// known is a value that may not be there, as a field of a record.
func known[T any](o remoting.Opt[T]) any {
	if !o.OK {
		return nil
	}
	return o.Value
}

// lagRows are the rows of a group; silent are the brokers that did not answer.
func lagRows(by string, g *admin.GroupLag, silent []admin.TargetError) [][]any {
	switch by {
	case "queue":
		return lagQueueRows(g)
	case "topic":
		return lagTopicRows(g)
	case "client":
		return lagClientRows(g, silent)
	}
	topics, retries := g.Total()
	all := topics // what concerns retries as well
	names := map[string]bool{}
	for i := range g.Queues {
		if q := &g.Queues[i]; q.Retry {
			all.Add(q)
		} else {
			names[q.Topic] = true
		}
	}
	all.Miss(g.Missing)
	marks := append(slices.Clone(g.Marks), all.Marks...)
	return [][]any{{
		g.Group, len(g.Members), orUnknown(consumeTypeName(g.Type)), ofAll(len(names), &all), known(topics.Lag), known(retries.Lag),
		ofAll(known(all.Age), &all), orUnknown(string(all.Expires)), ofAll(all.Lost, &all), all.Unknown, unique(marks), known(topics.InFlight), known(g.PopInFlight),
		topics.Known, orUnknown(strings.ToLower(g.Model)), unique(g.Brokers), listOf(g.Missing),
	}}
}

// ofAll is a value that all brokers together make: unknown while one is missing.
func ofAll(value any, s *admin.LagSum) any {
	if len(s.Missing) > 0 {
		return nil
	}
	return value
}

func lagQueueRows(g *admin.GroupLag) [][]any {
	var rows [][]any
	for i := range g.Queues {
		q := &g.Queues[i]
		rows = append(rows, []any{
			g.Group, q.Topic, q.Broker, q.QueueID.QueueID, known(q.Max), known(q.Committed), known(q.Lag), known(q.Age), orUnknown(string(q.Expires)), q.Lost,
			listOf(q.Marks), known(q.InFlight), orUnknown(q.Owner), known(q.Min), q.Retry, orUnknown(q.Cluster),
		})
	}
	return rows
}

func lagTopicRows(g *admin.GroupLag) [][]any {
	var rows [][]any
	for i := 0; i < len(g.Queues); { // they are sorted by topic
		var s admin.LagSum
		first := &g.Queues[i]
		for ; i < len(g.Queues) && g.Queues[i].Topic == first.Topic; i++ {
			s.Add(&g.Queues[i])
		}
		s.Miss(g.Missing)
		rows = append(rows, []any{
			g.Group, first.Topic, ofAll(s.Queues, &s), known(s.Lag), ofAll(known(s.Age), &s), orUnknown(string(s.Expires)), ofAll(s.Lost, &s), s.Unknown,
			listOf(s.Marks), known(s.InFlight), s.Known, first.Retry, listOf(s.Missing),
		})
	}
	return rows
}

func lagClientRows(g *admin.GroupLag, silent []admin.TargetError) [][]any {
	lags := map[admin.QueueID]remoting.Opt[int64]{}
	for i := range g.Queues {
		if q := &g.Queues[i]; !q.Retry {
			lags[q.QueueID] = q.Lag
		}
	}
	var rows [][]any
	for i := range g.Members {
		m := &g.Members[i]
		var queues, lag, wait any
		if m.Told {
			sum, n, whole := int64(0), 0, true
			for _, q := range m.Queues {
				if l, ok := lags[q]; ok {
					sum, n, whole = sum+l.Value, n+1, whole && l.OK
				} else if !message.IsRetry(q.Topic) && slices.ContainsFunc(silent, func(e admin.TargetError) bool { return e.Broker == q.Broker }) {
					n, whole = n+1, false // its broker did not say how far it is
				}
			}
			queues, wait = n, m.WaitAck
			if whole {
				lag = sum
			}
		}
		subs := make([]string, 0, len(m.Subscriptions))
		for _, s := range m.Subscriptions {
			if !message.IsRetry(s.Topic) {
				subs = append(subs, s.Topic+":"+s.Expression)
			}
		}
		rows = append(rows, []any{g.Group, m.ClientID, m.Addr, queues, lag, wait, subs, listOf(m.Marks), listOf(m.Addrs), orUnknown(m.Language), orUnknown(m.Version)})
	}
	return rows
}
