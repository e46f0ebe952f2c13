package cmd

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"mqx/internal/render"
)

// Failure is how a command fails: the exit code and the lines that are printed.
type Failure struct {
	Code Exit
	Err  error  // after "error: "
	Why  string // after "why: ", may be empty
	Try  string // after "try: ", may be empty
}

func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap gives the cause.
func (f *Failure) Unwrap() error { return f.Err }

// usagef is a mistake in the command line.
func usagef(format string, args ...any) *Failure {
	return &Failure{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}

func failf(code Exit, format string, args ...any) *Failure {
	return &Failure{Code: code, Err: fmt.Errorf(format, args...)}
}

func (f *Failure) because(why string) *Failure {
	f.Why = why
	return f
}

func (f *Failure) try(format string, args ...any) *Failure {
	f.Try = fmt.Sprintf(format, args...)
	return f
}

// silentError ends a command with a code when everything has been said already.
type silentError struct{ code Exit }

func (e silentError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// asFailure turns any error into a Failure: what a command says itself stands,
// everything else is told apart by its type in classify.
func asFailure(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	if interrupted(err) {
		return &Failure{Code: ExitInterrupted, Err: errors.New("interrupted")}
	}
	return classify(err)
}

// print writes the one to three lines of a failure. A line break inside a text
// becomes a blank, so that each of them is one line.
func (f *Failure) print(w io.Writer, color bool) {
	for _, l := range []struct {
		word, text string
		tone       render.Tone
	}{{"error:", f.Err.Error(), render.Bad}, {"why:", f.Why, render.Dim}, {"try:", f.Try, render.Good}} {
		if l.text != "" {
			fmt.Fprintf(w, "%s %s\n", render.Paint(l.word, l.tone, color), oneLine(l.text))
		}
	}
}

// oneLine makes one line of a text: several errors that were joined stand in a row.
func oneLine(s string) string {
	lines := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' })
	for i, l := range lines {
		lines[i] = strings.Join(strings.Fields(l), " ")
	}
	return strings.Join(lines, "; ")
}
