package cmd

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/render"
	"mqx/internal/words"
)

var sendCheckSchema = render.Schema{Kind: "SendCheckList", Name: "broker", Fields: []render.Field{
	{Name: "cluster", Doc: "cluster"},
	{Name: "broker", Doc: "broker name"},
	{Name: "topic", Wide: true, Doc: "topic the messages went into"},
	{Name: "queueId", Title: "QUEUE", Kind: render.Int, Doc: "queue they went into; unknown when they went into several"},
	{Name: "sent", Kind: render.Int, Doc: "sends that were answered"},
	{Name: "failed", Kind: render.Int, Tone: render.WarnAbove(0), Doc: "sends that were not"},
	{Name: "minMs", Title: "MIN ms", Kind: render.Float, Doc: "shortest send, in ms"},
	{Name: "meanMs", Title: "MEAN ms", Kind: render.Float, Doc: "mean send, in ms"},
	{Name: "maxMs", Title: "MAX ms", Kind: render.Float, Doc: "longest send, in ms"},
	{Name: "readMs", Title: "READ ms", Kind: render.Float, Doc: "how long reading the last message back took, in ms"},
	{Name: "error", Doc: "why the last one failed; unknown when none did"},
}}

// checkOptions are the flags of mqx admin broker check and cluster check.
type checkOptions struct {
	readOptions
	safety safetyFlags
	topic  string
	count  int
	size   int
}

func newBrokerCheckCmd(a *app) *cobra.Command {
	o := &checkOptions{}
	c := &cobra.Command{
		Use:   "check [BROKER]",
		Short: "Measure how fast brokers store a message and give it back",
		Long: `Sends messages one after the other, each broker by itself, and reads the last one back.
They go into the topic that every broker has under its own name, which nobody consumes;
with --topic into each queue of that topic, where consumers get them. Exit code 6 when
one fails.`,
		Example: `  mqx admin broker check
  mqx admin broker check broker-a --count 100 --size 1024
  mqx admin broker check --topic PROBE --count 1`,
		Args:              optionalArg(),
		ValidArgsFunction: completeBrokers(a, &o.target),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.takeBroker(c, args); err != nil {
				return err
			}
			return a.runCheck(c, o)
		},
	}
	o.add(a, c)
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.StringVarP(&o.topic, "topic", "t", "", "into each queue of this topic, in place of the brokers' own")
	})
	return c
}

func newClusterCheckCmd(a *app) *cobra.Command {
	o := &checkOptions{}
	c := &cobra.Command{
		Use:   "check [CLUSTER]",
		Short: "Measure how fast all brokers of a cluster store a message and give it back",
		Example: `  mqx admin cluster check
  mqx admin cluster check DefaultCluster --watch --interval 10s
  mqx admin cluster check --count 100 -o json`,
		Args: optionalArg(),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.cluster = args[0]
			}
			return a.runCheck(c, o)
		},
	}
	o.add(a, c)
	return c
}

func (o *checkOptions) add(a *app, c *cobra.Command) {
	o.addTo(c)
	o.addBrokers(a, c)
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.IntVar(&o.count, "count", 10, "messages to each, after one that is not counted")
		f.IntVar(&o.size, "size", 128, "bytes of each body")
	})
	addConfirm(c, &o.safety.confirm, "what is checked")
}

// maxCheckSize bounds a body: what any broker takes by default.
const maxCheckSize = 4 << 20

func (a *app) runCheck(c *cobra.Command, o *checkOptions) error {
	if o.count < 1 || o.size < 1 || o.size > maxCheckSize {
		return usagef("cannot check with --count %d --size %d: there is at least one message, of 1 byte to 4 MiB", o.count, o.size).try("--count 10 --size 128")
	}
	if o.topic != "" && (o.broker != "" || o.cluster != "") {
		return usagef("cannot check --topic %s on chosen brokers: its queues are checked wherever they are", o.topic).try("--topic %s alone", o.topic)
	}
	if !o.output.help() {
		o.safety.yes = true // test messages ask nothing but for a cluster that is marked
		name := o.topic
		if name == "" {
			name = o.broker
		}
		if err := a.agree(&o.target, &o.safety, act{name: name}); err != nil {
			return err
		}
	}
	failed := 0
	err := a.read(c, &o.readOptions, sendCheckSchema, func(ctx context.Context, client *admin.Client) (answer, error) {
		found, err := o.check(ctx, client, nil)
		if err != nil {
			return answer{}, err
		}
		failed = 0
		var ans answer
		for i := range found {
			s := &found[i]
			if s.Err != nil {
				failed++
			}
			ans.rows = append(ans.rows, checkRow(s))
		}
		return ans, nil
	})
	if err == nil && failed > 0 {
		return failf(ExitCheckFailed, "%s failed", words.Count(int64(failed), "check")).because("see the column error")
	}
	return err
}

func (o *checkOptions) check(ctx context.Context, client *admin.Client, each func(admin.SendCheck, admin.SendTry)) ([]admin.SendCheck, error) {
	how := admin.CheckOptions{Count: o.count, Size: o.size, Each: each}
	if o.topic != "" {
		return client.CheckTopic(ctx, o.topic, how)
	}
	return client.CheckSend(ctx, o.brokers(), how)
}

func checkRow(s *admin.SendCheck) []any {
	answered := s.Sent > 0
	var why any
	if s.Err != nil {
		why = oneLine(s.Err.Error())
	}
	return []any{
		s.Cluster, s.Name, s.Topic, deref(s.QueueID), s.Sent, s.Failed,
		ifKnown(milliseconds(s.Min), answered), ifKnown(milliseconds(s.Mean), answered), ifKnown(milliseconds(s.Max), answered), ifKnown(milliseconds(s.Read), s.Read > 0), why,
	}
}
