package cmd

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/userfile"
	"mqx/internal/words"
)

// planFile is a plan as --plan-out writes it.
type planFile struct {
	APIVersion  string          `json:"apiVersion"`
	Kind        string          `json:"kind"`
	Change      string          `json:"change"` // kind of the plan, as admin.Replan takes it
	Object      string          `json:"object"`
	MadeAt      time.Time       `json:"madeAt"`
	Context     string          `json:"context,omitempty"`
	NameServers []string        `json:"namesrv"`
	Plan        json.RawMessage `json:"plan"`
}

const (
	planVersion   = "mqx/v1"
	planKind      = "Plan"
	maxPlanBytes  = 16 << 20
	planDirective = "mqx admin plan apply"
)

// save writes the plan to the file of --plan-out.
func (t *change) save(list []admin.Plan) error {
	path := t.safety.planOut
	if path == "-" {
		return usagef("cannot use --plan-out -: stdout carries the records").try("--plan-out plan.json")
	}
	if len(list) != 1 {
		return usagef("cannot use --plan-out here: there are %s", words.Count(len(list), "plan")).try("--dry-run")
	}
	r, err := t.app.resolve(t.target)
	if err != nil {
		return err
	}
	p := list[0]
	if parts := admin.Secrets(p); len(parts) > 0 {
		return usagef("cannot use --plan-out with %s: a plan does not hold secrets", strings.Join(parts, ", ")).because("its value, the one it has or the one it gets, is one").try("--dry-run")
	}
	saved, err := json.Marshal(p.Saved())
	if err != nil {
		return fmt.Errorf("cannot write plan: %w", err)
	}
	text, err := json.MarshalIndent(planFile{
		APIVersion: planVersion, Kind: planKind, Change: p.Kind(), Object: p.Object(), MadeAt: time.Now().UTC().Truncate(time.Second),
		Context: r.context, NameServers: r.nameServers.value, Plan: saved,
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
	state  string
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
made for; credentials come from here, they are not in the file.

A plan that sends messages (message copy, message replay, dlq replay) sends each of them once:
how far it came is kept on this machine, by what is in the plan, or in the file of --state, and
a run after Ctrl-C or a failure goes on there.`,
		Example: `  mqx admin topic create ORDERS --queues 8 --plan-out orders.json
  mqx admin plan apply orders.json --yes
  ssh ops cat plan.json | mqx admin plan apply - --dry-run
  mqx admin plan apply copy.json --state /shared/copy.state --yes`,
		Args: exactArgs("FILE"),
		RunE: func(c *cobra.Command, args []string) error { return runPlanApply(a, c, o, args[0]) },
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) { o.target.add(f) })
	grouped(c, groupRange, func(f *pflag.FlagSet) {
		f.StringVar(&o.state, "state", "", "of a plan that sends messages: file that says how far it came (default: one of this machine)")
	})
	o.output.add(c)
	o.safety.addDry(c)
	o.safety.addAnswers(c, false)
	return c
}

func runPlanApply(a *app, c *cobra.Command, o *planOptions, path string) error {
	if err := o.output.check(); err != nil {
		return err
	}
	t := &change{app: a, cmd: c, target: &o.target, output: &o.output, safety: &o.safety}
	if o.output.help() {
		return t.run(nil)
	}
	p, err := a.readPlan(path)
	if err != nil {
		return err
	}
	o.target.pinned = chosen[[]string]{p.NameServers, "the plan"}
	t.long = admin.PlanTakesLong(p.Change, p.Plan)
	tell := newCopyTeller(a)
	err = t.run(func(ctx context.Context, client *admin.Client) ([]admin.Plan, error) {
		plan, err := client.Replan(ctx, p.Change, p.Plan)
		messages, ok := plan.(*admin.CopyPlan)
		switch {
		case err != nil:
		case ok:
			messages.Tell(tell.tell)
			tell.total, tell.began = messages.Total, time.Now()
			err = o.goOn(a, messages, p, path)
		case o.state != "":
			err = usagef("cannot use --state with plan %q: it sends no messages", path).try("leave --state out")
		}
		return onePlan(plan, err)
	})
	tell.end()
	if c.Context().Err() != nil {
		return context.Cause(c.Context()) // the steps have said how far it came
	}
	return err
}

// goOn finds how far the plan has been done: by what is in it, so that it is found wherever the file lies.
func (o *planOptions) goOn(a *app, plan *admin.CopyPlan, p *planFile, path string) error {
	state, again := o.state, planDirective+" "+path
	if state != "" {
		return plan.GoOn(state, again+" --state "+state)
	}
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("cannot name the state of plan %q: %w", path, err)
	}
	dir, err := userfile.StateDir(a.env)
	if err != nil {
		return err
	}
	return plan.GoOn(filepath.Join(dir, "copies", fmt.Sprintf("plan-%x.json", sha256.Sum256(text))), again)
}

// readPlan reads a saved plan; "-" is stdin.
func (a *app) readPlan(path string) (*planFile, error) {
	data, err := a.readInput(path, "plan", "the FILE of --plan-out", maxPlanBytes)
	if err != nil {
		return nil, err
	}
	p := &planFile{}
	if err := decodeOnly(data, p); err != nil {
		return nil, usagef("cannot read plan %q: %w", path, err).try("the FILE of --plan-out")
	}
	if p.APIVersion != planVersion || p.Kind != planKind || !slices.Contains(admin.PlanKinds(), p.Change) {
		return nil, usagef("cannot use plan %q: it is a %q of %q with a change of kind %q; this mqx knows a %q of %q with one of %s", path, p.Kind, p.APIVersion, p.Change, planKind, planVersion, strings.Join(admin.PlanKinds(), ", ")).try("the mqx that wrote it")
	}
	return p, nil
}
