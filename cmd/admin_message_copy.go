package cmd

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/client"
	"mqx/internal/userfile"
	"mqx/message"
)

// copyOptions are the flags of the commands that send messages anew.
type copyOptions struct {
	target targetFlags
	output outputFlags
	safety safetyFlags
	sel    messageSelection

	group         string
	ids           []string
	targetTopic   string
	targetNamesrv string
	targetContext string
	clientID      string
	limit         int64
	rate          float64
	newIDs        bool
	keepRetries   bool
	again         bool
	state         string
}

// addCopy adds the flags that all of them have.
func (o *copyOptions) addCopy(c *cobra.Command) {
	grouped(c, groupRange, func(f *pflag.FlagSet) {
		f.Int64Var(&o.limit, "limit", 0, "send at most this many messages")
		f.Float64Var(&o.rate, "rate", 0, "send at most this many messages a second (default: as fast as it goes)")
		f.StringVar(&o.state, "state", "", "file that says how far it came: where it is there, an earlier run is gone on with")
	})
	o.output.add(c)
	o.safety.add(c, false)
}

func (o *copyOptions) check(c *cobra.Command) error {
	if c.Flags().Changed("limit") && o.limit < 1 {
		return usagef("cannot use --limit %d: it must be at least 1", o.limit).try("no --limit: all messages")
	}
	if err := checkRate(c, o.rate); err != nil {
		return err
	}
	return o.sel.check(c)
}

func checkRate(c *cobra.Command, rate float64) error {
	if c.Flags().Changed("rate") && (rate <= 0 || rate > 1e9) {
		return usagef("cannot use --rate %v: it is a number of messages a second", rate).try("--rate 1000")
	}
	return nil
}

func newMessageCopyCmd(a *app) *cobra.Command {
	o := &copyOptions{}
	c := &cobra.Command{
		Use:   "copy TOPIC",
		Short: "Copy messages to another topic, here or on another cluster",
		Long: `Reads the queues of all brokers as they end now, beside any group, and sends the messages to
--target-topic: body, keys, tag, properties, unique id and born time are kept, and what was in
one queue comes into one queue, in its order. Every group that consumes the target topic gets
them; the plan names those groups, and asks.

Topics of groups (retry, dead letters) and of brokers are refused as targets, and missing ones.
Ctrl-C ends it after the messages that are under way; --state FILE goes on where it ended, and
sends nothing twice as long as ids are kept.`,
		Example: `  mqx admin message copy ORDERS --target-topic ORDERS_TEST --start @-1h --rate 500 --yes
  mqx admin message copy ORDERS --target-topic ORDERS --target-context staging --tag paid --dry-run
  mqx admin message copy ORDERS --target-topic AUDIT --where "region = 'eu'" --state eu.state --yes`,
		Args:              exactArgs("TOPIC"),
		ValidArgsFunction: completeTopics(a, &o.target),
		RunE:              func(c *cobra.Command, args []string) error { return runMessageCopy(a, c, o, args[0]) },
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		o.addTarget(f)
		f.StringVar(&o.targetNamesrv, "target-namesrv", "", "name servers of the cluster that gets the messages (default: the same)")
		f.StringVar(&o.targetContext, "target-context", "", "context of the cluster that gets the messages")
	})
	o.sel.add(c)
	grouped(c, groupMessage, func(f *pflag.FlagSet) {
		f.BoolVar(&o.newIDs, "new-ids", false, "give the copies new unique ids")
	})
	o.addCopy(c)
	completeFlag(c, "broker", completeBrokers(a, &o.target))
	return c
}

func (o *copyOptions) addTarget(f *pflag.FlagSet) {
	f.StringVar(&o.targetTopic, "target-topic", "", "topic that gets the messages, and so every group that consumes it")
}

func runMessageCopy(a *app, c *cobra.Command, o *copyOptions, topic string) error {
	if err := o.check(c); err != nil {
		return err
	}
	if o.targetTopic == "" {
		return usagef("cannot copy without a target: --target-topic is missing").try("--target-topic %s_COPY, or mqx admin message replay %s -g GROUP for one group alone", topic, topic)
	}
	if o.targetNamesrv != "" && o.targetContext != "" {
		return usagef("cannot use --target-namesrv with --target-context: both say which cluster gets the messages").try("one of them")
	}
	spec := o.spec(topic)
	if o.targetNamesrv == "" && o.targetContext == "" {
		return o.run(a, c, &o.target, a, spec)
	}
	// The cluster that gets the messages is the one that changes: its marks count, and its context is named.
	to := *a
	to.global.context = cmp.Or(o.targetContext, a.global.context)
	target := targetFlags{namesrv: o.targetNamesrv}
	if o.targetNamesrv != "" {
		target = o.target
		target.namesrv, target.found = o.targetNamesrv, nil
	}
	r, err := a.resolve(&o.target)
	if err != nil {
		return err
	}
	spec.Servers = r.nameServers.value
	return o.run(&to, c, &target, a, spec)
}

// spec is what the flags ask for.
func (o *copyOptions) spec(topic string) admin.CopySpec {
	return admin.CopySpec{
		Topic: topic, Group: o.group, To: o.targetTopic, IDs: upper(o.ids), Tag: o.sel.tag, Where: o.sel.where, Text: o.sel.text,
		Limit: o.limit, Rate: o.rate, NewIDs: o.newIDs, KeepRetries: o.keepRetries, Again: o.again, State: o.state,
	}
}

func upper(ids []string) []string {
	var out []string
	for _, id := range ids {
		out = append(out, strings.ToUpper(id))
	}
	return out
}

// run plans and does it: on the cluster of target, reading from that of o.target.
func (o *copyOptions) run(a *app, c *cobra.Command, target *targetFlags, from *app, spec admin.CopySpec) error {
	copies := admin.CopyOptions{Read: client.ReaderConfig{Brokers: o.sel.brokers, Queue: o.sel.queue, HasQueue: o.sel.hasQueue}}
	now := time.Now()
	var err error
	if copies.Read.Start, err = parsePosition(cmp.Or(o.sel.start, "start"), now); err != nil {
		return err
	}
	if o.sel.end != "" {
		p, err := parsePosition(o.sel.end, now)
		if err != nil {
			return err
		}
		copies.Read.End = &p
	}
	if len(spec.Servers) > 0 && !o.output.help() {
		if copies.Source, err = from.adminClient(c.Context(), &o.target); err != nil {
			return err
		}
		defer func() { _ = copies.Source.Close() }()
	}
	return o.change(a, c, target, spec, copies)
}

// change does a copy as every change goes.
func (o *copyOptions) change(a *app, c *cobra.Command, target *targetFlags, spec admin.CopySpec, copies admin.CopyOptions) error {
	if spec.State == "" && !o.safety.planOnly() {
		var err error
		if spec.State, err = copyState(a); err != nil {
			return err
		}
		spec.OwnState = true
	}
	p := newCopyTeller(a)
	copies.Tell = p.tell
	t := &change{app: a, cmd: c, target: target, output: &o.output, safety: &o.safety, long: true}
	err := t.run(func(ctx context.Context, ac *admin.Client) ([]admin.Plan, error) {
		plan, err := ac.PlanCopy(ctx, spec, copies)
		if err != nil {
			return nil, noMessage(err)
		}
		p.total, p.began = plan.Total, time.Now()
		return []admin.Plan{plan}, nil
	})
	p.end()
	if c.Context().Err() != nil {
		return context.Cause(c.Context()) // the steps have said how far it came
	}
	return err
}

// copyState is a file of the user's for how far a copy comes that named none.
func copyState(a *app) (string, error) {
	dir, err := userfile.StateDir(a.env)
	return filepath.Join(dir, "copies", time.Now().UTC().Format("20060102T150405.000000000")+".json"), err
}

// copyTeller says how far a copy has come.
type copyTeller struct {
	a     *app
	began time.Time
	total int64 // 0: not known
	lines bool
}

func newCopyTeller(a *app) *copyTeller { return &copyTeller{a: a} }

func (t *copyTeller) tell(n admin.CopyCounts) {
	if !t.a.ErrTTY && !t.a.global.verbose {
		return
	}
	took := time.Since(t.began)
	rate := float64(n.Read) / max(took.Seconds(), 0.001)
	text := fmt.Sprintf("%s, %.0f/s", n, rate)
	if left := t.total - n.Read; t.total > 0 && left >= 0 && rate > 0 {
		text = fmt.Sprintf("%s of %d, %.0f/s, %s left", n, t.total, rate, time.Duration(float64(left)/rate*float64(time.Second)).Round(time.Second))
	}
	if t.a.ErrTTY {
		fmt.Fprintf(t.a.Err, "\r\x1b[K%s", text)
		t.lines = true
		return
	}
	fmt.Fprintln(t.a.Err, text)
}

func (t *copyTeller) end() {
	if t.lines {
		fmt.Fprint(t.a.Err, "\r\x1b[K")
	}
}

func newMessageReplayCmd(a *app) *cobra.Command {
	o := &copyOptions{}
	c := &cobra.Command{
		Use:   "replay TOPIC",
		Short: "Give messages to one group once more",
		Long: `Puts the messages into the retry topic of the group, as if the group had given them back: its
members get them with their own topic and id, and no other group sees them. With --target-topic
they go to a topic, and to every group that consumes it: the plan names those, and asks.

Refused are broadcast groups, which read no retry topic, groups that pop, and orderly groups that
are online: while they hold queues, brokers put such messages among the dead letters. Retry, dead
letter, system and missing topics are refused as --target-topic.

--client ID has one member consume the message of --id now, and says how that ended; offsets and
retries stay as they are.`,
		Example: `  mqx admin message replay ORDERS -g billing --start @-1h --end @-30m --yes
  mqx admin message replay ORDERS -g billing --id C0000202270B4E0E2F2A9530AA7E0022 --yes
  mqx admin message replay ORDERS -g billing --where "region = 'eu'" --rate 100 --dry-run
  mqx admin message replay ORDERS -g billing --id C0000202270B4E0E2F2A9530AA7E0022 --client 10.0.0.7@4711 --yes`,
		Args:              exactArgs("TOPIC"),
		ValidArgsFunction: completeTopics(a, &o.target),
		RunE:              func(c *cobra.Command, args []string) error { return runMessageReplay(a, c, o, args[0]) },
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		f.StringVarP(&o.group, "group", "g", "", "group that gets the messages")
		o.addTarget(f)
		f.StringVar(&o.clientID, "client", "", "with --id: have this member of the group consume it now")
	})
	o.sel.add(c)
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.StringArrayVar(&o.ids, "id", nil, "only the message with this id, unique or offset; may be repeated")
	})
	o.addKeepRetries(c)
	o.addCopy(c)
	completeFlag(c, "group", completeGroups(a, &o.target))
	completeFlag(c, "broker", completeBrokers(a, &o.target))
	return c
}

func (o *copyOptions) addKeepRetries(c *cobra.Command) {
	grouped(c, groupMessage, func(f *pflag.FlagSet) {
		f.BoolVar(&o.keepRetries, "keep-retries", false, "they count as given back as often as before (default: never, so that all retries are left)")
	})
}

func (o *copyOptions) checkIDs(c *cobra.Command) error {
	for _, id := range o.ids {
		ref, err := admin.ParseMessageRef(id, "")
		if err != nil || ref.ID == "" {
			return noMessage(cmp.Or(err, error(&message.IDError{Text: id, Why: "--id takes a unique id or an offset id"})))
		}
		for _, name := range []string{"start", "end", "broker", "queue"} {
			if c.Flags().Changed(name) {
				return usagef("cannot use --%s with --id: the ids say which messages", name).try("leave --%s out", name)
			}
		}
	}
	return nil
}

func runMessageReplay(a *app, c *cobra.Command, o *copyOptions, topic string) error {
	if err := o.check(c); err != nil {
		return err
	}
	if err := o.checkIDs(c); err != nil {
		return err
	}
	switch {
	case o.group == "" && o.targetTopic == "":
		return usagef("cannot replay without a group: -g is missing").because("a replay goes to one group, so that no other sees the messages again").try("-g GROUP, or --target-topic TOPIC for all that consume it")
	case o.clientID != "" && (len(o.ids) != 1 || o.group == "" || o.targetTopic != ""):
		return usagef("cannot use --client without -g and one --id: it has one member consume one message").try("-g GROUP --id ID --client CLIENT")
	case o.clientID != "":
		return o.direct(a, c, topic)
	}
	return o.run(a, c, &o.target, a, o.spec(topic))
}
