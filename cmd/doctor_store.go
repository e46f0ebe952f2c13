package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/doctor"
	"mqx/store/inspect"
)

// doctorStoreOptions are the flags of mqx doctor store.
type doctorStoreOptions struct {
	doctorOptions
	store storeFlags
	pace  paceFlag
	keep  time.Duration
	quick bool
}

func newDoctorStoreCmd(a *app) *cobra.Command {
	o := &doctorStoreOptions{keep: 72 * time.Hour}
	c := &cobra.Command{
		Use:   "store DIR",
		Short: "Find what is wrong with a store directory",
		Long: `Use it where there is no broker to ask: on a directory that a broker left, on a backup,
or beside a broker that does not start. It reads all of the directory, as mqx store
verify does (--quick leaves that out), takes no lock and changes nothing.
` + doctorLong,
		Example: `  mqx doctor store ~/store
  mqx doctor store /data/store --quick --keep 48h
  mqx doctor store /data/store -o json | jq -r '.items[].mend'`,
		Args: exactArgs("DIR"),
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := o.pace.check(); err != nil {
			return err
		}
		return a.runDoctor(c, &o.doctorOptions, func(ctx context.Context) (*diagnosed, error) {
			d, err := o.gather(ctx, a, args[0])
			if err != nil {
				return nil, storeFailure(args[0], err)
			}
			return d, nil
		})
	}
	o.store.add(c)
	o.pace.add(c)
	c.PreRunE = checkStoreFlags
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.Var(durationFlag{&o.keep}, "keep", "how long the broker keeps files (fileReservedTime)")
		f.BoolVar(&o.quick, "quick", false, "do not read the log and the queues: damage is then unknown")
	})
	o.add(c, 0, doctor.ScopeStore)
	return c
}

func (o *doctorStoreOptions) gather(ctx context.Context, a *app, dir string) (*diagnosed, error) {
	d, err := a.openStore(&o.store, dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	e := &doctor.Store{Dir: dir, Now: time.Now(), Retention: o.keep}
	if e.Info, err = d.Info(ctx); err != nil {
		return nil, err
	}
	e.Lags, e.LagErr = d.Lags(ctx)
	if !o.quick {
		a.beside(d, &o.pace)
		bar := newProgressLine(a, "verify")
		e.Report, err = inspect.Verify(ctx, d, inspect.VerifyOptions{OnProgress: bar.set})
		bar.end()
		if err != nil {
			return nil, err
		}
	}
	return &diagnosed{findings: doctor.Diagnose(doctor.Evidence{Store: e}, doctor.Choice{Only: o.only, Skip: o.skip})}, nil
}
