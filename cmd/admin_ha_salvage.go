package cmd

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/client"
	"mqx/internal/render"
	"mqx/internal/words"
	"mqx/message"
)

func newHASalvageCmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{
		Use: "salvage", Short: "What brokers have cut from their logs and kept",
		Example: `  mqx admin ha salvage ls
  mqx admin ha salvage export 10.0.0.1:10911 commitlog-00000000000000052133-20261130T101500.000Z -O cut.ndjson
  mqx admin ha salvage replay 10.0.0.1:10911 commitlog-00000000000000052133-20261130T101500.000Z --yes`,
	}, newHASalvageLsCmd(a), newHASalvageExportCmd(a), newHASalvageReplayCmd(a))
}

var salvageSchema = render.Schema{Kind: "SalvageList", Name: "name", Fields: []render.Field{
	{Name: "broker", Doc: "broker name"},
	{Name: "addr", Title: "ADDRESS", Whole: true, Doc: "the broker that has it"},
	{Name: "name", Whole: true, Doc: "the piece, in mqx/salvage of its store directory"},
	{Name: "start", Kind: render.Int, Doc: "byte of the log at which it began; unknown where its name does not say"},
	{Name: "bytes", Kind: render.Size, Doc: "its size"},
	{Name: "time", Kind: render.Time, Doc: "when it was kept"},
}}

func newHASalvageLsCmd(a *app) *cobra.Command {
	o := &readOptions{}
	c := &cobra.Command{
		Use:   "ls [BROKER]",
		Short: "List what brokers have cut from their logs and kept",
		Example: `  mqx admin ha salvage ls
  mqx admin ha salvage ls 10.0.0.1:10911 -o json`,
		Args:              optionalArg(),
		ValidArgsFunction: completeBrokers(a, &o.target),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.takeBroker(c, args); err != nil {
				return err
			}
			return a.read(c, o, salvageSchema, func(ctx context.Context, cl *admin.Client) (answer, error) {
				found, errs, err := cl.SalvageList(ctx, o.brokers())
				ans := answer{errs: errs}
				for _, k := range found {
					var start any
					if k.Start >= 0 {
						start = k.Start
					}
					ans.rows = append(ans.rows, []any{orUnknown(k.Broker.Name), k.Addr, k.HAKept.Name, start, k.Bytes, timeOrNil(k.Time)})
				}
				return ans, err
			})
		},
	}
	o.addTo(c)
	o.addBrokers(a, c)
	return c
}

func newHASalvageExportCmd(a *app) *cobra.Command {
	var target targetFlags
	var file string
	c := &cobra.Command{
		Use:   "export ADDRESS NAME",
		Short: "Write the messages of a piece as NDJSON, for mqx admin message import",
		Example: `  mqx admin ha salvage export 10.0.0.1:10911 commitlog-00000000000000052133-20261130T101500.000Z -O cut.ndjson
  mqx admin ha salvage export 10.0.0.1:10911 wiped-20261130T101500.000Z/commitlog/00000000000000000000 | grep ORDERS`,
		Args: exactArgs("ADDRESS", "NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := a.adminClient(c.Context(), &target)
			if err != nil {
				return err
			}
			defer func() { _ = cl.Close() }()
			out, finish, err := a.exportTarget(file)
			if err != nil {
				return err
			}
			ctx, cancel := a.deadline(c, false)
			defer cancel()
			w := bufio.NewWriterSize(out, messageExportChunk)
			n := int64(0)
			var line []byte
			err = cl.SalvageRead(ctx, args[0], args[1], func(m *client.Received) error {
				l := m.Line()
				var err error
				if line, err = message.AppendLine(line[:0], &l); err != nil {
					return err
				}
				n++
				_, err = w.Write(line)
				return err
			})
			if err == nil {
				err = w.Flush()
			}
			if err = finish(err); err != nil {
				return a.withTimeout(ctx, err)
			}
			fmt.Fprintf(a.Err, "%s written\n", words.Count(n, "message"))
			return nil
		},
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) { target.add(f) })
	grouped(c, groupOutput, func(f *pflag.FlagSet) {
		f.StringVarP(&file, "output-file", "O", "", "write the messages to this file, which is there when it is whole")
	})
	return c
}

// salvageReplayOptions are the flags of mqx admin ha salvage replay.
type salvageReplayOptions struct {
	changeFlags
	topics []string
}

func newHASalvageReplayCmd(a *app) *cobra.Command {
	o := &salvageReplayOptions{}
	c := &cobra.Command{
		Use:   "replay ADDRESS NAME",
		Short: "Send the messages of a piece once more, to the topics they were in",
		Long: `Bodies, keys, tags, properties and unique ids stay as they were; a message that is in its topic
by another way gets there twice, with the same id. Messages of the brokers' own topics (delayed
ones, half messages, checkpoints) are not sent: salvage export shows them.`,
		Example: `  mqx admin ha salvage replay 10.0.0.1:10911 commitlog-00000000000000052133-20261130T101500.000Z --dry-run
  mqx admin ha salvage replay 10.0.0.1:10911 commitlog-00000000000000052133-20261130T101500.000Z --topic ORDERS --yes`,
		Args: exactArgs("ADDRESS", "NAME"),
		RunE: func(c *cobra.Command, args []string) error { return o.replay(a, c, args[0], args[1]) },
	}
	o.add(a, c, false, false)
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.StringArrayVarP(&o.topics, "topic", "t", nil, "only messages of this topic; may be repeated")
	})
	return c
}

func (o *salvageReplayOptions) replay(a *app, c *cobra.Command, addr, name string) error {
	if o.safety.planOut != "" {
		return usagef("cannot save the plan of a replay: the messages are not in it").try("--dry-run")
	}
	if err := o.output.check(); err != nil {
		return err
	}
	plan := func(ctx context.Context, cl *admin.Client) ([]admin.Plan, error) {
		counts, err := cl.SalvageTopics(ctx, addr, name)
		if err != nil {
			return nil, err
		}
		topics := o.topics
		if len(topics) == 0 {
			topics = slices.Sorted(maps.Keys(counts))
		}
		var out []admin.Plan
		var left []string
		for _, topic := range topics {
			switch {
			case counts[topic] == 0:
				return nil, &admin.NotFoundError{Kind: "topic", Name: topic, Known: slices.Sorted(maps.Keys(counts))}
			case message.IsSystemTopic(topic) && len(o.topics) == 0:
				left = append(left, fmt.Sprintf("%s (%d)", topic, counts[topic]))
				continue
			}
			p, err := cl.PlanSalvage(ctx, addr, name, topic)
			if err != nil {
				return nil, err
			}
			out = append(out, p)
		}
		if len(left) > 0 {
			a.warn("messages of the brokers' own topics are not sent: %s", strings.Join(left, ", "))
		}
		return out, nil
	}
	return (&change{app: a, cmd: c, target: &o.target, output: &o.output, safety: &o.safety, long: true}).run(plan)
}
