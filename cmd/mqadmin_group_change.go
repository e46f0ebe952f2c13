package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/client"
	"mqx/internal/userfile"
	"mqx/message"
	"mqx/remoting"
)

// apacheGroupOptions are the options of updateSubGroup, as texts: Apache's tool takes
// anything but true for false.
type apacheGroupOptions struct {
	consume, fromMin, broadcast, order, notify string
	retryQueues, retries                       int32
	brokerID, slow                             int64
	policy, attributes                         string
}

func (g *apacheGroupOptions) add(f *pflag.FlagSet) {
	f.StringVarP(&g.consume, "consumeEnable", "s", "true", "consume enable")
	f.StringVarP(&g.fromMin, "consumeFromMinEnable", "m", "false", "from min offset")
	f.StringVarP(&g.broadcast, "consumeBroadcastEnable", "d", "false", "broadcast")
	f.StringVarP(&g.order, "consumeMessageOrderly", "o", "false", "consume message orderly")
	f.Int32VarP(&g.retryQueues, "retryQueueNums", "q", 1, "retry queue nums")
	f.Int32VarP(&g.retries, "retryMaxTimes", "r", 16, "retry max times")
	f.StringVarP(&g.policy, "groupRetryPolicy", "p", "", "the json string of retry policy")
	f.Int64VarP(&g.brokerID, "brokerId", "i", 0, "consumer from which broker id")
	f.Int64VarP(&g.slow, "whichBrokerWhenConsumeSlowly", "w", 1, "which broker id when consume slowly")
	f.StringVarP(&g.notify, "notifyConsumerIdsChanged", "a", "true", "notify consumerId changed")
	f.StringVar(&g.attributes, "attributes", "", "attributes as +a=b,+c=d,-e")
}

func (g *apacheGroupOptions) spec(name string) (admin.GroupSpec, error) {
	on := func(text string) *bool {
		v := strings.EqualFold(strings.TrimSpace(text), "true")
		return &v
	}
	s := admin.GroupSpec{
		Name: name, Exact: true, Consume: on(g.consume), FromMin: on(g.fromMin), Broadcast: on(g.broadcast), Order: on(g.order), Notify: on(g.notify),
		RetryQueues: &g.retryQueues, Retries: &g.retries, ReadBroker: &g.brokerID, SlowBroker: &g.slow,
	}
	if g.policy != "" {
		p, err := parseRetryPolicy(g.policy)
		if err != nil {
			return s, err
		}
		s.Policy = p
	}
	var err error
	s.Attributes, err = apacheAttributes(g.attributes)
	return s, err
}

func newMqadminUpdateSubGroup(a *app) *cobra.Command {
	var t apacheTarget
	var name string
	var g apacheGroupOptions
	return mqadminCmd(a, "updateSubGroup", "Update or create subscription group", "mqx admin group create GROUP", true, []string{"groupName", apacheWhere},
		func(f *pflag.FlagSet) {
			t.flags(f, "clusterName")
			f.StringVarP(&name, "groupName", "g", "", "consumer group name")
			g.add(f)
		},
		func(ctx context.Context, c *cobra.Command, o *mqadminOptions, client *admin.Client) error {
			spec, err := g.spec(name)
			if err != nil {
				return err
			}
			done, err := a.mqadminChange(ctx, c, o, client, func() (admin.Plan, error) { return client.PlanGroup(ctx, t.on(), spec) })
			if err != nil {
				return err
			}
			var last admin.GroupState
			return a.mqadminDone(done, func(s admin.Step) string {
				last, _ = s.After.(admin.GroupState)
				last.Config.Attributes = spec.Attributes // as Apache's tool prints them: what was asked for
				return "create subscription group to " + s.Addr + " success.\n"
			}, func() string { return apacheGroupText(last.Config) + "\n" })
		})
}

// apacheGroupText is a group as Apache's tool prints it in one line.
func apacheGroupText(g remoting.SubscriptionGroupConfig) string {
	var parts []string
	for _, f := range apacheGroupFields(&g) {
		value := f[1]
		if f[0] == "subscriptionDataSet" && value == "" {
			value = "null"
		}
		parts = append(parts, f[0]+"="+value)
	}
	return "SubscriptionGroupConfig{" + strings.Join(parts, ", ") + "}"
}

func newMqadminSubGroupList(a *app) *cobra.Command {
	return mqadminListUpdate(a, "updateSubGroupList", "Update or create subscription group in batch", "group", "SubscriptionGroupConfig", func(m *admin.Metadata) { m.TopicConfigTable = nil })
}

func newMqadminTopicListUpdate(a *app) *cobra.Command {
	return mqadminListUpdate(a, "updateTopicList", "create or update topic in batch", "topic", "TopicConfig", func(m *admin.Metadata) { m.SubscriptionGroupTable = nil })
}

// mqadminListUpdate makes a command that takes a file with a list of topics or groups; only
// leaves the kind that is meant.
func mqadminListUpdate(a *app, name, short, kind, class string, only func(*admin.Metadata)) *cobra.Command {
	var t apacheTarget
	var file string
	return mqadminCmd(a, name, short, "mqx admin "+kind+" create --from-file FILE", true, []string{"filename", apacheWhere},
		func(f *pflag.FlagSet) {
			t.flags(f, "clusterName")
			f.StringVarP(&file, "filename", "f", "", "file with a list of "+class+" in json format")
		},
		func(ctx context.Context, c *cobra.Command, o *mqadminOptions, client *admin.Client) error {
			m, err := a.readMetadata(file)
			if err != nil {
				return err
			}
			only(m)
			return a.mqadminImport(ctx, c, o, client, t.on(), m, "submit batch of "+kind+" config to %s success, please check the result later.\n")
		})
}

// mqadminImport makes topics or groups, with a line for each broker.
func (a *app) mqadminImport(ctx context.Context, c *cobra.Command, o *mqadminOptions, client *admin.Client, on admin.Target, m *admin.Metadata, line string) error {
	plans, err := client.PlanImport(ctx, on, m)
	if err != nil {
		return err
	}
	if len(plans) != 1 {
		return usagef("the file has nothing of the kind").try("mqx admin cluster import FILE")
	}
	done, err := a.mqadminChange(ctx, c, o, client, func() (admin.Plan, error) { return plans[0], nil })
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	return a.mqadminDone(done, func(s admin.Step) string {
		if seen[s.Addr] {
			return ""
		}
		seen[s.Addr] = true
		return fmt.Sprintf(line, s.Addr)
	}, nil)
}

func newMqadminDeleteSubGroup(a *app) *cobra.Command {
	var t apacheTarget
	var name, offsets string
	return mqadminCmd(a, "deleteSubGroup", "Delete subscription group from broker", "mqx admin group rm GROUP", true, []string{"groupName", apacheWhere},
		func(f *pflag.FlagSet) {
			t.flags(f, "clusterName")
			f.StringVarP(&name, "groupName", "g", "", "subscription group name")
			f.StringVarP(&offsets, "removeOffset", "r", "", "remove offset (true or false)")
		},
		func(ctx context.Context, c *cobra.Command, o *mqadminOptions, client *admin.Client) error {
			// As there, one broker keeps the retry and the dead letter topic.
			r := admin.GroupRemoval{KeepOffsets: !strings.EqualFold(strings.TrimSpace(offsets), "true"), KeepTopics: t.broker != ""}
			done, err := a.mqadminChange(ctx, c, o, client, func() (admin.Plan, error) { return client.PlanDeleteGroup(ctx, t.on(), name, r) })
			if err != nil {
				return err
			}
			return a.mqadminDone(done, func(s admin.Step) string {
				if t.broker != "" {
					return fmt.Sprintf("delete subscription group [%s] from broker [%s] success.\n", name, s.Addr)
				}
				return fmt.Sprintf("delete subscription group [%s] from broker [%s] in cluster [%s] success.\n", name, s.Addr, t.cluster)
			}, nil)
		})
}

func newMqadminConsumeMode(a *app) *cobra.Command {
	var t apacheTarget
	var topic, group, mode string
	var share int32
	return mqadminAct{
		name: "setConsumeMode", short: "Set consume message mode", ours: "mqx admin group set GROUP -t TOPIC --mode pop", required: []string{"topicName", "groupName", "mode", apacheWhere},
		flags: func(f *pflag.FlagSet) {
			t.flags(f, "clusterName")
			f.StringVarP(&topic, "topicName", "t", "", "topic name")
			f.StringVarP(&group, "groupName", "g", "", "consumer group name")
			f.StringVarP(&mode, "mode", "m", "", "consume mode. PULL/POP")
			f.Int32VarP(&share, "popShareQueueNum", "q", 0, "num of queue which share in pop mode")
		},
		plan: func(ctx context.Context, _ *cobra.Command, client *admin.Client) (admin.Plan, error) {
			return client.PlanMode(ctx, t.on(), topic, group, admin.ModeState{Mode: mode, Share: share})
		},
		line: func(s admin.Step) string { return "set consume mode to " + s.Addr + " success.\n" },
		end: func() string {
			return fmt.Sprintf("topic[%s] group[%s] consume mode[%s] popShareQueueNum[%d]\n", topic, group, mode, share)
		},
	}.command(a)
}

func newMqadminOrderConf(a *app) *cobra.Command {
	var topic, value, method string
	return mqadminCmd(a, "updateOrderConf", "Create or update or delete order conf", "mqx admin topic set TOPIC --order-conf 'BROKER:QUEUES;...'", true, []string{"topic", "method"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&topic, "topic", "t", "", "topic name")
			f.StringVarP(&value, "orderConf", "v", "", "set order conf [eg. brokerName1:num;brokerName2:num]")
			f.StringVarP(&method, "method", "m", "", "option type [eg. put|get|delete]")
		},
		func(ctx context.Context, c *cobra.Command, o *mqadminOptions, client *admin.Client) error {
			to := &value
			text := fmt.Sprintf("update orderConf success. topic=[%s], orderConf=[%s]\n", topic, value)
			switch method {
			case "get":
				now, err := client.OrderConf(ctx, topic)
				if err != nil {
					return err
				}
				return a.printf("get orderConf success. topic=[%s], orderConf=[%s] \n", topic, now)
			case "delete":
				to, text = nil, fmt.Sprintf("delete orderConf success. topic=[%s]\n", topic)
			case "put":
				if value == "" {
					return usagef("cannot run %q: --orderConf is missing", c.CommandPath()).try("-v 'broker-a:4;broker-b:4'")
				}
			default:
				return notOneOf("--method", method, "put", "get", "delete")
			}
			done, err := a.mqadminChange(ctx, c, o, client, func() (admin.Plan, error) { return client.PlanOrderConf(ctx, topic, to) })
			if err != nil {
				return err
			}
			return a.mqadminDone(done, nil, func() string { return text })
		})
}

// maxCompactionLog bounds a file of a compaction log: it is read as a whole.
const maxCompactionLog = 1 << 30

func newMqadminDumpCompaction(a *app) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "dumpCompactionLog", Short: "Parse compaction log to message", Example: "  mqx mqadmin dumpCompactionLog -f FILE",
		Annotations: map[string]string{oursAnnotation: "mqx mqadmin dumpCompactionLog -f FILE"},
		Args:        exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			if file == "" {
				return usagef("cannot run %q: --file is missing", c.CommandPath()).try("-f FILE")
			}
			return a.dumpRecords(file)
		},
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.StringVarP(&file, "file", "f", "", "to dump file name")
		f.StringP("namesrvAddr", "n", "", "not needed: every command of Apache's takes it")
	})
	return c
}

// dumpRecords prints the messages of a file of records, one a line, until the first
// bytes that are none.
func (a *app) dumpRecords(path string) error {
	data, err := userfile.Read(path, maxCompactionLog)
	if err != nil {
		return inputFailure("file", path, "-f with a file of a compacted topic", err)
	}
	for m, err := range message.DecodeMessages(data, message.ReceiveOptions{}) {
		if err != nil {
			return nil // the file ends with bytes that are no records
		}
		if err := a.printf("%s\n", javaMessageOf(client.NewReceived(m, remoting.MessageQueue{BrokerName: "null"}), "null")); err != nil {
			return err
		}
	}
	return nil
}

// noRocksDBHere is why commands that open a RocksDB on this machine are refused.
const noRocksDBHere = "mqx reads no RocksDB: it is a store of Apache's brokers alone"

func newMqadminRocksDBToJSON(a *app) *cobra.Command {
	var broker, cluster, path, kind, file, asJSON string
	return mqadminCmd(a, "rocksDBConfigToJson", "Convert RocksDB kv config (topics/subscriptionGroups/consumerOffsets) to json", "mqx admin broker export BROKER --rocksdb-config topics", true, nil,
		func(f *pflag.FlagSet) {
			f.StringVarP(&kind, "configType", "t", "", "topics, subscriptionGroups or consumerOffsets")
			f.StringVarP(&path, "configPath", "p", "", "path of a RocksDB on this machine")
			f.StringVarP(&file, "exportFile", "e", "", "file to write")
			f.StringVarP(&asJSON, "jsonEnable", "j", "", "json format, or each key and value")
			f.StringVarP(&cluster, "cluster", "c", "", "all brokers of this cluster")
			f.StringVarP(&broker, "brokerAddr", "b", "", "this broker")
		},
		func(ctx context.Context, c *cobra.Command, o *mqadminOptions, client *admin.Client) error {
			if path != "" {
				return failf(ExitFailed, "cannot read RocksDB %q", path).because(noRocksDBHere).try("-b BROKER, where that broker runs")
			}
			types := rocksDBTypes
			if kind != "" {
				types = strings.Split(kind, ";")
			}
			if err := checkRocksDBTypes(types); err != nil {
				return err
			}
			if broker == "" && cluster == "" {
				return usagef("cannot run %q: --cluster or --brokerAddr is missing", c.CommandPath()).try("-c DefaultCluster")
			}
			done, err := a.mqadminChange(ctx, c, o, client, func() (admin.Plan, error) {
				return client.PlanRocksDBToJSON(ctx, admin.Target{Cluster: cluster, Broker: broker}, types)
			})
			if err != nil {
				return err
			}
			return a.mqadminDone(done, nil, func() string {
				return "Use [rpc mode] call all brokers in cluster to export to json file \nbroker export done.\n"
			})
		})
}
