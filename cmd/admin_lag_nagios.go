package cmd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mqx/admin"
	"mqx/internal/words"
	"mqx/remoting"
)

// durationFlag is a flag whose value is a duration, with days and weeks.
type durationFlag struct{ to *time.Duration }

// String is the duration, "" for none.
func (d durationFlag) String() string {
	if d.to == nil || *d.to == 0 {
		return ""
	}
	return d.to.String()
}

// Type names the value in help.
func (durationFlag) Type() string { return "duration" }

// Set reads a duration.
func (d durationFlag) Set(text string) error {
	v, err := parseDuration(text)
	*d.to = v
	return err
}

// runLagNagios is the check of a monitoring system.
func runLagNagios(a *app, c *cobra.Command, o *lagGetOptions, client *admin.Client) error {
	ctx, cancel := a.deadline(c, true)
	defer cancel()
	l, err := o.read(ctx, client)
	if err != nil {
		return a.withTimeout(ctx, err)
	}
	if err := allFailed(len(l.Groups), l.Errors); err != nil {
		return err
	}
	out, closeOut, err := a.open(&o.output)
	if err != nil {
		return err
	}
	for _, p := range targetProblems(l.Errors) {
		a.missing(p)
	}
	state, text, figures := lagReport(o, l)
	if err := closed(nagiosLine(out, state, text, figures), closeOut); err != nil {
		return err
	}
	if state != nagiosOK {
		return silentError{state}
	}
	return nil
}

// lagFound is what a check found, over all groups.
type lagFound struct {
	worst, behind int64
	group         string // the one with the worst lag
	oldest        remoting.Opt[time.Duration]
	unknown       int // queues whose lag is not known
	ageless       int // queues with a lag whose age is not known
}

func findLag(l *admin.Lag) (f lagFound) {
	for i := range l.Groups {
		g := &l.Groups[i]
		var s admin.LagSum
		for j := range g.Queues {
			q := &g.Queues[j]
			s.Add(q)
			if q.Lag.OK && q.Lag.Value > 0 && !q.Age.OK {
				f.ageless++
			}
		}
		f.unknown += s.Unknown
		f.behind += s.Known
		if s.Known > f.worst || f.group == "" {
			f.worst, f.group = s.Known, g.Group
		}
		if s.Age.OK && s.Age.Value > f.oldest.Value {
			f.oldest = s.Age
		}
	}
	return f
}

// lagReport is the state of the worst group. A lag that is not known is UNKNOWN unless
// what is known is bad enough; so is an answer of which a broker is missing.
func lagReport(o *lagGetOptions, l *admin.Lag) (state Exit, text, figures string) {
	f, aged := findLag(l), o.warnAge > 0 || o.critAge > 0
	part := len(l.Errors) > 0 || f.unknown > 0 // of it all is known
	noAge := part || aged && f.ageless > 0
	state = nagiosOK
	switch {
	case o.crit > 0 && f.worst >= o.crit, o.critAge > 0 && f.oldest.Value >= o.critAge:
		state = nagiosCritical
	case noAge:
		state = nagiosUnknown
	case o.warn > 0 && f.worst >= o.warn, o.warnAge > 0 && f.oldest.Value >= o.warnAge:
		state = nagiosWarning
	}
	least, lag, age := "", fmt.Sprint(f.worst), fmt.Sprintf("%.3fs", f.oldest.Value.Seconds())
	if part {
		least, lag = "at least ", "U" // the plugins' word for a value that is not known
	}
	if noAge {
		age = "U"
	}
	parts := []string{fmt.Sprintf("%s%s behind in %s", least, words.Count(f.behind, "message"), words.Count(int64(len(l.Groups)), "group"))}
	if f.worst > 0 && len(l.Groups) > 1 {
		parts = append(parts, fmt.Sprintf("most of them %s with %d", f.group, f.worst))
	}
	if f.oldest.OK {
		parts = append(parts, "the oldest since "+f.oldest.Value.Round(time.Second).String())
	}
	if f.unknown > 0 {
		parts = append(parts, fmt.Sprintf("the lag of %s is not known", words.Count(int64(f.unknown), "queue")))
	}
	if aged && f.ageless > 0 {
		parts = append(parts, fmt.Sprintf("the age in %s is not known", words.Count(int64(f.ageless), "queue")))
	}
	if len(l.Errors) > 0 {
		parts = append(parts, "no answer from "+silentNames(l.Errors))
	}
	figures = fmt.Sprintf("lag=%s;%s;%s;0", lag, limitText(o.warn), limitText(o.crit))
	if f.oldest.OK || aged {
		figures += fmt.Sprintf(" age=%s;%s;%s;0", age, limitText(int64(o.warnAge.Seconds())), limitText(int64(o.critAge.Seconds())))
	}
	return state, strings.Join(parts, ", "), figures
}

// silentNames are those that did not answer, each once.
func silentNames(errs []admin.TargetError) string {
	var names []string
	for i := range errs {
		names = append(names, cmp.Or(errs[i].Broker, errs[i].Addr))
	}
	slices.Sort(names)
	return "broker " + strings.Join(slices.Compact(names), ", ")
}

func limitText(n int64) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprint(n)
}
