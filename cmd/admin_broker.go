package cmd

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/render"
)

func newBrokerAdminCmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{Use: "broker", Aliases: []string{"brokers"}, Short: "Brokers of a cluster"},
		newBrokerLsCmd(a), newBrokerGetCmd(a), newBrokerStatusCmd(a), newBrokerCheckCmd(a),
		newBrokerSeedCmd(a),
		newBrokerSetCmd(a), newBrokerPurgeCmd(a), newBrokerPromoteCmd(a), newBrokerCreateCmd(a), newBrokerRmCmd(a), newBrokerExportCmd(a),
		newMoveCmd(a, retireVerb),
	)
}

// inactive: a broker that does not say it is active is worth a look.
func inactive(v any) render.Tone {
	if on, ok := v.(bool); ok && !on {
		return render.Bad
	}
	return render.Plain
}

var brokerListSchema = render.Schema{Kind: "BrokerList", Name: "broker", Fields: []render.Field{
	{Name: "cluster", Doc: "cluster"},
	{Name: "broker", Doc: "broker name"},
	{Name: "id", Kind: render.Int, Doc: "broker id, 0 is the master"},
	{Name: "addr", Title: "ADDRESS", Whole: true, Doc: "its address"},
	{Name: "version", Doc: "version it says it has"},
	{Name: "active", Kind: render.Bool, Tone: inactive, Doc: "serves as it should; unknown when it did not answer"},
	{Name: "inTps", Title: "IN/S", Kind: render.Float, Doc: "messages stored a second, over 10 s"},
	{Name: "outTps", Title: "OUT/S", Kind: render.Float, Doc: "messages given out a second, over 10 s"},
	{Name: "diskRatio", Title: "DISK", Kind: render.Float, Doc: "share of the disk of the commit log that is used, 0 to 1"},
	{Name: "oldest", Kind: render.Time, Doc: "when the oldest message there is was stored"},
	{Name: "sendQueue", Kind: render.Int, Wide: true, Doc: "sends that wait"},
	{Name: "sendWaitMs", Kind: render.Int, Wide: true, Doc: "how long the first of them has waited, in ms"},
	{Name: "pullQueue", Kind: render.Int, Wide: true, Doc: "pulls that wait"},
	{Name: "pullWaitMs", Kind: render.Int, Wide: true, Doc: "how long the first of them has waited, in ms"},
	{Name: "ackQueue", Kind: render.Int, Wide: true, Doc: "acknowledgements that wait"},
	{Name: "ackWaitMs", Kind: render.Int, Wide: true, Doc: "how long the first of them has waited, in ms"},
	{Name: "pageCacheLockMs", Kind: render.Int, Wide: true, Doc: "how long the log has been locked for a write, in ms"},
	{Name: "timerBehindSeconds", Kind: render.Int, Wide: true, Doc: "how far the reading of the timer log is behind, in seconds"},
	{Name: "timerOffsetBehind", Kind: render.Int, Wide: true, Doc: "timer messages not yet on the wheel"},
	{Name: "timerCongested", Kind: render.Int, Wide: true, Doc: "timer messages in full slots"},
	{Name: "timerInTps", Kind: render.Float, Wide: true, Doc: "timer messages put on the wheel a second"},
	{Name: "timerOutTps", Kind: render.Float, Wide: true, Doc: "timer messages delivered a second"},
	{Name: "inYesterday", Kind: render.Int, Wide: true, Doc: "messages stored yesterday"},
	{Name: "outYesterday", Kind: render.Int, Wide: true, Doc: "messages given out yesterday"},
	{Name: "inToday", Kind: render.Int, Wide: true, Doc: "messages stored today"},
	{Name: "outToday", Kind: render.Int, Wide: true, Doc: "messages given out today"},
	{Name: "booted", Kind: render.Time, Wide: true, Doc: "when it started"},
}}

func brokerRow(s *admin.BrokerStatus) []any {
	n := func(name string) any { return ifKnown(s.Int(name)) }
	f := func(name string) any { return ifKnown(s.Float(name)) }
	d := func(later, earlier string) any { return ifKnown(s.Difference(later, earlier)) }
	var id any
	if s.Name != "" {
		id = s.ID
	}
	return []any{
		orUnknown(s.Cluster), cmp.Or(s.Name, s.Addr), id, s.Addr, ifKnown(s.Text("brokerVersionDesc")), ifKnown(s.Bool("brokerActive")),
		f("putTps"), f("getTransferredTps"), f("commitLogDiskRatio"), ifKnown(s.Time("earliestMessageTimeStamp")),
		n("sendThreadPoolQueueSize"), n("sendThreadPoolQueueHeadWaitTimeMills"), n("pullThreadPoolQueueSize"), n("pullThreadPoolQueueHeadWaitTimeMills"),
		n("ackThreadPoolQueueSize"), n("ackThreadPoolQueueHeadWaitTimeMills"), n("pageCacheLockTimeMills"),
		n("timerReadBehind"), n("timerOffsetBehind"), n("timerCongestNum"), f("timerEnqueueTps"), f("timerDequeueTps"),
		d("msgPutTotalTodayMorning", "msgPutTotalYesterdayMorning"), d("msgGetTotalTodayMorning", "msgGetTotalYesterdayMorning"),
		d("msgPutTotalTodayNow", "msgPutTotalTodayMorning"), d("msgGetTotalTodayNow", "msgGetTotalTodayMorning"), ifKnown(s.Time("bootTimestamp")),
	}
}

func newBrokerLsCmd(a *app) *cobra.Command {
	o := &readOptions{}
	c := &cobra.Command{
		Use:   "ls",
		Short: "List brokers, masters and slaves, with version, rates, disk and queues of requests",
		Example: `  mqx admin broker ls
  mqx admin broker ls --sort -diskRatio -o wide
  mqx admin broker ls --match 'active!=true' -o name`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return a.readBrokers(c, o, o.brokers()) },
	}
	o.addTo(c)
	o.addBrokers(a, c)
	return c
}

func (a *app) readBrokers(c *cobra.Command, o *readOptions, t admin.Target) error {
	return a.read(c, o, brokerListSchema, func(ctx context.Context, client *admin.Client) (answer, error) {
		found, errs, err := client.BrokerStatuses(ctx, t, true)
		if err != nil {
			return answer{}, err
		}
		a.explainEmpty(ctx, client, len(found))
		var rows [][]any
		for i := range found {
			rows = append(rows, brokerRow(&found[i]))
		}
		return answer{rows, errs}, nil
	})
}

var brokerStatusSchema = render.Schema{Kind: "BrokerStatusList", Name: "name", Fields: []render.Field{
	{Name: "cluster", Wide: true, Doc: "cluster"},
	{Name: "broker", Doc: "broker name"},
	{Name: "id", Kind: render.Int, Wide: true, Doc: "broker id, 0 is the master"},
	{Name: "addr", Title: "ADDRESS", Wide: true, Doc: "its address"},
	{Name: "name", Whole: true, Doc: "name of the value, as the broker has it"},
	{Name: "value", Doc: "value"},
}}

func newBrokerStatusCmd(a *app) *cobra.Command {
	o := &readOptions{}
	c := &cobra.Command{
		Use:   "status [BROKER]",
		Short: "Show everything that brokers say of themselves",
		Example: `  mqx admin broker status broker-a
  mqx admin broker status --match 'name~Tps$'
  mqx admin broker status 10.0.0.1:10911 -o json`,
		Args:              optionalArg(),
		ValidArgsFunction: completeBrokers(a, &o.target),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.takeBroker(c, args); err != nil {
				return err
			}
			return a.read(c, o, brokerStatusSchema, func(ctx context.Context, client *admin.Client) (answer, error) {
				found, errs, err := client.BrokerStatuses(ctx, o.brokers(), true)
				var rows [][]any
				for i := range found {
					s := &found[i]
					for _, name := range slices.Sorted(maps.Keys(s.Values)) {
						rows = append(rows, []any{orUnknown(s.Cluster), cmp.Or(s.Name, s.Addr), s.ID, s.Addr, name, s.Values[name]})
					}
				}
				return answer{rows, errs}, err
			})
		},
	}
	o.addTo(c)
	o.addBrokers(a, c)
	return c
}

// takeBroker takes the broker that is an argument in place of --broker.
func (o *readOptions) takeBroker(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if o.broker != "" && o.broker != args[0] {
		return usagef("cannot run %q: %s and --broker %s are two brokers", c.CommandPath(), args[0], o.broker).try("%s %s", c.CommandPath(), args[0])
	}
	o.broker = args[0]
	return nil
}

var brokerEpochSchema = render.Schema{Kind: "BrokerEpochList", Name: "broker", Fields: []render.Field{
	{Name: "cluster", Wide: true, Doc: "cluster"},
	{Name: "broker", Doc: "broker name"},
	{Name: "id", Kind: render.Int, Doc: "broker id"},
	{Name: "addr", Title: "ADDRESS", Doc: "its address"},
	{Name: "epoch", Kind: render.Int, Doc: "epoch of a master"},
	{Name: "startOffset", Title: "START", Kind: render.Int, Doc: "byte of the log at which it begins"},
	{Name: "endOffset", Title: "END", Kind: render.Int, Doc: "byte at which it ends; of the last one, the end of the log"},
}}

var brokerColdSchema = render.Schema{Kind: "BrokerColdList", Name: "broker", Fields: []render.Field{
	{Name: "broker", Doc: "broker name"},
	{Name: "addr", Title: "ADDRESS", Doc: "its address"},
	{Name: "groupThreshold", Kind: render.Size, Doc: "cold bytes that a group may read in a while"},
	{Name: "globalThreshold", Kind: render.Size, Doc: "cold bytes that all groups may read in a while"},
	{Name: "globalRead", Kind: render.Size, Doc: "cold bytes that all groups have read in this while"},
	{Name: "configured", Kind: render.Object, Doc: "thresholds that groups have of their own"},
	{Name: "running", Kind: render.Object, Doc: "what each group reads"},
}}

var brokerConsumeSchema = render.Schema{Kind: "BrokerConsumeList", Name: "group", Fields: []render.Field{
	{Name: "topic", Doc: "topic"},
	{Name: "group", Doc: "consumer group"},
	{Name: "broker", Doc: "broker that holds the queue"},
	{Name: "queueId", Title: "QUEUE", Kind: render.Int, Doc: "queue"},
	{Name: "maxOffset", Title: "END", Kind: render.Int, Doc: "offset the next message will get"},
	{Name: "offset", Kind: render.Int, Doc: "committed offset of the group"},
	{Name: "lag", Kind: render.Int, Tone: render.WarnAbove(0), Doc: "messages behind"},
	{Name: "lastConsumed", Title: "LAST", Kind: render.Time, Doc: "when the last message it took was stored"},
}}

var brokerLiteSchema = render.Schema{Kind: "BrokerLiteList", Name: "broker", Fields: []render.Field{
	{Name: "broker", Doc: "broker name"},
	{Name: "addr", Title: "ADDRESS", Doc: "its address"},
	{Name: "store", Doc: "kind of store"},
	{Name: "maxQueues", Kind: render.Int, Doc: "most light queues that it takes"},
	{Name: "queues", Kind: render.Int, Doc: "light queues there are"},
	{Name: "subscriptions", Kind: render.Int, Doc: "subscriptions of lite topics"},
	{Name: "orderInfos", Kind: render.Int, Wide: true, Doc: "entries of order information"},
	{Name: "consumeQueues", Kind: render.Int, Wide: true, Doc: "consume queues there are"},
	{Name: "offsets", Kind: render.Int, Wide: true, Doc: "entries of the table of offsets"},
	{Name: "events", Kind: render.Int, Wide: true, Doc: "clients with events"},
	{Name: "topics", Kind: render.Object, Wide: true, Doc: "parent topics and their lifetime in minutes"},
	{Name: "groups", Kind: render.Object, Wide: true, Doc: "parent topics and their groups"},
}}

var brokerShow = map[string]render.Schema{
	"summary": brokerListSchema, "epochs": brokerEpochSchema, "cold": brokerColdSchema, "consume": brokerConsumeSchema, "lite": brokerLiteSchema,
}

// brokerGetOptions are the flags of mqx admin broker get.
type brokerGetOptions struct {
	readOptions
	orderly bool
	minLag  int64
}

func newBrokerGetCmd(a *app) *cobra.Command {
	o := &brokerGetOptions{}
	c := &cobra.Command{
		Use: "get [BROKER]", Aliases: []string{"describe"},
		Short: "Show one broker: its figures, epochs, cold reads, what groups have consumed, lite topics",
		Example: `  mqx admin broker get broker-a
  mqx admin broker get broker-a --show consume --min-lag 1 --sort -lag
  mqx admin broker get --show epochs
  mqx admin broker get broker-a --show cold -o json`,
		Args:              optionalArg(),
		ValidArgsFunction: completeBrokers(a, &o.target),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.takeBroker(c, args); err != nil {
				return err
			}
			s, err := shown(o.show, brokerShow, "summary", "epochs", "cold", "consume", "lite")
			if err != nil {
				return err
			}
			if o.show == "summary" {
				return a.readBrokers(c, &o.readOptions, o.brokers())
			}
			return a.read(c, &o.readOptions, s, o.ask)
		},
	}
	o.addTo(c)
	o.addBrokers(a, c)
	o.addShow(c, "summary", "epochs", "cold", "consume", "lite")
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.BoolVar(&o.orderly, "orderly", false, "with --show consume: only groups that consume in order")
		f.Int64Var(&o.minLag, "min-lag", 0, "with --show consume: only queues with so many messages behind")
	})
	return c
}

func (o *brokerGetOptions) ask(ctx context.Context, client *admin.Client) (ans answer, err error) {
	add := func(values ...any) { ans.rows = append(ans.rows, values) }
	switch o.show {
	case "epochs":
		found, errs, err := client.BrokerEpochs(ctx, o.brokers())
		for _, b := range found {
			for _, e := range b.Cache.EpochList {
				add(b.Cache.ClusterName, b.Cache.BrokerName, b.Cache.BrokerID, b.Addr, e.Epoch, e.StartOffset, e.EndOffset)
			}
		}
		ans.errs = errs
		return ans, err
	case "cold":
		found, errs, err := client.ColdDataInfo(ctx, o.brokers())
		for _, b := range found {
			row, rowErr := coldRow(b)
			if rowErr != nil {
				return ans, rowErr
			}
			add(row...)
		}
		ans.errs = errs
		return ans, err
	case "consume":
		found, errs, err := client.BrokerConsumeStats(ctx, o.brokers(), o.orderly)
		for _, b := range found {
			for _, q := range b.Queues {
				var offset, lag any
				if q.ConsumerOffset >= 0 {
					offset, lag = q.ConsumerOffset, q.BrokerOffset-q.ConsumerOffset
				}
				if n, ok := lag.(int64); o.minLag > 0 && (!ok || n < o.minLag) {
					continue
				}
				add(q.Topic, q.Group, q.GroupQueue.Broker, q.QueueID, q.BrokerOffset, offset, lag, q.LastTime)
			}
		}
		ans.errs = errs
		return ans, err
	}
	found, errs, err := client.BrokerLites(ctx, o.brokers())
	for _, b := range found {
		i := &b.Info
		add(cmp.Or(b.Name, b.Addr), b.Addr, i.StoreType, i.MaxLMQNum, i.CurrentLMQNum, i.LiteSubscriptionCount, i.OrderInfoCount, i.CQTableSize,
			i.OffsetTableSize, i.EventMapSize, i.TopicMeta, i.GroupMeta)
	}
	ans.errs = errs
	return ans, err
}

func coldRow(b admin.BrokerText) ([]any, error) {
	var v struct {
		Runtime map[string]json.RawMessage `json:"runtimeTable"`
		Config  map[string]json.RawMessage `json:"configTable"`
		Group   *int64                     `json:"cgColdReadThreshold"`
		Global  *int64                     `json:"globalColdReadThreshold"`
		Acc     *int64                     `json:"globalAcc"`
	}
	if err := json.Unmarshal([]byte(b.Text), &v); err != nil {
		return nil, failf(ExitFailed, "cannot read what %s says of cold reads: %w", b.Addr, err).because("it is no JSON")
	}
	return []any{cmp.Or(b.Name, b.Addr), b.Addr, deref(v.Group), deref(v.Global), deref(v.Acc), v.Config, v.Runtime}, nil
}

var clusterListSchema = render.Schema{Kind: "ClusterList", Name: "cluster", Fields: []render.Field{
	{Name: "cluster", Doc: "cluster"},
	{Name: "masters", Kind: render.Int, Doc: "masters registered"},
	{Name: "slaves", Kind: render.Int, Doc: "slaves registered"},
	{Name: "brokers", Kind: render.List, Doc: "broker names"},
}}

func newClusterLsCmd(a *app) *cobra.Command {
	o := &readOptions{}
	c := &cobra.Command{
		Use:   "ls",
		Short: "List the clusters that the name servers know",
		Example: `  mqx admin cluster ls
  mqx admin cluster ls -o name
  mqx admin cluster ls --watch --interval 5s`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.read(c, o, clusterListSchema, func(ctx context.Context, client *admin.Client) (answer, error) {
				brokers, err := client.Cluster(ctx)
				if err != nil {
					return answer{}, err
				}
				a.explainEmpty(ctx, client, len(brokers))
				return answer{rows: clusterRows(brokers)}, nil
			})
		},
	}
	o.addTo(c)
	return c
}

func clusterRows(brokers []admin.Broker) (rows [][]any) {
	var clusters []string
	for _, b := range brokers {
		clusters = append(clusters, b.Cluster)
	}
	for _, name := range unique(clusters) {
		masters, slaves := 0, 0
		var names []string
		for _, b := range brokers {
			if b.Cluster != name {
				continue
			}
			names = append(names, b.Name)
			if b.ID == 0 {
				masters++
			} else {
				slaves++
			}
		}
		rows = append(rows, []any{name, masters, slaves, unique(names)})
	}
	return rows
}

func newClusterGetCmd(a *app) *cobra.Command {
	o := &readOptions{}
	c := &cobra.Command{
		Use: "get [CLUSTER]", Aliases: []string{"describe"},
		Short: "Show the brokers of a cluster with version, rates, disk and queues of requests",
		Example: `  mqx admin cluster get DefaultCluster
  mqx admin cluster get -o wide
  mqx admin cluster get --watch --interval 1s`,
		Args:              optionalArg(),
		ValidArgsFunction: completeClusters(a, &o.target),
		RunE: func(c *cobra.Command, args []string) error {
			t := admin.Target{}
			if len(args) > 0 {
				t.Cluster = args[0]
			}
			return a.readBrokers(c, o, t)
		},
	}
	o.addTo(c)
	return c
}
