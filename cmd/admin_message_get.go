package cmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/render"
)

// messageGetOptions are the flags of mqx admin message get.
type messageGetOptions struct {
	target targetFlags
	output outputFlags
	show   messageFlags
	topic  string
}

func newMessageGetCmd(a *app) *cobra.Command {
	o := &messageGetOptions{}
	c := &cobra.Command{
		Use:   "get ID",
		Short: "Show a message by its offset id, its unique id, or its place",
		Long: `ID is an offset id (where a broker stored it), a unique id (what its producer gave it;
both have 32 or 56 hexadecimal digits), or with -t a place: BROKER:QUEUE:OFFSET.
All brokers are asked, whatever address is in the id: a broker may have moved.

With a unique id and no -t all topics are looked through, retry topics and dead letters too:
each record that has the id is a row.`,
		Example: `  mqx admin message get 7F000001000077C80000000000000000
  mqx admin message get C0000202270B4E0E2F2A9530AA7E0022 -t ORDERS -o json
  mqx admin message get broker-a:3:4711 -t ORDERS -o template='{{.body}}'`,
		Args: exactArgs("ID"),
		RunE: func(c *cobra.Command, args []string) error { return runMessageGet(a, c, o, args[0]) },
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		f.StringVarP(&o.topic, "topic", "t", "", "topic of the message: faster, and needed for a place")
	})
	o.show.add(c)
	o.output.add(c)
	completeFlag(c, "topic", completeTopics(a, &o.target))
	return c
}

func runMessageGet(a *app, c *cobra.Command, o *messageGetOptions, id string) error {
	if err := o.show.check(); err != nil {
		return err
	}
	ref, err := admin.ParseMessageRef(id, o.topic)
	if err != nil {
		return noMessage(err)
	}
	client, err := a.adminClient(c.Context(), &o.target)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	return a.list(c, &o.output, messageSchema, func(ctx context.Context, w *render.Writer) (problems, error) {
		f, err := client.GetMessage(ctx, ref)
		if err != nil {
			return nil, noMessage(err)
		}
		a.tellAsked(f.Asked)
		if err := allFailed(len(f.Messages), f.Errors); err != nil && len(f.Errors) == len(f.Asked) {
			return nil, err
		}
		return targetProblems(f.Errors), printMessages(&handOff{w: w, show: o.show}, f.Messages)
	})
}

var messageIDSchema = render.Schema{Kind: "MessageIDList", Name: "id", Fields: []render.Field{
	{Name: "id", Whole: true, Doc: "the id"},
	{Name: "kind", Doc: "what it can be: unique, or offset; digits that can be an offset id can be a unique one"},
	{Name: "address", Whole: true, Doc: "of an offset id: the broker's at the time; of a unique id: the producer's"},
	{Name: "physicalOffset", Title: "LOG OFFSET", Kind: render.Int, Doc: "of an offset id: the position in the broker's log"},
	{Name: "time", Kind: render.Time, Doc: "of a unique id: when it was made, if that was within a month"},
	{Name: "pid", Kind: render.Int, Doc: "of a unique id: low half of the producer's process id"},
	{Name: "counter", Kind: render.Int, Doc: "of a unique id: number within the producer, from 0 again after 65535"},
	{Name: "generator", Wide: true, Doc: "of a unique id: tells producers of one process apart"},
}}

// messageDecodeOptions are the flags of mqx admin message decode.
type messageDecodeOptions struct{ output outputFlags }

func newMessageDecodeCmd(a *app) *cobra.Command {
	o := &messageDecodeOptions{}
	c := &cobra.Command{
		Use:   "decode ID",
		Short: "Take a message id apart, without asking anybody",
		Long: `An id has no mark of its kind. What cannot be an offset id is a unique id; what can be
one has a row for each meaning.`,
		Example: `  mqx admin message decode 7F000001000077C80000000000000000
  mqx admin message decode C0000202270B4E0E2F2A9530AA7E0022 -o json | jq -r '.items[0].time'`,
		Args: exactArgs("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			d, err := admin.DecodeID(args[0], time.Now())
			if err != nil {
				return noMessage(err)
			}
			return a.list(c, &o.output, messageIDSchema, func(_ context.Context, w *render.Writer) (problems, error) { return nil, decodedRows(w, d) })
		},
	}
	o.output.add(c)
	return c
}

func decodedRows(w *render.Writer, d *admin.DecodedID) error {
	if d.Offset {
		if err := w.Row(d.ID, "offset", d.Host.String(), d.PhysicalOffset, nil, nil, nil, nil); err != nil {
			return err
		}
	}
	u := d.Unique
	return w.Row(d.ID, "unique", u.IP.String(), nil, d.Time, u.PID, u.Counter, hex8(u.Class))
}

func hex8(n uint32) string { return fmt.Sprintf("%08X", n) }
