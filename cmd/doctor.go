package cmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/doctor"
	"mqx/internal/render"
	"mqx/internal/words"
)

var doctorSchema = render.Schema{Kind: "DiagnosisList", Name: "rule", Fields: []render.Field{
	{Name: "severity", Tone: render.ToneOf(map[string]render.Tone{"critical": render.Bad, "warning": render.Warn}, render.Dim), Doc: "how bad it is: critical, warning or note"},
	{Name: "rule", Whole: true, Doc: "id of the rule; docs/doctor.md lists them"},
	{Name: "verdict", Tone: render.ToneOf(map[string]render.Tone{"ok": render.Good, "finding": render.Bad}, render.Dim), Doc: "finding, ok, or unknown where the evidence is missing"},
	{Name: "subject", Doc: "what it is about: a group, topic, broker, device, directory; unknown for all of it"},
	{Name: "evidence", Doc: "what was seen; of an unknown rule, why it cannot be judged"},
	{Name: "meaning", Wide: true, Doc: "what a finding means"},
	{Name: "mend", Doc: "the command that mends it; unknown where nothing has to be mended"},
}}

// doctorOptions are the flags that all doctors have.
type doctorOptions struct {
	output   outputFlags
	severity string
	only     []string
	skip     []string
	all      bool
	over     time.Duration
	ids      []string // of the rules that this doctor asks
}

const doctorLong = `
Each rule has an id, a severity, its evidence, what it means and the command that mends
it; docs/doctor.md lists them. Where the evidence is missing a rule says unknown, which
is no finding. Rules that found nothing are listed with --all. Exit code 6 with a finding
that is critical or a warning; notes are none.`

func newDoctorCmd(a *app) *cobra.Command {
	c := newDoctorClusterCmd(a)
	cluster := newDoctorClusterCmd(a)
	c.Use, c.Short = "doctor [cluster | host | store DIR]", "Find what is wrong, why, and the command that mends it"
	c.Args = cobra.ArbitraryArgs
	c.Annotations = map[string]string{}
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(c, args[0])
		}
		return run(c, args)
	}
	c.AddCommand(cluster, newDoctorHostCmd(a), newDoctorStoreCmd(a))
	return c
}

// add adds the flags to a doctor that looks at rules of scope. over is how long it looks by default,
// 0 for one that looks once.
func (o *doctorOptions) add(c *cobra.Command, over time.Duration, scopes ...doctor.Scope) {
	for _, r := range doctor.Rules() {
		if slices.Contains(scopes, r.Scope) {
			o.ids = append(o.ids, r.ID)
		}
	}
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.StringVar(&o.severity, "severity", string(doctor.Note), "the least that is listed and counts: critical, warning, note")
		f.StringArrayVar(&o.only, "rule", nil, "ask only this rule; may be repeated")
		f.StringArrayVar(&o.skip, "skip", nil, "do not ask this rule; may be repeated")
		f.BoolVar(&o.all, "all", false, "list rules that found nothing as well")
		if over > 0 {
			f.Var(durationFlag{&o.over}, "for", "time between the two looks that rates need (default 10s); 0s looks once")
		}
	})
	o.over = over
	o.output.addRows(c)
	o.output.add(c)
	offersNagios(c)
	completeFlag(c, "severity", cobra.FixedCompletions([]string{"critical", "warning", "note"}, cobra.ShellCompDirectiveNoFileComp))
	for _, flag := range []string{"rule", "skip"} {
		completeFlag(c, flag, cobra.FixedCompletions(o.ids, cobra.ShellCompDirectiveNoFileComp))
	}
}

func (o *doctorOptions) check() error {
	if !slices.Contains(doctor.Severities(), doctor.Severity(o.severity)) {
		return notOneOf("--severity", o.severity, "critical", "warning", "note")
	}
	if o.over < 0 || o.over > 24*time.Hour {
		return usagef("cannot use --for %s: it goes from 0s to 24h", o.over).try("--for 10s")
	}
	for flag, list := range map[string][]string{"--rule": o.only, "--skip": o.skip} {
		for _, id := range list {
			if !slices.Contains(o.ids, id) {
				return notOneOf(flag, id, o.ids...)
			}
		}
	}
	if f := &o.output; f.form == formNagios && (f.match != "" || f.sort != "" || f.limit != 0 || f.strings || o.all) {
		return usagef("cannot use -o nagios with --match, --sort, --limit, --strings or --all").because("it is one line about everything").try("-o json")
	}
	return nil
}

// diagnosed is what a doctor found, and the parts that did not answer.
type diagnosed struct {
	findings []doctor.Finding
	missing  problems
}

// runDoctor prints what gather finds.
func (a *app) runDoctor(c *cobra.Command, o *doctorOptions, gather func(ctx context.Context) (*diagnosed, error)) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.output.help() {
		return a.printRows(&o.output, doctorSchema, func() ([][]any, error) { return nil, nil })
	}
	if o.output.form != formNagios {
		if err := o.output.check(); err != nil {
			return err
		}
	}
	ctx, cancel := a.deadline(c, false) // every request has its own limit
	defer cancel()
	d, err := gather(ctx)
	if err != nil {
		return a.withTimeout(ctx, err)
	}
	least := doctor.Severity(o.severity)
	d.findings = slices.DeleteFunc(d.findings, func(f doctor.Finding) bool { return !f.Severity.AtLeast(least) })
	doctor.Sort(d.findings)
	if o.output.form == formNagios {
		return a.doctorNagios(&o.output, d)
	}
	out, closeOut, err := a.open(&o.output)
	if err != nil {
		return err
	}
	return closed(a.printDiagnosis(o.all, d, func() (*render.Writer, error) { return a.renderer(out, &o.output, doctorSchema, false) }), closeOut)
}

func (a *app) printDiagnosis(all bool, d *diagnosed, open func() (*render.Writer, error)) error {
	w, err := open()
	if err != nil {
		return err
	}
	for i := range d.findings {
		f := &d.findings[i]
		if f.Verdict == doctor.OK && !all {
			continue
		}
		if err := w.Row(string(f.Severity), f.Rule, string(f.Verdict), orUnknown(f.Subject), f.Evidence, orUnknown(f.Meaning), orUnknown(f.Mend)); err != nil {
			return err
		}
	}
	for _, p := range d.missing {
		w.Problem(p)
	}
	if err := w.Close(); err != nil {
		return err
	}
	missing := a.partial(d.missing)
	n := countFindings(d.findings)
	a.note("%s, %s, %s could not be judged", words.Count(int64(n.critical), "critical finding"), words.Count(int64(n.warning), "warning"), words.Count(int64(n.unknown), "rule"))
	if n.critical+n.warning > 0 {
		return silentError{ExitCheckFailed}
	}
	return missing
}

// findingCounts are findings by what they come to.
type findingCounts struct{ critical, warning, note, unknown int }

func countFindings(list []doctor.Finding) (n findingCounts) {
	for i := range list {
		switch f := &list[i]; {
		case f.Verdict == doctor.Unknown:
			n.unknown++
		case f.Verdict == doctor.OK:
		case f.Severity == doctor.Critical:
			n.critical++
		case f.Severity == doctor.Warning:
			n.warning++
		default:
			n.note++
		}
	}
	return n
}

// doctorNagios is the check of a monitoring system: a part that does not answer makes the
// state unknown, unless what is known is bad enough. A rule without evidence does not.
func (a *app) doctorNagios(o *outputFlags, d *diagnosed) error {
	out, closeOut, err := a.open(o)
	if err != nil {
		return err
	}
	for _, p := range d.missing {
		a.missing(p)
	}
	n := countFindings(d.findings)
	state := nagiosOK
	switch {
	case n.critical > 0:
		state = nagiosCritical
	case len(d.missing) > 0 && a.global.partial != "ok":
		state = nagiosUnknown
	case n.warning > 0:
		state = nagiosWarning
	}
	parts := []string{fmt.Sprintf("%s, %s", words.Count(int64(n.critical), "critical finding"), words.Count(int64(n.warning), "warning"))}
	for i := range d.findings {
		if f := &d.findings[i]; f.Bad() && len(parts) < 4 {
			parts = append(parts, strings.TrimSpace(f.Rule+" "+f.Subject)+": "+f.Evidence)
		}
	}
	if len(d.missing) > 0 {
		parts = append(parts, "no answer from "+words.Count(int64(len(d.missing)), "part"))
	}
	figures := fmt.Sprintf("critical=%d warning=%d note=%d unknown=%d", n.critical, n.warning, n.note, n.unknown)
	if err := closed(nagiosLine(out, state, strings.Join(parts, "; "), figures), closeOut); err != nil {
		return err
	}
	if state != nagiosOK {
		return silentError{state}
	}
	return nil
}

// twoLooks calls look twice with the time of --for between; once where that is 0.
func (a *app) twoLooks(ctx context.Context, over time.Duration, look func(first bool) error) error {
	if over > 0 {
		began := time.Now()
		if err := look(true); err != nil {
			return err
		}
		a.note("looking for %s", over)
		if err := sleepFor(ctx, over-time.Since(began)); err != nil { // that it waited for who is silent counts
			return err
		}
	}
	return look(false)
}
