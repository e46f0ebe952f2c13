package cmd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/message"
	"mqx/remoting"
)

func newMqadminClientCmds(a *app) []*cobra.Command {
	return []*cobra.Command{newMqadminProducerConnection(a), newMqadminProducer(a), newMqadminConsumerStatus(a), newMqadminStartMonitoring(a)}
}

func newMqadminProducerConnection(a *app) *cobra.Command {
	var group, topic string
	return mqadminCmd(a, "producerConnection", "Query producer's socket connection and client version", "mqx admin producer ls -g GROUP", false, []string{"producerGroup", "topic"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&group, "producerGroup", "g", "", "producer group name")
			f.StringVarP(&topic, "topic", "t", "", "topic name")
		},
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			conns, errs, err := client.ProducerConnections(ctx, group, topic)
			if err != nil {
				return err
			}
			if err := allFailed(len(conns), errs); err != nil {
				return err
			}
			for i, m := range conns {
				if err := a.printf("%04d  %-32s %-22s %-8s %s\n", i+1, m.ClientID, m.ClientAddr, m.Language, remoting.VersionName(m.Version)); err != nil {
					return err
				}
			}
			return a.partial(targetProblems(errs))
		})
}

func newMqadminProducer(a *app) *cobra.Command {
	var broker string
	return mqadminCmd(a, "producer", "Query producer's instances, connection, status, etc", "mqx admin producer ls -b BROKER --all", false, []string{"broker"},
		func(f *pflag.FlagSet) { f.StringVarP(&broker, "broker", "b", "", "broker address") },
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			found, errs, err := client.ListProducers(ctx, admin.Target{Broker: broker}, "")
			if err != nil {
				return err
			}
			if err := allFailed(len(found), errs); err != nil {
				return err
			}
			for _, p := range found {
				if err := a.printf("producer group (%s) instance : clientId=%s,remoteIP=%s, language=%s, version=%d, lastUpdateTimestamp=%d\n",
					p.Group, p.ClientID, p.RemoteIP, p.Language, p.Version, p.LastUpdateTimestamp); err != nil {
					return err
				}
			}
			return a.partial(targetProblems(errs))
		})
}

func newMqadminConsumerStatus(a *app) *cobra.Command {
	var group, id, broker string
	var stack bool
	return mqadminCmd(a, "consumerStatus", "Query consumer's internal data structure", "mqx admin group status GROUP", false, []string{"consumerGroup"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&group, "consumerGroup", "g", "", "consumer group name")
			f.StringVarP(&id, "clientId", "i", "", "only this client, and its state on the screen")
			f.StringVarP(&broker, "brokerAddr", "b", "", "broker address")
			f.BoolVarP(&stack, "jstack", "s", false, "with the stacks of its threads")
		},
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			now := time.Now()
			s, err := client.GroupStatus(ctx, group, admin.StatusOptions{Client: id, Broker: admin.Target{Broker: broker}, Stack: stack, Now: now})
			if err != nil {
				return err
			}
			if err := allFailed(len(s.Members), s.Errors); err != nil {
				return err
			}
			if len(s.Members) == 0 {
				return failf(ExitNotFound, "no member of group %s is online", group).because("the brokers know nobody who consumes for it").try("mqx admin group get %s", group)
			}
			if id != "" {
				m := &s.Members[0]
				if m.Err != nil {
					return silentMember(group, m)
				}
				return a.printf("%s", runningText(m.Info))
			}
			return a.mqadminMembers(s, now)
		})
}

// mqadminMembers writes what each member says to a file and prints the verdict.
func (a *app) mqadminMembers(s *admin.GroupStatus, now time.Time) error {
	if err := a.printf("%-10s %-40s %-20s %s\n", "#Index", "#ClientId", "#Version", "#ConsumerRunningInfoFile"); err != nil {
		return err
	}
	missing := targetProblems(s.Errors)
	index := 0
	for i := range s.Members {
		m := &s.Members[i]
		if m.Err != nil {
			missing = append(missing, targetProblems([]admin.TargetError{{Broker: "client " + m.ClientID, Err: fmt.Errorf("%s", clientSilence(m.Err))}})...)
			continue
		}
		path := filepath.Join(strconv.FormatInt(now.UnixMilli(), 10), strings.ReplaceAll(m.ClientID, "/", "_"))
		if err := writeReport(path, runningText(m.Info)); err != nil {
			return err
		}
		index++
		if err := a.printf("%-10d %-40s %-20s %s\n", index, m.ClientID, m.Version, path); err != nil {
			return err
		}
	}
	different, ownerless, text := false, false, ""
	for _, f := range s.Findings {
		switch f.Kind {
		case admin.FindingSubscription:
			different = true
		case admin.FindingNoOwner, admin.FindingTwoOwners:
			ownerless = ownerless || !message.IsRetry(f.Queue.Topic) // of those it is told only by our own spelling
		case admin.FindingBlocked, admin.FindingNotLocked, admin.FindingUnlock:
			text += fmt.Sprintf("%s MessageQueue [topic=%s, brokerName=%s, queueId=%d] %s\n", f.Client, f.Queue.Topic, f.Queue.BrokerName, f.Queue.QueueID, f.Text)
		}
	}
	verdict := "\n\nWARN: Different subscription in the same group of consumer!!!\n"
	if !different {
		rebalance := "OK"
		if ownerless {
			rebalance = "Failed"
		}
		verdict = "\n\nSame subscription in the same group of consumer\n\nRebalance " + rebalance + "\n" + text
	}
	if index > 0 {
		if err := a.printf("%s", verdict); err != nil {
			return err
		}
	}
	return a.partial(missing)
}

func writeReport(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return outputFailure(path, err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return outputFailure(path, err)
	}
	return nil
}

// runningText is what a consumer says of itself as Apache's tool writes it.
func runningText(info *remoting.ConsumerRunningInfo) string {
	var b strings.Builder
	add := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	add("#Consumer Properties#\n")
	for _, name := range sortedNames(info.Properties) {
		add("%-40s: %s\n", name, info.Properties[name])
	}
	add("\n\n#Consumer Subscription#\n")
	for i, s := range info.SubscriptionSet {
		add("%03d Topic: %-40s ClassFilter: %-8t SubExpression: %s\n", i+1, s.Topic, s.ClassFilterMode, s.SubString)
	}
	add("\n\n#Consumer Offset#\n%-64s  %-32s  %-4s  %-20s\n", "#Topic", "#Broker Name", "#QID", "#Consumer Offset")
	for _, q := range sortedQueues(info.MQTable) {
		add("%-32s  %-32s  %-4d  %-20d\n", q.Topic, q.BrokerName, q.QueueID, info.MQTable[q].CommitOffset)
	}
	add("\n\n#Consumer MQ Detail#\n%-64s  %-32s  %-4s  %-20s\n", "#Topic", "#Broker Name", "#QID", "#ProcessQueueInfo")
	for _, q := range sortedQueues(info.MQTable) {
		p := info.MQTable[q]
		add("%-64s  %-32s  %-4d  ProcessQueueInfo [commitOffset=%d, cachedMsgMinOffset=%d, cachedMsgMaxOffset=%d, cachedMsgCount=%d, cachedMsgSizeInMiB=%d, "+
			"transactionMsgMinOffset=%d, transactionMsgMaxOffset=%d, transactionMsgCount=%d, locked=%t, tryUnlockTimes=%d, lastLockTimestamp=%s, droped=%t, "+
			"lastPullTimestamp=%s, lastConsumeTimestamp=%s]\n",
			q.Topic, q.BrokerName, q.QueueID, p.CommitOffset, p.CachedMsgMinOffset, p.CachedMsgMaxOffset, p.CachedMsgCount, p.CachedMsgSizeInMiB,
			p.TransactionMsgMinOffset, p.TransactionMsgMaxOffset, p.TransactionMsgCount, p.Locked, p.TryUnlockTimes, digitTime(p.LastLockTimestamp), p.Dropped,
			digitTime(p.LastPullTimestamp), digitTime(p.LastConsumeTimestamp))
	}
	add("\n\n#Consumer Pop Detail#\n%-32s  %-32s  %-4s  %-20s\n", "#Topic", "#Broker Name", "#QID", "#ProcessQueueInfo")
	for _, q := range sortedQueues(info.MQPopTable) {
		p := info.MQPopTable[q]
		add("%-32s  %-32s  %-4d  PopProcessQueueInfo [waitAckCount:%d, droped:%t, lastPopTimestamp:%d]\n", q.Topic, q.BrokerName, q.QueueID, p.WaitAckCount, p.Dropped, p.LastPopTimestamp)
	}
	add("\n\n#Consumer RT&TPS#\n%-64s  %14s %14s %14s %14s %18s %25s\n",
		"#Topic", "#Pull RT", "#Pull TPS", "#Consume RT", "#ConsumeOK TPS", "#ConsumeFailed TPS", "#ConsumeFailedMsgsInHour")
	for _, topic := range sortedNames(info.StatusTable) {
		s := info.StatusTable[topic]
		add("%-32s  %14.2f %14.2f %14.2f %14.2f %18.2f %25d\n", topic, s.PullRT, s.PullTPS, s.ConsumeRT, s.ConsumeOKTPS, s.ConsumeFailedTPS, s.ConsumeFailedMsgs)
	}
	if info.UserConsumerInfo != nil {
		add("\n\n#User Consume Info#\n")
		for _, name := range sortedNames(info.UserConsumerInfo) {
			add("%-40s: %s\n", name, info.UserConsumerInfo[name])
		}
	}
	if info.JStack != "" {
		add("\n\n#Consumer jstack#\n%s", info.JStack)
	}
	return b.String()
}

// digitTime is a time in ms as 17 digits, from the year to the ms.
func digitTime(ms int64) string {
	return strings.ReplaceAll(time.UnixMilli(ms).Local().Format("20060102150405.000"), ".", "")
}

// commaTime is a time in ms to the ms, - for none.
func commaTime(ms int64, none string) string {
	if ms <= 0 {
		return none
	}
	return time.UnixMilli(ms).Local().Format("2006-01-02 15:04:05,000")
}

// monitorInterval is the time between two rounds of startMonitoring, as there.
const monitorInterval = time.Minute

func newMqadminStartMonitoring(a *app) *cobra.Command {
	return mqadminCmd(a, "startMonitoring", "Start Monitoring", "mqx admin group status --watch --interval 1m", false, nil,
		func(*pflag.FlagSet) {},
		func(_ context.Context, c *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			return a.repeat(c, monitorInterval, func(ctx context.Context) error {
				groups, errs, err := client.MonitorGroups(ctx, admin.StatusOptions{Now: time.Now()})
				if err != nil {
					return err
				}
				if err := allFailed(len(groups), errs); err != nil {
					return err
				}
				for i := range groups {
					if err := a.mqadminMonitored(&groups[i]); err != nil {
						return err
					}
				}
				return a.partial(targetProblems(errs))
			})
		})
}

// mqadminMonitored prints one group of a round: what is undone, and what is wrong.
func (a *app) mqadminMonitored(g *admin.GroupHealth) error {
	text := func(v any) string {
		switch v := v.(type) {
		case nil:
			return "unknown"
		case time.Duration:
			return strconv.FormatInt(v.Milliseconds(), 10)
		default:
			return fmt.Sprint(v)
		}
	}
	if err := a.printf("[MONITOR] reportUndoneMsgs: UndoneMsgs [consumerGroup=%s, undoneMsgsTotal=%s, undoneMsgsSingleMQ=%s, undoneMsgsDelayTimeMills=%s]\n",
		g.Group, text(deref(g.Lag)), text(deref(g.Worst)), text(deref(g.Behind))); err != nil {
		return err
	}
	if g.Err != nil {
		a.warn("group %s: %s", g.Group, oneLine(g.Err.Error()))
	}
	for _, f := range g.Findings {
		if err := a.printf("[NOTIFY] reportConsumerRunningInfo: ConsumerGroup: %s, ClientId: %s, %s: %s\n", g.Group, f.Client, f.Kind, oneLine(f.Text)); err != nil {
			return err
		}
	}
	return nil
}
