// Speed measures mqx against Apache RocketMQ on this machine and prints the table
// of docs/performance.md.
//
//	cd e2e && go run ./speed                 every row but the long ones
//	cd e2e && go run ./speed -rows 'sync|route' -rounds 5 -seconds 10
//	cd e2e && go run ./speed -long           the long ones too
//	cd e2e && go run ./speed -long -rows '^attack' -only mqx -rounds 5 -seconds 2
//
// Both run with the same configuration and the same load (mqx bench) in turns, mqx,
// Apache, mqx, Apache; the figures are medians. While one is measured the other is
// stopped (SIGSTOP). Apache is warmed up by load before its first figure. Everything
// lives in a directory of its own, on free ports; only own processes are signalled.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	rows    *regexp.Regexp
	rounds  int
	seconds time.Duration
	warm    time.Duration
	soakFor time.Duration
	long    bool
	only    string
	dir     string
	binary  string
	out     string
	list    bool
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func parse() (*options, error) {
	o := &options{}
	rows := flag.String("rows", "", "regular expression: rows to measure, by id")
	seconds := flag.Float64("seconds", 6, "length of a load")
	warm := flag.Float64("warm", 20, "seconds of load that warm Apache's JVM up")
	flag.DurationVar(&o.soakFor, "soak", 30*time.Minute, "length of the row soak")
	flag.IntVar(&o.rounds, "rounds", 3, "times that each is measured")
	flag.BoolVar(&o.long, "long", false, "measure the long rows too")
	flag.StringVar(&o.only, "only", "", "measure only mqx or only apache")
	flag.StringVar(&o.dir, "dir", "", "directory for stores (default: a temporary one)")
	flag.StringVar(&o.binary, "mqx", "", "binary of mqx (default: built from the tree)")
	flag.StringVar(&o.out, "out", "", "file that the table goes to, besides standard output")
	flag.BoolVar(&o.list, "list", false, "list the rows")
	flag.Parse()
	var err error
	if o.rows, err = regexp.Compile(*rows); err != nil {
		return nil, err
	}
	o.seconds = time.Duration(*seconds * float64(time.Second))
	o.warm = time.Duration(*warm * float64(time.Second))
	return o, nil
}

func run() (err error) {
	if len(os.Args) > 1 && os.Args[1] == attackCommand {
		return attack(os.Args[2:])
	}
	o, err := parse()
	if err != nil {
		return err
	}
	if o.list {
		for _, r := range allRows() {
			fmt.Printf("%-18s %s\n", r.id, r.title)
		}
		return nil
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	dir, err := os.MkdirTemp(o.dir, "mqx-speed-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{options: o, ctx: ctx, dir: dir, cache: &pageCache{path: filepath.Join(dir, "zeros")}}
	defer b.endAll()
	if err := b.prepare(); err != nil {
		return err
	}
	rep := &report{}
	err = b.measure(rep)
	text := rep.markdown()
	fmt.Print(text)
	if o.out != "" {
		if werr := os.WriteFile(o.out, []byte(text), 0o644); err == nil {
			err = werr
		}
	}
	return err
}

// bench is one run of the program.
type bench struct {
	*options
	ctx       context.Context
	dir       string
	mqx       string // binary
	classPath string
	cache     *pageCache
	peers     []*peer
}

// prepare builds mqx as it is released and finds the jars.
func (b *bench) prepare() error {
	b.mqx = b.binary
	if b.mqx == "" {
		b.mqx = filepath.Join(b.dir, "mqx")
		cmd := exec.CommandContext(b.ctx, "go", "build", "-C", "..", "-trimpath", "-ldflags", "-s -w", "-o", b.mqx, ".")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("cannot build mqx: %w\n%s", err, text)
		}
	}
	text, err := exec.CommandContext(b.ctx, "java/fetch").Output()
	if err != nil {
		return fmt.Errorf("cannot fetch the jars: %w", err)
	}
	b.classPath = filepath.Join(strings.TrimSpace(string(text)), "*")
	return nil
}

// note tells what is going on.
func note(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}
