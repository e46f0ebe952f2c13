package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/client"
	"mqx/message"
)

func newMqadminMessageCmds(a *app) []*cobra.Command {
	shown := []*cobra.Command{
		newMqadminQueryByID(a), newMqadminQueryByUniqueKey(a), newMqadminQueryByOffset(a), newMqadminPrintMsg(a), newMqadminPrintMsgByQueue(a), newMqadminConsumeMessage(a),
	}
	for _, c := range shown { // those that show messages
		grouped(c, groupOutput, func(f *pflag.FlagSet) {
			f.BoolVar(&a.redact, "redact", false, "hide bodies and the values of properties; no body is saved")
		})
	}
	return append(shown, newMqadminQueryByKey(a), newMqadminQueryTrace(a), newMqadminSendMessage(a))
}

// mqadminQuery are the options of queryMsgById and queryMsgByUniqueKey.
type mqadminQuery struct {
	topic, id, group, client, send, unit, format, cluster string
	all                                                   bool
}

func newMqadminQueryByID(a *app) *cobra.Command {
	q := &mqadminQuery{}
	return mqadminCmd(a, "queryMsgById", "Query message by id", "mqx admin message get ID, mqx admin message track ID", true, []string{"topic", "msgId"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&q.topic, "topic", "t", "", "topic name")
			f.StringVarP(&q.id, "msgId", "i", "", "message id, offset or unique; several with commas between them")
			f.StringVarP(&q.group, "consumerGroup", "g", "", "consumer group: with --clientId its member consumes the message now")
			f.StringVarP(&q.client, "clientId", "d", "", "client id of the consumer")
			f.StringVarP(&q.send, "sendMessage", "s", "", "true: send the message again, to every group")
			f.StringVarP(&q.unit, "unitName", "u", "", "unit name (refused)")
			f.StringVarP(&q.format, "bodyFormat", "f", "", "print the body too: UTF-8")
			f.StringVarP(&q.cluster, "cluster", "c", "", "cluster name, or a topic whose route shows the brokers")
		},
		func(ctx context.Context, c *cobra.Command, o *mqadminOptions, ac *admin.Client) error {
			if q.unit != "" {
				return usagef("cannot use --unitName: mqx has no units").try("leave it out")
			}
			if err := onlyUTF8("bodyFormat", q.format); err != nil {
				return err
			}
			for id := range strings.SplitSeq(q.id, ",") {
				if id = strings.TrimSpace(id); id == "" {
					continue
				}
				ref, err := admin.ParseMessageRef(id, q.topic)
				if err != nil {
					return noMessage(err)
				}
				m, errs, err := oneMessage(ctx, a, ac, ref)
				if err != nil {
					return err
				}
				switch {
				case q.group != "" && q.client != "":
					err = a.mqadminDirect(ctx, c, o, ac, q, m)
				case apacheBool(q.send):
					err = a.mqadminResend(ctx, c, o, q, m)
				case c.Flags().Changed("sendMessage"):
				default:
					err = a.mqadminShow(ctx, ac, m, true, c.Flags().Changed("bodyFormat"))
				}
				if err := errors.Join(err, a.partial(targetProblems(errs))); err != nil {
					return err
				}
			}
			return nil
		})
}

func newMqadminQueryByUniqueKey(a *app) *cobra.Command {
	q := &mqadminQuery{}
	var start, end string
	return mqadminCmd(a, "queryMsgByUniqueKey", "Query message by unique key", "mqx admin message find TOPIC --id ID, mqx admin message track ID", true, []string{"topic", "msgId"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&q.topic, "topic", "t", "", "topic name")
			f.StringVarP(&q.id, "msgId", "i", "", "unique id")
			f.StringVarP(&q.group, "consumerGroup", "g", "", "consumer group: with --clientId its member consumes the message now")
			f.StringVarP(&q.client, "clientId", "d", "", "client id of the consumer")
			f.BoolVarP(&q.all, "showAll", "a", false, "print all records that have the id")
			f.StringVarP(&q.cluster, "cluster", "c", "", "cluster name, or a topic whose route shows the brokers")
			f.StringVarP(&start, "startTime", "s", "", "only what was stored since, in ms")
			f.StringVarP(&end, "endTime", "e", "", "only what was stored before, in ms")
		},
		func(ctx context.Context, c *cobra.Command, o *mqadminOptions, ac *admin.Client) error {
			k, err := a.mqadminKey(ctx, ac, q.topic, q.cluster, "startTime", start, "endTime", end)
			if err != nil {
				return err
			}
			k.Key, k.Unique = strings.TrimSpace(q.id), true
			f, err := ac.FindByKey(ctx, *k)
			if err != nil {
				return err
			}
			if err := allFailed(len(f.Messages), f.Errors); err != nil {
				return err
			}
			if len(f.Messages) == 0 {
				return noMessage(&admin.MessageNotFoundError{What: "message " + k.Key + " of topic " + q.topic, Asked: f.Asked})
			}
			for i, m := range f.Messages {
				switch {
				case q.group != "" && q.client != "":
					err = a.mqadminDirect(ctx, c, o, ac, q, m)
				case i > 0 && !q.all:
					continue
				default:
					err = a.mqadminShow(ctx, ac, m, false, false)
				}
				if err != nil {
					return err
				}
			}
			return a.partial(targetProblems(f.Errors))
		})
}

// mqadminKey is a question to the indexes. cluster is the name of one, or a topic whose route counts.
func (a *app) mqadminKey(ctx context.Context, ac *admin.Client, topic, cluster, beginName, begin, endName, end string) (*admin.KeyQuery, error) {
	k := &admin.KeyQuery{Topic: topic}
	for _, t := range []struct {
		name, text string
		to         *time.Time
	}{{beginName, begin, &k.Begin}, {endName, end, &k.End}} {
		if t.text == "" {
			continue
		}
		when, err := apacheWhen(t.name, t.text)
		if err != nil {
			return nil, err
		}
		if when.UnixMilli() > 0 && when.UnixMilli() < 1<<62 {
			*t.to = when
		}
	}
	if cluster == "" {
		return k, nil
	}
	brokers, err := ac.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(brokers, func(b admin.Broker) bool { return b.Cluster == cluster }) {
		k.Target.Cluster = cluster
	} else {
		k.RouteTopic = cluster
	}
	return k, nil
}

// mqadminShow prints a message and its tracks.
func (a *app) mqadminShow(ctx context.Context, ac *admin.Client, m *client.Received, byID, body bool) error {
	path := hidden
	if !a.redact {
		var err error
		if path, err = saveApacheBody(m); err != nil {
			return err
		}
	}
	if err := a.printApacheMessage(m, byID, body, path); err != nil {
		return err
	}
	tracks, errs, err := ac.Track(ctx, m)
	if err != nil {
		return err
	}
	end := "\n"
	if !byID {
		end = ""
	}
	text := "\n\n"
	for i := range tracks {
		text += apacheTrack(&tracks[i], m.QueueOffset) + end
	}
	if len(tracks) == 0 && len(errs) == 0 {
		text += "WARN: No Consumer" + end
	}
	if err := a.printf("%s", text); err != nil {
		return err
	}
	return a.partial(targetProblems(errs))
}

// mqadminDirect has a member of a group consume a message.
func (a *app) mqadminDirect(ctx context.Context, _ *cobra.Command, o *mqadminOptions, ac *admin.Client, q *mqadminQuery, m *client.Received) error {
	if err := a.mayWrite(&o.target, o.safety.confirm, q.group); err != nil {
		return err
	}
	r, err := ac.ConsumeDirectly(ctx, m, q.group, q.client)
	if err != nil {
		return err
	}
	return a.printf("ConsumeMessageDirectlyResult [order=%v, autoCommit=true, consumeResult=%s, remark=%s, spentTimeMills=%d]\n", r.Order, r.Result, javaNull(r.Remark), r.Took.Milliseconds())
}

// mqadminResend sends a message again, to its topic.
func (a *app) mqadminResend(ctx context.Context, c *cobra.Command, o *mqadminOptions, q *mqadminQuery, m *client.Received) error {
	if err := a.mayWrite(&o.target, o.safety.confirm, q.topic); err != nil {
		return err
	}
	p, err := a.mqadminProducer(c, o)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }()
	again, how := admin.CopyOf(m, q.topic)
	r, err := p.Send(ctx, again, client.SendOptions{Again: &how})
	if err != nil {
		return err
	}
	return a.printf("prepare resend msg. originalMsgId=%s%s\n", m.MessageID, javaSendResult(r))
}

func (a *app) mqadminProducer(c *cobra.Command, o *mqadminOptions) (*client.Producer, error) {
	cfg, err := a.clientConfig(c.Context(), &o.target)
	if err != nil {
		return nil, err
	}
	return client.NewProducer(client.ProducerConfig{Config: cfg})
}

// javaSendResult is the outcome of a send as Java prints it.
func javaSendResult(r client.SendResult) string {
	return fmt.Sprintf("SendResult [sendStatus=%s, msgId=%s, offsetMsgId=%s, messageQueue=MessageQueue [topic=%s, brokerName=%s, queueId=%d], queueOffset=%d, recallHandle=%s]",
		sendStatusName(r.Status), r.MessageID, r.OffsetID, r.Queue.Topic, r.Queue.BrokerName, r.Queue.QueueID, r.QueueOffset, javaNull(r.RecallHandle))
}

func newMqadminQueryByKey(a *app) *cobra.Command {
	var topic, key, begin, end, cluster, kind, last string
	var most int
	return mqadminCmd(a, "queryMsgByKey", "Query message by key", "mqx admin message find TOPIC --key KEY", false, []string{"topic", "msgKey"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&topic, "topic", "t", "", "topic name")
			f.StringVarP(&key, "msgKey", "k", "", "message key")
			f.StringVarP(&begin, "beginTimestamp", "b", "", "only what was stored since, in ms")
			f.StringVarP(&end, "endTimestamp", "e", "", "only what was stored before, in ms")
			f.IntVarP(&most, "maxNum", "m", admin.DefaultQueryMax, "ask each broker for this many")
			f.StringVarP(&cluster, "cluster", "c", "", "cluster name, or a topic whose route shows the brokers")
			f.StringVarP(&kind, "keyType", "p", "K", "K for a key, U for a unique id (T is refused)")
			f.StringVarP(&last, "lastKey", "l", "", "where to go on (refused: there are no pages)")
		},
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, ac *admin.Client) error {
			if last != "" || kind != "K" && kind != "U" {
				return usagef("cannot use --lastKey or --keyType %s: the indexes of mqx and of brokers without RocksDB have neither", kind).try("mqx admin message find TOPIC --tag TAG")
			}
			k, err := a.mqadminKey(ctx, ac, topic, cluster, "beginTimestamp", begin, "endTimestamp", end)
			if err != nil {
				return err
			}
			k.Key, k.Max, k.Unique = strings.TrimSpace(key), most, kind == "U"
			f, err := ac.FindByKey(ctx, *k)
			if err != nil {
				return err
			}
			if err := allFailed(len(f.Messages), f.Errors); err != nil {
				return err
			}
			if len(f.Messages) == 0 {
				return noMessage(&admin.MessageNotFoundError{What: "message with " + key + " in topic " + topic, Asked: f.Asked})
			}
			if err := a.printf("%-50s %4s %40s %-200s\n", "#Message ID", "#QID", "#Offset", "#IndexKey"); err != nil {
				return err
			}
			for _, m := range f.Messages {
				hour := m.StoreTimestamp - m.StoreTimestamp%time.Hour.Milliseconds()
				index := fmt.Sprintf("%d@%s@%s@%s@%s@%d", hour, topic, kind, k.Key, m.MessageID, m.PhysicalOffset)
				if err := a.printf("%-50s %4d %40d %-200s\n", m.MessageID, m.Queue.QueueID, m.QueueOffset, index); err != nil {
					return err
				}
			}
			return a.partial(targetProblems(f.Errors))
		})
}

func newMqadminQueryByOffset(a *app) *cobra.Command {
	var topic, broker, format, route string
	var queue int32
	var offset int64
	return mqadminCmd(a, "queryMsgByOffset", "Query message by offset", "mqx admin message get BROKER:QUEUE:OFFSET -t TOPIC", false, []string{"topic", "brokerName", "queueId", "offset"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&topic, "topic", "t", "", "topic name")
			f.StringVarP(&broker, "brokerName", "b", "", "broker name")
			f.Int32VarP(&queue, "queueId", "i", 0, "queue id")
			f.Int64VarP(&offset, "offset", "o", 0, "queue offset")
			f.StringVarP(&format, "bodyFormat", "f", "", "print the body too: UTF-8")
			f.StringVarP(&route, "routeTopic", "r", "", "a topic whose route shows the brokers (refused)")
		},
		func(ctx context.Context, c *cobra.Command, _ *mqadminOptions, ac *admin.Client) error {
			if route != "" {
				return usagef("cannot use --routeTopic: light queues are not read by it").try("mqx consume TOPIC")
			}
			if err := onlyUTF8("bodyFormat", format); err != nil {
				return err
			}
			if queue < 0 || offset < 0 {
				return usagef("cannot look for offset %d of queue %d: neither is negative", offset, queue)
			}
			m, errs, err := oneMessage(ctx, a, ac, admin.MessageRef{Topic: topic, Broker: broker, Queue: queue, Offset: offset})
			if err != nil {
				return err
			}
			if err := a.withBounds(ctx, ac, m); err != nil {
				return err
			}
			return errors.Join(a.mqadminShow(ctx, ac, m, true, c.Flags().Changed("bodyFormat")), a.partial(targetProblems(errs)))
		})
}

// withBounds adds the properties that Java's pull adds.
func (a *app) withBounds(ctx context.Context, ac *admin.Client, ms ...*client.Received) error {
	if len(ms) == 0 {
		return nil
	}
	d, err := ac.GetTopic(ctx, ms[0].Queue.Topic)
	if err != nil {
		return err
	}
	for _, m := range ms {
		for _, q := range d.Queues {
			if q.Broker == m.Queue.BrokerName && q.QueueID == m.Queue.QueueID {
				m.SetProperty(message.PropMinOffset, fmt.Sprint(q.MinOffset))
				m.SetProperty(message.PropMaxOffset, fmt.Sprint(q.MaxOffset))
			}
		}
	}
	return nil
}

func newMqadminQueryTrace(a *app) *cobra.Command {
	var id, topic, begin, end string
	var most int
	return mqadminCmd(a, "queryMsgTraceById", "Query a message trace", "mqx admin trace get ID", false, []string{"msgId"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&id, "msgId", "i", "", "message id")
			f.StringVarP(&topic, "traceTopic", "t", message.TopicTrace, "trace topic")
			f.StringVarP(&begin, "beginTimestamp", "b", "", "only what was noted since, in ms")
			f.StringVarP(&end, "endTimestamp", "e", "", "only what was noted before, in ms")
			f.IntVarP(&most, "maxNum", "c", admin.DefaultQueryMax, "ask each broker for this many")
		},
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, ac *admin.Client) error {
			k, err := a.mqadminKey(ctx, ac, topic, "", "beginTimestamp", begin, "endTimestamp", end)
			if err != nil {
				return err
			}
			t, err := ac.GetTrace(ctx, admin.TraceQuery{ID: strings.TrimSpace(id), Topic: topic, Begin: k.Begin, End: k.End, Max: most})
			if err != nil {
				return noTrace(err)
			}
			if err := allFailed(len(t.Records), t.Errors); err != nil {
				return err
			}
			if err := a.printApacheTrace(t.Records); err != nil {
				return err
			}
			return errors.Join(t.Broken, a.partial(targetProblems(t.Errors)))
		})
}

// printApacheTrace prints the sends, then the consumers by group.
func (a *app) printApacheTrace(rs []admin.TraceRecord) error {
	const form = "%-10s %-20s %-20s %-20s %-10s %-10s\n"
	row := func(kind string, r *admin.TraceRecord) error {
		status, cost := "failed", time.Duration(0)
		if r.Success != nil && *r.Success {
			status = "success"
		}
		if r.Cost != nil {
			cost = *r.Cost
		}
		return a.printf(form, kind, r.Group, r.ClientHost, r.Time.Local().Format(time.DateTime), fmt.Sprintf("%dms", cost.Milliseconds()), status)
	}
	var groups []string
	for i := range rs {
		switch r := &rs[i]; r.Type {
		case admin.TracePub:
			if err := errors.Join(a.printf(form, "#Type", "#ProducerGroup", "#ClientHost", "#SendTime", "#CostTimes", "#Status"), row("Pub", r), a.printf("\n")); err != nil {
				return err
			}
		case admin.TraceSubAfter:
			if !slices.Contains(groups, r.Group) {
				groups = append(groups, r.Group)
			}
		}
	}
	for _, g := range groups {
		if err := a.printf(form, "#Type", "#ConsumerGroup", "#ClientHost", "#ConsumerTime", "#CostTimes", "#Status"); err != nil {
			return err
		}
		for i := range rs {
			if rs[i].Type == admin.TraceSubAfter && rs[i].Group == g {
				if err := row("Sub", &rs[i]); err != nil {
					return err
				}
			}
		}
		if err := a.printf("\n"); err != nil {
			return err
		}
	}
	return nil
}
