package cmd

import "github.com/spf13/cobra"

// newClusterCmd is what concerns a cluster as a whole.
func newClusterCmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{
		Use: "cluster", Aliases: []string{"clusters"}, Short: "Clusters as a whole",
		Example: `  mqx admin cluster join-check -b broker-c
  mqx admin cluster join-check -o json | jq '.items[] | select(.verdict=="finding")'`,
	}, []*cobra.Command{
		newClusterLsCmd(a),
		newClusterGetCmd(a),
		newClusterCheckCmd(a),
		newClusterExportCmd(a),
		newClusterImportCmd(a),
		newClusterJoinCheckCmd(a),
		newClusterRollCmd(a),
		newClusterRebalanceCmd(a),
	}...)
}
