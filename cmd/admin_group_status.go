package cmd

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/render"
	"mqx/message"
	"mqx/remoting"
)

var groupHealthSchema = render.Schema{Kind: "GroupHealthList", Name: "group", Fields: []render.Field{
	{Name: "group", Doc: "consumer group"},
	{Name: "members", Kind: render.Int, Tone: presence, Doc: "clients online; unknown when a broker did not say"},
	{Name: "lag", Kind: render.Int, Tone: render.WarnAbove(0), Doc: "messages behind, over all queues; unknown when it never committed, or a broker did not answer"},
	{Name: "worstQueueLag", Title: "WORST", Kind: render.Int, Wide: true, Doc: "messages behind in the queue that is furthest behind; unknown as the lag is"},
	{Name: "behindMs", Title: "BEHIND", Kind: render.Duration, Doc: "age of the oldest message it has not consumed, in ms; unknown when the brokers do not say"},
	{Name: "findings", Kind: render.Int, Tone: render.WarnAbove(0), Doc: "what is wrong with its members, group status GROUP says more; unknown when a broker did not answer and the others show nothing"},
	{Name: "verdict", Doc: "the kinds of findings, or ok; unknown as the findings are"},
}}

var groupStatusSchema = render.Schema{Kind: "GroupStatusList", Name: "clientId", Fields: []render.Field{
	{Name: "group", Wide: true, Doc: "consumer group"},
	{Name: "clientId", Title: "CLIENT", Doc: "client id"},
	{Name: "addrs", Title: "ADDRESSES", Kind: render.List, Wide: true, Doc: "where it connects from, one a broker"},
	{Name: "language", Doc: "language of the client"},
	{Name: "version", Doc: "version of the client"},
	{Name: "type", Doc: "how it gets messages: push, pull or pop"},
	{Name: "orderly", Kind: render.Bool, Doc: "consumes in order; unknown when it does not say"},
	{Name: "started", Kind: render.Time, Doc: "when it began to consume; unknown when it does not say"},
	{Name: "queues", Kind: render.Int, Doc: "queues it has, but for the retry topic; unknown when it does not say"},
	{Name: "cached", Kind: render.Int, Doc: "messages that lie in it"},
	{Name: "okTps", Title: "OK/S", Kind: render.Float, Doc: "messages it consumes a second, over its topics"},
	{Name: "failedTps", Title: "FAILED/S", Kind: render.Float, Doc: "messages that fail a second"},
	{Name: "findings", Kind: render.Int, Tone: render.WarnAbove(0), Doc: "what is wrong with it; --show findings says more"},
	{Name: "error", Doc: "why it does not say what it does; unknown when it does"},
}}

var groupFindingSchema = render.Schema{Kind: "GroupFindingList", Name: "kind", Fields: []render.Field{
	{Name: "group", Wide: true, Doc: "consumer group"},
	{Name: "kind", Tone: render.ToneOf(nil, render.Warn), Doc: "different-subscription, queue-without-owner, queue-with-two-owners, client-without-queue, blocked, not-locked, unlock-fails, duplicate-client-id, no-answer"},
	{Name: "clientId", Title: "CLIENT", Doc: "client; unknown where it is not one client's"},
	{Name: "topic", Doc: "topic of the queue; unknown where it is no queue's"},
	{Name: "broker", Doc: "broker of the queue"},
	{Name: "queueId", Title: "QUEUE", Kind: render.Int, Doc: "queue"},
	{Name: "text", Doc: "what it is"},
}}

var clientSubscriptionSchema = render.Schema{Kind: "ClientSubscriptionList", Name: "topic", Fields: []render.Field{
	{Name: "group", Wide: true, Doc: "consumer group"},
	{Name: "topic", Doc: "topic"},
	{Name: "clientId", Title: "CLIENT", Doc: "client id"},
	{Name: "type", Doc: "TAG or SQL92; unknown when it does not subscribe to the topic"},
	{Name: "expression", Doc: "filter; unknown when it does not subscribe to the topic"},
	{Name: "version", Kind: render.Int, Wide: true, Doc: "when it subscribed, as the client counts"},
	{Name: "same", Kind: render.Bool, Tone: enabled, Doc: "as the first member of the group"},
}}

var clientStackSchema = render.Schema{Kind: "ClientStackList", Name: "clientId", Fields: []render.Field{
	{Name: "group", Wide: true, Doc: "consumer group"},
	{Name: "clientId", Title: "CLIENT", Doc: "client id"},
	{Name: "stack", Doc: "stacks of its threads; unknown when it does not send them, which only Java clients do"},
}}

var groupStatusShow = map[string]render.Schema{
	"clients": groupStatusSchema, "findings": groupFindingSchema, "subscriptions": clientSubscriptionSchema, "queues": clientQueueSchema,
	"topics": clientTopicSchema, "properties": clientPropertySchema, "stack": clientStackSchema,
}

// groupStatusOptions are the flags of mqx admin group status.
type groupStatusOptions struct {
	readOptions
	client string
	stack  bool
	strict bool
}

func newGroupStatusCmd(a *app) *cobra.Command {
	o := &groupStatusOptions{}
	c := &cobra.Command{
		Use:   "status [GROUP]",
		Short: "Ask the members of a group what they do, and say what is wrong",
		Long: `Every member is asked for its queues, rates and subscriptions, and the answers are
compared. Without GROUP every group is looked at, one line each; with --watch that is a
monitor. With --exit-code a finding ends in exit code 6.`,
		Example: `  mqx admin group status
  mqx admin group status --watch --interval 1m --match 'verdict!=ok'
  mqx admin group status billing --show findings
  mqx admin group status billing --show subscriptions
  mqx admin group status billing --client 10.0.0.7@4711 --stack -o template={{.stack}}`,
		Args:              optionalArg(),
		ValidArgsFunction: completeGroups(a, &o.target),
		RunE:              func(c *cobra.Command, args []string) error { return a.runGroupStatus(c, o, args) },
	}
	o.addTo(c)
	o.addBrokers(a, c)
	o.addShow(c, "clients", "findings", "subscriptions", "queues", "topics", "properties", "stack")
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.StringVar(&o.client, "client", "", "only this member")
		f.BoolVar(&o.stack, "stack", false, "show the stacks of its threads: --show stack")
		f.BoolVar(&o.strict, "exit-code", false, "exit with 6 when something is wrong")
	})
	return c
}

func (a *app) runGroupStatus(c *cobra.Command, o *groupStatusOptions, args []string) error {
	if o.stack {
		o.show = "stack"
	}
	s, err := shown(o.show, groupStatusShow, "clients", "findings", "subscriptions", "queues", "topics", "properties", "stack")
	if err != nil {
		return err
	}
	if len(args) == 0 {
		if o.show != "clients" || o.client != "" {
			return usagef("cannot run %q: GROUP is missing", c.CommandPath()).because("without a group there is one line for each group").try("%s GROUP --show %s", c.CommandPath(), o.show)
		}
		s = groupHealthSchema
	}
	wrong := 0
	err = a.read(c, &o.readOptions, s, func(ctx context.Context, client *admin.Client) (answer, error) {
		var ans answer
		var err error
		if len(args) == 0 {
			ans, wrong, err = o.monitor(ctx, client)
		} else {
			ans, wrong, err = o.ask(ctx, client, args[0])
		}
		return ans, err
	})
	if err == nil && o.strict && wrong > 0 {
		return silentError{ExitCheckFailed}
	}
	return err
}

func (o *groupStatusOptions) status(now time.Time) admin.StatusOptions {
	return admin.StatusOptions{Client: o.client, Broker: o.brokers(), Stack: o.show == "stack", Now: now}
}

func (o *groupStatusOptions) monitor(ctx context.Context, client *admin.Client) (ans answer, wrong int, err error) {
	groups, errs, err := client.MonitorGroups(ctx, o.status(time.Now()))
	ans.errs = errs
	for _, g := range groups {
		var members, findings any = g.Members, len(g.Findings)
		verdict := verdictOf(g.Findings)
		if g.Part {
			members = nil
			if len(g.Findings) == 0 {
				findings, verdict = nil, nil // that none is seen says nothing
			}
		}
		if g.Err != nil {
			members, findings, verdict = nil, nil, nil
			ans.errs = append(ans.errs, admin.TargetError{Broker: "group " + g.Group, Err: g.Err})
		}
		wrong += len(g.Findings)
		ans.rows = append(ans.rows, []any{g.Group, members, deref(g.Lag), deref(g.Worst), deref(g.Behind), findings, verdict})
	}
	return ans, wrong, err
}

// verdictOf are the kinds of findings, or ok.
func verdictOf(findings []admin.Finding) any {
	if len(findings) == 0 {
		return "ok"
	}
	var kinds []string
	for _, f := range findings {
		kinds = append(kinds, f.Kind)
	}
	return strings.Join(unique(kinds), ",")
}

func (o *groupStatusOptions) ask(ctx context.Context, client *admin.Client, group string) (ans answer, wrong int, err error) {
	s, err := client.GroupStatus(ctx, group, o.status(time.Now()))
	if err != nil {
		return ans, 0, err
	}
	if len(s.Members) == 0 && len(s.Errors) == 0 {
		return ans, 0, failf(ExitNotFound, "no member of group %s is online", group).because("the brokers know nobody who consumes for it").try("mqx admin group get %s", group)
	}
	ans.errs = s.Errors
	for i := range s.Members {
		if m := &s.Members[i]; m.Err != nil {
			ans.errs = append(ans.errs, admin.TargetError{Broker: "client " + m.ClientID, Err: fmt.Errorf("%s", clientSilence(m.Err))})
		}
	}
	ans.rows = groupStatusRows(o.show, s)
	return ans, len(s.Findings), nil
}

func groupStatusRows(show string, s *admin.GroupStatus) (rows [][]any) {
	switch show {
	case "findings":
		for _, f := range s.Findings {
			var topic, broker, queue any
			if f.Queue != nil {
				topic, broker, queue = f.Queue.Topic, f.Queue.BrokerName, f.Queue.QueueID
			}
			rows = append(rows, []any{s.Group, f.Kind, orUnknown(f.Client), topic, broker, queue, oneLine(f.Text)})
		}
		return rows
	case "subscriptions":
		return subscriptionRows(s)
	}
	for i := range s.Members {
		m := &s.Members[i]
		switch show {
		case "clients":
			rows = append(rows, memberRow(s, m))
		case "stack":
			var stack any
			if m.Info != nil {
				stack = orUnknown(m.Info.JStack)
			}
			rows = append(rows, []any{s.Group, m.ClientID, stack})
		default:
			rows = append(rows, memberRows(show, s.Group, m)...)
		}
	}
	return rows
}

func memberRow(s *admin.GroupStatus, m *admin.MemberStatus) []any {
	found := 0
	for _, f := range s.Findings {
		if f.Client == m.ClientID {
			found++
		}
	}
	row := []any{s.Group, m.ClientID, listOf(m.Addrs), m.Language, m.Version, orUnknown(consumeTypeName(s.Type))}
	if m.Info == nil {
		return append(row, nil, nil, nil, nil, nil, nil, found, oneLine(clientSilence(m.Err)))
	}
	queues, cached := 0, int64(0)
	for q, p := range m.Info.MQTable {
		if !message.IsRetry(q.Topic) {
			queues++
		}
		cached += int64(p.CachedMsgCount)
	}
	for q, p := range m.Info.MQPopTable {
		if _, both := m.Info.MQTable[q]; !both && !message.IsRetry(q.Topic) {
			queues++
		}
		cached += int64(p.WaitAckCount)
	}
	var ok, failed float64
	for _, t := range m.Info.StatusTable {
		ok, failed = ok+t.ConsumeOKTPS, failed+t.ConsumeFailedTPS
	}
	orderly, says := m.Info.Properties[remoting.PropConsumeOrderly]
	return append(row, ifKnown(strings.EqualFold(orderly, "true"), says), m.Started(), queues, cached, ok, failed, found, nil)
}

// subscriptionRows are the subscriptions of the members side by side: for each topic
// that one of them has, a row for every member that answered.
func subscriptionRows(s *admin.GroupStatus) (rows [][]any) {
	byTopic := map[string]map[string]remoting.SubscriptionData{}
	for _, m := range s.Members {
		if m.Info == nil {
			continue
		}
		for _, sub := range m.Info.SubscriptionSet {
			if byTopic[sub.Topic] == nil {
				byTopic[sub.Topic] = map[string]remoting.SubscriptionData{}
			}
			byTopic[sub.Topic][m.ClientID] = sub
		}
	}
	text := func(sub remoting.SubscriptionData, there bool) string {
		if !there {
			return ""
		}
		return cmp.Or(sub.ExpressionType, remoting.ExpressionTag) + " " + sub.SubString
	}
	for _, topic := range sortedNames(byTopic) {
		first, begun := "", false
		for _, m := range s.Members {
			if m.Info == nil {
				continue
			}
			sub, there := byTopic[topic][m.ClientID]
			if !begun {
				first, begun = text(sub, there), true
			}
			row := []any{s.Group, topic, m.ClientID, nil, nil, nil, text(sub, there) == first}
			if there {
				row[3], row[4], row[5] = cmp.Or(sub.ExpressionType, remoting.ExpressionTag), sub.SubString, sub.SubVersion
			}
			rows = append(rows, row)
		}
	}
	return rows
}
