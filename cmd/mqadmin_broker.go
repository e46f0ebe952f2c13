package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
)

func newMqadminBrokerCmds(a *app) []*cobra.Command {
	return []*cobra.Command{
		newMqadminClusterList(a), newMqadminBrokerStatus(a), newMqadminBrokerConsumeStats(a), newMqadminGetBrokerEpoch(a),
		newMqadminGetColdData(a),
	}
}

// repeat runs a round once, or again and again with a time between until the command
// is interrupted.
func (a *app) repeat(c *cobra.Command, every time.Duration, round func(ctx context.Context) error) error {
	for {
		ctx, cancel := a.deadline(c, true)
		err := a.withTimeout(ctx, round(ctx))
		cancel()
		if s, partial := errors.AsType[silentError](err); every <= 0 || err != nil && (!partial || s.code != ExitPartial) {
			return err
		}
		select {
		case <-c.Context().Done():
			return context.Cause(c.Context())
		case <-time.After(every):
		}
	}
}

// intervalFlag is Apache's -i: seconds between rounds, and none without it.
type intervalFlag struct {
	seconds int
}

func (i *intervalFlag) add(f *pflag.FlagSet) {
	f.IntVarP(&i.seconds, "interval", "i", 0, "repeat with so many seconds between")
}

func (i *intervalFlag) every() time.Duration { return time.Duration(i.seconds) * time.Second }

func newMqadminClusterList(a *app) *cobra.Command {
	var cluster string
	var more bool
	var interval intervalFlag
	return mqadminCmd(a, "clusterList", "List cluster infos", "mqx admin cluster get [CLUSTER], -o wide for more", false, nil,
		func(f *pflag.FlagSet) {
			f.BoolVarP(&more, "moreStats", "m", false, "print more stats")
			interval.add(f)
			f.StringVarP(&cluster, "clusterName", "c", "", "which cluster")
		},
		func(_ context.Context, c *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			return a.repeat(c, interval.every(), func(ctx context.Context) error {
				found, errs, err := client.BrokerStatuses(ctx, admin.Target{Cluster: cluster}, true)
				if err != nil {
					return err
				}
				write := a.mqadminClusterBase
				if more {
					write = a.mqadminClusterMore
				}
				if err := write(found); err != nil {
					return err
				}
				return a.partial(targetProblems(errs))
			})
		})
}

// dashText is a text of a broker, - where it does not say it.
func dashText(s *admin.BrokerStatus, name string) string {
	if text, ok := s.Text(name); ok {
		return text
	}
	return "-"
}

// dashFloat is a number of a broker in a form, - where it does not say it.
func dashFloat(s *admin.BrokerStatus, name, form string) string {
	if v, ok := s.Float(name); ok {
		return fmt.Sprintf(form, v)
	}
	return "-"
}

func (a *app) mqadminClusterBase(found []admin.BrokerStatus) error {
	const form = "%-22s  %-22s  %-4v  %-22s %-16s  %16s  %30s  %-22s  %11s  %-12s  %-8s  %10s\n"
	if err := a.printf("%-22s  %-22s  %-4s  %-22s %-16s  %16s  %30s  %-22s  %-11s  %-12s  %-8s  %-10s\n",
		"#Cluster Name", "#Broker Name", "#BID", "#Addr", "#Version", "#InTPS(LOAD)", "#OutTPS(LOAD)", "#Timer(Progress)", "#PCWait(ms)", "#Hour", "#SPACE", "#ACTIVATED"); err != nil {
		return err
	}
	for i := range found {
		s := &found[i]
		hour := "-"
		if at, ok := s.Time("earliestMessageTimeStamp"); ok {
			hour = fmt.Sprintf("%.2f", time.Since(at).Hours())
		} else if s.Values != nil {
			hour = "0.00" // there is no message
		}
		timer := "-"
		if congested, ok := s.Int("timerCongestNum"); ok {
			timer = fmt.Sprintf("%s-%s(%.1fw, %s, %s)", dashText(s, "timerReadBehind"), dashText(s, "timerOffsetBehind"), float64(congested)/10000,
				dashFloat(s, "timerEnqueueTps", "%.1f"), dashFloat(s, "timerDequeueTps", "%.1f"))
		}
		load := func(pool string) string {
			return dashText(s, pool+"ThreadPoolQueueSize") + "," + dashText(s, pool+"ThreadPoolQueueHeadWaitTimeMills") + "ms"
		}
		if err := a.printf(form, s.Cluster, s.Name, s.ID, s.Addr, dashText(s, "brokerVersionDesc"),
			dashFloat(s, "putTps", "%9.2f")+"("+load("send")+")",
			dashFloat(s, "getTransferredTps", "%9.2f")+"("+load("pull")+"|"+load("ack")+")",
			timer, dashText(s, "pageCacheLockTimeMills"), hour, dashFloat(s, "commitLogDiskRatio", "%.4f"), dashText(s, "brokerActive")); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) mqadminClusterMore(found []admin.BrokerStatus) error {
	const form = "%-16s  %-32s %14s %14s %14s %14s\n"
	if err := a.printf(form, "#Cluster Name", "#Broker Name", "#InTotalYest", "#OutTotalYest", "#InTotalToday", "#OutTotalToday"); err != nil {
		return err
	}
	for i := range found {
		s := &found[i]
		diff := func(later, earlier string) string {
			if n, ok := s.Difference(later, earlier); ok {
				return strconv.FormatInt(n, 10)
			}
			return "-"
		}
		if err := a.printf(form, s.Cluster, s.Name,
			diff("msgPutTotalTodayMorning", "msgPutTotalYesterdayMorning"), diff("msgGetTotalTodayMorning", "msgGetTotalYesterdayMorning"),
			diff("msgPutTotalTodayNow", "msgPutTotalTodayMorning"), diff("msgGetTotalTodayNow", "msgGetTotalTodayMorning")); err != nil {
			return err
		}
	}
	return nil
}

func newMqadminBrokerStatus(a *app) *cobra.Command {
	var broker, cluster string
	return mqadminCmd(a, "brokerStatus", "Fetch broker runtime status data", "mqx admin broker status [BROKER]", false, []string{"brokerAddr|clusterName"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&broker, "brokerAddr", "b", "", "broker address")
			f.StringVarP(&cluster, "clusterName", "c", "", "which cluster")
		},
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			found, errs, err := client.BrokerStatuses(ctx, admin.Target{Cluster: cluster, Broker: broker}, false)
			if err != nil {
				return err
			}
			if err := allFailed(len(found)-len(errs), errs); err != nil {
				return err
			}
			for i := range found {
				s := &found[i]
				for _, name := range slices.Sorted(maps.Keys(s.Values)) {
					line := fmt.Sprintf("%-32s: %s\n", name, s.Values[name])
					if cluster != "" {
						line = fmt.Sprintf("%-24s %s", s.Addr, line)
					}
					if err := a.printf("%s", line); err != nil {
						return err
					}
				}
			}
			return a.partial(targetProblems(errs))
		})
}

func newMqadminBrokerConsumeStats(a *app) *cobra.Command {
	var broker, orderly string
	var millis, level int64
	return mqadminCmd(a, "brokerConsumeStats", "Fetch broker consume stats data", "mqx admin broker get BROKER --show consume", false, []string{"brokerAddr"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&broker, "brokerAddr", "b", "", "broker address")
			f.Int64VarP(&millis, "timeoutMillis", "t", 0, "has no effect: --timeout says how long the whole command may take")
			f.Int64VarP(&level, "level", "l", 0, "only queues with so many messages behind")
			f.StringVarP(&orderly, "order", "o", "false", "only groups that consume in order (true or false)")
		},
		func(ctx context.Context, c *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			if c.Flags().Changed("timeoutMillis") {
				a.warn("--timeoutMillis has no effect: --timeout is the limit of the whole command")
			}
			found, errs, err := client.BrokerConsumeStats(ctx, admin.Target{Broker: broker}, strings.EqualFold(orderly, "true"))
			if err != nil {
				return err
			}
			if err := allFailed(len(found), errs); err != nil {
				return err
			}
			if err := a.printf("%-64s  %-64s  %-32s  %-4s  %-20s  %-20s  %-20s  %s\n",
				"#Topic", "#Group", "#Broker Name", "#QID", "#Broker Offset", "#Consumer Offset", "#Diff", "#LastTime"); err != nil {
				return err
			}
			var total int64
			for _, b := range found {
				total += b.Total
				for _, q := range b.Queues {
					diff := q.BrokerOffset - q.ConsumerOffset
					if diff < level || q.LastTime.IsZero() {
						continue
					}
					if err := a.printf("%-64s  %-64s  %-32s  %-4d  %-20d  %-20d  %-20d  %s\n", front(q.Topic, 64), q.Group, front(q.GroupQueue.Broker, 32), q.QueueID,
						q.BrokerOffset, q.ConsumerOffset, diff, apacheTimeText(q.LastTime)); err != nil {
						return err
					}
				}
			}
			if err := a.printf("\nDiff Total: %d\n", total); err != nil {
				return err
			}
			return a.partial(targetProblems(errs))
		})
}

func newMqadminGetBrokerEpoch(a *app) *cobra.Command {
	var broker, cluster string
	var interval intervalFlag
	return mqadminCmd(a, "getBrokerEpoch", "Fetch broker epoch entries", "mqx admin broker get [BROKER] --show epochs", false, []string{"clusterName|brokerName"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&cluster, "clusterName", "c", "", "which cluster")
			f.StringVarP(&broker, "brokerName", "b", "", "which broker")
			interval.add(f)
		},
		func(_ context.Context, c *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			return a.repeat(c, interval.every(), func(ctx context.Context) error {
				found, errs, err := client.BrokerEpochs(ctx, admin.Target{Cluster: cluster, Broker: broker})
				if err != nil {
					return err
				}
				if err := allFailed(len(found), errs); err != nil {
					return err
				}
				for _, b := range found {
					if err := a.printf("\n#clusterName\t%s\n#brokerName\t%s\n#brokerAddr\t%s\n#brokerId\t%d", b.Cache.ClusterName, b.Cache.BrokerName, b.Addr, b.Cache.BrokerID); err != nil {
						return err
					}
					for _, e := range b.Cache.EpochList {
						if err := a.printf("\n#Epoch: EpochEntry{epoch=%d, startOffset=%d, endOffset=%d}", e.Epoch, e.StartOffset, e.EndOffset); err != nil {
							return err
						}
					}
					if err := a.printf("\n"); err != nil {
						return err
					}
				}
				return a.partial(targetProblems(errs))
			})
		})
}

func newMqadminGetColdData(a *app) *cobra.Command {
	var broker, cluster string
	return mqadminCmd(a, "getColdDataFlowCtrInfo", "Get cold data flow ctr info", "mqx admin broker get [BROKER] --show cold", false, []string{"brokerAddr|clusterName"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&broker, "brokerAddr", "b", "", "which broker")
			f.StringVarP(&cluster, "clusterName", "c", "", "which cluster")
		},
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			found, errs, err := client.ColdDataInfo(ctx, admin.Target{Cluster: cluster, Broker: broker})
			if err != nil {
				return err
			}
			if err := allFailed(len(found), errs); err != nil {
				return err
			}
			master := ""
			for _, b := range found {
				title := b.Addr
				switch {
				case broker != "":
				case b.ID == 0:
					title, master = "Master: "+b.Addr, b.Addr
				default:
					title = "My Master: " + master + "=====Slave: " + b.Addr
				}
				text, err := coldText(b)
				if err != nil {
					return err
				}
				if err := a.printf(" ============%s============\n%s\n", title, text); err != nil {
					return err
				}
			}
			return a.partial(targetProblems(errs))
		})
}

var coldTimes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`"(lastColdRead|create)TimeMills":(\d+)`)
})

// coldText is the answer of a broker as Apache's tool prints it: with tabs, and times
// that can be read.
func coldText(b admin.BrokerText) (string, error) {
	text := coldTimes().ReplaceAllStringFunc(b.Text, func(m string) string {
		parts := coldTimes().FindStringSubmatch(m)
		ms, err := strconv.ParseInt(parts[2], 10, 64)
		if err != nil {
			return m
		}
		return `"` + parts[1] + `TimeFormat":"` + time.UnixMilli(ms).Local().Format(apacheTime) + `"`
	})
	out, err := tabbed([]byte(text))
	if err != nil {
		return "", failf(ExitFailed, "cannot read what %s says of cold reads: %w", b.Addr, err).because("it is no JSON")
	}
	return string(out), nil
}

// tabbed indents JSON as fastjson does: with tabs, and no blank behind a colon.
func tabbed(text []byte) ([]byte, error) {
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "\t"); err != nil {
		return nil, err
	}
	dst := make([]byte, 0, out.Len())
	quoted, escaped := false, false
	for _, c := range out.Bytes() {
		if c == ' ' && !quoted {
			continue // the only blanks outside of strings are those behind colons
		}
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		}
		dst = append(dst, c)
	}
	return dst, nil
}
