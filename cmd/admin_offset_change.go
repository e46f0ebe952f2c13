package cmd

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/client"
	"mqx/internal/userfile"
	"mqx/internal/words"
)

// offsetChangeOptions are the flags of mqx admin offset reset, copy and import.
type offsetChangeOptions struct {
	offsetScope
	output outputFlags
	safety safetyFlags

	to, shift, fromGroup, fromFile, toMessage string

	retry    string
	toDLQ    bool
	dlqLimit int64
	undoFile string
}

// addHow adds what concerns every way to set offsets.
func (o *offsetChangeOptions) addHow(c *cobra.Command) {
	grouped(c, groupSafety, func(f *pflag.FlagSet) {
		f.StringVar(&o.undoFile, "undo-file", "", "write the offsets as they were to this file first; offset import takes it")
	})
	grouped(c, groupMessage, func(f *pflag.FlagSet) {
		f.StringVar(&o.retry, "retry", admin.RetryKeep, "what waits in the retry topics of the group: keep or skip")
		f.BoolVar(&o.toDLQ, "to-dlq", false, "copy the messages that are skipped into the dead letters of the group first")
		f.Int64Var(&o.dlqLimit, "dlq-limit", admin.DefaultMaxKept, "with --to-dlq: refuse when it would be more messages")
	})
	o.output.add(c)
	o.safety.add(c, false)
	completeFlag(c, "retry", cobra.FixedCompletions([]string{admin.RetryKeep, admin.RetrySkip}, cobra.ShellCompDirectiveNoFileComp))
}

func newOffsetResetCmd(a *app) *cobra.Command {
	o := &offsetChangeOptions{}
	c := &cobra.Command{
		Use:   "reset",
		Short: "Set where a group goes on reading",
		Long: `Shows for each queue where the group stands, where it would stand, and how many messages it
would skip or get again; then asks, sets the offsets broker by broker, and reads them back.
Each queue is taken as its broker has it. Beyond the end of a queue is refused; a shift ends
at its start or end.

Of a group that is offline the offset is committed. Of one that is online the broker tells
the members at their next pull; push clients drop what they hold and go on from there within
half a minute. Groups that pop are reset at the broker, which also forgets what it has handed
out. Pull consumers that keep offsets of their own do not take it over; lite pull consumers do
at their next pull, but first return what they hold, up to 1,000 messages of a queue, and commit
behind that, over what was set, until a message comes behind it. So stop them for a reset that
skips, or let the application seek. Members that read in broadcast keep offsets themselves, on
their machines: that is refused.

Messages that wait in the retry topics of the group come as before, unless --retry skip.`,
		Example: `  mqx admin offset reset -g billing -t ORDERS --to @-2h
  mqx admin offset reset -g billing -t ORDERS -b broker-b -q 3 --shift +1 --yes
  mqx admin offset reset -g billing --all --to end --to-dlq --yes
  mqx admin offset reset -g billing -t ORDERS --from-group audit --dry-run -o json
  mqx admin offset reset -g billing --to-message 7F00000100001F9000000000000000A3 --yes`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return runOffsetReset(a, c, o) },
	}
	o.add(a, c, true, true)
	grouped(c, groupRange, func(f *pflag.FlagSet) {
		f.StringVar(&o.to, "to", "", "start, end, an offset, or @TIME; see mqx help positions")
		f.StringVar(&o.shift, "shift", "", "messages forward (+N) or back (-N) from where the group stands")
		f.StringVar(&o.fromGroup, "from-group", "", "where this group stands")
		f.StringVar(&o.fromFile, "from-file", "", "the offsets of this file, as offset export writes it; - is stdin")
		f.StringVar(&o.toMessage, "to-message", "", "to this message, by its id or as BROKER:QUEUE:OFFSET; only its queue moves")
	})
	o.addHow(c)
	completeFlag(c, "from-group", completeGroups(a, &o.target))
	completeFlag(c, "to", cobra.FixedCompletions([]string{"start", "end", "@now", "@-1h"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func newOffsetCopyCmd(a *app) *cobra.Command {
	o := &offsetChangeOptions{}
	c := &cobra.Command{
		Use:   "copy",
		Short: "Let a group go on where another one stands",
		Long: `Copies what the other group has committed, in all its topics or those that are named; queues
in which it has committed nothing are left alone. The group must be there: mqx admin group
create makes it.`,
		Example: `  mqx admin offset copy --from-group billing -g billing-v2 --yes
  mqx admin offset copy --from-group billing -g billing-v2 -t ORDERS --dry-run`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			if o.fromGroup == "" {
				return usagef("cannot run %q: --from-group is missing", c.CommandPath()).try("--from-group GROUP")
			}
			return o.run(a, c, admin.OffsetTo{Kind: admin.ToGroup, Group: o.fromGroup})
		},
	}
	o.add(a, c, true, false)
	grouped(c, groupRange, func(f *pflag.FlagSet) {
		f.StringVar(&o.fromGroup, "from-group", "", "the group whose offsets are taken")
	})
	o.addHow(c)
	completeFlag(c, "from-group", completeGroups(a, &o.target))
	return c
}

func newOffsetImportCmd(a *app) *cobra.Command {
	o := &offsetChangeOptions{}
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Set the offsets that a file holds",
		Long: `Takes what offset export and --undo-file write: a JSON document whose items have topic,
broker, queueId and offset. The group is that of the file unless -g names another. An offset
that is behind the end of its queue is refused; one of messages that are gone becomes the start.`,
		Example: `  mqx admin offset import billing.json --yes
  mqx admin offset import billing.json -g billing-v2 -t ORDERS --dry-run`,
		Args: exactArgs("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			o.fromFile = args[0]
			to, err := o.values(a)
			if err != nil {
				return err
			}
			return o.run(a, c, to)
		},
	}
	o.add(a, c, true, false)
	o.addHow(c)
	return c
}

func runOffsetReset(a *app, c *cobra.Command, o *offsetChangeOptions) error {
	if o.output.help() {
		return o.run(a, c, admin.OffsetTo{})
	}
	to, err := o.resetTarget(a, c)
	if err != nil {
		return err
	}
	if to.Kind != admin.ToValues && to.Kind != admin.ToMessage {
		if err := o.needTopics(c); err != nil {
			return err
		}
	}
	return o.run(a, c, to)
}

// resetTarget is the one target that the flags name.
func (o *offsetChangeOptions) resetTarget(a *app, c *cobra.Command) (admin.OffsetTo, error) {
	none := admin.OffsetTo{}
	var given []string
	for _, name := range []string{"to", "shift", "from-group", "from-file", "to-message"} {
		if c.Flags().Changed(name) {
			given = append(given, "--"+name)
		}
	}
	switch {
	case len(given) == 0:
		return none, usagef("cannot run %q: it is not said where the offsets go", c.CommandPath()).try("--to end, --to @-2h, --shift -100, --from-group G, --from-file F or --to-message ID")
	case len(given) > 1:
		return none, usagef("cannot use %s together", strings.Join(given, " and ")).try("one of them")
	}
	switch given[0] {
	case "--to":
		return o.position(a)
	case "--shift":
		n, err := strconv.ParseInt(o.shift, 10, 64)
		if err != nil {
			return none, usagef("cannot read --shift %q: it is a number of messages with its sign", o.shift).try("--shift +1, --shift -100")
		}
		return admin.OffsetTo{Kind: admin.ToShift, Shift: n}, nil
	case "--from-group":
		return admin.OffsetTo{Kind: admin.ToGroup, Group: o.fromGroup}, nil
	case "--from-file":
		return o.values(a)
	}
	return admin.OffsetTo{Kind: admin.ToMessage, Message: o.toMessage}, nil
}

func (o *offsetChangeOptions) position(a *app) (admin.OffsetTo, error) {
	p, err := parsePosition(o.to, time.Now())
	if err != nil {
		return admin.OffsetTo{}, err
	}
	a.note("to %s", showPosition(p))
	switch p.Kind {
	case client.AtStart:
		return admin.OffsetTo{Kind: admin.ToStart}, nil
	case client.AtEnd:
		return admin.OffsetTo{Kind: admin.ToEnd}, nil
	case client.AtTime:
		return admin.OffsetTo{Kind: admin.ToTime, TimeMs: p.Time.UnixMilli()}, nil
	}
	return admin.OffsetTo{Kind: admin.ToOffset, Offset: p.Offset}, nil
}

// values are the offsets of a file. The group is that of the file where none is given.
func (o *offsetChangeOptions) values(a *app) (admin.OffsetTo, error) {
	f, err := a.readOffsets(o.fromFile)
	if err != nil {
		return admin.OffsetTo{}, err
	}
	if o.group == "" {
		groups := f.groups()
		if len(groups) != 1 {
			return admin.OffsetTo{}, usagef("cannot tell whose offsets %q holds: there are %s in it", o.fromFile, words.Count(len(groups), "group")).try("-g GROUP")
		}
		o.group = groups[0]
	}
	return admin.OffsetTo{Kind: admin.ToValues, Values: f.values(o.group)}, nil
}

func (o *offsetChangeOptions) run(a *app, c *cobra.Command, to admin.OffsetTo) error {
	t := &change{app: a, cmd: c, target: &o.target, output: &o.output, safety: &o.safety, long: o.toDLQ}
	if o.output.help() {
		return t.run(nil)
	}
	if err := o.check(c); err != nil {
		return err
	}
	if o.retry != admin.RetryKeep && o.retry != admin.RetrySkip {
		return notOneOf("--retry", o.retry, admin.RetryKeep, admin.RetrySkip)
	}
	if c.Flags().Changed("dlq-limit") && (!o.toDLQ || o.dlqLimit < 1) {
		return usagef("cannot use --dlq-limit %d", o.dlqLimit).because("it is the most messages that --to-dlq copies").try("--to-dlq --dlq-limit 1000")
	}
	spec := admin.OffsetSpec{
		Group: o.group, On: o.on(), Topics: o.topics, Queue: o.queueID(), To: to, Retry: o.retry, KeepSkipped: o.toDLQ, MaxKept: o.dlqLimit,
	}
	return t.run(func(ctx context.Context, client *admin.Client) ([]admin.Plan, error) {
		p, err := client.PlanOffsets(ctx, spec)
		if err != nil {
			return nil, noMessage(err)
		}
		if o.undoFile == "" {
			return []admin.Plan{p}, nil
		}
		return []admin.Plan{&notedOffsets{OffsetPlan: p, path: o.undoFile}}, nil
	})
}

// notedOffsets is a plan that writes the offsets down before it moves them.
type notedOffsets struct {
	*admin.OffsetPlan
	path string
}

// Apply writes the file, then does the plan.
func (n *notedOffsets) Apply(ctx context.Context, c *admin.Client) (*admin.Applied, error) {
	text, err := offsetFileOf(n.Object(), n.Before()).encode()
	if err != nil {
		return nil, err
	}
	if err := userfile.Write(n.path, text); err != nil {
		return nil, fmt.Errorf("nothing was changed: %w", err)
	}
	return n.OffsetPlan.Apply(ctx, c)
}

// offsetRmOptions are the flags of mqx admin offset rm.
type offsetRmOptions struct {
	offsetScope
	output outputFlags
	safety safetyFlags
}

func newOffsetRmCmd(a *app) *cobra.Command {
	o := &offsetRmOptions{}
	c := &cobra.Command{
		Use:   "rm",
		Short: "Let brokers forget the offsets of a group that is offline",
		Long: `When it starts again the group begins where its clients say. Brokers have no request that
forgets offsets alone: the group is deleted and made again as it was, and what is to stay is
committed again. A group with members is refused, they would commit theirs again. It asks for
the name of the group.`,
		Example: `  mqx admin offset rm -g billing -t OLD_ORDERS --confirm billing
  mqx admin offset rm -g billing --all --dry-run`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			t := &change{app: a, cmd: c, target: &o.target, output: &o.output, safety: &o.safety}
			if o.output.help() {
				return t.run(nil)
			}
			if err := o.check(c); err != nil {
				return err
			}
			if err := o.needTopics(c); err != nil {
				return err
			}
			return t.run(func(ctx context.Context, client *admin.Client) ([]admin.Plan, error) {
				return onePlan(client.PlanRemoveOffsets(ctx, admin.OffsetRemovalSpec{Group: o.group, On: o.on(), Topics: o.topics}))
			})
		},
	}
	o.add(a, c, false, true)
	o.output.add(c)
	o.safety.add(c, true)
	return c
}
