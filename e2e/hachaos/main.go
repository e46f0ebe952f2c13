// Hachaos runs a group of three brokers, real processes, through what happens to them in service, and judges what is
// left of the messages that were acknowledged meanwhile:
//
//	cd e2e && go run ./hachaos -minutes 60 -seed 1 MQX
//	cd e2e && go run ./hachaos -rounds 1 -seed 17 -v MQX     # the round of seed 17 again
//	cd e2e && go run ./hachaos -minutes 10 -apache MQX       # brokers of Apache 5.5.0 (java/fetch)
//	cd e2e && go run ./hachaos -rounds 12 -steps 3 -seed 0 -each -apache MQX   # every kind of step twice
//
// MQX is a binary of mqx. A round is a group of its own: its seed gives the level of replication, the ack mode and the
// steps, each with its length; what the kernel does in between is not repeated. Steps are kills and stops of the master
// and of slaves, links that are cut after any number of bytes, that are slow or carry nothing, a slave without its
// disk, full disks, and promotions of a slave by `mqx admin ha promote`, after which the old master comes back as its
// slave. Producers note each answer, a consumer reads the master all the time.
//
// Checked at the end of a round: what was answered SEND_OK is in all three logs, or the level allows it to be lost: at
// async, or at semi-sync in a degraded interval that the master had recorded; what the consumer has seen likewise; every
// message once, where it was answered, nothing that was not sent, in the order of the sends; the three logs, queues and
// committed offsets are equal, and queues and index are those of the log.
//
// Everything lives in a temporary directory, on free ports; only own processes are signalled. Full disks are small
// volumes of their own: without root they are left out, which the report says.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

type options struct {
	mqx     string
	seed    uint64
	rounds  int // 0: as many as the time allows
	minutes float64
	steps   int
	levels  *regexp.Regexp
	only    *regexp.Regexp // kinds of steps
	each    bool           // kinds of steps in turn
	apache  bool
	verbose bool
	keep    string
	out     io.Writer
}

func main() {
	o := options{out: os.Stdout}
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the first round; the next ones follow")
	flag.IntVar(&o.rounds, "rounds", 0, "number of rounds")
	flag.Float64Var(&o.minutes, "minutes", 5, "length of the run where -rounds is not given")
	flag.IntVar(&o.steps, "steps", 4, "steps of a round")
	levels := flag.String("levels", "", "regular expression: levels that are taken, as `semi-sync flushed`")
	only := flag.String("only", "", "regular expression: kinds of steps that are taken")
	flag.BoolVar(&o.each, "each", false, "take the kinds of steps in turn, instead of by chance")
	flag.BoolVar(&o.apache, "apache", false, "brokers of Apache")
	flag.BoolVar(&o.verbose, "v", false, "print every step, and what the tools say")
	flag.StringVar(&o.keep, "keep", "", "directory that gets the files of rounds with findings")
	flag.Parse()
	var err, err2 error
	o.levels, err = regexp.Compile(*levels)
	o.only, err2 = regexp.Compile(*only)
	if err = errors.Join(err, err2); flag.NArg() != 1 {
		err = errors.Join(err, errors.New("usage: go run ./hachaos [-minutes N] [-rounds N] [-seed N] [-apache] MQX"))
	}
	o.mqx = flag.Arg(0)
	if err == nil {
		ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer cancel()
		err = chaos(ctx, &o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// totals are what a run went through.
type totals struct {
	rounds, failed                     int
	sent, acked, unsure, read          int // messages; unsure: stored, and not acknowledged
	lostAsync, lostDegraded, lost      int
	goneAsync, goneDegraded, gone      int // seen by the consumer
	promotions, cuts, resyncs, rebuilt int
	steps                              map[string]int
	load                               time.Duration
	degradedBytes                      int64
	silent                             time.Duration // the longest time without an answer
	left                               []string
}

func (t *totals) add(o *totals) {
	t.rounds++
	t.sent, t.acked, t.unsure, t.read = t.sent+o.sent, t.acked+o.acked, t.unsure+o.unsure, t.read+o.read
	t.lostAsync, t.lostDegraded, t.lost = t.lostAsync+o.lostAsync, t.lostDegraded+o.lostDegraded, t.lost+o.lost
	t.goneAsync, t.goneDegraded, t.gone = t.goneAsync+o.goneAsync, t.goneDegraded+o.goneDegraded, t.gone+o.gone
	t.promotions, t.cuts, t.resyncs, t.rebuilt = t.promotions+o.promotions, t.cuts+o.cuts, t.resyncs+o.resyncs, t.rebuilt+o.rebuilt
	t.load, t.degradedBytes, t.silent = t.load+o.load, t.degradedBytes+o.degradedBytes, max(t.silent, o.silent)
	for k, n := range o.steps {
		t.steps[k] += n
	}
	for _, k := range o.left {
		if !slices.Contains(t.left, k) {
			t.left = append(t.left, k)
		}
	}
}

func (t *totals) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d rounds, %d with findings; %s of load, master and two slaves\n", t.rounds, t.failed, t.load.Round(time.Second))
	fmt.Fprintf(&b, "messages: %d sent, %d answered SEND_OK, %d answered FLUSH_SLAVE_TIMEOUT, %d read by the consumer\n", t.sent, t.acked, t.unsure, t.read)
	fmt.Fprintf(&b, "acknowledged and lost: %d; at async %d, at semi-sync within a recorded degraded interval %d\n", t.lost, t.lostAsync, t.lostDegraded)
	fmt.Fprintf(&b, "seen and gone later: %d; at async %d, within a recorded interval %d\n", t.gone, t.goneAsync, t.goneDegraded)
	fmt.Fprintf(&b, "%d promotions, %d links cut, %d slaves mended by resync, %d made anew by hand; %d bytes in degraded intervals; longest time without an answer %s\n",
		t.promotions, t.cuts, t.resyncs, t.rebuilt, t.degradedBytes, t.silent.Round(10*time.Millisecond))
	fmt.Fprint(&b, "steps:")
	for _, k := range slices.Sorted(maps.Keys(t.steps)) {
		fmt.Fprintf(&b, " %s %d", k, t.steps[k])
	}
	fmt.Fprintln(&b)
	if len(t.left) > 0 {
		fmt.Fprintf(&b, "left out: %s\n", strings.Join(t.left, ", "))
	}
	return b.String()
}

// chaos runs rounds until the time is over. An error means that there were findings.
func chaos(ctx context.Context, o *options) error {
	began := time.Now()
	total := totals{steps: map[string]int{}}
	var failed []uint64
	for n := 0; ctx.Err() == nil; n++ {
		if o.rounds > 0 && n >= o.rounds || o.rounds == 0 && time.Since(began).Minutes() >= o.minutes {
			break
		}
		seed := o.seed + uint64(n)
		p := newPlan(seed, o)
		fmt.Fprintf(o.out, "%s seed %d: %s\n", time.Since(began).Round(time.Second), seed, &p)
		t, findings := runRound(ctx, o, &p)
		if ctx.Err() != nil {
			break
		}
		total.add(t)
		fmt.Fprintf(o.out, "    %d acknowledged, lost %d (async %d, degraded %d), seen and gone %d\n", t.acked, t.lost, t.lostAsync, t.lostDegraded, t.gone)
		for _, f := range findings {
			fmt.Fprintf(o.out, "    FINDING %s\n", f)
		}
		if len(findings) > 0 {
			total.failed++
			failed = append(failed, seed)
		}
	}
	fmt.Fprint(o.out, &total)
	if len(failed) > 0 {
		return fmt.Errorf("rounds with findings: seeds %v", failed)
	}
	return nil
}
