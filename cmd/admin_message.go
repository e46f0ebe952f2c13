package cmd

import "github.com/spf13/cobra"

func newMessageCmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{
		Use: "message", Aliases: []string{"messages"}, Short: "Messages of a cluster",
		Example: "  mqx admin message export ORDERS -O orders.ndjson",
	}, newMessageExportCmd(a))
}
