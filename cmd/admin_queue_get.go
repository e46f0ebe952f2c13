package cmd

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/client"
	"mqx/internal/render"
	"mqx/internal/words"
	"mqx/remoting"
)

// newQueueCmd is what concerns single queues.
func newQueueCmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{Use: "queue", Aliases: []string{"queues"}, Short: "Queues of topics"}, []*cobra.Command{
		newQueueGetCmd(a),
		newQueueVerifyCmd(a),
		newMoveCmd(a, migrateVerb),
		newMoveCmd(a, drainVerb),
		newMoveCmd(a, resizeVerb),
	}...)
}

var queueUnitSchema = render.Schema{Kind: "QueueUnitList", Name: "offset", Fields: []render.Field{
	{Name: "topic", Wide: true, Doc: "topic"},
	{Name: "broker", Wide: true, Doc: "broker that holds the queue"},
	{Name: "queueId", Title: "QUEUE", Kind: render.Int, Wide: true, Doc: "queue"},
	{Name: "offset", Kind: render.Int, Doc: "offset in the queue"},
	{Name: "physOffset", Title: "LOG", Kind: render.Int, Doc: "byte of the commit log"},
	{Name: "size", Kind: render.Size, Doc: "bytes of the record"},
	{Name: "tagsCode", Kind: render.Int, Doc: "hash of the tag, or place of the extension unit"},
	{Name: "matches", Kind: render.Bool, Doc: "the group's filter takes it; unknown without --group and where the broker did not look"},
	{Name: "extension", Wide: true, Doc: "extension unit as the broker writes it; unknown where there is none"},
	{Name: "bitMap", Wide: true, Doc: "bit map of SQL92 groups; unknown where there is none"},
	{Name: "note", Doc: "what the broker says of it; unknown where it says nothing"},
	{Name: "minOffset", Kind: render.Int, Wide: true, Doc: "offset of the oldest message of the queue"},
	{Name: "maxOffset", Kind: render.Int, Wide: true, Doc: "offset the next message will get"},
	{Name: "subscription", Wide: true, Doc: "what the group subscribes to; unknown without --group"},
}}

// queueGetOptions are the flags of mqx admin queue get.
type queueGetOptions struct {
	readOptions
	queue int
	start string
	count int
	group string
}

func newQueueGetCmd(a *app) *cobra.Command {
	o := &queueGetOptions{}
	c := &cobra.Command{
		Use:   "get TOPIC",
		Short: "Show units of a consume queue as a broker holds them",
		Example: `  mqx admin queue get ORDERS -q 0
  mqx admin queue get ORDERS -b broker-a -q 3 --start 1200 --count 20
  mqx admin queue get ORDERS -q 0 -g billing --match matches=false`,
		Args:              exactArgs("TOPIC"),
		ValidArgsFunction: completeTopics(a, &o.target),
		RunE: func(c *cobra.Command, args []string) error {
			if o.count < 1 || o.count > maxUnits {
				return usagef("cannot show --count %s: 1 to %d", words.Count(o.count, "unit"), maxUnits).try("--count 10")
			}
			if o.queue < 0 {
				return usagef("cannot use --queue %d: queues count from 0", o.queue).try("-q 0")
			}
			from, err := parsePosition(o.start, time.Now())
			if err != nil {
				return usagef("cannot use --start: %w", err).try("--start start, --start 1200, --start @-15m")
			}
			return a.read(c, &o.readOptions, queueUnitSchema, func(ctx context.Context, client *admin.Client) (answer, error) {
				h := remoting.QueryConsumeQueueHeader{Topic: args[0], QueueID: int32(o.queue), Count: int32(o.count), ConsumerGroup: o.group}
				u, err := client.QueryQueue(ctx, o.broker, h, from)
				if err != nil {
					return answer{}, err
				}
				return answer{rows: unitRows(&h, u)}, nil
			})
		},
	}
	o.addTo(c)
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.StringVarP(&o.broker, "broker", "b", "", "the broker that holds the queue, by name or address (default: the first of the topic)")
		f.IntVarP(&o.queue, "queue", "q", 0, "the queue")
		f.StringVarP(&o.group, "group", "g", "", "say of each unit whether this group's filter takes it")
	})
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.StringVar(&o.start, "start", "start", "the first unit: start, an offset or @TIME; end shows the last ones")
		f.IntVar(&o.count, "count", 10, "number of units")
	})
	completeFlag(c, "broker", completeBrokers(a, &o.target))
	completeFlag(c, "group", completeGroups(a, &o.target))
	return c
}

// maxUnits bounds one answer.
const maxUnits = 10_000

func unitRows(h *remoting.QueryConsumeQueueHeader, u *admin.QueueUnits) (rows [][]any) {
	var subscription any
	if u.SubscriptionData != nil {
		subscription = cmp.Or(u.SubscriptionData.ExpressionType, remoting.ExpressionTag) + " " + u.SubscriptionData.SubString
	}
	for i, d := range u.QueueData {
		var matches any
		if u.SubscriptionData != nil || u.FilterData != "" {
			matches = d.Eval
		}
		rows = append(rows, []any{
			h.Topic, cmp.Or(u.Broker.Name, u.Addr), h.QueueID, u.First + int64(i), d.PhysicOffset, d.PhysicSize, d.TagsCode, matches,
			orUnknown(d.ExtendDataJSON), orUnknown(d.BitMap), orUnknown(d.Msg), u.MinQueueIndex, u.MaxQueueIndex, subscription,
		})
	}
	return rows
}

var queueVerifySchema = render.Schema{Kind: "QueueVerifyList", Name: "broker", Fields: []render.Field{
	{Name: "broker", Doc: "broker name"},
	{Name: "addr", Title: "ADDRESS", Doc: "its address"},
	{Name: "status", Tone: render.ToneOf(map[string]render.Tone{"alike": render.Good, "under way": render.Plain}, render.Warn), Doc: "alike, different, under way or failed"},
	{Name: "result", Doc: "what the broker says of it"},
}}

// queueVerifyOptions are the flags of mqx admin queue verify.
type queueVerifyOptions struct {
	readOptions
	start string
}

func newQueueVerifyCmd(a *app) *cobra.Command {
	o := &queueVerifyOptions{}
	c := &cobra.Command{
		Use:   "verify [TOPIC]",
		Short: "Let brokers compare their consume queues in files with those in RocksDB",
		Long: `The comparison runs in the broker, which writes what it finds to its log; a broker that
keeps no queues in RocksDB refuses. The queues of a store directory are compared with its
log by mqx store verify.`,
		Example: `  mqx admin queue verify ORDERS
  mqx admin queue verify -b broker-a --start @-7d
  mqx store verify DIR`,
		Args:              optionalArg(),
		ValidArgsFunction: completeTopics(a, &o.target),
		RunE: func(c *cobra.Command, args []string) error {
			from, err := parsePosition(o.start, time.Now())
			if err != nil || from.Kind != client.AtTime {
				return usagef("cannot use --start %q: it is a time", o.start).try("--start @-30d")
			}
			topic := ""
			if len(args) > 0 {
				topic = args[0]
			}
			return a.read(c, &o.readOptions, queueVerifySchema, func(ctx context.Context, client *admin.Client) (answer, error) {
				found, errs, err := client.CheckRocksDB(ctx, o.brokers(), topic, from.Time)
				ans := answer{errs: errs}
				for _, r := range found {
					ans.rows = append(ans.rows, []any{cmp.Or(r.Name, r.Addr), r.Addr, rocksDBStatus(r.Status), orUnknown(r.Result)})
				}
				return ans, err
			})
		},
	}
	o.addTo(c)
	o.addBrokers(a, c)
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.StringVar(&o.start, "start", "@-30d", "messages stored since: @TIME")
	})
	return c
}

// rocksDBStatus is the outcome of a comparison in words.
func rocksDBStatus(status int32) string {
	switch status {
	case 0:
		return "alike"
	case 1:
		return "different"
	case 2:
		return "under way"
	}
	return "failed"
}
