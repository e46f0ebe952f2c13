package cmd

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// explained completes a usage failure to its three lines. What a command says
// itself stands; a reason that only stands at the end of the error becomes the
// why, and what to try is the help of the command.
func explained(c *cobra.Command, f *Failure) *Failure {
	if f.Code != ExitUsage {
		return f
	}
	if f.Why == "" {
		if what, why, ok := cutReason(oneLine(f.Err.Error())); ok {
			f = &Failure{Code: f.Code, Err: restated{what, f.Err}, Why: why, Try: f.Try}
		} else {
			f.Why = "it is run as: " + usageLine(c)
		}
	}
	if f.Try == "" {
		f.Try = c.CommandPath() + " --help"
	}
	return f
}

// restated is an error in other words.
type restated struct {
	text string
	err  error
}

func (e restated) Error() string { return e.text }

// Unwrap gives the error that was restated.
func (e restated) Unwrap() error { return e.err }

// cutReason splits "cannot do this: because of that" at the first colon that
// stands neither in quotes nor in parentheses.
func cutReason(text string) (what, why string, ok bool) {
	if !strings.HasPrefix(text, "cannot ") {
		return text, "", false
	}
	quoted, depth := false, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			depth--
		case depth <= 0 && strings.HasPrefix(text[i:], ": "):
			return text[:i], text[i+2:], true
		}
	}
	return text, "", false
}

// notOneOf is a value that is none of the choices; the nearest one is proposed.
func notOneOf(flag, value string, choices ...string) *Failure {
	f := usagef("cannot use %s %q", flag, value).because(fmt.Sprintf("it is one of %s", strings.Join(choices, ", ")))
	near := nearest(value, choices)
	if near == "" {
		near = choices[0]
	}
	return f.try("%s %s", flag, near)
}

// oneOf is the choice that a value is, whatever its case.
func oneOf(flag, value string, choices ...string) (string, error) {
	for _, c := range choices {
		if strings.EqualFold(c, value) {
			return c, nil
		}
	}
	return "", notOneOf(flag, value, choices...)
}
