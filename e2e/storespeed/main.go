// Storespeed measures `mqx store` on a large store against the plain reading of the same files, and what `mqx store
// verify` does to a broker beside it; it prints the table of docs/performance.md.
//
//	cd e2e && go run ./storespeed                      10 GiB, 10 million messages
//	cd e2e && go run ./storespeed -messages 1000000    1 GiB
//	cd e2e && go run ./storespeed -rows 'verify|find' -rounds 5
//
// The store is written once by package store, into a directory of its own, which goes at the end unless -keep is given.
// Every figure is taken in turns with `cat` of the same files in one run; the ratios are medians.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
)

type options struct {
	dir, binary string
	messages    int
	rounds      int
	rows        *regexp.Regexp
	keep        bool
	seconds     float64
	inFlight    string
	pace        int
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func parse() (*options, error) {
	o := &options{}
	rows := flag.String("rows", "", "regular expression: rows to measure, by name")
	flag.StringVar(&o.dir, "dir", "", "directory for the store (default: a temporary one); a store that is there is taken as it is")
	flag.StringVar(&o.binary, "mqx", "", "binary of mqx (default: built from the tree)")
	flag.IntVar(&o.messages, "messages", 10_000_000, "messages of about 1 KiB")
	flag.IntVar(&o.rounds, "rounds", 3, "times that each is measured")
	flag.BoolVar(&o.keep, "keep", false, "leave the store there")
	flag.Float64Var(&o.seconds, "seconds", 10, "length of a load on the live broker")
	flag.StringVar(&o.inFlight, "in-flight", "16", "requests under way at a time of that load")
	flag.IntVar(&o.pace, "pace", 0, "--pace of the verify beside that load (default: its own)")
	flag.Parse()
	var err error
	o.rows, err = regexp.Compile(*rows)
	return o, err
}

// bench is one run of the program.
type bench struct {
	*options
	ctx   context.Context //nolint:containedctx // of the whole program
	work  string          // directory of the run
	store string
}

func run() (err error) {
	o, err := parse()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b := &bench{options: o, ctx: ctx, work: o.dir}
	if b.work == "" {
		if b.work, err = os.MkdirTemp("", "mqx-storespeed-"); err != nil {
			return err
		}
	}
	if b.work, err = filepath.Abs(b.work); err != nil {
		return err
	}
	b.store = filepath.Join(b.work, "store")
	if !o.keep {
		defer func() { err = errors.Join(err, os.RemoveAll(b.store)) }()
	}
	if b.binary == "" {
		b.binary = filepath.Join(b.work, "mqx")
		defer func() { _ = os.Remove(b.binary) }()
		build := exec.CommandContext(ctx, "go", "build", "-C", "..", "-trimpath", "-ldflags", "-s -w", "-o", b.binary, "mqx")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("cannot build mqx: %w: %s", err, out)
		}
	}
	if err := b.write(); err != nil {
		return err
	}
	return b.measure()
}
