package cmd

import (
	"fmt"
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

// lagReport is the state of the worst group. A lag that is not known is UNKNOWN unless
// what is known is bad enough; so is an answer of which a broker is missing.
func lagReport(o *lagGetOptions, l *admin.Lag) (state Exit, text, figures string) {
	var worst, behind int64
	var oldest remoting.Opt[time.Duration]
	worstGroup, unknown := "", 0
	for i := range l.Groups {
		g := &l.Groups[i]
		var s admin.LagSum
		for j := range g.Queues {
			s.Add(&g.Queues[j])
		}
		unknown += s.Unknown
		behind += s.Known
		if s.Known > worst || worstGroup == "" {
			worst, worstGroup = s.Known, g.Group
		}
		if s.Age.OK && s.Age.Value > oldest.Value {
			oldest = s.Age
		}
	}
	state = nagiosOK
	switch {
	case o.crit > 0 && worst >= o.crit, o.critAge > 0 && oldest.Value >= o.critAge:
		state = nagiosCritical
	case len(l.Errors) > 0 || unknown > 0:
		state = nagiosUnknown
	case o.warn > 0 && worst >= o.warn, o.warnAge > 0 && oldest.Value >= o.warnAge:
		state = nagiosWarning
	}
	parts := []string{fmt.Sprintf("%s behind in %s", words.Count(behind, "message"), words.Count(int64(len(l.Groups)), "group"))}
	if worst > 0 && len(l.Groups) > 1 {
		parts = append(parts, fmt.Sprintf("most of them %s with %d", worstGroup, worst))
	}
	if oldest.OK {
		parts = append(parts, "the oldest since "+oldest.Value.Round(time.Second).String())
	}
	if unknown > 0 {
		parts = append(parts, fmt.Sprintf("the lag of %s is not known", words.Count(int64(unknown), "queue")))
	}
	if n := len(l.Errors); n > 0 {
		parts = append(parts, fmt.Sprintf("no answer from %s", words.Count(int64(n), "broker")))
	}
	figures = fmt.Sprintf("lag=%d;%s;%s;0", worst, limitText(o.warn), limitText(o.crit))
	if oldest.OK || o.warnAge > 0 || o.critAge > 0 {
		figures += fmt.Sprintf(" age=%.3fs;%s;%s;0", oldest.Value.Seconds(), limitText(int64(o.warnAge.Seconds())), limitText(int64(o.critAge.Seconds())))
	}
	return state, strings.Join(parts, ", "), figures
}

func limitText(n int64) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprint(n)
}
