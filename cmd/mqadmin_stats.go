package cmd

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/client"
	"mqx/internal/fastjson"
	"mqx/internal/words"
	"mqx/remoting"
)

func newMqadminStatsCmds(a *app) []*cobra.Command {
	return []*cobra.Command{newMqadminStatsAll(a), newMqadminQueryCq(a), newMqadminCheckRocksDB(a), newMqadminAllocateMQ(a)}
}

func newMqadminStatsAll(a *app) *cobra.Command {
	var topic string
	var active bool
	return mqadminCmd(a, "statsAll", "Topic and Consumer tps stats", "mqx admin stats get [TOPIC]", false, nil,
		func(f *pflag.FlagSet) {
			f.BoolVarP(&active, "activeTopic", "a", false, "print active topic only")
			f.StringVarP(&topic, "topic", "t", "", "print select topic only")
		},
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			rates, errs, err := client.TopicRates(ctx, admin.StatsOptions{Topic: topic, Active: active})
			if err != nil {
				return err
			}
			if err := allFailed(len(rates), errs); err != nil {
				return err
			}
			if err := a.printf("%-64s  %-64s %12s %11s %11s %14s %14s\n", "#Topic", "#Consumer Group", "#Accumulation", "#InTPS", "#OutTPS", "#InMsg24Hour", "#OutMsg24Hour"); err != nil {
				return err
			}
			for _, r := range rates {
				lag, out, outDay := "0", "", "NO_CONSUMER"
				if r.Group != "" {
					lag, out, outDay = fmt.Sprint(cmp.Or(deref(r.Lag), any("-"))), fmt.Sprintf("%.2f", r.Out.PerSecond), fmt.Sprint(r.Out.Day)
				}
				in, inDay := fmt.Sprintf("%.2f", r.In.PerSecond), fmt.Sprint(r.In.Day)
				if r.Part { // what a broker did not tell is no 0, and a sum without it is none
					in, inDay, lag, out, outDay = "-", "-", "-", "-", "-"
				}
				if err := a.printf("%-64s  %-64s %12s %11s %11s %14s %14s\n", front(r.Topic, 64), front(r.Group, 64), lag, in, out, inDay, outDay); err != nil {
					return err
				}
			}
			return a.partial(targetProblems(errs))
		})
}

func newMqadminQueryCq(a *app) *cobra.Command {
	h := remoting.QueryConsumeQueueHeader{}
	var broker string
	var index int64
	return mqadminCmd(a, "queryCq", "Query cq command", "mqx admin queue get TOPIC -q QUEUE --start OFFSET", false, []string{"topic", "queue", "index"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&h.Topic, "topic", "t", "", "topic name")
			f.Int32VarP(&h.QueueID, "queue", "q", 0, "queue num")
			f.Int64VarP(&index, "index", "i", 0, "start query index")
			f.Int32VarP(&h.Count, "count", "c", 10, "how many units")
			f.StringVarP(&broker, "broker", "b", "", "broker addr")
			f.StringVarP(&h.ConsumerGroup, "consumer", "g", "", "consumer group")
		},
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, c *admin.Client) error {
			if h.Count < 1 || h.Count > maxUnits {
				return usagef("cannot show %s: 1 to %d", words.Count(h.Count, "unit"), maxUnits).try("-c 10")
			}
			u, err := c.QueryQueue(ctx, broker, h, client.Position{Kind: client.AtOffset, Offset: index})
			if err != nil {
				return err
			}
			return a.mqadminUnits(u)
		})
}

const unitRule = "======================================\n"

func (a *app) mqadminUnits(u *admin.QueueUnits) error {
	if u.SubscriptionData != nil {
		text, err := fastjson.MarshalPretty(u.SubscriptionData)
		if err != nil {
			return fmt.Errorf("cannot print subscription: %w", err)
		}
		if err := a.printf("Subscription data: \n%s\n%s", text, unitRule); err != nil {
			return err
		}
	}
	if u.FilterData != "" {
		if err := a.printf("Filter data: \n%s\n%s", u.FilterData, unitRule); err != nil {
			return err
		}
	}
	if err := a.printf("Queue data: \nmax: %d, min: %d\n%s", u.MaxQueueIndex, u.MinQueueIndex, unitRule); err != nil {
		return err
	}
	for i, d := range u.QueueData {
		null := func(s string) string { return cmp.Or(s, "null") }
		if err := a.printf("idx: %d\nConsumeQueueData{physicOffset=%d, physicSize=%d, tagsCode=%d, extendDataJson='%s', bitMap='%s', eval=%t, msg='%s'}\n%s",
			u.First+int64(i), d.PhysicOffset, d.PhysicSize, d.TagsCode, null(d.ExtendDataJSON), null(d.BitMap), d.Eval, null(d.Msg), unitRule); err != nil {
			return err
		}
	}
	return nil
}

func newMqadminCheckRocksDB(a *app) *cobra.Command {
	var cluster, topic string
	var from int64
	return mqadminCmd(a, "checkRocksdbCqWriteProgress", "check if rocksdb cq is same as file cq", "mqx admin queue verify [TOPIC]", false, []string{"cluster"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&cluster, "cluster", "c", "", "cluster name")
			f.StringVarP(&topic, "topic", "t", "", "topic name")
			f.Int64Var(&from, "cf", 0, "check messages stored since this time in ms, by default 30 days")
			f.Int64Var(&from, "checkFrom", 0, "the same")
		},
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			since := time.Now().AddDate(0, 0, -30)
			if from > 0 {
				since = time.UnixMilli(from)
			}
			found, errs, err := client.CheckRocksDB(ctx, admin.Target{Cluster: cluster}, topic, since)
			if err != nil {
				return err
			}
			if err := allFailed(len(found), errs); err != nil {
				return err
			}
			for _, r := range found {
				text := " check doing, please wait and get the result from log... "
				if rocksDBStatus(r.Status) == "failed" {
					text = " check error, please check log... errInfo: " + r.Result
				}
				if err := a.printf("%s%s\n", r.Name, text); err != nil {
					return err
				}
			}
			return a.partial(targetProblems(errs))
		})
}

func newMqadminAllocateMQ(a *app) *cobra.Command {
	var topic, ips string
	return mqadminCmd(a, "allocateMQ", "Allocate MQ", "mqx admin topic get TOPIC --show allocation --clients IP,IP", false, []string{"topic", "ipList"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&topic, "topic", "t", "", "topic name")
			f.StringVarP(&ips, "ipList", "i", "", "ip list, commas between them")
		},
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			clients := addressList(ips)
			if twice := repeated(clients); twice != "" || len(clients) == 0 {
				return usagef("cannot share queues out to %q: each client stands there once", ips).try("-i 10.0.0.1,10.0.0.2")
			}
			queues, err := client.ReadQueues(ctx, topic)
			if err != nil {
				return err
			}
			text, err := fastjson.MarshalStandard(map[string]any{"result": admin.Allocate(queues, clients)})
			if err != nil {
				return fmt.Errorf("cannot print queues: %w", err)
			}
			return a.printf("%s\n", text)
		})
}
