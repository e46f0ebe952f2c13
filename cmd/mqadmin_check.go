package cmd

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/client"
	"mqx/internal/words"
)

func newMqadminCheckCmds(a *app) []*cobra.Command {
	return []*cobra.Command{newMqadminClusterRT(a), newMqadminSendMsgStatus(a), newMqadminCheckMsgSendRT(a)}
}

// apacheCheck are the counts of Apache's checks.
type apacheCheck struct{ amount, size int }

func (n *apacheCheck) valid() error {
	if n.amount < 1 || n.size < 1 || n.size > maxCheckSize {
		return usagef("cannot send %s of %d bytes: there is at least one, of 1 byte to 4 MiB", words.Count(n.amount, "message"), n.size).try("-a 100 -s 128")
	}
	return nil
}

// leave asks for leave to send on a cluster that is marked.
func (a *app) leave(o *mqadminOptions, name string) error {
	o.safety.yes = true
	return a.agree(&o.target, &o.safety, act{name: name})
}

func newMqadminClusterRT(a *app) *cobra.Command {
	var cluster, asLog, room string
	n := apacheCheck{}
	var interval int
	return mqadminCmd(a, "clusterRT", "List All clusters Message Send RT", "mqx admin cluster check [CLUSTER] --watch", true, nil,
		func(f *pflag.FlagSet) {
			f.IntVarP(&n.amount, "amount", "a", 100, "message amount")
			f.IntVarP(&n.size, "size", "s", 128, "message size")
			f.StringVarP(&cluster, "cluster", "c", "", "which cluster")
			f.StringVarP(&asLog, "print log", "p", "false", "print as lines of a log (true or false)")
			f.StringVarP(&room, "machine room", "m", "noname", "machine room name, for the lines of a log")
			f.IntVarP(&interval, "interval", "i", 10, "seconds between rounds; 0: one round")
		},
		func(ctx context.Context, c *cobra.Command, o *mqadminOptions, client *admin.Client) error {
			if err := n.valid(); err != nil {
				return err
			}
			if err := a.leave(o, cmp.Or(cluster, "cluster")); err != nil {
				return err
			}
			lines := strings.EqualFold(asLog, "true")
			if !lines {
				if err := a.printf("%-24s  %-24s  %-4s  %-8s  %-8s\n", "#Cluster Name", "#Broker Name", "#RT", "#successCount", "#failCount"); err != nil {
					return err
				}
			}
			return a.repeat(c, time.Duration(interval)*time.Second, func(ctx context.Context) error {
				found, err := client.CheckSend(ctx, admin.Target{Cluster: cluster}, admin.CheckOptions{Count: max(1, n.amount-1), Size: n.size})
				if err != nil {
					return err
				}
				for i := range found {
					if err := a.mqadminRT(&found[i], lines, room); err != nil {
						return err
					}
				}
				return nil
			})
		})
}

// mqadminRT prints one broker: the mean of all sends but the first.
func (a *app) mqadminRT(s *admin.SendCheck, line bool, room string) error {
	rt := milliseconds(s.Mean)
	if line {
		when := time.Now().In(time.FixedZone("GMT+8", 8*3600)).Format(apacheTime)
		return a.printf("%s|%s|%s|%s|%.0f\n", when, room, s.Cluster, s.Name, math.Floor(rt+0.5))
	}
	sent := s.Sent
	if s.First {
		sent++
	}
	return a.printf("%-24s  %-24s  %-8s  %-16d  %-16d\n", s.Cluster, s.Name, fmt.Sprintf("%.2f", rt), sent, s.Failed)
}

func newMqadminSendMsgStatus(a *app) *cobra.Command {
	var broker string
	n := apacheCheck{}
	return mqadminCmd(a, "sendMsgStatus", "Send msg to broker", "mqx admin broker check BROKER", true, []string{"brokerName"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&broker, "brokerName", "b", "", "broker name, e.g. broker-a")
			f.IntVarP(&n.size, "messageSize", "s", 128, "message size")
			f.IntVarP(&n.amount, "count", "c", 50, "message count")
		},
		func(ctx context.Context, _ *cobra.Command, o *mqadminOptions, client *admin.Client) error {
			if err := n.valid(); err != nil {
				return err
			}
			if err := a.leave(o, broker); err != nil {
				return err
			}
			var failed error
			found, err := client.CheckSend(ctx, admin.Target{Broker: broker}, admin.CheckOptions{Count: n.amount, Size: n.size, Each: func(_ admin.SendCheck, t admin.SendTry) {
				text := sendResultText(&t.Result)
				if t.Err != nil {
					text = "null, error: " + oneLine(t.Err.Error())
				}
				failed = cmp.Or(failed, a.printf("rt=%dms, SendResult=%s\n", t.Took.Milliseconds(), text))
			}})
			if err = cmp.Or(err, failed); err != nil {
				return err
			}
			return found[0].Err
		})
}

// sendResultText is the outcome of a send as Java prints it.
func sendResultText(r *client.SendResult) string {
	handle := cmp.Or(r.RecallHandle, "null")
	return fmt.Sprintf("SendResult [sendStatus=%s, msgId=%s, offsetMsgId=%s, messageQueue=MessageQueue [topic=%s, brokerName=%s, queueId=%d], queueOffset=%d, recallHandle=%s]",
		r.Status, r.MessageID, r.OffsetID, r.Queue.Topic, r.Queue.BrokerName, r.Queue.QueueID, r.QueueOffset, handle)
}

func newMqadminCheckMsgSendRT(a *app) *cobra.Command {
	var topic string
	n := apacheCheck{}
	return mqadminCmd(a, "checkMsgSendRT", "Check message send response time", "mqx admin broker check --topic TOPIC", true, []string{"topic"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&topic, "topic", "t", "", "topic name")
			f.IntVarP(&n.amount, "amount", "a", 100, "message amount")
			f.IntVarP(&n.size, "size", "s", 128, "message size")
		},
		func(ctx context.Context, _ *cobra.Command, o *mqadminOptions, client *admin.Client) error {
			if err := n.valid(); err != nil {
				return err
			}
			if err := a.leave(o, topic); err != nil {
				return err
			}
			if err := a.printf("%-32s  %-4s  %-20s    %s\n", "#Broker Name", "#QID", "#Send Result", "#RT"); err != nil {
				return err
			}
			var total time.Duration
			sends := 0
			var last, failed error
			err := client.CheckTurns(ctx, topic, admin.CheckOptions{Count: n.amount, Size: n.size, Each: func(s admin.SendCheck, t admin.SendTry) {
				if sends > 0 {
					total += t.Took
				}
				sends++
				last = cmp.Or(t.Err, last)
				failed = cmp.Or(failed, a.printf("%-32s  %-4d  %-20t    %d\n", s.Name, *s.QueueID, t.Err == nil, t.Took.Milliseconds()))
			}})
			if err = cmp.Or(err, failed); err != nil {
				return err
			}
			if err := a.printf("Avg RT: %.2f\n", milliseconds(total)/float64(max(1, sends-1))); err != nil {
				return err
			}
			return last
		})
}
