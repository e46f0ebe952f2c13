package cmd

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/fastjson"
	"mqx/internal/render"
	"mqx/message"
	"mqx/remoting"
)

func newMqadminTopicCmds(a *app) []*cobra.Command {
	return []*cobra.Command{
		newMqadminTopicList(a), newMqadminTopicRoute(a), newMqadminTopicStatus(a), newMqadminTopicClusterList(a),
		newMqadminUpdateTopic(a), newMqadminUpdateTopicPerm(a), newMqadminDeleteTopic(a),
	}
}

func newMqadminTopicList(a *app) *cobra.Command {
	var byCluster bool
	return mqadminCmd(a, "topicList", "Fetch all topic list from name server", "mqx admin topic ls --all", false, nil,
		func(f *pflag.FlagSet) {
			f.BoolVarP(&byCluster, "clusterModel", "c", false, "list the cluster and the groups of each topic as well")
		},
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			names, err := client.TopicNames(ctx)
			if err != nil {
				return err
			}
			if !byCluster {
				for _, n := range names {
					if err := a.printf("%s\n", n); err != nil {
						return err
					}
				}
				return nil
			}
			return a.mqadminTopicsByCluster(ctx, client, names)
		})
}

func (a *app) mqadminTopicsByCluster(ctx context.Context, client *admin.Client, names []string) error {
	if err := a.printf("%-20s  %-48s  %-48s\n", "#Cluster Name", "#Topic", "#Consumer Group"); err != nil {
		return err
	}
	var missing problems
	for _, n := range names {
		if message.IsRetry(n) || message.IsDLQ(n) {
			continue
		}
		cluster := ""
		route, err := client.Route(ctx, n)
		if err == nil && len(route.BrokerDatas) > 0 {
			cluster = route.BrokerDatas[0].Cluster
		}
		var groups []string
		if err == nil {
			var errs []admin.TargetError
			groups, errs, err = client.TopicGroups(ctx, n)
			missing = append(missing, targetProblems(errs)...)
		}
		if err != nil {
			missing = append(missing, render.Problem{Target: "topic " + n, Message: err.Error()})
		}
		if len(groups) == 0 {
			groups = []string{""}
		}
		for _, g := range groups {
			if err := a.printf("%-20s  %-64s  %-64s\n", front(cluster, 20), front(n, 64), front(g, 64)); err != nil {
				return err
			}
		}
	}
	return a.partial(missing)
}

func newMqadminTopicRoute(a *app) *cobra.Command {
	var topic string
	var list bool
	return mqadminCmd(a, "topicRoute", "Examine topic route info", "mqx admin topic get TOPIC --show config", false, []string{"topic"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&topic, "topic", "t", "", "topic name")
			f.BoolVarP(&list, "list", "l", false, "print a table")
		},
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			route, err := client.Route(ctx, topic)
			if err != nil {
				return err
			}
			if list {
				return a.mqadminRouteTable(route)
			}
			text, err := fastjson.MarshalPretty(route)
			if err != nil {
				return fmt.Errorf("cannot print route: %w", err)
			}
			return a.printf("%s\n", text)
		})
}

func (a *app) mqadminRouteTable(route *remoting.TopicRouteData) error {
	const form = "%-45s %-32s %-50s %-10v %-11v %-5v\n"
	queues := map[string]remoting.QueueData{}
	for _, q := range route.QueueDatas {
		queues[q.BrokerName] = q
	}
	brokers := slices.SortedFunc(slices.Values(route.BrokerDatas), func(x, y remoting.BrokerData) int { return strings.Compare(x.BrokerName, y.BrokerName) })
	if err := a.printf(form, "#ClusterName", "#BrokerName", "#BrokerAddrs", "#ReadQueue", "#WriteQueue", "#Perm"); err != nil {
		return err
	}
	var read, write int32
	for _, b := range brokers {
		q := queues[b.BrokerName]
		read, write = read+q.ReadQueueNums, write+q.WriteQueueNums
		var addrs []string
		for _, id := range slices.Sorted(maps.Keys(b.BrokerAddrs)) {
			addrs = append(addrs, fmt.Sprintf("%d=%s", id, b.BrokerAddrs[id]))
		}
		if err := a.printf(form, b.Cluster, b.BrokerName, "{"+strings.Join(addrs, ", ")+"}", q.ReadQueueNums, q.WriteQueueNums, q.Perm); err != nil {
			return err
		}
	}
	if err := a.printf("%s\n", strings.Repeat("-", 158)); err != nil {
		return err
	}
	return a.printf(form, "Total:", strconv.Itoa(len(queues)), "", read, write, "")
}

func newMqadminTopicStatus(a *app) *cobra.Command {
	var topic, cluster string
	return mqadminCmd(a, "topicStatus", "Examine topic Status info", "mqx admin topic get TOPIC", false, []string{"topic"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&topic, "topic", "t", "", "topic name")
			f.StringVarP(&cluster, "cluster", "c", "", "only the brokers of this cluster")
		},
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			t, err := client.GetTopic(ctx, topic)
			if err != nil {
				return err
			}
			if err := allFailed(len(t.Queues), t.Errors); err != nil {
				return err
			}
			if err := a.printf("%-32s  %-4s  %-20s  %-20s    %s\n", "#Broker Name", "#QID", "#Min Offset", "#Max Offset", "#Last Updated"); err != nil {
				return err
			}
			for _, q := range t.Queues {
				if cluster != "" && q.Cluster != cluster {
					continue
				}
				when := ""
				if !q.LastUpdated.IsZero() {
					when = q.LastUpdated.Local().Format("2006-01-02 15:04:05,000")
				}
				if err := a.printf("%-32s  %-4d  %-20d  %-20d    %s\n", front(q.Broker, 32), q.QueueID, q.MinOffset, q.MaxOffset, when); err != nil {
					return err
				}
			}
			if err := a.printf("\nTopic Put TPS: %s\n", javaDouble(t.PutTPS)); err != nil {
				return err
			}
			return a.partial(targetProblems(t.Errors))
		})
}

// javaDouble writes a number as Java does: there is always a digit behind the point.
func javaDouble(v float64) string {
	text := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

func newMqadminTopicClusterList(a *app) *cobra.Command {
	var topic string
	return mqadminCmd(a, "topicClusterList", "Get cluster info for topic", "mqx admin topic get TOPIC --show config", false, []string{"topic"},
		func(f *pflag.FlagSet) { f.StringVarP(&topic, "topic", "t", "", "topic name") },
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			route, err := client.Route(ctx, topic)
			if err != nil {
				return err
			}
			var clusters []string
			for _, b := range route.BrokerDatas {
				clusters = append(clusters, b.Cluster)
			}
			for _, c := range unique(clusters) {
				if err := a.printf("%s\n", c); err != nil {
					return err
				}
			}
			return nil
		})
}

func newMqadminUpdateTopic(a *app) *cobra.Command {
	var broker, cluster, attributes, order, unit, unitSub string
	spec := admin.TopicSpec{Exact: true}
	return mqadminCmd(a, "updateTopic", "Update or create topic", "mqx admin topic create TOPIC", true, []string{"topic", "clusterName|brokerAddr"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&spec.Name, "topic", "t", "", "topic name")
			f.StringVarP(&broker, "brokerAddr", "b", "", "create topic to which broker")
			f.StringVarP(&cluster, "clusterName", "c", "", "create topic to which cluster")
			f.IntVarP(&spec.ReadQueues, "readQueueNums", "r", 8, "set read queue nums")
			f.IntVarP(&spec.WriteQueues, "writeQueueNums", "w", 8, "set write queue nums")
			f.IntVarP(&spec.Perm, "perm", "p", 6, "set topic's permission, 2: W, 4: R, 6: RW")
			f.StringVarP(&order, "order", "o", "false", "set topic's order (true or false)")
			f.StringVarP(&unit, "unit", "u", "false", "is unit topic (true or false)")
			f.StringVarP(&unitSub, "hasUnitSub", "s", "false", "has unit sub (true or false)")
			f.StringVarP(&attributes, "attributes", "a", "", "attributes as +a=b,+c=d,-e")
		},
		func(ctx context.Context, c *cobra.Command, o *mqadminOptions, client *admin.Client) error {
			for text, to := range map[*string]*bool{&order: &spec.Order, &unit: &spec.Unit, &unitSub: &spec.HasUnitSub} {
				*to = strings.EqualFold(strings.TrimSpace(*text), "true")
			}
			var err error
			if spec.Attributes, err = apacheAttributes(attributes); err != nil {
				return err
			}
			done, err := a.mqadminChange(ctx, c, o, client, func() (admin.Plan, error) {
				return client.PlanCreateTopic(ctx, admin.Target{Cluster: cluster, Broker: broker}, spec)
			})
			if err != nil {
				return err
			}
			var state any
			for _, s := range done.steps {
				if err := a.printf("create topic to %s success.\n", s.Addr); err != nil {
					return err
				}
				state = s.After
			}
			if made, ok := state.(admin.TopicState); ok {
				made.Attributes = spec.Attributes // as Apache's tool prints them: what was asked for
				if err := a.printf("%s\n", apacheTopicText(spec.Name, made)); err != nil {
					return err
				}
			}
			return a.partial(targetProblems(done.errs))
		})
}

// apacheAttributes reads +a=b,+c=d,-e.
func apacheAttributes(text string) (map[string]string, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	out := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if len(key) < 2 || key[0] != '+' && key[0] != '-' || key[0] == '+' && !ok {
			return nil, usagef("cannot read attribute %q: it has the form +name=value or -name", part).try("-a +cleanup.policy=DELETE")
		}
		out[key] = value
	}
	return out, nil
}

// apacheTopicText is a topic as Apache's tool prints it.
func apacheTopicText(name string, t admin.TopicState) string {
	perm := []byte("---")
	if t.PermBits&4 != 0 {
		perm[0] = 'R'
	}
	if t.PermBits&2 != 0 {
		perm[1] = 'W'
	}
	if t.PermBits&1 != 0 {
		perm[2] = 'X'
	}
	var attributes []string
	for _, k := range slices.Sorted(maps.Keys(t.Attributes)) {
		attributes = append(attributes, k+"="+t.Attributes[k])
	}
	return fmt.Sprintf("TopicConfig [topicName=%s, readQueueNums=%d, writeQueueNums=%d, perm=%s, topicFilterType=SINGLE_TAG, topicSysFlag=%d, order=%t, attributes={%s}]",
		name, t.ReadQueues, t.WriteQueues, perm, t.SysFlag, t.Order, strings.Join(attributes, ", "))
}

func newMqadminUpdateTopicPerm(a *app) *cobra.Command {
	var topic, broker, cluster string
	var perm int
	return mqadminCmd(a, "updateTopicPerm", "Update topic perm", "mqx admin topic create TOPIC --perm PERM", true, []string{"topic", "perm", "clusterName|brokerAddr"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&topic, "topic", "t", "", "topic name")
			f.StringVarP(&broker, "brokerAddr", "b", "", "on which broker")
			f.StringVarP(&cluster, "clusterName", "c", "", "on which cluster")
			f.IntVarP(&perm, "perm", "p", 0, "set topic's permission, 2: W, 4: R, 6: RW")
		},
		func(ctx context.Context, c *cobra.Command, o *mqadminOptions, client *admin.Client) error {
			if _, err := parsePerm(strconv.Itoa(perm)); err != nil {
				return err
			}
			if _, err := client.Route(ctx, topic); err != nil {
				return err // it is not created here
			}
			done, err := a.mqadminChange(ctx, c, o, client, func() (admin.Plan, error) {
				return client.PlanCreateTopic(ctx, admin.Target{Cluster: cluster, Broker: broker}, admin.TopicSpec{Name: topic, Perm: perm})
			})
			if err != nil {
				return err
			}
			for _, s := range done.steps {
				text := "new perm equals to the old one!\n"
				was, ok := s.Before.(admin.TopicState)
				now, both := s.After.(admin.TopicState)
				if ok && both && s.Action != admin.ActionNone {
					text = fmt.Sprintf("update topic perm from %d to %d in %s success.\n", was.PermBits, now.PermBits, s.Addr)
					if broker != "" {
						text += apacheTopicText(topic, now) + ".\n"
					}
				}
				if err := a.printf("%s", text); err != nil {
					return err
				}
			}
			return a.partial(targetProblems(done.errs))
		})
}

func newMqadminDeleteTopic(a *app) *cobra.Command {
	var topic, cluster string
	return mqadminCmd(a, "deleteTopic", "Delete topic from broker and NameServer", "mqx admin topic rm TOPIC", true, []string{"topic", "clusterName"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&topic, "topic", "t", "", "topic name")
			f.StringVarP(&cluster, "clusterName", "c", "", "delete topic from which cluster")
		},
		func(ctx context.Context, c *cobra.Command, o *mqadminOptions, client *admin.Client) error {
			done, err := a.mqadminChange(ctx, c, o, client, func() (admin.Plan, error) {
				return client.PlanDeleteTopic(ctx, admin.Target{Cluster: cluster}, topic)
			})
			if err != nil {
				return err
			}
			if len(done.errs) == 0 {
				if err := a.printf("delete topic [%s] from cluster [%s] success.\ndelete topic [%s] from NameServer success.\n", topic, cluster, topic); err != nil {
					return err
				}
			}
			return a.partial(targetProblems(done.errs))
		})
}

const apacheTime = "2006-01-02 15:04:05"

func apacheTimeText(t time.Time) string {
	if t.IsZero() {
		return "N/A"
	}
	return t.Local().Format(apacheTime)
}
