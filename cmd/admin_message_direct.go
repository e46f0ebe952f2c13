package cmd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mqx/admin"
	"mqx/internal/render"
)

var directSchema = render.Schema{Kind: "DirectConsumption", Name: "msgId", Fields: []render.Field{
	{Name: "group", Doc: "consumer group"},
	{Name: "client", Whole: true, Doc: "member that consumed"},
	{Name: "result", Doc: "CR_SUCCESS, CR_LATER, CR_ROLLBACK, CR_COMMIT, CR_THROW_EXCEPTION, CR_RETURN_NULL"},
	{Name: "tookMs", Title: "TOOK", Kind: render.Duration, Doc: "time it took the member"},
	{Name: "remark", Doc: "what the member says; unknown when nothing"},
	{Name: "order", Kind: render.Bool, Wide: true, Doc: "the member consumes in order"},
	{Name: "topic", Wide: true, Doc: "topic of the message"},
	{Name: "msgId", Whole: true, Doc: "unique id of the message, else its offset id"},
}}

// direct has a member consume a message.
func (o *copyOptions) direct(a *app, c *cobra.Command, topic string) error {
	if o.output.help() {
		return a.list(c, &o.output, directSchema, nil)
	}
	ac, err := a.adminClient(c.Context(), &o.target)
	if err != nil {
		return err
	}
	defer func() { _ = ac.Close() }()
	if o.safety.planOut != "" {
		return usagef("cannot save a plan of --client: it has one member consume now").try("--dry-run")
	}
	ctx, cancel := a.deadline(c, false)
	defer cancel()
	m, errs, err := oneMessage(ctx, a, ac, admin.MessageRef{ID: strings.ToUpper(o.ids[0]), Topic: topic})
	if err != nil {
		return err
	}
	clients, err := ac.GroupClients(ctx, o.group)
	if err != nil {
		return err
	}
	if !slices.Contains(clients, o.clientID) {
		return failf(ExitNotFound, "client %q is no member of group %s", o.clientID, o.group).because("its members are: "+strings.Join(clients, ", ")).try("mqx admin group get %s --show members", o.group)
	}
	fmt.Fprintf(a.Err, "Member %s of group %s consumes message %s of topic %s once more\n", o.clientID, o.group, m.MessageID, m.Topic)
	return a.list(c, &o.output, directSchema, func(_ context.Context, w *render.Writer) (problems, error) {
		if o.safety.planOnly() {
			return targetProblems(errs), nil
		}
		if err := a.agree(&o.target, &o.safety, act{name: o.group}); err != nil {
			return nil, err
		}
		r, err := ac.ConsumeDirectly(ctx, m, o.group, o.clientID)
		if err != nil {
			return nil, err
		}
		if err := w.Row(o.group, r.ClientID, r.Result, r.Took, orUnknown(r.Remark), r.Order, m.Topic, m.MessageID); err != nil {
			return nil, err
		}
		if r.Result != "CR_SUCCESS" && r.Result != "CR_COMMIT" {
			a.warn("the member did not consume it: %s", r.Result)
		}
		return targetProblems(errs), nil
	})
}
