package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
)

// clusterExportOptions are the flags of mqx admin cluster export.
type clusterExportOptions struct {
	target targetFlags
	file   string
	show   string
}

var exportShows = []string{"configs", "metrics", "metadata"}

func newClusterExportCmd(a *app) *cobra.Command {
	o := &clusterExportOptions{}
	c := &cobra.Command{
		Use:   "export CLUSTER",
		Short: "Write the settings, the figures, or the topics and groups of a cluster as the JSON document of Apache's tool",
		Long: `The document is that of exportConfigs (--show configs), exportMetrics (--show metrics) or
exportMetadata (--show metadata) of Apache's mqadmin, member for member. Brokers that did
not answer are left out of it and named, and the exit code is 3. The last one is what mqx
admin cluster import takes; where brokers differ the greater numbers of queues are written.`,
		Example: `  mqx admin cluster export DefaultCluster --show configs -O configs.json
  mqx admin cluster export DefaultCluster --show metrics | jq .totalData
  mqx admin cluster export DefaultCluster --show metadata -O metadata.json`,
		Args: exactArgs("CLUSTER"),
		RunE: func(c *cobra.Command, args []string) error { return a.runClusterExport(c, o, args[0]) },
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) { o.target.add(f) })
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.StringVar(&o.show, "show", "configs", "what to write: configs, metrics or metadata")
	})
	grouped(c, groupOutput, func(f *pflag.FlagSet) {
		f.StringVarP(&o.file, "output-file", "O", "", "write the document to this file")
	})
	completeFlag(c, "show", cobra.FixedCompletions(exportShows, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (a *app) runClusterExport(c *cobra.Command, o *clusterExportOptions, cluster string) error {
	if !slices.Contains(exportShows, o.show) {
		return notOneOf("--show", o.show, exportShows...)
	}
	if o.show == "metadata" {
		return a.exportMetadata(c, &o.target, o.file, admin.Target{Cluster: cluster}, admin.ExportOptions{Topics: true, Groups: true})
	}
	client, err := a.adminClient(c.Context(), &o.target)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := a.deadline(c, true)
	defer cancel()
	text, errs, err := exportText(ctx, client, o.show, cluster)
	if err != nil {
		return a.withTimeout(ctx, err)
	}
	out, closeOut, err := a.open(&outputFlags{file: o.file})
	if err != nil {
		return err
	}
	return closed(a.writeExport(out, text, errs), closeOut)
}

func (a *app) writeExport(out io.Writer, text []byte, errs []admin.TargetError) error {
	if _, err := out.Write(text); err != nil {
		return fmt.Errorf("cannot write export: %w", err)
	}
	return a.partial(targetProblems(errs))
}

// exportText is the document, as a file ends: with a line end.
func exportText(ctx context.Context, client *admin.Client, show, cluster string) ([]byte, []admin.TargetError, error) {
	var doc any
	var errs []admin.TargetError
	var err error
	n := 0
	if show == "configs" {
		var e *admin.ConfigsExport
		if e, errs, err = client.ExportConfigs(ctx, cluster); err == nil {
			n = len(e.BrokerConfigs)
		}
		doc = e
	} else {
		var e *admin.MetricsExport
		if e, errs, err = client.ExportMetrics(ctx, cluster); err == nil {
			n = len(e.EvaluateReport)
		}
		doc = e
	}
	if err != nil {
		return nil, nil, err
	}
	if err := allFailed(n, errs); err != nil {
		return nil, nil, err
	}
	text, err := json.MarshalIndent(doc, "", "\t")
	if err != nil {
		return nil, nil, fmt.Errorf("cannot write export: %w", err)
	}
	return append(text, '\n'), errs, nil
}
