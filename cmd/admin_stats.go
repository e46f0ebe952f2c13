package cmd

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/render"
)

func newStatsCmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{Use: "stats", Short: "Rates of topics and groups"}, newStatsGetCmd(a))
}

var topicRateSchema = render.Schema{Kind: "TopicRateList", Name: "topic", Fields: []render.Field{
	{Name: "topic", Doc: "topic"},
	{Name: "group", Doc: "group that consumes it; unknown where none does"},
	{Name: "lag", Kind: render.Int, Tone: render.WarnAbove(0), Doc: "messages behind, over all queues; unknown when it never committed, or a broker did not answer"},
	{Name: "inTps", Title: "IN/S", Kind: render.Float, Doc: "messages stored a second, over the last minute; unknown while the brokers count none, or one did not answer"},
	{Name: "outTps", Title: "OUT/S", Kind: render.Float, Doc: "messages given to the group a second"},
	{Name: "inDay", Kind: render.Int, Doc: "messages stored in 24 hours, or since the broker counts"},
	{Name: "outDay", Kind: render.Int, Doc: "messages given to the group in 24 hours"},
}}

var statisticSchema = render.Schema{Kind: "StatisticList", Name: "broker", Fields: []render.Field{
	{Name: "cluster", Wide: true, Doc: "cluster"},
	{Name: "broker", Doc: "broker name"},
	{Name: "name", Wide: true, Doc: "name of the statistic"},
	{Name: "key", Wide: true, Doc: "its key"},
	{Name: "minuteTps", Title: "1 MIN/S", Kind: render.Float, Doc: "a second, over the last minute; unknown where the broker counts none"},
	{Name: "minuteSum", Title: "1 MIN", Kind: render.Int, Doc: "sum of the last minute"},
	{Name: "minuteMean", Title: "MEAN", Kind: render.Float, Doc: "mean of one, over the last minute"},
	{Name: "hourTps", Title: "1 H/S", Kind: render.Float, Doc: "a second, over the last hour"},
	{Name: "hourSum", Title: "1 H", Kind: render.Int, Doc: "sum of the last hour"},
	{Name: "dayTps", Title: "1 D/S", Kind: render.Float, Doc: "a second, over the last day"},
	{Name: "daySum", Title: "1 D", Kind: render.Int, Doc: "sum of the last day"},
}}

// statsOptions are the flags of mqx admin stats get.
type statsOptions struct {
	readOptions
	retry, active bool
	name, key     string
}

func newStatsGetCmd(a *app) *cobra.Command {
	o := &statsOptions{}
	c := &cobra.Command{
		Use:   "get [TOPIC]",
		Short: "Show how many messages go into topics and out of them to each group",
		Example: `  mqx admin stats get --active --sort -inTps
  mqx admin stats get ORDERS --watch
  mqx admin stats get --name TOPIC_PUT_SIZE --key ORDERS`,
		Args:              optionalArg(),
		ValidArgsFunction: completeTopics(a, &o.target),
		RunE: func(c *cobra.Command, args []string) error {
			if (o.name == "") != (o.key == "") {
				return usagef("cannot read a statistic: --name and --key belong together").try("--name TOPIC_PUT_NUMS --key TOPIC")
			}
			if o.name != "" {
				if len(args) > 0 {
					return usagef("cannot run %q: a topic and --name are two questions", c.CommandPath()).try("mqx admin stats get %s", args[0])
				}
				return a.read(c, &o.readOptions, statisticSchema, o.statistic)
			}
			if o.cluster != "" || o.broker != "" {
				return usagef("cannot take --broker or --cluster without --name: topics are summed over all brokers").try("mqx admin stats get --name TOPIC_PUT_NUMS --key TOPIC -b BROKER")
			}
			s := admin.StatsOptions{Retry: o.retry, Active: o.active}
			if len(args) > 0 {
				s.Topic = args[0]
			}
			return a.read(c, &o.readOptions, topicRateSchema, func(ctx context.Context, client *admin.Client) (answer, error) {
				rates, errs, err := client.TopicRates(ctx, s)
				ans := answer{errs: errs}
				for _, r := range rates {
					ans.rows = append(ans.rows, []any{
						r.Topic, orUnknown(r.Group), deref(r.Lag), ifKnown(r.In.PerSecond, r.In.Known), ifKnown(r.Out.PerSecond, r.Out.Known),
						ifKnown(r.In.Day, r.In.Known), ifKnown(r.Out.Day, r.Out.Known),
					})
				}
				return ans, err
			})
		},
	}
	o.addTo(c)
	o.addBrokers(a, c)
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.BoolVar(&o.active, "active", false, "only what had a message within the time that is counted")
		f.BoolVar(&o.retry, "retry", false, "retry and dead letter topics of groups as well")
		f.StringVar(&o.name, "name", "", "one statistic by its name, as TOPIC_PUT_NUMS, GROUP_GET_NUMS, SNDBCK_PUT_NUMS")
		f.StringVar(&o.key, "key", "", "its key: a topic, or topic@group")
	})
	return c
}

func (o *statsOptions) statistic(ctx context.Context, client *admin.Client) (answer, error) {
	found, errs, err := client.Statistics(ctx, o.brokers(), o.name, o.key)
	ans := answer{errs: errs}
	for _, s := range found {
		row := []any{orUnknown(s.Cluster), s.Broker.Name, s.Name, s.Key}
		if s.Data == nil {
			row = append(row, nil, nil, nil, nil, nil, nil, nil)
		} else {
			d := s.Data
			row = append(row, d.StatsMinute.TPS, d.StatsMinute.Sum, d.StatsMinute.AvgPT, d.StatsHour.TPS, d.StatsHour.Sum, d.StatsDay.TPS, d.StatsDay.Sum)
		}
		ans.rows = append(ans.rows, row)
	}
	return ans, err
}
