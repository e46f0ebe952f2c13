package cmd

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/render"
)

var topicChangeSchema = render.Schema{Kind: "TopicChangeList", Name: "topic", Fields: []render.Field{
	{Name: "topic", Doc: "topic"},
	{Name: "broker", Doc: "broker, or name server"},
	{Name: "addr", Title: "ADDRESS", Whole: true, Doc: "its address"},
	{Name: "action", Tone: render.ToneOf(map[string]render.Tone{"none": render.Dim, "create": render.Good, "delete": render.Bad}, render.Warn), Doc: "create, update, delete, or none where it is so already"},
	{Name: "before", Kind: render.Object, Doc: "configuration before, unknown where there was none"},
	{Name: "after", Kind: render.Object, Doc: "configuration after"},
	{Name: "warning", Wide: true, Doc: "what to mind"},
}}

// changeTopicOptions are the flags of mqx admin topic create and rm.
type changeTopicOptions struct {
	target  targetFlags
	output  outputFlags
	safety  safetyFlags
	cluster string
	broker  string

	queues, readQueues, writeQueues int
	perm                            string
	order                           bool
	attributes                      []string
}

func (o *changeTopicOptions) addTarget(f *pflag.FlagSet) {
	o.target.add(f)
	f.StringVarP(&o.cluster, "cluster", "c", "", "on the masters of this cluster (default: of all)")
	f.StringVarP(&o.broker, "broker", "b", "", "on this broker only, by name or address")
}

func newTopicCreateCmd(a *app) *cobra.Command {
	o := &changeTopicOptions{}
	c := &cobra.Command{
		Use:   "create TOPIC",
		Short: "Create a topic, or change its queues and permissions",
		Example: `  mqx admin topic create ORDERS --queues 8 --perm rw -c DefaultCluster --yes
  mqx admin topic create ORDERS --read-queues 8 --write-queues 4 --dry-run
  mqx admin topic create AUDIT -b broker-a --attribute +cleanup.policy=DELETE --yes`,
		Args: exactArgs("TOPIC"),
		RunE: func(c *cobra.Command, args []string) error { return runTopicCreate(a, c, o, args[0]) },
	}
	// What is not given stays as it is: see spec.
	grouped(c, groupTarget, o.addTarget)
	grouped(c, groupMessage, func(f *pflag.FlagSet) {
		f.IntVar(&o.queues, "queues", 0, "queues to read and to write on each broker (default 8 for a new topic)")
		f.IntVar(&o.readQueues, "read-queues", 0, "queues to read, if another number")
		f.IntVar(&o.writeQueues, "write-queues", 0, "queues to write, if another number")
		f.StringVar(&o.perm, "perm", "", "r, w or rw (default rw for a new topic)")
		f.BoolVar(&o.order, "order", false, "mark the topic as ordered")
		f.StringArrayVar(&o.attributes, "attribute", nil, "attribute as +name=value, or -name to remove it; may be repeated")
	})
	o.output.add(c)
	o.safety.add(c, false)
	completeFlag(c, "broker", completeBrokers(a, &o.target))
	return c
}

func newTopicRmCmd(a *app) *cobra.Command {
	o := &changeTopicOptions{}
	c := &cobra.Command{
		Use:   "rm TOPIC",
		Short: "Delete a topic with all its messages",
		Long: `Lists the groups that have not read everything, and asks for the name of the
topic. There is no way back.`,
		Example: `  mqx admin topic rm ORDERS
  mqx admin topic rm ORDERS --dry-run -o json
  mqx admin topic rm ORDERS --confirm ORDERS`,
		Args:              exactArgs("TOPIC"),
		ValidArgsFunction: completeTopics(a, &o.target),
		RunE:              func(c *cobra.Command, args []string) error { return runTopicRm(a, c, o, args[0]) },
	}
	grouped(c, groupTarget, o.addTarget)
	o.output.add(c)
	o.safety.add(c, true)
	return c
}

// spec is the topic that the flags ask for. A flag that was not given leaves its
// field 0: as the topic has it, or the default for a new one.
func (o *changeTopicOptions) spec(c *cobra.Command, name string) (admin.TopicSpec, error) {
	spec := admin.TopicSpec{Name: name, ReadQueues: o.queues, WriteQueues: o.queues, Order: o.order}
	for _, q := range []struct {
		flag  string
		value int
		to    *int
	}{{"queues", o.queues, nil}, {"read-queues", o.readQueues, &spec.ReadQueues}, {"write-queues", o.writeQueues, &spec.WriteQueues}} {
		if !c.Flags().Changed(q.flag) {
			continue
		}
		if q.value < 1 {
			return spec, usagef("cannot use --%s %d: it must be at least 1", q.flag, q.value)
		}
		if q.to != nil {
			*q.to = q.value
		}
	}
	if c.Flags().Changed("perm") {
		var err error
		if spec.Perm, err = parsePerm(o.perm); err != nil {
			return spec, err
		}
	}
	for _, text := range o.attributes {
		if text == "" || text[0] != '+' && text[0] != '-' {
			return spec, usagef("cannot read attribute %q: it has the form +name=value or -name", text).try("--attribute +cleanup.policy=DELETE")
		}
		key, value, _ := strings.Cut(text, "=")
		if spec.Attributes == nil {
			spec.Attributes = map[string]string{}
		}
		spec.Attributes[key] = value
	}
	return spec, nil
}

func runTopicCreate(a *app, c *cobra.Command, o *changeTopicOptions, name string) error {
	spec, err := o.spec(c, name)
	if err != nil {
		return err
	}
	return o.change(a, c, "", func(ctx context.Context, t planTarget) (*admin.TopicPlan, error) {
		return t.client.PlanCreateTopic(ctx, t.target, spec)
	})
}

func runTopicRm(a *app, c *cobra.Command, o *changeTopicOptions, name string) error {
	return o.change(a, c, name, func(ctx context.Context, t planTarget) (*admin.TopicPlan, error) {
		return t.client.PlanDeleteTopic(ctx, t.target, name)
	})
}

// planTarget is what a planning function gets.
type planTarget struct {
	client *admin.Client
	target admin.Target
}

// change plans, shows, asks, does and reads back. confirmName is what a
// destructive change asks to be typed.
func (o *changeTopicOptions) change(a *app, c *cobra.Command, confirmName string, plan func(context.Context, planTarget) (*admin.TopicPlan, error)) error {
	out, closeOut, err := a.open(&o.output)
	if err != nil {
		return err
	}
	w, err := a.renderer(out, &o.output, topicChangeSchema, false)
	if err != nil {
		return err
	}
	if w.Help() {
		return w.Close()
	}
	client, err := a.adminClient(&o.target)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := a.deadline(c, true)
	defer cancel()
	p, err := plan(ctx, planTarget{client, admin.Target{Cluster: o.cluster, Broker: o.broker}})
	if err != nil {
		return a.withTimeout(ctx, err)
	}
	if err := allFailed(len(p.Changes), p.Errors); err != nil {
		return err
	}
	if o.safety.dryRun {
		showTopicPlan(a, p)
	}
	if o.safety.dryRun || nothingToDo(p) {
		return o.finish(a, w, closeOut, p.Changes, p.Errors, p.Topic, o.safety.dryRun && !nothingToDo(p))
	}
	showTopicPlan(a, p)
	if err := a.agree(&o.safety, confirmName); err != nil {
		return err
	}
	// The time a person takes to answer is not the command's.
	ctx, cancelApply := a.deadlineAfterQuestion(c)
	defer cancelApply()
	result, err := client.Apply(ctx, p)
	if err != nil {
		return a.withTimeout(ctx, err)
	}
	if err := allFailed(len(result.Done), result.Errors); err != nil {
		return err
	}
	undoLine(a, p.Topic, result.Done)
	// Who could not be planned for was not changed either.
	return o.finish(a, w, closeOut, result.Done, append(slices.Clone(p.Errors), result.Errors...), p.Topic, false)
}

func nothingToDo(p *admin.TopicPlan) bool {
	for _, c := range p.Changes {
		if c.Action != "none" {
			return false
		}
	}
	return true
}

// finish prints the changes, planned or done, and makes the exit code.
func (o *changeTopicOptions) finish(a *app, w *render.Writer, closeOut func() error, changes []admin.Change, errs []admin.TargetError, topic string, would bool) error {
	for _, ch := range changes {
		if err := w.Row(topic, orUnknown(ch.Broker), ch.Addr, ch.Action, topicConfig(ch.Before), topicConfig(ch.After), orUnknown(ch.Warning)); err != nil {
			return err
		}
	}
	missing := targetProblems(errs)
	for _, p := range missing {
		w.Problem(p)
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := closeOut(); err != nil {
		return err
	}
	if err := a.partial(missing); err != nil {
		return err
	}
	if would && o.safety.exitCode {
		return silentError{ExitCheckFailed}
	}
	return nil
}

// topicConfig is a configuration as an object of a record; nil where there is none.
func topicConfig(b *admin.TopicBroker) any {
	if b == nil {
		return nil
	}
	return struct {
		ReadQueues  int               `json:"readQueues" yaml:"readQueues"`
		WriteQueues int               `json:"writeQueues" yaml:"writeQueues"`
		Perm        string            `json:"perm" yaml:"perm"`
		Order       bool              `json:"order" yaml:"order"`
		Attributes  map[string]string `json:"attributes,omitempty" yaml:"attributes,omitempty"`
	}{b.ReadQueues, b.WriteQueues, permName(b.Perm), b.Order, b.Attributes}
}

// showTopicPlan says on stderr what is about to be done.
func showTopicPlan(a *app, p *admin.TopicPlan) {
	fmt.Fprintf(a.Err, "Plan for cluster %s: %s topic %s\n", strings.Join(p.Cluster, ", "), p.Kind, p.Topic)
	for _, ch := range p.Changes {
		who := ch.Addr
		if ch.Broker != "" {
			who = ch.Broker + " (" + ch.Addr + ")"
		}
		fmt.Fprintf(a.Err, "  %-8s %s%s\n", ch.Action, who, describeChange(ch))
		if ch.Warning != "" {
			fmt.Fprintf(a.Err, "           warning: %s\n", ch.Warning)
		}
	}
	for _, u := range p.Unread {
		fmt.Fprintf(a.Err, "  unread   %s of group %s in queue %d of %s would be lost\n", counted(u.Count, "message"), u.Group, u.QueueID, u.Broker)
	}
	for _, e := range p.Errors {
		fmt.Fprintf(a.Err, "  unknown  %s\n", oneLine(e.Error()))
	}
}

func describeChange(ch admin.Change) string {
	short := func(b *admin.TopicBroker) string {
		if b == nil {
			return "nothing"
		}
		return fmt.Sprintf("%d read, %d write queues, %s", b.ReadQueues, b.WriteQueues, permName(b.Perm))
	}
	if ch.Before == nil && ch.After == nil {
		return ""
	}
	return ": " + short(ch.Before) + " -> " + short(ch.After)
}

// undoLine prints the commands that take back what was done, where one does.
func undoLine(a *app, topic string, done []admin.Change) {
	for _, ch := range done {
		switch ch.Action {
		case "create":
			a.note("undo: mqx admin topic rm %s -b %s --confirm %s", topic, ch.Broker, topic)
		case "update":
			if ch.Before == nil || ch.After == nil || ch.Before.Order != ch.After.Order || !maps.Equal(ch.Before.Attributes, ch.After.Attributes) {
				continue // no one command takes these back
			}
			a.note("undo: mqx admin topic create %s -b %s --read-queues %d --write-queues %d --perm %s --yes",
				topic, ch.Broker, ch.Before.ReadQueues, ch.Before.WriteQueues, permName(ch.Before.Perm))
		}
	}
}
