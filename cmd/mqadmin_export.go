package cmd

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
)

func newMqadminExportCmds(a *app) []*cobra.Command {
	return []*cobra.Command{
		newMqadminExport(a, "exportConfigs", "Export configs", "configs"), newMqadminExport(a, "exportMetrics", "Export metrics", "metrics"),
	}
}

// exportFolder is where Apache's tool writes by default.
const exportFolder = "/tmp/rocketmq/export"

func newMqadminExport(a *app, name, short, show string) *cobra.Command {
	var cluster, folder string
	return mqadminCmd(a, name, short, "mqx admin cluster export CLUSTER --show "+show+" -O FILE", false, []string{"clusterName"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&cluster, "clusterName", "c", "", "choose a cluster to export")
			f.StringVarP(&folder, "filePath", "f", exportFolder, "directory of the file")
		},
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			text, errs, err := exportText(ctx, client, show, cluster)
			if err != nil {
				return err
			}
			if text, err = tabbed(text); err != nil {
				return err
			}
			path := filepath.Join(folder, show+".json")
			if err := writeReport(path, string(text)); err != nil {
				return err
			}
			if err := a.printf("export %s success\n", path); err != nil {
				return err
			}
			return a.partial(targetProblems(errs))
		})
}
