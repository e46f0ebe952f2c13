package cmd

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"mqx/admin"
	"mqx/internal/render"
)

func newControllerCmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{Use: "controller", Aliases: []string{"controllers"}, Short: "Controllers, which choose masters"},
		newControllerLsCmd(a), newControllerGetCmd(a), newControllerPurgeCmd(a))
}

var controllerListSchema = render.Schema{Kind: "ControllerMemberList", Name: "addr", Fields: []render.Field{
	{Name: "addr", Title: "ADDRESS", Whole: true, Doc: "controller"},
	{Name: "group", Doc: "group of controllers"},
	{Name: "leads", Kind: render.Bool, Doc: "it says that it is the leader"},
	{Name: "leaderId", Title: "LEADER", Doc: "id of the leader as this one sees it; unknown while there is none"},
	{Name: "leaderAddr", Title: "LEADER ADDRESS", Doc: "its address"},
	{Name: "brokers", Kind: render.List, Doc: "brokers that are told of it (controllerAddr); empty where it was named with --controller"},
	{Name: "peers", Kind: render.List, Wide: true, Doc: "members of the group, as they write themselves"},
}}

func newControllerLsCmd(a *app) *cobra.Command {
	o := &controllerOptions{}
	c := &cobra.Command{
		Use:   "ls",
		Short: "Find the controllers of a cluster, and which of them leads",
		Long: `Without --controller they are those that the brokers are told of (enableControllerMode and
controllerAddr of Apache's brokers). mqx has no controller: masters of its brokers are chosen
with mqx admin ha promote, and a cluster of them is answered with exit code 7.`,
		Example: `  mqx admin controller ls
  mqx admin controller ls --match leads=true -o name
  mqx admin controller ls --controller '10.0.0.1:9878;10.0.0.2:9878' -o json`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.read(c, &o.readOptions, controllerListSchema, func(ctx context.Context, client *admin.Client) (answer, error) {
				found, errs, err := client.Controllers(ctx, o.brokers(), addressList(o.addrs))
				if none, ok := errors.AsType[*admin.NotFoundError](err); ok && none.Kind == "controller" {
					return answer{}, failf(ExitNotFound, "the cluster has no controller").because("none of its brokers runs under one (enableControllerMode); brokers of mqx never do").
						try("mqx admin ha status, which shows masters and slaves")
				}
				ans := answer{errs: errs}
				for i := range found {
					m := &found[i]
					ans.rows = append(ans.rows, []any{m.Addr, orUnknown(m.Group), m.IsLeader, orUnknown(m.ControllerLeaderID), orUnknown(m.ControllerLeaderAddress), listOf(m.Brokers), listOf(m.PeerList())})
				}
				return ans, err
			})
		},
	}
	o.addTo(c)
	o.addBrokers(a, c)
	o.addControllers(c)
	return c
}
