package cmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"mqx/internal/words"
	"mqx/store/inspect"
)

// formNagios is the form of a check: one status line, and exit codes of their own, those that monitoring plugins have.
const formNagios = "nagios"

// The exit codes of -o nagios, the one form in which they do not mean what exitTable says.
const (
	nagiosOK       Exit = 0
	nagiosWarning  Exit = 1
	nagiosCritical Exit = 2
	nagiosUnknown  Exit = 3
)

func (e Exit) nagiosName() string {
	switch e {
	case nagiosOK:
		return "OK"
	case nagiosWarning:
		return "WARNING"
	case nagiosCritical:
		return "CRITICAL"
	}
	return "UNKNOWN"
}

const nagiosAnnotation = "mqx_nagios"

// offersNagios adds the form to a command, after its output flags.
func offersNagios(c *cobra.Command) {
	f := c.Flags().Lookup("output")
	f.Usage = strings.Replace(f.Usage, "template=TEXT", "template=TEXT, nagios (one line, exit code 0, 1, 2 or 3)", 1)
	f.Annotations[nagiosAnnotation] = nil
}

// asksNagios reports whether the command that ran was asked for the form.
func asksNagios(c *cobra.Command) bool {
	if c == nil {
		return false
	}
	f := c.Flags().Lookup("output")
	if f == nil || f.Value.String() != formNagios {
		return false
	}
	_, offered := f.Annotations[nagiosAnnotation]
	return offered
}

// nagiosLine writes the status line. What stands behind a bar is read as figures, so that a text has none.
func nagiosLine(w io.Writer, state Exit, text, figures string) error {
	line := fmt.Sprintf("%s - %s", state.nagiosName(), strings.ReplaceAll(oneLine(text), "|", "/"))
	if figures != "" {
		line += " | " + figures
	}
	_, err := fmt.Fprintln(w, line)
	return err
}

// nagiosReport is the status of a store that was verified: a finding whose mend loses something is critical, one that only
// builds again what follows from the rest is a warning.
func nagiosReport(r *inspect.Report) (state Exit, text, figures string) {
	findings, notes := 0, 0
	var worst *inspect.Finding
	for _, f := range r.Findings {
		if f.Note {
			notes++
			continue
		}
		findings++
		if worst == nil || worst.Derived && !f.Derived {
			worst = f
		}
	}
	findings += r.Total - len(r.Findings)
	figures = fmt.Sprintf("findings=%d notes=%d records=%d", findings, notes, r.Records)
	read := words.Count(r.Records, "record") + " read"
	if worst == nil {
		return nagiosOK, read + ", no findings", figures
	}
	state = nagiosCritical
	if worst.Derived {
		state = nagiosWarning
	}
	what := string(worst.Kind)
	if worst.File != "" {
		what += " " + worst.File
	}
	return state, fmt.Sprintf("%s, %s: %s: %s", read, words.Count(int64(findings), "finding"), what, worst.What), figures
}
