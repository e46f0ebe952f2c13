package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/userfile"
)

// planFile is a plan as --plan-out writes it.
type planFile struct {
	APIVersion  string          `json:"apiVersion"`
	Kind        string          `json:"kind"`
	MadeAt      time.Time       `json:"madeAt"`
	Context     string          `json:"context,omitempty"`
	NameServers []string        `json:"namesrv"`
	Plan        admin.SavedPlan `json:"plan"`
}

const (
	planVersion   = "mqx/v1"
	planTopic     = "TopicPlan"
	maxPlanBytes  = 16 << 20
	planDirective = "mqx admin plan apply"
)

// save writes the plan to the file of --plan-out.
func (t *topicChange) save(plans []*admin.TopicPlan) error {
	path := t.safety.planOut
	if path == "-" {
		return usagef("cannot use --plan-out -: stdout carries the records").try("--plan-out plan.json")
	}
	if len(plans) != 1 {
		return usagef("cannot use --plan-out here: there are %d plans", len(plans)).try("--dry-run")
	}
	r, err := t.app.resolve(t.target)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(planFile{
		APIVersion: planVersion, Kind: planTopic, MadeAt: time.Now().UTC().Truncate(time.Second),
		Context: r.context, NameServers: r.nameServers.value, Plan: plans[0].Save(),
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write plan: %w", err)
	}
	if err := userfile.Write(path, append(text, '\n')); err != nil {
		return err
	}
	t.app.note("do it with: %s %s", planDirective, path)
	return nil
}

// planOptions are the flags of mqx admin plan apply.
type planOptions struct {
	target targetFlags
	output outputFlags
	safety safetyFlags
}

func newPlanCmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{Use: "plan", Aliases: []string{"plans"}, Short: "Plans that --plan-out has saved"}, newPlanApplyCmd(a))
}

func newPlanApplyCmd(a *app) *cobra.Command {
	o := &planOptions{}
	c := &cobra.Command{
		Use:   "apply FILE",
		Short: "Do what a saved plan says",
		Long: `Plans anew and compares: when brokers, configuration or groups are no longer what
the plan rests on, it is refused with exit code 6. Messages that came since are no
reason. What is already so is done: exit code 0. The plan goes to the cluster it was
made for; credentials come from here, they are not in the file.`,
		Example: `  mqx admin topic create ORDERS --queues 8 --plan-out orders.json
  mqx admin plan apply orders.json --yes
  ssh ops cat plan.json | mqx admin plan apply - --dry-run`,
		Args: exactArgs("FILE"),
		RunE: func(c *cobra.Command, args []string) error { return runPlanApply(a, c, o, args[0]) },
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) { o.target.add(f) })
	o.output.add(c)
	o.safety.addDry(c)
	o.safety.addAnswers(c, false)
	return c
}

func runPlanApply(a *app, c *cobra.Command, o *planOptions, path string) error {
	if err := o.output.check(); err != nil {
		return err
	}
	t := &topicChange{app: a, cmd: c, target: &o.target, output: &o.output, safety: &o.safety}
	if o.output.help() {
		return t.run(act{}, nil)
	}
	p, err := a.readPlan(path)
	if err != nil {
		return err
	}
	o.target.pinned = chosen[[]string]{p.NameServers, "the plan"}
	return t.run(act{name: p.Plan.Topic, destructive: p.Plan.Kind == admin.ActionDelete}, func(ctx context.Context, client *admin.Client) ([]*admin.TopicPlan, error) {
		return onePlan(client.Replan(ctx, p.Plan))
	})
}

// readPlan reads a saved plan; "-" is stdin.
func (a *app) readPlan(path string) (*planFile, error) {
	var data []byte
	var err error
	if path == "-" {
		data, err = io.ReadAll(io.LimitReader(a.In, maxPlanBytes))
	} else {
		data, err = userfile.Read(path, maxPlanBytes)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usagef("cannot open plan %q: it is not there", path).try("the FILE of --plan-out")
	}
	if err != nil {
		return nil, err
	}
	p := &planFile{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(p); err != nil {
		return nil, usagef("cannot read plan %q: %w", path, err).try("the FILE of --plan-out")
	}
	if p.APIVersion != planVersion || p.Kind != planTopic {
		return nil, usagef("cannot use plan %q: it is %q of %q, this mqx knows %q of %q", path, p.Kind, p.APIVersion, planTopic, planVersion).try("the mqx that wrote it")
	}
	return p, nil
}
