package cmd

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/render"
)

var joinCheckSchema = render.Schema{Kind: "CheckList", Name: "check", Fields: []render.Field{
	{Name: "check", Doc: "what was looked at: name-server, registered, clock, name-server-list, port-main, port-vip, port-ha, ports-from-brokers, disk, disk-speed, version; of a broker that joins auto-create, permission, groups, topics"},
	{Name: "broker", Doc: "broker, or address of a name server"},
	{Name: "addr", Title: "ADDRESS", Whole: true, Doc: "its address"},
	{Name: "verdict", Tone: render.ToneOf(map[string]render.Tone{"ok": render.Good, "finding": render.Bad}, render.Dim), Doc: "ok, finding, or unknown where it cannot be known from here"},
	{Name: "evidence", Doc: "what was seen"},
	{Name: "try", Doc: "what mends it; unknown where nothing has to be mended"},
}}

// joinCheckOptions are the flags of mqx admin cluster join-check.
type joinCheckOptions struct {
	target  targetFlags
	output  outputFlags
	cluster string
	broker  string
	skew    time.Duration
	disk    int
}

func newClusterJoinCheckCmd(a *app) *cobra.Command {
	o := &joinCheckOptions{}
	c := &cobra.Command{
		Use:   "join-check",
		Short: "Look over what brokers must agree on before one takes traffic",
		Long: `Use it before a new broker gets its first topic, and whenever brokers and name
servers may disagree: who is registered where, clocks, lists of name servers, ports,
disks, versions. With -b it also looks at what a broker that joins must have: no topic
comes into being there, and the groups of the cluster are known. Each line has its
evidence; what cannot be known from here is unknown, and no finding. A finding ends
the command with exit code 6, a broker that does not answer with 3. Nothing is changed.`,
		Example: `  mqx admin cluster join-check -b broker-c
  mqx admin cluster join-check -c DefaultCluster --match verdict!=ok
  mqx admin cluster join-check -o json | jq -r '.items[] | select(.verdict=="finding") | .try'`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return runJoinCheck(a, c, o) },
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		f.StringVarP(&o.cluster, "cluster", "c", "", "the brokers of this cluster (default: of all)")
		f.StringVarP(&o.broker, "broker", "b", "", "the broker that joins, by name or address")
	})
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.DurationVar(&o.skew, "max-skew", 2*time.Second, "clocks that differ more are a finding; brokers tell their time in seconds")
		f.IntVar(&o.disk, "max-disk", 75, "percent of a disk; more in use is a finding")
	})
	o.output.addRows(c)
	o.output.add(c)
	o.output.addWatch(c)
	completeFlag(c, "broker", completeBrokers(a, &o.target))
	completeFlag(c, "cluster", completeClusters(a, &o.target))
	return c
}

func runJoinCheck(a *app, c *cobra.Command, o *joinCheckOptions) error {
	if o.skew <= 0 {
		return usagef("cannot use --max-skew %s: it must be more than nothing", o.skew).try("--max-skew 2s")
	}
	if o.disk < 1 || o.disk > 100 {
		return usagef("cannot use --max-disk %d: it is a percentage", o.disk).try("--max-disk 75")
	}
	client, err := a.adminClient(c.Context(), &o.target)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	findings := false
	err = a.list(c, &o.output, joinCheckSchema, func(ctx context.Context, w *render.Writer) (problems, error) {
		checks, errs, err := client.JoinCheck(ctx, admin.JoinCheckOptions{
			Target: admin.Target{Cluster: o.cluster}, Joining: o.broker, MaxSkew: o.skew, MaxDiskRatio: float64(o.disk) / 100,
		})
		if err != nil {
			return nil, err
		}
		findings = false
		for _, ch := range checks {
			findings = findings || ch.Verdict == admin.VerdictFinding
			if err := w.Row(ch.Name, ch.Broker, ch.Addr, ch.Verdict, ch.Evidence, orUnknown(ch.Try)); err != nil {
				return nil, err
			}
		}
		return targetProblems(errs), nil
	})
	if partial, ok := errors.AsType[silentError](err); findings && (err == nil || ok && partial.code == ExitPartial) {
		return silentError{ExitCheckFailed}
	}
	return err
}
