package cmd

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/deploy"
)

// generated are the files that mqx generate prints, by the name of the command.
var generated = []struct {
	name, file   string
	short, about string
	example      string
}{
	{
		"grafana", "grafana/mqx.json", "A dashboard for Grafana", "A dashboard of clusters, of mqx or of Apache: messages, lag, brokers, store and host, over the series of brokers and of mqx exporter.\nImport it in Grafana; it asks for the Prometheus to read.",
		"  mqx generate grafana -O mqx.json",
	},
	{
		"alerts", "prometheus/alerts.yml", "Alert rules for Prometheus", "Rules: a server or broker that is gone, lag that grows or is old, out below in, messages that\nretention will delete unread or has, disks that fill, refused sends, requests that wait, dead letters,\nfaults in a store. Thresholds are where to begin.",
		"  mqx generate alerts -O /etc/prometheus/alerts.yml && promtool check rules /etc/prometheus/alerts.yml",
	},
	{
		"prometheus", "prometheus/prometheus.yml", "A configuration of Prometheus", "What Prometheus has to scrape, with the alert rules beside it: brokers and name servers of mqx, and mqx exporter.\nThe targets are those of one machine; replace them.",
		"  mqx generate prometheus -O prometheus.yml",
	},
	{
		"compose", "compose/compose.yaml", "Containers for docker compose", "A name server, a broker, the exporter and Prometheus in containers, for one machine.",
		"  mqx generate compose -O compose.yaml && docker compose up -d",
	},
	{
		"k8s", "k8s/mqx.yaml", "Manifests for Kubernetes", "Three name servers, a broker with a volume of its own, and the exporter.",
		"  mqx generate k8s | kubectl apply -f -",
	},
}

func newGenerateCmd(a *app) *cobra.Command {
	c := asGroup(&cobra.Command{Use: "generate", Short: "Dashboards, alert rules, units and manifests", Example: `  mqx generate grafana -O mqx.json
  mqx generate systemd --unit broker -O /etc/systemd/system/mqx-broker.service`})
	for i := range generated {
		g := &generated[i]
		var to outputFlags
		one := &cobra.Command{
			Use: g.name, Short: g.short, Long: g.about, Example: g.example, Args: exactArgs(),
			RunE: func(*cobra.Command, []string) error { return a.generate(&to, g.file) },
		}
		addGenerated(one, &to)
		c.AddCommand(one)
	}
	c.AddCommand(newGenerateSystemdCmd(a))
	return c
}

func addGenerated(c *cobra.Command, to *outputFlags) {
	grouped(c, groupOutput, func(f *pflag.FlagSet) {
		f.StringVarP(&to.file, "output-file", "O", "", "write it to this file")
	})
}

// systemdUnits are the units by what they run.
var systemdUnits = []string{"nameserver", "broker", "exporter"}

func newGenerateSystemdCmd(a *app) *cobra.Command {
	var to outputFlags
	var unit string
	c := &cobra.Command{
		Use: "systemd", Short: "Units for systemd",
		Long: `The units that the packages install: they run as user mqx, with the configuration in
/etc/mqx. Without --unit all of them are printed, each below its path.`,
		Example: `  mqx generate systemd --unit broker -O /etc/systemd/system/mqx-broker.service`,
		Args:    exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			units := systemdUnits
			if unit != "" {
				if !slices.Contains(systemdUnits, unit) {
					return notOneOf("--unit", unit, systemdUnits...)
				}
				units = []string{unit}
			}
			files := make([]string, len(units))
			for i, u := range units {
				files[i] = "systemd/mqx-" + u + ".service"
			}
			return a.generate(&to, files...)
		},
	}
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.StringVar(&unit, "unit", "", "only this one: "+strings.Join(systemdUnits, ", "))
	})
	addGenerated(c, &to)
	completeFlag(c, "unit", cobra.FixedCompletions(systemdUnits, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// generate prints files; of several, each below its path as a comment.
func (a *app) generate(to *outputFlags, files ...string) error {
	var text bytes.Buffer
	for i, name := range files {
		b, err := fs.ReadFile(deploy.Files, name)
		if err != nil {
			return fmt.Errorf("cannot print %q: %w", name, err)
		}
		if len(files) > 1 {
			if i > 0 {
				text.WriteByte('\n')
			}
			fmt.Fprintf(&text, "# /etc/systemd/system/%s\n", strings.TrimPrefix(name, "systemd/"))
		}
		text.Write(b)
	}
	out, done, err := a.open(to)
	if err != nil {
		return err
	}
	if _, err := out.Write(text.Bytes()); err != nil {
		return err
	}
	return done()
}
