package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/doctor"
)

// doctorClusterOptions are the flags of mqx doctor and mqx doctor cluster.
type doctorClusterOptions struct {
	doctorOptions
	target  targetFlags
	cluster string
	broker  string
}

func newDoctorClusterCmd(a *app) *cobra.Command {
	o := &doctorClusterOptions{}
	c := &cobra.Command{
		Use:   "cluster",
		Short: "Find what is wrong in a live cluster",
		Long: `Use it when something is wrong and you do not know what, before and after a change, and
as a check of a monitoring system. It asks name servers, brokers and the clients that
are connected, twice with some seconds between, and changes nothing. What runs on the
machines themselves only mqx doctor host sees there.
` + doctorLong,
		Example: `  mqx doctor
  mqx doctor cluster --for 5m --severity warning
  mqx doctor cluster -o json | jq -r '.items[] | select(.verdict=="finding") | .mend'
  mqx doctor cluster --rule queue-no-owner --rule lag-no-consumer
  mqx doctor cluster -o nagios --severity critical`,
		Args: exactArgs(),
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		return a.runDoctor(c, &o.doctorOptions, func(ctx context.Context) (*diagnosed, error) { return o.gather(ctx, a) })
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		f.StringVarP(&o.cluster, "cluster", "c", "", "only this cluster")
		f.StringVarP(&o.broker, "broker", "b", "", "only this broker, by name or address")
	})
	o.add(c, 10*time.Second, doctor.ScopeCluster)
	completeFlag(c, "broker", completeBrokers(a, &o.target))
	completeFlag(c, "cluster", completeClusters(a, &o.target))
	return c
}

func (o *doctorClusterOptions) gather(ctx context.Context, a *app) (*diagnosed, error) {
	client, err := a.adminClient(ctx, &o.target)
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }()
	e := &doctor.Cluster{}
	err = a.twoLooks(ctx, o.over, func(first bool) (err error) {
		s, err := client.Survey(ctx, admin.SurveyOptions{Target: admin.Target{Cluster: o.cluster, Broker: o.broker}, Counts: first})
		if first {
			e.Before = s
		} else {
			e.Now = s
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(e.Now.Brokers) == 0 {
		return nil, &admin.NotFoundError{Kind: "broker"}
	}
	return &diagnosed{
		findings: doctor.Diagnose(doctor.Evidence{Cluster: e}, doctor.Choice{Only: o.only, Skip: o.skip}),
		missing:  targetProblems(e.Now.Errors),
	}, nil
}
