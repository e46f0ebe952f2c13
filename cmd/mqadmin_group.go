package cmd

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/render"
	"mqx/message"
	"mqx/remoting"
)

func newMqadminGroupCmds(a *app) []*cobra.Command {
	return []*cobra.Command{newMqadminConsumerProgress(a), newMqadminConsumerConnection(a), newMqadminGetConsumerConfig(a)}
}

func newMqadminConsumerProgress(a *app) *cobra.Command {
	var group, topic, cluster, clientIP string
	return mqadminCmd(a, "consumerProgress", "Query consumer's progress, speed", "mqx admin group get GROUP, mqx admin group ls", false, nil,
		func(f *pflag.FlagSet) {
			f.StringVarP(&group, "groupName", "g", "", "consumer group name")
			f.StringVarP(&topic, "topicName", "t", "", "topic name")
			f.StringVarP(&cluster, "cluster", "c", "", "cluster name")
			f.StringVarP(&clientIP, "showClientIP", "s", "false", "show the client that reads each queue (true or false)")
		},
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			if group == "" {
				return a.mqadminGroups(ctx, client)
			}
			return a.mqadminProgress(ctx, client, group, topic, strings.EqualFold(clientIP, "true"))
		})
}

func (a *app) mqadminProgress(ctx context.Context, client *admin.Client, group, topic string, clients bool) error {
	g, err := client.GetGroup(ctx, group)
	if err != nil {
		return err
	}
	if err := allFailed(len(g.Queues), g.Errors); err != nil {
		return err
	}
	var owners map[admin.QueueID]string
	client20 := ""
	if clients {
		if owners, err = queueOwners(ctx, client, group); err != nil {
			return err
		}
		client20 = fmt.Sprintf("%-20s ", "#Client IP")
	}
	if err := a.printf("%-64s  %-32s  %-4s  %-20s  %-20s  %s%-20s %-20s%s\n",
		"#Topic", "#Broker Name", "#QID", "#Broker Offset", "#Consumer Offset", client20, "#Diff", "#Inflight", "#LastTime"); err != nil {
		return err
	}
	var diffs, flights int64
	for _, q := range g.Queues {
		if topic != "" && q.Topic != topic {
			continue
		}
		if clients {
			client20 = fmt.Sprintf("%-20s ", cmp.Or(owners[admin.QueueID{Topic: q.Topic, Broker: q.Broker, QueueID: q.QueueID}], "N/A"))
		}
		diff, flight := q.BrokerOffset-q.ConsumerOffset, q.PullOffset-q.ConsumerOffset
		diffs, flights = diffs+diff, flights+flight
		if err := a.printf("%-64s  %-32s  %-4d  %-20d  %-20d  %s%-20d %-20d %s\n",
			front(q.Topic, 64), front(q.Broker, 32), q.QueueID, q.BrokerOffset, q.ConsumerOffset, client20, diff, flight, apacheTimeText(q.LastTime)); err != nil {
			return err
		}
	}
	tps, diff, flight := fmt.Sprintf("%.2f", g.ConsumeTPS), fmt.Sprint(diffs), fmt.Sprint(flights)
	if len(g.Errors) > 0 { // a sum without what a broker did not tell is none
		tps, diff, flight = "-", "-", "-"
	}
	if err := a.printf("\nConsume TPS: %s\nConsume Diff Total: %s\nConsume Inflight Total: %s\n", tps, diff, flight); err != nil {
		return err
	}
	return a.partial(targetProblems(g.Errors))
}

// queueOwners are the clients that say that they read a queue, as Apache's tool shows
// them: the part of the client id before the @.
func queueOwners(ctx context.Context, client *admin.Client, group string) (map[admin.QueueID]string, error) {
	l, err := client.GetLag(ctx, admin.LagOptions{Groups: []string{group}, Members: true})
	if err != nil {
		return nil, err
	}
	out := map[admin.QueueID]string{}
	for i := range l.Groups {
		for _, m := range l.Groups[i].Members {
			who, _, _ := strings.Cut(m.ClientID, "@")
			for _, q := range m.Queues {
				out[q] = who
			}
		}
	}
	return out, nil
}

// mqadminGroups lists the groups that have a retry topic.
func (a *app) mqadminGroups(ctx context.Context, client *admin.Client) error {
	names, err := client.TopicNames(ctx)
	if err != nil {
		return err
	}
	if err := a.printf("%-64s  %-6s  %-24s %-5s  %-14s  %-7s  %s\n", "#Group", "#Count", "#Version", "#Type", "#Model", "#TPS", "#Diff Total"); err != nil {
		return err
	}
	var missing problems
	for _, n := range names {
		group, ok := strings.CutPrefix(n, message.RetryTopicPrefix)
		if !ok {
			continue
		}
		g, err := client.GetGroup(ctx, group)
		if err != nil {
			missing = append(missing, render.Problem{Target: "group " + group, Message: err.Error()})
			continue
		}
		missing = append(missing, targetProblems(g.Errors)...)
		version, kind, model := "OFFLINE", "", ""
		if len(g.Online) > 0 {
			version, kind = oldestVersion(g.Online), "PUSH"
			switch g.Type {
			case remoting.ConsumeActively:
				kind = "PULL"
			case remoting.ConsumePassively:
				model = g.Model
			}
		}
		var diff int64
		for _, q := range g.Queues {
			diff += q.BrokerOffset - q.ConsumerOffset
		}
		count, tps, total := strconv.Itoa(len(g.Online)), strconv.Itoa(int(g.ConsumeTPS)), strconv.FormatInt(diff, 10)
		if len(g.Errors) > 0 { // what a broker did not tell is no 0, and a sum without it is none
			count, tps, total = "-", "-", "-"
			if len(g.Online) == 0 {
				version = "-"
			}
		}
		if err := a.printf("%-64s  %-6s  %-24s %-5s  %-14s  %-7s  %s\n", front(group, 64), count, version, kind, model, tps, total); err != nil {
			return err
		}
	}
	return a.partial(missing)
}

func oldestVersion(members []admin.GroupMember) string {
	oldest := members[0].Version
	for _, m := range members {
		oldest = min(oldest, m.Version)
	}
	return oldest
}

func newMqadminConsumerConnection(a *app) *cobra.Command {
	var group, broker string
	return mqadminCmd(a, "consumerConnection", "Query consumer's socket connection, client version and subscription", "mqx admin group get GROUP --show members", false, []string{"consumerGroup"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&group, "consumerGroup", "g", "", "consumer group name")
			f.StringVarP(&broker, "brokerAddr", "b", "", "broker address")
		},
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			if broker != "" {
				a.warn("--brokerAddr has no effect: all brokers are asked")
			}
			g, err := client.GetGroup(ctx, group)
			if err != nil {
				return err
			}
			if err := allFailed(len(g.Brokers), g.Errors); err != nil {
				return err
			}
			if len(g.Online) == 0 && len(g.Errors) == 0 {
				return failf(ExitNotFound, "no member of group %s is online", group).because("the brokers know nobody who consumes for it").try("mqx admin group get %s", group)
			}
			if err := a.printf("%-36s %-22s %-10s %s\n", "#ClientId", "#ClientAddr", "#Language", "#Version"); err != nil {
				return err
			}
			for _, m := range g.Online {
				if err := a.printf("%-36s %-22s %-10s %s\n", m.ClientID, m.Addr, m.Language, m.Version); err != nil {
					return err
				}
			}
			if err := a.printf("\nBelow is subscription:\n%-20s %s\n", "#Topic", "#SubExpression"); err != nil {
				return err
			}
			for _, s := range g.Subscriptions {
				if err := a.printf("%-20s %s\n", s.Topic, s.Expression); err != nil {
					return err
				}
			}
			if err := a.printf("\nConsumeType: %s\nMessageModel: %s\nConsumeFromWhere: %s\n", g.Type, g.Model, g.FromWhere); err != nil {
				return err
			}
			return a.partial(targetProblems(g.Errors))
		})
}

func newMqadminGetConsumerConfig(a *app) *cobra.Command {
	var group string
	return mqadminCmd(a, "getConsumerConfig", "Get consumer config by subscription group name", "mqx admin group get GROUP --show config", false, []string{"groupName"},
		func(f *pflag.FlagSet) { f.StringVarP(&group, "groupName", "g", "", "subscription group name") },
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			configs, errs, err := client.GroupConfigs(ctx, group)
			if err != nil {
				return err
			}
			if err := allFailed(len(configs), errs); err != nil {
				return err
			}
			for _, c := range configs {
				line := strings.Repeat("=", 29)
				if err := a.printf("%s%s:%s%s\n", line, c.Cluster, c.Name, line); err != nil {
					return err
				}
				for _, f := range apacheGroupFields(&c.Config) {
					if err := a.printf("%-40s=  %s\n", f[0], f[1]); err != nil {
						return err
					}
				}
			}
			return a.partial(targetProblems(errs))
		})
}

// apacheGroupFields are the fields of a group's configuration, in Apache's order.
func apacheGroupFields(c *remoting.SubscriptionGroupConfig) [][2]string {
	attributes := make([]string, 0, len(c.Attributes))
	for _, k := range slices.Sorted(maps.Keys(c.Attributes)) {
		attributes = append(attributes, k+"="+c.Attributes[k])
	}
	subscriptions := ""
	if c.SubscriptionDataSet != nil {
		parts := make([]string, 0, len(c.SubscriptionDataSet))
		for _, s := range c.SubscriptionDataSet {
			parts = append(parts, fmt.Sprint(s))
		}
		subscriptions = "[" + strings.Join(parts, ", ") + "]"
	}
	text := func(v any) string { return fmt.Sprint(v) }
	return [][2]string{
		{"groupName", c.GroupName},
		{"consumeEnable", text(c.ConsumeEnable)},
		{"consumeFromMinEnable", text(c.ConsumeFromMinEnable)},
		{"consumeBroadcastEnable", text(c.ConsumeBroadcastEnable)},
		{"consumeMessageOrderly", text(c.ConsumeMessageOrderly)},
		{"retryQueueNums", text(c.RetryQueueNums)},
		{"retryMaxTimes", text(c.RetryMaxTimes)},
		{"groupRetryPolicy", apacheRetryPolicy(c.GroupRetryPolicy)},
		{"brokerId", text(c.BrokerID)},
		{"whichBrokerWhenConsumeSlowly", text(c.WhichBrokerWhenConsumeSlowly)},
		{"notifyConsumerIdsChangedEnable", text(c.NotifyConsumerIDsChangedEnable)},
		{"groupSysFlag", text(c.GroupSysFlag)},
		{"consumeTimeoutMinute", text(c.ConsumeTimeoutMinute)},
		{"subscriptionDataSet", subscriptions},
		{"attributes", "{" + strings.Join(attributes, ", ") + "}"},
	}
}

// apacheRetryPolicy is a retry policy as Java writes it.
func apacheRetryPolicy(p remoting.GroupRetryPolicy) string {
	exponential, customized := "null", "null"
	if e := p.ExponentialRetryPolicy; e != nil {
		exponential = fmt.Sprintf("ExponentialRetryPolicy{initial=%d, max=%d, multiplier=%d}", e.Initial, e.Max, e.Multiplier)
	}
	if c := p.CustomizedRetryPolicy; c != nil {
		customized = "CustomizedRetryPolicy{next=" + strings.ReplaceAll(fmt.Sprint(c.Next), " ", ", ") + "}"
	}
	return "GroupRetryPolicy{type=" + p.Type + ", exponentialRetryPolicy=" + exponential + ", customizedRetryPolicy=" + customized + "}"
}
