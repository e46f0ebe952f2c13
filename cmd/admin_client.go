package cmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/render"
	"mqx/remoting"
)

func newClientCmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{Use: "client", Aliases: []string{"clients"}, Short: "Clients that are connected: consumers and producers"},
		newClientLsCmd(a), newClientGetCmd(a))
}

func newProducerCmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{Use: "producer", Aliases: []string{"producers"}, Short: "Producers that are connected"}, newProducerLsCmd(a))
}

var clientListSchema = render.Schema{Kind: "ClientList", Name: "clientId", Fields: []render.Field{
	{Name: "clientId", Title: "CLIENT", Doc: "client id"},
	{Name: "addrs", Title: "ADDRESSES", Kind: render.List, Doc: "where it connects from, one a broker"},
	{Name: "language", Doc: "language of the client"},
	{Name: "version", Doc: "version of the client"},
	{Name: "consumes", Kind: render.List, Doc: "consumer groups it is in"},
	{Name: "produces", Kind: render.List, Doc: "producer groups it is in"},
	{Name: "brokers", Kind: render.List, Doc: "brokers it is connected to"},
	{Name: "lastSeen", Kind: render.Time, Wide: true, Doc: "its newest heartbeat as a producer; unknown where the brokers do not say"},
	{Name: "queues", Kind: render.List, Wide: true, Doc: "queues it consumes, as topic@broker:queue; unknown without --queues and where it did not say"},
	{Name: "nameServers", Title: "NAME SERVERS", Kind: render.List, Wide: true, Doc: "name servers it talks to: of two clusters in one process a client may know one only; unknown without --queues and where it did not say"},
	{Name: "error", Wide: true, Doc: "why it did not say which queues it has; unknown when it did"},
}}

// clientsOptions are the flags of mqx admin client ls.
type clientsOptions struct {
	readOptions
	group  string
	queues bool
}

func newClientLsCmd(a *app) *cobra.Command {
	o := &clientsOptions{}
	c := &cobra.Command{
		Use:   "ls",
		Short: "List the clients of a cluster, a broker or a group",
		Example: `  mqx admin client ls
  mqx admin client ls -g billing --queues -o wide
  mqx admin client ls --match 'language=JAVA' --sort version
  mqx admin client ls -b broker-a -o name`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.read(c, &o.readOptions, clientListSchema, func(ctx context.Context, client *admin.Client) (answer, error) {
				list, err := client.ListInstances(ctx, admin.InstancesOptions{Target: o.brokers(), Group: o.group, Queues: o.queues})
				if err != nil {
					return answer{}, err
				}
				return answer{instanceRows(list.Items), list.Errors}, nil
			})
		},
	}
	o.addTo(c)
	o.addBrokers(a, c)
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.StringVarP(&o.group, "group", "g", "", "only members of this group")
	})
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.BoolVar(&o.queues, "queues", false, "ask each consumer which queues it has, and which name servers it talks to")
	})
	completeFlag(c, "group", completeGroups(a, &o.target))
	return c
}

func instanceRows(items []admin.Instance) (rows [][]any) {
	for _, i := range items {
		var queues, servers, why any
		if i.Queues != nil {
			queues = queueTexts(i.Queues)
		}
		if i.NameServers != nil {
			servers = listOf(i.NameServers)
		}
		if i.Err != nil {
			why = oneLine(clientSilence(i.Err))
		}
		rows = append(rows, []any{i.ID, listOf(i.Addrs), i.Language, i.Version, listOf(i.Consumes), listOf(i.Produces), listOf(i.Brokers), i.LastSeen, queues, servers, why})
	}
	return rows
}

func queueTexts(queues []remoting.MessageQueue) []string {
	out := make([]string, 0, len(queues))
	for _, q := range queues {
		out = append(out, fmt.Sprintf("%s@%s:%d", q.Topic, q.BrokerName, q.QueueID))
	}
	return out
}

// clientSilence is why a client did not say what it does, with what is known of the
// cause.
func clientSilence(err error) string {
	text := err.Error()
	if strings.Contains(text, "unsupported value: NaN") {
		return text + " (the official Go client cannot write its statistics between the first and the second sample, 10 to 20 s after its start: ask again)"
	}
	return text
}

var clientQueueSchema = render.Schema{Kind: "ClientQueueList", Name: "topic", Fields: []render.Field{
	{Name: "clientId", Title: "CLIENT", Wide: true, Doc: "client id"},
	{Name: "group", Doc: "consumer group"},
	{Name: "topic", Doc: "topic"},
	{Name: "broker", Doc: "broker that holds the queue"},
	{Name: "queueId", Title: "QUEUE", Kind: render.Int, Doc: "queue"},
	{Name: "mode", Wide: true, Doc: "pull or pop"},
	{Name: "offset", Kind: render.Int, Doc: "offset it has committed or will commit next; unknown when it pops"},
	{Name: "cached", Kind: render.Int, Doc: "messages that lie in the client"},
	{Name: "cachedMiB", Title: "MiB", Kind: render.Int, Wide: true, Doc: "their bodies in MiB"},
	{Name: "cachedMin", Kind: render.Int, Wide: true, Doc: "smallest offset of them"},
	{Name: "cachedMax", Kind: render.Int, Wide: true, Doc: "largest offset of them"},
	{Name: "waitAck", Kind: render.Int, Wide: true, Doc: "messages popped and not acknowledged"},
	{Name: "lastPull", Kind: render.Time, Doc: "when it last asked for messages"},
	{Name: "lastConsumed", Title: "CONSUMED", Kind: render.Time, Doc: "when it last consumed one"},
	{Name: "locked", Kind: render.Bool, Wide: true, Doc: "it holds the lock of the queue, which consumers in order need"},
	{Name: "lastLock", Kind: render.Time, Wide: true, Doc: "when it last got the lock"},
	{Name: "dropped", Kind: render.Bool, Wide: true, Doc: "it is giving the queue up"},
}}

// clientQueueRows are the queues of one member.
func clientQueueRows(group string, m *admin.MemberStatus) (rows [][]any) {
	if m.Info == nil {
		return nil
	}
	for _, q := range sortedQueues(m.Info.MQTable) {
		p := m.Info.MQTable[q]
		var from, to any
		if p.CachedMsgCount > 0 {
			from, to = p.CachedMsgMinOffset, p.CachedMsgMaxOffset
		}
		rows = append(rows, []any{
			m.ClientID, group, q.Topic, q.BrokerName, q.QueueID, "pull", p.CommitOffset, p.CachedMsgCount, p.CachedMsgSizeInMiB, from, to, nil,
			timeOrNil(p.LastPullTimestamp), timeOrNil(p.LastConsumeTimestamp), p.Locked, timeOrNil(p.LastLockTimestamp), p.Dropped,
		})
	}
	for _, q := range sortedQueues(m.Info.MQPopTable) {
		p := m.Info.MQPopTable[q]
		rows = append(rows, []any{
			m.ClientID, group, q.Topic, q.BrokerName, q.QueueID, "pop", nil, nil, nil, nil, nil, p.WaitAckCount,
			timeOrNil(p.LastPopTimestamp), nil, nil, nil, p.Dropped,
		})
	}
	return rows
}

var clientTopicSchema = render.Schema{Kind: "ClientTopicList", Name: "topic", Fields: []render.Field{
	{Name: "clientId", Title: "CLIENT", Doc: "client id"},
	{Name: "group", Wide: true, Doc: "consumer group"},
	{Name: "topic", Doc: "topic"},
	{Name: "pullMs", Title: "PULL ms", Kind: render.Float, Doc: "mean of a pull, in ms, over the last minute"},
	{Name: "pullTps", Title: "PULL/S", Kind: render.Float, Doc: "messages pulled a second"},
	{Name: "consumeMs", Title: "CONSUME ms", Kind: render.Float, Doc: "mean of a consumption, in ms"},
	{Name: "okTps", Title: "OK/S", Kind: render.Float, Doc: "messages consumed a second"},
	{Name: "failedTps", Title: "FAILED/S", Kind: render.Float, Doc: "messages that failed a second"},
	{Name: "failedHour", Kind: render.Int, Tone: render.WarnAbove(0), Doc: "messages that failed in the last hour"},
}}

func clientTopicRows(group string, m *admin.MemberStatus) (rows [][]any) {
	if m.Info == nil {
		return nil
	}
	for _, topic := range sortedNames(m.Info.StatusTable) {
		s := m.Info.StatusTable[topic]
		rows = append(rows, []any{m.ClientID, group, topic, s.PullRT, s.PullTPS, s.ConsumeRT, s.ConsumeOKTPS, s.ConsumeFailedTPS, s.ConsumeFailedMsgs})
	}
	return rows
}

var clientPropertySchema = render.Schema{Kind: "ClientPropertyList", Name: "name", Fields: []render.Field{
	{Name: "clientId", Title: "CLIENT", Doc: "client id"},
	{Name: "group", Wide: true, Doc: "consumer group"},
	{Name: "name", Doc: "property, as the client has it"},
	{Name: "value", Doc: "value"},
}}

func clientPropertyRows(group string, m *admin.MemberStatus) (rows [][]any) {
	if m.Info == nil {
		return nil
	}
	for _, table := range []map[string]string{m.Info.Properties, m.Info.UserConsumerInfo} {
		for _, name := range sortedNames(table) {
			rows = append(rows, []any{m.ClientID, group, name, table[name]})
		}
	}
	return rows
}

var clientLiteSchema = render.Schema{Kind: "ClientLiteList", Name: "broker", Fields: []render.Field{
	{Name: "broker", Doc: "broker name"},
	{Name: "clientId", Title: "CLIENT", Doc: "client id"},
	{Name: "group", Doc: "consumer group"},
	{Name: "topic", Doc: "parent topic"},
	{Name: "liteTopics", Kind: render.Int, Doc: "lite topics it has; unknown where the broker does not know it"},
	{Name: "lastAccess", Kind: render.Time, Doc: "when it last spoke to the broker"},
	{Name: "lastConsumed", Kind: render.Time, Doc: "when it last consumed"},
	{Name: "names", Kind: render.List, Wide: true, Doc: "names of its lite topics"},
}}

var clientShow = map[string]render.Schema{
	"queues": clientQueueSchema, "topics": clientTopicSchema, "properties": clientPropertySchema, "lite": clientLiteSchema,
}

// clientGetOptions are the flags of mqx admin client get.
type clientGetOptions struct {
	readOptions
	group string
	topic string
}

func newClientGetCmd(a *app) *cobra.Command {
	o := &clientGetOptions{}
	c := &cobra.Command{
		Use: "get CLIENT", Aliases: []string{"describe"},
		Short: "Show what one consumer does: its queues, rates by topic, properties, lite topics",
		Example: `  mqx admin client get 10.0.0.7@4711
  mqx admin client get 10.0.0.7@4711 -g billing --show topics
  mqx admin client get 10.0.0.7@4711 --show properties -o json
  mqx admin client get 10.0.0.7@4711 -g billing -t PARENT --show lite`,
		Args: exactArgs("CLIENT"),
		ValidArgsFunction: completer(a, &o.target, func(ctx context.Context, client *admin.Client) (offers, error) {
			list, err := client.ListInstances(ctx, admin.InstancesOptions{})
			if err != nil {
				return offers{}, err
			}
			var ids []string
			for _, i := range list.Items {
				ids = append(ids, i.ID)
			}
			return offers{names: ids}, nil
		}),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := shown(o.show, clientShow, "queues", "topics", "properties", "lite")
			if err != nil {
				return err
			}
			if o.show == "lite" && (o.group == "" || o.topic == "") {
				return usagef("cannot show lite topics without --group and --topic, the parent topic").try("mqx admin client get %s -g GROUP -t PARENT --show lite", args[0])
			}
			return a.read(c, &o.readOptions, s, func(ctx context.Context, client *admin.Client) (answer, error) {
				if o.show == "lite" {
					return o.lite(ctx, client, args[0])
				}
				return o.member(ctx, client, args[0])
			})
		},
	}
	o.addTo(c)
	o.addShow(c, "queues", "topics", "properties", "lite")
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.StringVarP(&o.group, "group", "g", "", "only as a member of this group")
		f.StringVarP(&o.topic, "topic", "t", "", "with --show lite: the parent topic")
	})
	completeFlag(c, "group", completeGroups(a, &o.target))
	return c
}

// member asks the client in every group it consumes for.
func (o *clientGetOptions) member(ctx context.Context, client *admin.Client, id string) (answer, error) {
	groups := []string{o.group}
	if o.group == "" {
		list, err := client.ListInstances(ctx, admin.InstancesOptions{})
		if err != nil {
			return answer{}, err
		}
		groups = nil
		for _, i := range list.Items {
			if i.ID == id {
				groups = i.Consumes
				if len(groups) == 0 {
					return answer{}, failf(ExitNotFound, "client %s consumes nothing", id).because("it is a producer; only consumers say what they do").try("mqx admin producer ls --match clientId=%s", id)
				}
			}
		}
		if len(groups) == 0 {
			if len(list.Errors) > 0 {
				return answer{errs: list.Errors}, nil
			}
			return answer{}, failf(ExitNotFound, "client %s not found", id).because("no broker knows it").try("mqx admin client ls")
		}
	}
	var ans answer
	for _, g := range groups {
		s, err := client.GroupStatus(ctx, g, admin.StatusOptions{Client: id, Now: time.Now()})
		if err != nil {
			return answer{}, err
		}
		ans.errs = append(ans.errs, s.Errors...)
		for i := range s.Members {
			m := &s.Members[i]
			if m.Err != nil {
				return answer{}, silentMember(g, m)
			}
			ans.rows = append(ans.rows, memberRows(o.show, g, m)...)
		}
	}
	return ans, nil
}

// silentMember is the failure of a client that does not say what it does.
func silentMember(group string, m *admin.MemberStatus) error {
	return fmt.Errorf("client %s of group %s does not say what it does: %s: %w", m.ClientID, group, clientSilence(m.Err), m.Err)
}

func memberRows(show, group string, m *admin.MemberStatus) [][]any {
	switch show {
	case "topics":
		return clientTopicRows(group, m)
	case "properties":
		return clientPropertyRows(group, m)
	}
	return clientQueueRows(group, m)
}

func (o *clientGetOptions) lite(ctx context.Context, client *admin.Client, id string) (answer, error) {
	found, errs, err := client.LiteClients(ctx, o.topic, o.group, id)
	ans := answer{errs: errs}
	for _, l := range found {
		var count any
		if l.Info.LiteTopicCount >= 0 {
			count = l.Info.LiteTopicCount
		}
		ans.rows = append(ans.rows, []any{l.Name, id, o.group, o.topic, count, timeOrNil(l.Info.LastAccessTime), timeOrNil(l.Info.LastConsumeTime), listOf(l.Info.LiteTopicSet)})
	}
	return ans, err
}

var producerListSchema = render.Schema{Kind: "ProducerList", Name: "clientId", Fields: []render.Field{
	{Name: "group", Doc: "producer group"},
	{Name: "clientId", Title: "CLIENT", Doc: "client id"},
	{Name: "addr", Title: "ADDRESS", Whole: true, Doc: "where it connects from"},
	{Name: "language", Doc: "language of the client"},
	{Name: "version", Doc: "version of the client"},
	{Name: "broker", Doc: "broker it is connected to"},
	{Name: "lastSeen", Kind: render.Time, Doc: "its newest heartbeat"},
}}

// producersOptions are the flags of mqx admin producer ls.
type producersOptions struct {
	readOptions
	group string
	all   bool
}

func newProducerLsCmd(a *app) *cobra.Command {
	o := &producersOptions{}
	c := &cobra.Command{
		Use:   "ls",
		Short: "List producers, one line for each group, client and broker",
		Example: `  mqx admin producer ls
  mqx admin producer ls -g PG_ORDERS -o json
  mqx admin producer ls -b broker-a --match 'version!=V5_5_0'`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.read(c, &o.readOptions, producerListSchema, func(ctx context.Context, client *admin.Client) (answer, error) {
				found, errs, err := client.ListProducers(ctx, o.brokers(), o.group)
				ans := answer{errs: errs}
				for _, p := range found {
					if p.Group == "CLIENT_INNER_PRODUCER" && !o.all && o.group == "" {
						continue
					}
					name := p.Name
					if name == "" {
						name = p.Addr
					}
					ans.rows = append(ans.rows, []any{
						p.Group, p.ClientID, strings.TrimPrefix(p.RemoteIP, "/"), p.Language, remoting.VersionName(p.Version), name, timeOrNil(p.LastUpdateTimestamp),
					})
				}
				return ans, err
			})
		},
	}
	o.addTo(c)
	o.addBrokers(a, c)
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.StringVarP(&o.group, "group", "g", "", "only this producer group")
	})
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.BoolVar(&o.all, "all", false, "the producer that every Java client brings along as well")
	})
	return c
}
