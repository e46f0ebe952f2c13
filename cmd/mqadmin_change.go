package cmd

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
)

// mqadminAct is a change under Apache's name that is planned from its options and
// tells its success by lines.
type mqadminAct struct {
	name, short, ours string
	required          []string
	flags             func(f *pflag.FlagSet)
	plan              func(ctx context.Context, c *cobra.Command, client *admin.Client) (admin.Plan, error)
	// line is what is printed of each step; begin once, before them, and end behind them.
	begin func() string
	line  func(s admin.Step) string
	end   func() string
	long  bool // only a --timeout that is given bounds it
}

// command makes the command of it.
func (m mqadminAct) command(a *app) *cobra.Command {
	return mqadminCmd(a, m.name, m.short, m.ours, true, m.required, m.flags,
		func(ctx context.Context, c *cobra.Command, o *mqadminOptions, client *admin.Client) error {
			if m.long {
				whole, cancel := a.deadline(c, false)
				defer cancel()
				ctx = whole
			}
			done, err := a.mqadminChange(ctx, c, o, client, func() (admin.Plan, error) { return m.plan(ctx, c, client) })
			if err != nil {
				return err
			}
			if m.begin != nil {
				if err := a.printf("%s", m.begin()); err != nil {
					return err
				}
			}
			return a.mqadminDone(done, m.line, m.end)
		})
}

// mqadminDone prints what was done, as Apache's tool does.
func (a *app) mqadminDone(done *outcome, line func(s admin.Step) string, end func() string) error {
	for _, s := range done.steps {
		if line == nil {
			break
		}
		if err := a.printf("%s", line(s)); err != nil {
			return err
		}
	}
	if end != nil && len(done.steps) > 0 {
		if err := a.printf("%s", end()); err != nil {
			return err
		}
	}
	return a.partial(targetProblems(done.errs))
}

// apacheTarget are the options -b and -c, as most commands have them.
type apacheTarget struct{ broker, cluster string }

func (t *apacheTarget) flags(f *pflag.FlagSet, clusterName string) {
	f.StringVarP(&t.broker, "brokerAddr", "b", "", "on which broker")
	f.StringVarP(&t.cluster, clusterName, "c", "", "on which cluster")
}

func (t *apacheTarget) on() admin.Target { return admin.Target{Cluster: t.cluster, Broker: t.broker} }

const apacheWhere = "clusterName|brokerAddr"

func newMqadminChangeCmds(a *app) []*cobra.Command {
	var out []*cobra.Command
	for _, acts := range [][]mqadminAct{mqadminConfigActs(), mqadminNameServerActs(), mqadminBrokerActs(), mqadminColdActs(), mqadminStoreActs(), mqadminControllerActs(), mqadminContainerActs()} {
		for _, m := range acts {
			out = append(out, m.command(a))
		}
	}
	return append(out,
		newMqadminUpdateSubGroup(a), newMqadminSubGroupList(a), newMqadminDeleteSubGroup(a), newMqadminConsumeMode(a),
		newMqadminTopicListUpdate(a), newMqadminOrderConf(a), newMqadminExportMetadata(a), newMqadminLiteDispatch(a), newMqadminExportPop(a),
		newMqadminDumpCompaction(a), newMqadminRocksDBToJSON(a))
}

func mqadminConfigActs() []mqadminAct {
	var t apacheTarget
	var key, value, all, controllers string
	var nkey, nvalue, ckey, cvalue string
	one := func(f *pflag.FlagSet, k, v *string) {
		f.StringVarP(k, "key", "k", "", "config key")
		f.StringVarP(v, "value", "v", "", "config value")
	}
	var nsAddrs, ctlAddrs []string
	return []mqadminAct{
		{
			name: "updateBrokerConfig", short: "Update broker's config", ours: "mqx admin config set -b BROKER KEY=VALUE", required: []string{"key", "value", apacheWhere},
			flags: func(f *pflag.FlagSet) {
				t.flags(f, "clusterName")
				f.StringVarP(&all, "updateAllBroker", "a", "", "slaves too, with any value")
				one(f, &key, &value)
			},
			plan: func(ctx context.Context, c *cobra.Command, client *admin.Client) (admin.Plan, error) {
				on := t.on()
				return client.PlanConfig(ctx, admin.ConfigPlace{Brokers: &on, All: c.Flags().Changed("updateAllBroker")}, map[string]string{key: value})
			},
			line: func(s admin.Step) string { return "update broker config success, " + s.Addr + "\n" },
		},
		{
			name: "updateNamesrvConfig", short: "Update configs of name server", ours: "mqx admin config set --nameservers KEY=VALUE", required: []string{"key", "value"},
			flags: func(f *pflag.FlagSet) { one(f, &nkey, &nvalue) },
			plan: func(ctx context.Context, _ *cobra.Command, client *admin.Client) (admin.Plan, error) {
				return client.PlanConfig(ctx, admin.ConfigPlace{NameServers: true}, map[string]string{nkey: nvalue})
			},
			line: func(s admin.Step) string { nsAddrs = append(nsAddrs, s.Addr); return "" },
			end: func() string {
				return fmt.Sprintf("update name server config success![%s]\n%s : %s\n", strings.Join(nsAddrs, ", "), nkey, nvalue)
			},
		},
		{
			name: "updateControllerConfig", short: "Update controller config", ours: "mqx admin config set --controller ADDR KEY=VALUE", required: []string{"controllerAddress", "key", "value"},
			flags: func(f *pflag.FlagSet) {
				f.StringVarP(&controllers, "controllerAddress", "a", "", "addresses of controllers, ; between them")
				one(f, &ckey, &cvalue)
			},
			plan: func(ctx context.Context, _ *cobra.Command, client *admin.Client) (admin.Plan, error) {
				return client.PlanConfig(ctx, admin.ConfigPlace{Controllers: addressList(controllers)}, map[string]string{ckey: cvalue})
			},
			line: func(s admin.Step) string { ctlAddrs = append(ctlAddrs, s.Addr); return "" },
			end: func() string {
				return fmt.Sprintf("update controller config success![%s]\n%s : %s\n", strings.Join(ctlAddrs, ", "), ckey, cvalue)
			},
		},
	}
}

func mqadminNameServerActs() []mqadminAct {
	var namespace, key, value string
	var dnamespace, dkey string
	kv := func(f *pflag.FlagSet, n, k *string) {
		f.StringVarP(n, "namespace", "s", "", "set the namespace")
		f.StringVarP(k, "key", "k", "", "set the key name")
	}
	writable := func(name, short, verb string, to bool) mqadminAct {
		var broker string
		return mqadminAct{
			name: name, short: short, ours: fmt.Sprintf("mqx admin broker set BROKER --writable=%t", to), required: []string{"brokerName"},
			flags: func(f *pflag.FlagSet) { f.StringVarP(&broker, "brokerName", "b", "", "broker name") },
			plan: func(ctx context.Context, _ *cobra.Command, client *admin.Client) (admin.Plan, error) {
				return client.PlanWritable(ctx, broker, to)
			},
			line: func(s admin.Step) string {
				n := int32(0)
				if w, ok := s.After.(admin.WritableState); ok && w.Topics != nil {
					n = *w.Topics
				}
				return fmt.Sprintf("%s write perm of broker[%s] in name server[%s] OK, %d\n", verb, broker, s.Addr, n)
			},
		}
	}
	return []mqadminAct{
		{
			name: "updateKvConfig", short: "Create or update KV config", ours: "mqx admin nameserver set --namespace NAMESPACE KEY=VALUE", required: []string{"namespace", "key", "value"},
			flags: func(f *pflag.FlagSet) {
				kv(f, &namespace, &key)
				f.StringVarP(&value, "value", "v", "", "set the key value")
			},
			plan: func(ctx context.Context, _ *cobra.Command, client *admin.Client) (admin.Plan, error) {
				return client.PlanKV(ctx, namespace, key, &value)
			},
			end: func() string { return "create or update kv config to namespace success.\n" },
		},
		{
			name: "deleteKvConfig", short: "Delete KV config", ours: "mqx admin nameserver rm --namespace NAMESPACE KEY", required: []string{"namespace", "key"},
			flags: func(f *pflag.FlagSet) { kv(f, &dnamespace, &dkey) },
			plan: func(ctx context.Context, _ *cobra.Command, client *admin.Client) (admin.Plan, error) {
				return client.PlanKV(ctx, dnamespace, dkey, nil)
			},
			end: func() string { return "delete kv config from namespace success.\n" },
		},
		writable("wipeWritePerm", "Wipe write perm of broker in all name server you defined in the -n param", "wipe", false),
		writable("addWritePerm", "Add write perm of broker in all name server you defined in the -n param", "add", true),
	}
}

func mqadminBrokerActs() []mqadminAct {
	purge := func(name, short, ours string, what admin.Purge) mqadminAct {
		var t apacheTarget
		return mqadminAct{
			name: name, short: short, ours: ours,
			flags: func(f *pflag.FlagSet) { t.flags(f, "cluster") },
			plan: func(ctx context.Context, _ *cobra.Command, client *admin.Client) (admin.Plan, error) {
				return client.PlanPurge(ctx, t.on(), what)
			},
			end: func() string { return "success\n" },
		}
	}
	return []mqadminAct{
		purge("cleanExpiredCQ", "Clean expired ConsumeQueue on broker", "mqx admin broker purge BROKER --queues", admin.PurgeQueues),
		purge("deleteExpiredCommitLog", "Delete expired CommitLog files", "mqx admin broker purge BROKER --expired", admin.PurgeExpired),
		purge("cleanUnusedTopic", "Clean unused topic on broker", "mqx admin broker purge BROKER --unused-topics", admin.PurgeUnusedTopics),
	}
}

// mqadminColdActs are what limits reads of cold data.
func mqadminColdActs() []mqadminAct {
	var cold, uncold apacheTarget
	var group, threshold, ungroup string
	return []mqadminAct{
		{
			name: "updateColdDataFlowCtrGroupConfig", short: "Add or update cold data flow ctr group config", ours: "mqx admin broker set BROKER --cold-limit GROUP=BYTES",
			required: []string{"consumerGroup", "threshold", apacheWhere},
			flags: func(f *pflag.FlagSet) {
				cold.flags(f, "clusterName")
				f.StringVarP(&group, "consumerGroup", "g", "", "the consumer group")
				f.StringVarP(&threshold, "threshold", "v", "", "cold read threshold value")
			},
			plan: func(ctx context.Context, _ *cobra.Command, client *admin.Client) (admin.Plan, error) {
				name, limit, err := parseColdLimit(group + "=" + threshold)
				if err != nil || limit == nil {
					return nil, usagef("cannot use threshold %q: it is a number of 0 or more", threshold).try("-v 8388608")
				}
				return client.PlanColdLimit(ctx, cold.on(), name, limit)
			},
			line: func(s admin.Step) string { return "updateColdDataFlowCtrGroupConfig success, " + s.Addr + "\n" },
		},
		{
			name: "removeColdDataFlowCtrGroupConfig", short: "Remove consumer from cold ctr config", ours: "mqx admin broker set BROKER --cold-limit GROUP=",
			required: []string{"consumerGroup", apacheWhere},
			flags: func(f *pflag.FlagSet) {
				uncold.flags(f, "clusterName")
				f.StringVarP(&ungroup, "consumerGroup", "g", "", "the consumer group will remove from the config")
			},
			plan: func(ctx context.Context, _ *cobra.Command, client *admin.Client) (admin.Plan, error) {
				return client.PlanColdLimit(ctx, uncold.on(), ungroup, nil)
			},
			line: func(s admin.Step) string { return "remove broker cold read threshold success, " + s.Addr + "\n" },
		},
	}
}

// mqadminStoreActs are what changes how a broker's store works.
func mqadminStoreActs() []mqadminAct {
	var ahead, engine apacheTarget
	var mode, engineType, flushAddr, offset string
	return []mqadminAct{
		{
			name: "setCommitLogReadAheadMode", short: "Set read ahead mode for all commitlog files", ours: "mqx admin broker set BROKER --read-ahead normal",
			required: []string{"commitLogReadAheadMode", apacheWhere},
			flags: func(f *pflag.FlagSet) {
				ahead.flags(f, "clusterName")
				f.StringVarP(&mode, "commitLogReadAheadMode", "m", "", "set the CommitLog read ahead mode; 0 is default, 1 random read")
			},
			plan: func(ctx context.Context, _ *cobra.Command, client *admin.Client) (admin.Plan, error) {
				return client.PlanReadAhead(ctx, ahead.on(), mode)
			},
			line: func(s admin.Step) string {
				said, _ := s.After.(string)
				return fmt.Sprintf(" ============%s============\ncommitLog set readAhead mode rstStr%s\n", s.Addr, said)
			},
		},
		{
			name: "switchTimerEngine", short: "switch the engine of timer message in broker", ours: "mqx admin broker set BROKER --timer-engine wheel", required: []string{"engineType", apacheWhere},
			flags: func(f *pflag.FlagSet) {
				engine.flags(f, "clusterName")
				f.StringVarP(&engineType, "engineType", "e", "", "R/F, R for rocksdb timeline engine, F for file time wheel engine")
			},
			plan: func(ctx context.Context, _ *cobra.Command, client *admin.Client) (admin.Plan, error) {
				return client.PlanTimerEngine(ctx, engine.on(), engineType)
			},
			line: func(s admin.Step) string {
				name := map[string]string{admin.TimerWheel: "FILE_TIME_WHEEL", admin.TimerRocksDB: "ROCKSDB_TIMELINE"}[engineType]
				return fmt.Sprintf("switchTimerEngine to %s success, %s\n", name, s.Addr)
			},
		},
		{
			name: "resetMasterFlushOffset", short: "Reset master flush offset in slave", ours: "mqx admin broker set ADDR --master-flush-offset N", required: []string{"brokerAddr", "offset"},
			flags: func(f *pflag.FlagSet) {
				f.StringVarP(&flushAddr, "brokerAddr", "b", "", "which broker to reset")
				f.StringVarP(&offset, "offset", "o", "", "the offset to reset at")
			},
			plan: func(ctx context.Context, _ *cobra.Command, client *admin.Client) (admin.Plan, error) {
				n, err := parseInt64("--offset", offset)
				if err != nil {
					return nil, err
				}
				return client.PlanMasterFlushOffset(ctx, flushAddr, n)
			},
			end: func() string { return "reset master flush offset to " + offset + " success\n" },
		},
	}
}

// mqadminControllerActs are the commands of controllers.
func mqadminControllerActs() []mqadminAct {
	var elect, clean struct{ controller, broker, cluster, ids string }
	var living bool
	return []mqadminAct{
		{
			name: "electMaster", short: "Re-elect the specified broker as master", ours: "mqx admin broker promote BROKER --id N -c CLUSTER --controller ADDR",
			required: []string{"controllerAddress", "brokerId", "brokerName|bn", "clusterName"},
			flags: func(f *pflag.FlagSet) {
				f.StringVarP(&elect.controller, "controllerAddress", "a", "", "the address of controller")
				f.StringVarP(&elect.ids, "brokerId", "b", "", "the id of the broker which requires to become master")
				f.StringVar(&elect.broker, "brokerName", "", "the broker name of the replicas that require to be manipulated (-bn)")
				f.StringVar(&elect.broker, "bn", "", "as --brokerName")
				f.StringVarP(&elect.cluster, "clusterName", "c", "", "the cluster of the broker")
			},
			plan: func(ctx context.Context, _ *cobra.Command, client *admin.Client) (admin.Plan, error) {
				id, err := parseInt64("--brokerId", elect.ids)
				if err != nil {
					return nil, err
				}
				return client.PlanElectMaster(ctx, elect.controller, elect.cluster, elect.broker, id)
			},
			line: func(s admin.Step) string {
				if s.Action == admin.ActionNone {
					return fmt.Sprintf("broker id %s is the master of %s already\n", elect.ids, elect.broker)
				}
				return apacheElected(elect.cluster, elect.broker, s.After)
			},
		},
		{
			name: "cleanBrokerMetadata", short: "Clean metadata of broker on controller", ours: "mqx admin controller purge BROKER -c CLUSTER --controller ADDR", required: []string{"controllerAddress", "brokerName|bn"},
			flags: func(f *pflag.FlagSet) {
				f.StringVarP(&clean.controller, "controllerAddress", "a", "", "the address of controller")
				f.StringVarP(&clean.ids, "brokerControllerIdsToClean", "b", "", "ids of brokers at the controller, ; between them")
				f.StringVar(&clean.broker, "brokerName", "", "the broker name of the replicas that require to be manipulated (-bn)")
				f.StringVar(&clean.broker, "bn", "", "as --brokerName")
				f.StringVarP(&clean.cluster, "clusterName", "c", "", "the cluster of the broker")
				f.BoolVarP(&living, "cleanLivingBroker", "l", false, "clean up living brokers too")
			},
			plan: func(ctx context.Context, _ *cobra.Command, client *admin.Client) (admin.Plan, error) {
				return client.PlanCleanBroker(ctx, clean.controller, clean.cluster, clean.broker, clean.ids, living)
			},
			end: func() string {
				return fmt.Sprintf("clear broker %s metadata from controller success! \n", clean.broker)
			},
		},
	}
}

// mqadminContainerActs are the commands of broker containers.
func mqadminContainerActs() []mqadminAct {
	var container, config, rmContainer, identity string
	return []mqadminAct{
		{
			long: true, name: "addBroker", short: "Add a broker to specified container", ours: "mqx admin broker create --container ADDR --broker-config FILE", required: []string{"brokerContainerAddr", "brokerConfigPath"},
			flags: func(f *pflag.FlagSet) {
				f.StringVarP(&container, "brokerContainerAddr", "c", "", "broker container address")
				f.StringVarP(&config, "brokerConfigPath", "b", "", "broker config path")
			},
			plan: func(ctx context.Context, _ *cobra.Command, client *admin.Client) (admin.Plan, error) {
				return client.PlanAddBroker(ctx, container, config)
			},
			end: func() string { return "add broker to " + container + " success\n" },
		},
		{
			long: true, name: "removeBroker", short: "Remove a broker from specified container", ours: "mqx admin broker rm BROKER --id N -c CLUSTER --container ADDR", required: []string{"brokerContainerAddr", "brokerIdentity"},
			flags: func(f *pflag.FlagSet) {
				f.StringVarP(&rmContainer, "brokerContainerAddr", "c", "", "broker container address")
				f.StringVarP(&identity, "brokerIdentity", "b", "", "information to identify a broker: clusterName:brokerName:brokerId")
			},
			plan: func(ctx context.Context, _ *cobra.Command, client *admin.Client) (admin.Plan, error) {
				parts := strings.Split(identity, ":")
				if len(parts) != 3 {
					return nil, usagef("cannot read broker identity %q: it has the form CLUSTER:BROKER:ID", identity).try("-b DefaultCluster:broker-a:0")
				}
				id, err := parseInt64("--brokerIdentity", parts[2])
				if err != nil {
					return nil, err
				}
				return client.PlanRemoveBroker(ctx, rmContainer, parts[0], parts[1], id)
			},
			end: func() string { return "remove broker from " + rmContainer + " success\n" },
		},
	}
}

// apacheElected is an election as Apache's tool prints it; the answer is in the words
// of the act.
func apacheElected(cluster, broker string, said any) string {
	text, _ := said.(string)
	values := map[string]string{}
	replicas := ""
	for part := range strings.SplitSeq(text, ", ") {
		i := strings.LastIndex(part, " ")
		if i < 0 {
			continue
		}
		name, value := part[:i], part[i+1:]
		values[name] = value
		if id, ok := strings.CutPrefix(name, "replica "); ok {
			replicas += fmt.Sprintf("\t#Broker\t%s\t%s\n", id, value)
		}
	}
	return fmt.Sprintf("\n#ClusterName\t%s\n#BrokerName\t%s\n#BrokerMasterAddr\t%s\n#MasterEpoch\t%s\n#SyncStateSetEpoch\t%s\n%s",
		cluster, broker, values["master"], values["epoch"], values["epoch of the sync state set"], replicas)
}

func newMqadminExportMetadata(a *app) *cobra.Command {
	var t apacheTarget
	var path string
	var topics, groups, special bool
	return mqadminCmd(a, "exportMetadata", "Export metadata", "mqx admin topic export, mqx admin group export", false, []string{apacheWhere},
		func(f *pflag.FlagSet) {
			t.flags(f, "clusterName")
			f.StringVarP(&path, "filePath", "f", "/tmp/rocketmq/export", "export metadata.json path")
			f.BoolVarP(&topics, "topic", "t", false, "only export topic metadata")
			f.BoolVarP(&groups, "subscriptionGroup", "g", false, "only export subscriptionGroup metadata")
			f.BoolVarP(&special, "specialTopic", "s", false, "need retryTopic and dlqTopic")
		},
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			name := "metadata.json"
			switch {
			case topics:
				name = "topic.json"
			case groups:
				name = "subscriptionGroup.json"
			case t.broker != "":
				return usagef("cannot export the metadata of one broker: --topic or --subscriptionGroup is missing").try("-t")
			}
			o := admin.ExportOptions{Topics: topics || !groups, Groups: groups && !topics || !topics, Special: special, Sum: true}
			m, errs, err := client.ExportMetadata(ctx, t.on(), o)
			if err != nil {
				return err
			}
			if err := allFailed(len(m.TopicConfigTable)+len(m.SubscriptionGroupTable), errs); err != nil {
				return err
			}
			file, err := writeExportFile(path, name, m)
			if err != nil {
				return err
			}
			if err := a.printf("export %s success\n", file); err != nil {
				return err
			}
			return a.partial(targetProblems(errs))
		})
}

func newMqadminLiteDispatch(a *app) *cobra.Command {
	var topic, group, client, broker string
	return mqadminAct{
		name: "triggerLiteDispatch", short: "Trigger Lite Dispatch", ours: "mqx admin group set GROUP -t TOPIC --dispatch-lite", required: []string{"parentTopic", "group"},
		flags: func(f *pflag.FlagSet) {
			f.StringVarP(&topic, "parentTopic", "p", "", "parent topic name")
			f.StringVarP(&group, "group", "g", "", "consumer group")
			f.StringVarP(&client, "clientId", "c", "", "client id")
			f.StringVarP(&broker, "brokerName", "b", "", "broker name")
		},
		plan: func(ctx context.Context, _ *cobra.Command, c *admin.Client) (admin.Plan, error) {
			return c.PlanLiteDispatch(ctx, topic, group, client, broker)
		},
		begin: func() string { return fmt.Sprintf("Group And Topic Info: [%s] [%s]\n\n", group, topic) },
		line:  func(s admin.Step) string { return fmt.Sprintf("%-30s %-12s\n", cmp.Or(s.Broker, s.Addr), "dispatched") },
	}.command(a)
}

// writeExportFile writes topics and groups into a directory, which is made where it is
// missing.
func writeExportFile(dir, name string, m *admin.Metadata) (string, error) {
	text, err := m.JSON()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("cannot make directory %q: %w", dir, err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return "", fmt.Errorf("cannot write export %q: %w", path, err)
	}
	return path, nil
}

// parseInt64 reads a number that a flag gave.
func parseInt64(flag, text string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0, usagef("cannot use %s %q: it is no whole number", flag, text)
	}
	return n, nil
}

func newMqadminExportPop(a *app) *cobra.Command {
	var t apacheTarget
	var dryRun string
	return mqadminCmd(a, "exportPopRecord", "Export pop consumer record", "mqx admin broker export BROKER --pop-records", true, []string{apacheWhere},
		func(f *pflag.FlagSet) {
			t.flags(f, "clusterName")
			f.StringVarP(&dryRun, "dryRun", "d", "", "no actual changes will be made, when true")
		},
		func(ctx context.Context, c *cobra.Command, o *mqadminOptions, client *admin.Client) error {
			dry := strings.EqualFold(dryRun, "true") // in Apache's tool it is false that makes no change
			line := func(s admin.Step) string {
				return fmt.Sprintf("Export broker records, brokerName=%s, brokerAddr=%s, dryRun=%t\n", s.Broker, s.Addr, dry)
			}
			plan := func() (admin.Plan, error) { return client.PlanPopRecords(ctx, t.on()) }
			if dry {
				p, err := plan()
				if err != nil {
					return err
				}
				return a.mqadminDone(&planned([]admin.Plan{p})[0], line, nil)
			}
			done, err := a.mqadminChange(ctx, c, o, client, plan)
			if err != nil {
				return err
			}
			return a.mqadminDone(done, line, nil)
		})
}
