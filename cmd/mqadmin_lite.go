package cmd

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/fastjson"
	"mqx/internal/sorted"
	"mqx/remoting"
)

func newMqadminLiteCmds(a *app) []*cobra.Command {
	return []*cobra.Command{
		newMqadminGetBrokerLiteInfo(a), newMqadminGetParentTopicInfo(a), newMqadminGetLiteTopicInfo(a), newMqadminGetLiteClientInfo(a), newMqadminGetLiteGroupInfo(a),
	}
}

func newMqadminGetBrokerLiteInfo(a *app) *cobra.Command {
	var broker, cluster string
	var detail bool
	return mqadminCmd(a, "getBrokerLiteInfo", "Get broker lite info", "mqx admin broker get [BROKER] --show lite", false, []string{"brokerAddr|cluster"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&broker, "brokerAddr", "b", "", "broker address")
			f.StringVarP(&cluster, "cluster", "c", "", "cluster name")
			f.BoolVarP(&detail, "showDetail", "d", false, "show topic and group detail info")
		},
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			found, errs, err := client.BrokerLites(ctx, admin.Target{Cluster: cluster, Broker: broker})
			if err != nil {
				return err
			}
			if err := allFailed(len(found), errs); err != nil {
				return err
			}
			const form = "%-30v %-17v %-10v %-14v %-20v %-17v %-15v %-18v %-15v\n"
			if err := a.printf(form, "#Broker", "#Store Type", "#Max LMQ", "#Current LMQ", "#SubscriptionCount", "#OrderInfoCount", "#CQTableSize", "#OffsetTableSize", "#eventMapSize"); err != nil {
				return err
			}
			for _, b := range found {
				i := &b.Info
				if err := a.printf(form, b.Addr, i.StoreType, i.MaxLMQNum, i.CurrentLMQNum, i.LiteSubscriptionCount, i.OrderInfoCount, i.CQTableSize, i.OffsetTableSize, i.EventMapSize); err != nil {
					return err
				}
				if !detail {
					continue
				}
				topics, err := fastjson.MarshalStandard(i.TopicMeta)
				if err != nil {
					return fmt.Errorf("cannot print topics: %w", err)
				}
				groups, err := fastjson.MarshalStandard(i.GroupMeta)
				if err != nil {
					return fmt.Errorf("cannot print groups: %w", err)
				}
				if err := a.printf("Topic Meta: %s\nGroup Meta: %s\n\n", topics, groups); err != nil {
					return err
				}
			}
			return a.partial(targetProblems(errs))
		})
}

// liteAnswers prints a heading and a line for each broker; what did not answer is
// named below.
func liteAnswers[T any](a *app, heading string, found []admin.Lite[T], errs []admin.TargetError, row func(*admin.Lite[T]) error) error {
	if err := allFailed(len(found), errs); err != nil {
		return err
	}
	if err := a.printf("%s", heading); err != nil {
		return err
	}
	for i := range found {
		if err := row(&found[i]); err != nil {
			return err
		}
	}
	return a.partial(targetProblems(errs))
}

func newMqadminGetParentTopicInfo(a *app) *cobra.Command {
	var parent string
	return mqadminCmd(a, "getParentTopicInfo", "Get parent topic info", "mqx admin topic get TOPIC --show lite", false, []string{"parentTopic"},
		func(f *pflag.FlagSet) { f.StringVarP(&parent, "parentTopic", "p", "", "parent topic name") },
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			found, errs, err := client.ParentTopics(ctx, parent)
			if err != nil {
				return err
			}
			const form = "%-50v %-8v %-14v %-14v %-100v \n"
			heading := fmt.Sprintf("Parent Topic Info: [%s]\n", parent) + fmt.Sprintf(form, "#Broker Name", "#TTL", "#Lite Count", "#LMQ NUM", "#GROUPS")
			return liteAnswers(a, heading, found, errs, func(l *admin.Lite[remoting.ParentTopicInfo]) error {
				return a.printf(form, front(l.Name, 40), l.Info.TTL, l.Info.LiteTopicCount, l.Info.LMQNum, javaList(l.Info.Groups))
			})
		})
}

// javaList is a set as Java prints it.
func javaList(list []string) string { return "[" + strings.Join(list, ", ") + "]" }

func newMqadminGetLiteTopicInfo(a *app) *cobra.Command {
	var parent, lite string
	var clients bool
	return mqadminCmd(a, "getLiteTopicInfo", "Get lite topic info", "mqx admin topic get TOPIC --show lite --lite NAME", false, []string{"parentTopic", "liteTopic"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&parent, "parentTopic", "p", "", "parent topic name")
			f.StringVarP(&lite, "liteTopic", "l", "", "lite topic name")
			f.BoolVarP(&clients, "showClientId", "s", false, "show all client ids")
		},
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			found, errs, err := client.LiteTopics(ctx, parent, lite)
			if err != nil {
				return err
			}
			const form = "%-50v %-14v %-14v %-30v %-12v %-18v \n"
			heading := fmt.Sprintf("Lite Topic Info: [%s] [%s] [%s]\n", parent, lite, lightQueue(parent, lite)) +
				fmt.Sprintf(form, "#Broker Name", "#MinOffset", "#MaxOffset", "#LastUpdate", "#Sharding", "#SubClientCount")
			return liteAnswers(a, heading, found, errs, func(l *admin.Lite[remoting.LiteTopicInfo]) error {
				from, to, last := "-", "-", "-"
				if o := l.Info.TopicOffset; o != nil {
					from, to, last = strconv.FormatInt(o.MinOffset, 10), strconv.FormatInt(o.MaxOffset, 10), commaTime(o.LastUpdateTimestamp, "-")
				}
				if err := a.printf(form, front(l.Name, 40), from, to, last, l.Info.ShardingToBroker, len(l.Info.Subscriber)); err != nil || !clients {
					return err
				}
				var who []string
				for _, s := range l.Info.Subscriber {
					who = append(who, s.ClientID+"@"+s.Group)
				}
				return a.printf("%s\n", javaList(who))
			})
		})
}

// lightQueue is the name of the light queue of a lite topic.
func lightQueue(parent, lite string) string { return "%LMQ%$" + parent + "$" + lite }

func newMqadminGetLiteClientInfo(a *app) *cobra.Command {
	var parent, group, id string
	var detail bool
	return mqadminCmd(a, "getLiteClientInfo", "Get lite client info", "mqx admin client get CLIENT -g GROUP -t TOPIC --show lite", false, []string{"parentTopic", "group", "clientId"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&parent, "parentTopic", "p", "", "parent topic name")
			f.StringVarP(&group, "group", "g", "", "consumer group")
			f.StringVarP(&id, "clientId", "c", "", "client id")
			f.BoolVarP(&detail, "showDetail", "s", false, "show details")
		},
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			found, errs, err := client.LiteClients(ctx, parent, group, id)
			if err != nil {
				return err
			}
			const form = "%-30v %-20v %-30v %-30v \n"
			heading := fmt.Sprintf("Lite Client Info: [%s] [%s] [%s]\n", parent, group, id) + fmt.Sprintf(form, "#Broker", "#LiteTopicCount", "#LastAccessTime", "#LastConsumeTime")
			return liteAnswers(a, heading, found, errs, func(l *admin.Lite[remoting.LiteClientInfo]) error {
				count := "N/A"
				if l.Info.LiteTopicCount > 0 {
					count = strconv.Itoa(int(l.Info.LiteTopicCount))
				}
				if err := a.printf(form, l.Name, count, commaTime(l.Info.LastAccessTime, "N/A"), commaTime(l.Info.LastConsumeTime, "N/A")); err != nil {
					return err
				}
				if detail && l.Info.LiteTopicSet != nil {
					return a.printf("Lite Topics: %s\n\n", javaList(l.Info.LiteTopicSet))
				}
				return nil
			})
		})
}

func newMqadminGetLiteGroupInfo(a *app) *cobra.Command {
	var parent, group, lite string
	var top int32
	return mqadminCmd(a, "getLiteGroupInfo", "Get lite group info", "mqx admin group get GROUP -t TOPIC --show lite", false, []string{"parentTopic", "group"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&parent, "parentTopic", "p", "", "parent topic name")
			f.StringVarP(&group, "group", "g", "", "consumer group")
			f.StringVarP(&lite, "liteTopic", "l", "", "query lite topic detail")
			f.Int32VarP(&top, "topK", "k", 20, "topK value of each broker")
		},
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			found, errs, err := client.LiteGroups(ctx, parent, group, lite, top)
			if err != nil {
				return err
			}
			return a.mqadminLiteGroup(parent, group, lite, found, errs)
		})
}

func (a *app) mqadminLiteGroup(parent, group, lite string, found []admin.Lite[remoting.LiteGroupInfo], errs []admin.TargetError) error {
	const form = "%-50v %-16v %-16v %-16v %-30v\n"
	heading := fmt.Sprintf("Lite Group Info: [%s] [%s]\n", group, parent)
	if lite != "" {
		heading += fmt.Sprintf(form, "#Broker Name", "#BrokerOffset", "#ConsumeOffset", "#LagCount", "#LastUpdate")
	}
	var total, oldest int64
	var byCount, byTime []remoting.LiteLag
	if err := allFailed(len(found), errs); err != nil {
		return err
	}
	err := liteAnswers(a, heading, found, nil, func(l *admin.Lite[remoting.LiteGroupInfo]) error {
		total += max(0, l.Info.TotalLagCount)
		if at := l.Info.EarliestUnconsumedTimestamp; at > 0 && (oldest == 0 || at < oldest) {
			oldest = at
		}
		byCount, byTime = append(byCount, l.Info.LagCountTopK...), append(byTime, l.Info.LagTimestampTopK...)
		o := l.Info.LiteTopicOffsetWrapper
		switch {
		case lite == "":
			return nil
		case o == nil:
			return a.printf(form, l.Name, "-", "-", "-", "-")
		}
		return a.printf(form, l.Name, o.BrokerOffset, o.ConsumerOffset, o.BrokerOffset-o.ConsumerOffset, commaTime(o.LastTimestamp, "-"))
	})
	if err != nil {
		return err
	}
	if err := a.mqadminLiteTotals(lite, total, oldest, byCount, byTime); err != nil {
		return err
	}
	return a.partial(targetProblems(errs))
}

func (a *app) mqadminLiteTotals(lite string, total, oldest int64, byCount, byTime []remoting.LiteLag) error {
	when := "-"
	if oldest > 0 {
		when = fmt.Sprintf("%d (%d s ago)", oldest, time.Since(time.UnixMilli(oldest))/time.Second)
	}
	if err := a.printf("Total Lag Count: %d\nMin Unconsumed Timestamp: %s\n\n", total, when); err != nil || lite != "" {
		return err
	}
	sorted.By(byCount, func(x, y remoting.LiteLag) int { return cmp.Compare(y.LagCount, x.LagCount) })
	sorted.By(byTime, func(x, y remoting.LiteLag) int {
		return cmp.Compare(x.EarliestUnconsumedTimestamp, y.EarliestUnconsumedTimestamp)
	})
	if err := a.mqadminLiteTop("------TopK by lag count-----\n", byCount); err != nil {
		return err
	}
	return a.mqadminLiteTop("\n------TopK by lag time------\n", byTime)
}

func (a *app) mqadminLiteTop(heading string, list []remoting.LiteLag) error {
	const form = "%-6v %-40v %-12v %-30v\n"
	if err := a.printf("%s"+form, heading, "NO", "Lite Topic", "Lag Count", "UnconsumedTimestamp"); err != nil {
		return err
	}
	for i, t := range list {
		if err := a.printf(form, i+1, t.LiteTopic, t.LagCount, commaTime(t.EarliestUnconsumedTimestamp, "-")); err != nil {
			return err
		}
	}
	return nil
}
