package cmd

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/client"
	"mqx/message"
	"mqx/remoting"
)

// mqadminRead reads messages for a command of Apache's tool.
type mqadminRead struct {
	topic, broker, group, tag, begin, end string
	beginName, endName                    string
	queue                                 int32
	hasQueue                              bool
}

// ranges are the queues and what is read of them.
func (r *mqadminRead) ranges(ctx context.Context, a *app, c *cobra.Command, o *mqadminOptions) (client.ReaderConfig, []client.QueueRange, error) {
	cfg, err := a.clientConfig(c.Context(), &o.target)
	if err != nil {
		return client.ReaderConfig{}, nil, err
	}
	rc := client.ReaderConfig{Config: cfg, Topic: r.topic, Queue: r.queue, HasQueue: r.hasQueue, Tag: r.tag, Group: r.group}
	if r.broker != "" {
		rc.Brokers = []string{r.broker}
	}
	if r.begin != "" {
		t, err := apacheWhen(r.beginName, r.begin)
		if err != nil {
			return rc, nil, err
		}
		rc.Start = client.Position{Kind: client.AtTime, Time: t}
	}
	if r.end != "" {
		t, err := apacheWhen(r.endName, r.end)
		if err != nil {
			return rc, nil, err
		}
		rc.End = &client.Position{Kind: client.AtTime, Time: t}
	}
	reader, err := client.NewReader(rc)
	if err != nil {
		return rc, nil, err
	}
	defer func() { _ = reader.Close() }()
	ranges, err := reader.Queues(ctx)
	return rc, ranges, err
}

// one reads one range, in order.
func (r *mqadminRead) one(ctx context.Context, rc client.ReaderConfig, qr client.QueueRange, f func(m *client.Received) error) error {
	rc.Ranges = []client.QueueRange{qr}
	reader, err := client.NewReader(rc)
	if err != nil {
		return err
	}
	defer func() { _ = reader.Close() }()
	return reader.Read(ctx, f)
}

// withRange adds the properties that Java's pull adds.
func withRange(m *client.Received, qr client.QueueRange) {
	m.SetProperty(message.PropMinOffset, fmt.Sprint(qr.Start))
	m.SetProperty(message.PropMaxOffset, fmt.Sprint(qr.End))
}

func (a *app) printJavaMessage(m *client.Received, body bool) error {
	m = a.redacted(m)
	text := "NOT PRINT BODY"
	if body {
		text = string(m.Body)
	}
	return a.printf("MSGID: %s %s BODY: %s\n", m.MessageID, javaMessage(m), text)
}

func javaQueue(q remoting.MessageQueue) string {
	return fmt.Sprintf("MessageQueue [topic=%s, brokerName=%s, queueId=%d]", q.Topic, q.BrokerName, q.QueueID)
}

func newMqadminPrintMsg(a *app) *cobra.Command {
	r := &mqadminRead{beginName: "beginTimestamp", endName: "endTimestamp"}
	var charset, body, parent string
	return mqadminCmd(a, "printMsg", "Print message detail", "mqx consume TOPIC", false, []string{"topic"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&r.topic, "topic", "t", "", "topic name")
			f.StringVarP(&charset, "charsetName", "c", "UTF-8", "character set of the bodies")
			f.StringVarP(&r.tag, "subExpression", "s", "", "tags: TagA || TagB")
			f.StringVarP(&r.begin, "beginTimestamp", "b", "", "ms, or yyyy-MM-dd#HH:mm:ss:SSS")
			f.StringVarP(&r.end, "endTimestamp", "e", "", "ms, or yyyy-MM-dd#HH:mm:ss:SSS")
			f.StringVarP(&body, "printBody", "d", "true", "print bodies: true or false")
			f.StringVarP(&parent, "lmqParentTopic", "l", "", "parent topic of a light queue (refused)")
		},
		func(ctx context.Context, c *cobra.Command, o *mqadminOptions, _ *admin.Client) error {
			if parent != "" {
				return usagef("cannot use --lmqParentTopic: light queues are not read by it").try("mqx consume TOPIC")
			}
			if err := onlyUTF8("charsetName", charset); err != nil {
				return err
			}
			rc, ranges, err := r.ranges(ctx, a, c, o)
			if err != nil {
				return err
			}
			for _, qr := range ranges {
				if err := a.printf("minOffset=%d, maxOffset=%d, %s\n", qr.Start, qr.End, javaQueue(qr.Queue)); err != nil {
					return err
				}
				err := r.one(ctx, rc, qr, func(m *client.Received) error {
					withRange(m, qr)
					return a.printJavaMessage(m, apacheBool(body))
				})
				if err != nil {
					return err
				}
				if err := a.printf("%s\n", strings.Repeat("-", 56)); err != nil {
					return err
				}
			}
			return nil
		})
}

func newMqadminPrintMsgByQueue(a *app) *cobra.Command {
	r := &mqadminRead{beginName: "beginTimestamp", endName: "endTimestamp", hasQueue: true}
	var charset, show, body, count string
	return mqadminCmd(a, "printMsgByQueue", "Print message detail by queue", "mqx consume TOPIC -b BROKER -q QUEUE", false, []string{"topic", "brokerName", "queueId"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&r.topic, "topic", "t", "", "topic name")
			f.StringVarP(&r.broker, "brokerName", "a", "", "broker name")
			f.Int32VarP(&r.queue, "queueId", "i", 0, "queue id")
			f.StringVarP(&charset, "charsetName", "c", "UTF-8", "character set of the bodies")
			f.StringVarP(&r.tag, "subExpression", "s", "", "tags: TagA || TagB")
			f.StringVarP(&r.begin, "beginTimestamp", "b", "", "ms, or yyyy-MM-dd#HH:mm:ss:SSS")
			f.StringVarP(&r.end, "endTimestamp", "e", "", "ms, or yyyy-MM-dd#HH:mm:ss:SSS")
			f.StringVarP(&show, "print", "p", "false", "print messages: true or false")
			f.StringVarP(&body, "printBody", "d", "false", "print bodies: true or false")
			f.StringVarP(&count, "calculate", "f", "false", "count by tag: true or false")
		},
		func(ctx context.Context, c *cobra.Command, o *mqadminOptions, _ *admin.Client) error {
			if err := onlyUTF8("charsetName", charset); err != nil {
				return err
			}
			rc, ranges, err := r.ranges(ctx, a, c, o)
			if err != nil {
				return err
			}
			tags := map[string]int{}
			for _, qr := range ranges {
				err := r.one(ctx, rc, qr, func(m *client.Received) error {
					if tag := m.Tags(); tag != "" {
						tags[tag]++
					}
					if !apacheBool(show) {
						return nil
					}
					withRange(m, qr)
					return a.printJavaMessage(m, apacheBool(body))
				})
				if err != nil {
					return err
				}
			}
			if !apacheBool(count) {
				return nil
			}
			for _, tag := range slices.SortedFunc(maps.Keys(tags), func(x, y string) int { return cmp.Or(tags[y]-tags[x], strings.Compare(x, y)) }) {
				if err := a.printf("Tag: %-30s Count: %d\n", tag, tags[tag]); err != nil {
					return err
				}
			}
			return nil
		})
}

func newMqadminConsumeMessage(a *app) *cobra.Command {
	r := &mqadminRead{beginName: "beginTimestamp", endName: "endTimestamp"}
	var offset, count int64
	return mqadminCmd(a, "consumeMessage", "Consume message", "mqx consume TOPIC --count N", false, []string{"topic"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&r.topic, "topic", "t", "", "topic name")
			f.StringVarP(&r.broker, "brokerName", "b", "", "broker name")
			f.Int32VarP(&r.queue, "queueId", "i", 0, "queue id")
			f.Int64VarP(&offset, "offset", "o", 0, "queue offset")
			f.StringVarP(&r.group, "consumerGroup", "g", "", "consumer group in whose name is read; nothing is committed")
			f.StringVarP(&r.begin, "beginTimestamp", "s", "", "ms, or yyyy-MM-dd#HH:mm:ss:SSS")
			f.StringVarP(&r.end, "endTimestamp", "e", "", "ms, or yyyy-MM-dd#HH:mm:ss:SSS")
			f.Int64VarP(&count, "MessageNumber", "c", 128, "number of messages")
		},
		func(ctx context.Context, c *cobra.Command, o *mqadminOptions, _ *admin.Client) error {
			r.hasQueue = c.Flags().Changed("queueId")
			switch {
			case count <= 0:
				return usagef("cannot use --MessageNumber %d: it must be at least 1", count)
			case r.hasQueue && r.broker == "":
				return usagef("cannot use --queueId without --brokerName").try("--brokerName BROKER")
			case c.Flags().Changed("offset") && !r.hasQueue:
				return usagef("cannot use --offset without --queueId").try("--queueId QUEUE")
			}
			rc, ranges, err := r.ranges(ctx, a, c, o)
			if err != nil {
				return err
			}
			left := count
			for _, qr := range ranges {
				whole := qr
				qr.Start = max(qr.Start, offset)
				if qr.End-qr.Start > left {
					if err := a.printf("The oldler %d message will be provided\n", left); err != nil { // as it is spelled there
						return err
					}
					qr.End = qr.Start + left
				}
				told := false
				err := r.one(ctx, rc, qr, func(m *client.Received) error {
					if !told {
						told = true
						if err := a.printf("Consume ok\n"); err != nil {
							return err
						}
					}
					left--
					withRange(m, whole)
					return a.printJavaMessage(m, true)
				})
				if err != nil {
					return err
				}
				if left <= 0 {
					return nil
				}
			}
			return nil
		})
}

func newMqadminSendMessage(a *app) *cobra.Command {
	var topic, body, key, tag, broker, trace string
	var queue int32
	return mqadminCmd(a, "sendMessage", "Send a message", "mqx produce TOPIC", true, []string{"topic", "body"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&topic, "topic", "t", "", "topic name")
			f.StringVarP(&body, "body", "p", "", "body, as UTF-8")
			f.StringVarP(&key, "key", "k", "", "keys, blanks between them")
			f.StringVarP(&tag, "tags", "c", "", "tag")
			f.StringVarP(&broker, "broker", "b", "", "send to this broker")
			f.Int32VarP(&queue, "qid", "i", 0, "send to this queue")
			f.StringVarP(&trace, "msgTraceEnable", "m", "false", "note the send in the trace topic (true is refused)")
		},
		func(ctx context.Context, c *cobra.Command, o *mqadminOptions, _ *admin.Client) error {
			if apacheBool(trace) {
				return usagef("cannot use --msgTraceEnable true: mqx writes no traces").try("leave it out")
			}
			has := c.Flags().Changed("qid")
			if has && broker == "" {
				return usagef("cannot use --qid without --broker: a queue is one of a broker").try("--broker BROKER")
			}
			m := &message.Message{Topic: topic, Body: []byte(body)}
			m.SetProperty(message.PropKeys, strings.TrimSpace(key))
			m.SetTags(strings.TrimSpace(tag))
			if err := a.mayWrite(&o.target, o.safety.confirm, topic); err != nil {
				return err
			}
			p, err := a.mqadminProducer(c, o)
			if err != nil {
				return err
			}
			defer func() { _ = p.Close() }()
			r, err := p.Send(ctx, m, client.SendOptions{Broker: broker, HasQueue: has, QueueID: queue})
			if err != nil {
				return err
			}
			if err := a.printf("%-32s  %-4s  %-20s    %s\n", "#Broker Name", "#QID", "#Send Result", "#MsgId"); err != nil {
				return err
			}
			return a.printf("%-32s  %-4d  %-20s    %s\n", r.Queue.BrokerName, r.Queue.QueueID, sendStatusName(r.Status), r.MessageID)
		})
}
