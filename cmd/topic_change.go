package cmd

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mqx/admin"
	"mqx/internal/render"
)

// topicChange is how every change of topics goes, whichever command asks for it:
// planned, shown, agreed to, done, read back, noted.
type topicChange struct {
	app    *app
	cmd    *cobra.Command
	target *targetFlags
	output *outputFlags
	safety *safetyFlags

	undoOf string // id of the change that is taken back
}

type planFunc func(context.Context, *admin.Client) ([]*admin.TopicPlan, error)

// run does the whole of it.
func (t *topicChange) run(act act, plan planFunc) error {
	a := t.app
	out, closeOut, err := a.open(t.output)
	if err != nil {
		return err
	}
	w, err := a.renderer(out, t.output, topicChangeSchema, false)
	if err != nil {
		return err
	}
	if w.Help() {
		return w.Close()
	}
	client, err := a.adminClient(t.cmd.Context(), t.target)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := a.deadline(t.cmd, true)
	defer cancel()
	plans, err := plan(ctx, client)
	if err != nil {
		return a.withTimeout(ctx, err)
	}
	for _, p := range plans {
		if err := allFailed(len(p.Changes), p.Errors); err != nil {
			return err
		}
	}
	if t.safety.planOut != "" {
		if err := t.save(plans); err != nil {
			return err
		}
	}
	idle := nothingToDo(plans)
	if t.safety.planOnly() || !idle {
		t.show(plans)
	}
	if t.safety.planOnly() || idle {
		return t.finish(w, closeOut, planned(plans), !idle && t.safety.planOnly())
	}
	if err := a.agree(t.target, t.safety, act); err != nil {
		return err
	}
	// The time a person takes to answer is not the command's.
	ctx, cancelApply := a.deadlineAfterQuestion(t.cmd)
	defer cancelApply()
	done, err := t.apply(ctx, client, plans)
	if err != nil {
		return a.withTimeout(ctx, err)
	}
	return t.finish(w, closeOut, done, false)
}

// outcome is what was planned or done of one topic.
type outcome struct {
	topic   string
	changes []admin.Change
	errs    []admin.TargetError
}

func planned(plans []*admin.TopicPlan) []outcome {
	var out []outcome
	for _, p := range plans {
		out = append(out, outcome{p.Topic, p.Changes, p.Errors})
	}
	return out
}

// apply does the plans in their order and notes what was done. What fails as a
// whole ends it.
func (t *topicChange) apply(ctx context.Context, client *admin.Client, plans []*admin.TopicPlan) ([]outcome, error) {
	var out []outcome
	for _, p := range plans {
		result, err := client.Apply(ctx, p)
		if err != nil {
			return nil, err
		}
		if err := allFailed(len(result.Done), result.Errors); err != nil {
			return nil, err
		}
		t.remember(p, result.Done)
		// Who could not be planned for was not changed either.
		out = append(out, outcome{p.Topic, result.Done, append(slices.Clone(p.Errors), result.Errors...)})
	}
	return out, nil
}

func nothingToDo(plans []*admin.TopicPlan) bool {
	for _, p := range plans {
		for _, c := range p.Changes {
			if c.Action != admin.ActionNone {
				return false
			}
		}
	}
	return true
}

// finish prints the changes, planned or done, and makes the exit code.
func (t *topicChange) finish(w *render.Writer, closeOut func() error, all []outcome, would bool) error {
	var missing problems
	for _, o := range all {
		for _, ch := range o.changes {
			if err := w.Row(o.topic, orUnknown(ch.Broker), ch.Addr, ch.Action, topicConfig(ch.Before), topicConfig(ch.After), orUnknown(ch.Warning)); err != nil {
				return err
			}
		}
		missing = append(missing, targetProblems(o.errs)...)
	}
	for _, p := range missing {
		w.Problem(p)
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := closeOut(); err != nil {
		return err
	}
	if err := t.app.partial(missing); err != nil {
		return err
	}
	if would && t.safety.exitCode {
		return silentError{ExitCheckFailed}
	}
	return nil
}

// topicState is a configuration as an object of a record.
type topicState struct {
	ReadQueues  int               `json:"readQueues" yaml:"readQueues"`
	WriteQueues int               `json:"writeQueues" yaml:"writeQueues"`
	Perm        string            `json:"perm" yaml:"perm"`
	Order       bool              `json:"order" yaml:"order"`
	Attributes  map[string]string `json:"attributes,omitempty" yaml:"attributes,omitempty"`
}

// String is the configuration in a cell of a table.
func (t topicState) String() string {
	text := fmt.Sprintf("%d/%d %s", t.ReadQueues, t.WriteQueues, t.Perm)
	if t.Order {
		text += " ordered"
	}
	for _, k := range slices.Sorted(maps.Keys(t.Attributes)) {
		text += " " + k + "=" + t.Attributes[k]
	}
	return text
}

// topicConfig is the configuration on a broker; nil where there is none.
func topicConfig(b *admin.TopicBroker) any {
	if b == nil {
		return nil
	}
	return topicState{b.ReadQueues, b.WriteQueues, permName(b.Perm), b.Order, b.Attributes}
}

// show says on stderr what is about to be done, on which cluster and in which context.
func (t *topicChange) show(plans []*admin.TopicPlan) {
	a := t.app
	for _, p := range plans {
		fmt.Fprintf(a.Err, "Plan for cluster %s (%s): %s topic %s\n", cmp.Or(strings.Join(p.Cluster, ", "), "of unknown name"), t.contextText(), p.Kind, p.Topic)
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
			end := "would be lost"
			if p.Kind != admin.ActionDelete {
				end = "would no longer be reached"
			}
			fmt.Fprintf(a.Err, "  unread   %s of group %s in queue %d of %s %s\n", counted(u.Count, "message"), u.Group, u.QueueID, u.Broker, end)
		}
		for _, e := range p.Errors {
			fmt.Fprintf(a.Err, "  unknown  %s\n", oneLine(e.Error()))
		}
	}
}

// contextText names the context of the cluster and its marks.
func (t *topicChange) contextText() string {
	r, err := t.app.resolve(t.target)
	if err != nil {
		return "no context"
	}
	text := "no context"
	switch {
	case r.context != "":
		text = "context " + r.context
	case len(r.marks.Contexts) > 0:
		text = "context " + strings.Join(r.marks.Contexts, ", ")
	}
	if r.marks.Protected != "" {
		text += ", protected"
	}
	if r.marks.ReadOnly != "" {
		text += ", read-only"
	}
	return text
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
