// Command compare runs the tests of e2e twice, against mqx and against Apache's own servers, and compares what becomes of each:
//
//	cd e2e && go run ./compare                      # all of them, two hours on two cores
//	cd e2e && go run ./compare -run 'TestTimer|TestPop'
//
// It prints the tests whose outcomes differ, and how many of how many are the same; the exit code is 1 when some differ. With
// -mqx and -apache it compares two outputs of go test -json that lie there already.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
)

func main() {
	pattern := flag.String("run", ".", "tests to run, as go test -run takes them")
	timeout := flag.String("timeout", "90m", "of each of the two runs")
	mqx := flag.String("mqx", "", "file with the output of go test -json against mqx, in place of a run")
	apache := flag.String("apache", "", "the same against Apache's servers")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	same, all, err := compare(os.Stdout,
		func() ([]byte, error) { return results(ctx, *mqx, *pattern, *timeout, "") },
		func() ([]byte, error) { return results(ctx, *apache, *pattern, *timeout, "MQX_E2E_REFERENCE=apache") })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if same < all {
		os.Exit(1) //nolint:gocritic // the signals end with the process
	}
}

// results reads a file, or runs the tests in the directory it is called in. That tests fail is no error here.
func results(ctx context.Context, file, pattern, timeout, env string) ([]byte, error) {
	if file != "" {
		return os.ReadFile(file)
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-json", "-timeout", timeout, "-run", pattern, ".")
	cmd.Env = os.Environ()
	if env != "" {
		cmd.Env = append(cmd.Env, env)
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if bad := (*exec.ExitError)(nil); errors.As(err, &bad) && ctx.Err() == nil {
		err = nil
	}
	return out, err
}

// compare prints what differs between two outputs of go test -json, and counts what does not.
func compare(w io.Writer, ours, theirs func() ([]byte, error)) (same, all int, err error) {
	var out [2]map[string]string
	for i, get := range []func() ([]byte, error){ours, theirs} {
		b, err := get()
		if err != nil {
			return 0, 0, fmt.Errorf("cannot compare: %w", err)
		}
		if out[i], err = outcomes(b); err != nil {
			return 0, 0, fmt.Errorf("cannot compare: %w", err)
		}
	}
	names := maps.Clone(out[0])
	maps.Copy(names, out[1])
	for _, name := range slices.Sorted(maps.Keys(names)) {
		a, b := out[0][name], out[1][name]
		if all++; a == b && a != "fail" {
			same++
			continue
		}
		fmt.Fprintf(w, "%s: mqx %s, Apache %s\n", name, told(a), told(b))
	}
	if all == 0 {
		return 0, 0, errors.New("cannot compare: no test ran")
	}
	fmt.Fprintf(w, "%d of %d tests and subtests have the same outcome\n", same, all)
	return same, all, nil
}

func told(outcome string) string {
	if outcome == "" {
		return "did not run"
	}
	return outcome
}

// outcomes are pass, fail or skip by the name of a test. A test that began and has no outcome was ended by the time: it failed.
func outcomes(b []byte) (map[string]string, error) {
	out := map[string]string{}
	for line := range bytes.Lines(b) {
		var e struct{ Action, Test string }
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("cannot read output of go test: %w", err)
		}
		switch {
		case e.Test == "":
		case e.Action == "run":
			out[e.Test] = "fail"
		case e.Action == "pass" || e.Action == "fail" || e.Action == "skip":
			out[e.Test] = e.Action
		}
	}
	return out, nil
}
