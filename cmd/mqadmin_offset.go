package cmd

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
)

func newMqadminOffsetCmds(a *app) []*cobra.Command {
	return []*cobra.Command{newMqadminResetOffsetByTime(a), newMqadminSkipAccumulated(a), newMqadminCloneGroupOffset(a)}
}

// apacheOffsetTime reads the time of resetOffsetByTime: now, ms since 1970, of which
// those below 0 are the end, or yyyy-MM-dd#HH:mm:ss:SSS.
func apacheOffsetTime(text string, now time.Time) (ms int64, err error) {
	text = strings.TrimSpace(text)
	if text == "now" {
		return now.UnixMilli(), nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	if i := strings.LastIndexByte(text, ':'); i > 0 {
		if t, err := time.ParseInLocation("2006-01-02#15:04:05.000", text[:i]+"."+text[i+1:], time.Local); err == nil {
			return t.UnixMilli(), nil
		}
	}
	return 0, usagef("cannot read --timestamp %q", text).because("it is now, milliseconds since 1970, or yyyy-MM-dd#HH:mm:ss:SSS").try("--timestamp now")
}

func apacheOffsetTarget(ms int64) admin.OffsetTo {
	if ms < 0 {
		return admin.OffsetTo{Kind: admin.ToEnd}
	}
	return admin.OffsetTo{Kind: admin.ToTime, TimeMs: ms}
}

// mqadminOffsets sets offsets and prints them in Apache's columns.
func (a *app) mqadminOffsets(ctx context.Context, c *cobra.Command, o *mqadminOptions, client *admin.Client, spec admin.OffsetSpec) error {
	done, err := a.mqadminChange(ctx, c, o, client, func() (admin.Plan, error) { return client.PlanOffsets(ctx, spec) })
	if err != nil {
		return err
	}
	if err := a.printf("%-40s  %-40s  %-40s\n", "#brokerName", "#queueId", "#offset"); err != nil {
		return err
	}
	for _, s := range done.steps {
		m, ok := s.After.(admin.OffsetMove)
		if !ok {
			continue
		}
		if err := a.printf("%-40s  %-40s  %-40d\n", front(s.Broker, 32), queueOfPart(s.Part), m.Offset); err != nil {
			return err
		}
	}
	return a.partial(targetProblems(done.errs))
}

// queueOfPart is the queue id in the part of a step: TOPIC queue ID.
func queueOfPart(part string) string { return part[strings.LastIndexByte(part, ' ')+1:] }

func newMqadminResetOffsetByTime(a *app) *cobra.Command {
	var group, topic, timestamp, force, broker, cluster string
	var queue int32
	var offset int64
	return mqadminCmd(a, "resetOffsetByTime", "Reset consumer offset by timestamp(without client restart)", "mqx admin offset reset -g GROUP -t TOPIC --to @TIME", true, []string{"group", "topic", "timestamp"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&group, "group", "g", "", "set the consumer group")
			f.StringVarP(&topic, "topic", "t", "", "set the topic")
			f.StringVarP(&timestamp, "timestamp", "s", "", "set the timestamp: now, milliseconds (-1: the end), or yyyy-MM-dd#HH:mm:ss:SSS")
			f.StringVarP(&force, "force", "f", "true", "no effect: offsets go both ways")
			f.StringVarP(&broker, "broker", "b", "", "broker addr")
			f.Int32VarP(&queue, "queue", "q", -1, "queue id")
			f.Int64VarP(&offset, "offset", "o", -1, "the offset in place of the time; with --broker and --queue")
			f.StringVarP(&cluster, "cluster", "c", "", "cluster name")
		},
		func(ctx context.Context, c *cobra.Command, o *mqadminOptions, client *admin.Client) error {
			ms, err := apacheOffsetTime(timestamp, time.Now())
			if err != nil {
				return err
			}
			spec := admin.OffsetSpec{Group: group, Topics: []string{topic}, On: admin.Target{Cluster: cluster, Broker: broker}, To: apacheOffsetTarget(ms)}
			if broker == "" || queue < 0 {
				if offset >= 0 || queue >= 0 {
					return usagef("cannot use --offset or --queue without the others of --broker, --queue").because("an offset is that of one queue of a broker").try("--broker HOST:PORT --queue N --offset N")
				}
				if err := a.printf("start reset consumer offset by specified, group[%s], topic[%s], force[%s], timestamp(string)[%s], timestamp(long)[%d]\n", group, topic, force, timestamp, ms); err != nil {
					return err
				}
				return a.mqadminOffsets(ctx, c, o, client, spec)
			}
			spec.Queue = &queue
			if offset >= 0 {
				spec.To = admin.OffsetTo{Kind: admin.ToOffset, Offset: offset}
			}
			return a.mqadminOneOffset(ctx, c, o, client, spec, timestamp, ms)
		})
}

// mqadminOneOffset sets the offset of one queue of a broker. An offset of 0 is set too.
func (a *app) mqadminOneOffset(ctx context.Context, c *cobra.Command, o *mqadminOptions, client *admin.Client, spec admin.OffsetSpec, timestamp string, ms int64) error {
	if err := a.printf("start reset consumer offset by specified, group[%s], topic[%s], queueId[%d], broker[%s], timestamp(string)[%s], timestamp(long)[%d]\n",
		spec.Group, spec.Topics[0], *spec.Queue, spec.On.Broker, timestamp, ms); err != nil {
		return err
	}
	done, err := a.mqadminChange(ctx, c, o, client, func() (admin.Plan, error) { return client.PlanOffsets(ctx, spec) })
	if err != nil {
		return err
	}
	if len(done.steps) == 0 {
		return failf(ExitNotFound, "topic %s has no queue %d there", spec.Topics[0], *spec.Queue).because("the broker has fewer queues of it").try("mqx admin offset get -g %s -t %s", spec.Group, spec.Topics[0])
	}
	for _, s := range done.steps {
		if m, ok := s.After.(admin.OffsetMove); ok {
			if err := a.printf("reset consumer offset to %d\n", m.Offset); err != nil {
				return err
			}
		}
	}
	return a.partial(targetProblems(done.errs))
}

func newMqadminSkipAccumulated(a *app) *cobra.Command {
	var group, topic, force, cluster string
	return mqadminCmd(a, "skipAccumulatedMessage", "Skip all messages that are accumulated (not consumed) currently", "mqx admin offset reset -g GROUP -t TOPIC --to end", true, []string{"group", "topic"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&group, "group", "g", "", "set the consumer group")
			f.StringVarP(&topic, "topic", "t", "", "set the topic")
			f.StringVarP(&force, "force", "f", "true", "no effect: offsets go both ways")
			f.StringVarP(&cluster, "cluster", "c", "", "cluster name")
		},
		func(ctx context.Context, c *cobra.Command, o *mqadminOptions, client *admin.Client) error {
			return a.mqadminOffsets(ctx, c, o, client, admin.OffsetSpec{
				Group: group, Topics: []string{topic}, On: admin.Target{Cluster: cluster}, To: admin.OffsetTo{Kind: admin.ToEnd},
			})
		})
}

func newMqadminCloneGroupOffset(a *app) *cobra.Command {
	var from, to, topic, offline string
	return mqadminCmd(a, "cloneGroupOffset", "Clone offset from other group", "mqx admin offset copy --from-group GROUP -g GROUP -t TOPIC", true, []string{"srcGroup", "destGroup", "topic"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&from, "srcGroup", "s", "", "set source consumer group")
			f.StringVarP(&to, "destGroup", "d", "", "set destination consumer group")
			f.StringVarP(&topic, "topic", "t", "", "set the topic")
			f.StringVarP(&offline, "offline", "o", "false", "no effect: whether a group is online is looked up")
		},
		func(ctx context.Context, c *cobra.Command, o *mqadminOptions, client *admin.Client) error {
			done, err := a.mqadminChange(ctx, c, o, client, func() (admin.Plan, error) {
				return client.PlanOffsets(ctx, admin.OffsetSpec{Group: to, Topics: []string{topic}, To: admin.OffsetTo{Kind: admin.ToGroup, Group: from}})
			})
			if err != nil {
				return err
			}
			if err := a.partial(targetProblems(done.errs)); err != nil {
				return err
			}
			return a.printf("clone group offset success. srcGroup[%s], destGroup=[%s], topic[%s]\n", from, to, topic)
		})
}
