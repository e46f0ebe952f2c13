package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/client"
	"mqx/internal/render"
	"mqx/internal/words"
)

// benchOptions are the flags of mqx bench.
type benchOptions struct {
	pop    bool
	target targetFlags
	output outputFlags

	topics      []string
	brokers     []string
	queues      int
	connections int
	inFlight    int
	size        sizeFlag
	batch       int
	delayLevel  int
	delay       time.Duration
	transaction bool
	rollbacks   int
	count       int64
	duration    time.Duration
	warmup      time.Duration
	runs        int
	verify      bool
	waitStore   bool
	confirm     string
}

var benchSchema = render.Schema{Kind: "BenchReportList", Name: "run", Fields: []render.Field{
	{Name: "kind", Doc: "what was measured: produce, consume or route"},
	{Name: "run", Doc: "number of the run; median is the median of each column over the runs"},
	{Name: "perSecond", Title: "PER SECOND", Kind: render.Float, Doc: "messages (or queries) a second"},
	{Name: "p50Ms", Title: "P50", Kind: render.Duration, Doc: "latency of a request that half of them stay below"},
	{Name: "p99Ms", Title: "P99", Kind: render.Duration, Doc: "latency that 99 % stay below"},
	{Name: "p999Ms", Title: "P99.9", Kind: render.Duration, Doc: "latency that 99.9 % stay below"},
	{Name: "maxMs", Title: "MAX", Kind: render.Duration, Doc: "longest latency"},
	{Name: "messages", Kind: render.Int, Doc: "messages (or queries) in the time measured"},
	{Name: "errors", Kind: render.Int, Tone: render.BadAbove(0), Doc: "requests that failed"},
	{Name: "lost", Kind: render.Int, Tone: render.BadAbove(0), Doc: "messages acknowledged and not found again; unknown when not verified"},
	{Name: "duplicated", Title: "TWICE", Kind: render.Int, Tone: render.BadAbove(0), Doc: "messages found more than once"},
	{Name: "outOfOrder", Title: "DISORDER", Kind: render.Int, Tone: render.BadAbove(0), Doc: "messages found before one that was sent earlier"},
	{Name: "corrupt", Kind: render.Int, Tone: render.BadAbove(0), Doc: "messages whose body is not what was sent"},
	{Name: "elapsedMs", Title: "ELAPSED", Kind: render.Duration, Wide: true, Doc: "time measured"},
	{Name: "requests", Kind: render.Int, Wide: true, Doc: "requests in that time"},
	{Name: "bytes", Kind: render.Size, Wide: true, Doc: "bytes of bodies in that time"},
	{Name: "p90Ms", Title: "P90", Kind: render.Duration, Wide: true, Doc: "latency that 90 % stay below"},
	{Name: "meanMs", Title: "MEAN", Kind: render.Duration, Wide: true, Doc: "mean latency"},
	{Name: "checked", Kind: render.Int, Wide: true, Doc: "messages that were read back and checked"},
	{Name: "cpuSecondsPer100k", Title: "CPU s/100k", Kind: render.Float, Wide: true, Doc: "CPU seconds of the load generator for 100,000 messages"},
	{Name: "history", Kind: render.Series, Doc: "messages (or queries) a second, second by second of the run; of the runs for the median"},
}}

const benchTopic = "MQX_BENCH"

func newBenchCmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{
		Use:   "bench",
		Short: "Put load on a cluster and measure it",
		Long: `Loads a cluster, mqx's own or Apache's, over pipelined connections, and checks
what it did: every message carries its producer and number, is read back, and
losses, duplicates, breaks of order and changed bodies are counted. Any of them
ends in exit code 6.`,
		Example: `  mqx bench produce --duration 30s --size 1KiB --in-flight 64
  mqx bench consume -t MQX_BENCH
  mqx bench route --connections 16 --runs 3 -o json`,
	},
		newBenchKindCmd(a, "produce", "Send messages at full speed", client.LoadProduce),
		newBenchKindCmd(a, "consume", "Pull messages at full speed, from the start of all queues", client.LoadConsume),
		newBenchKindCmd(a, "route", "Ask the name servers for routes at full speed", client.LoadRoute),
	)
}

type loadFunc func(context.Context, client.LoadConfig) (*client.LoadReport, error)

func newBenchKindCmd(a *app, kind, short string, run loadFunc) *cobra.Command {
	o := &benchOptions{size: 1024}
	c := &cobra.Command{
		Use:     kind,
		Short:   short,
		Example: "  mqx bench " + kind + " --duration 10s --runs 3",
		Args:    exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			if o.pop {
				return runBench(a, c, o, kind, client.LoadPop)
			}
			return runBench(a, c, o, kind, run)
		},
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		f.StringArrayVarP(&o.topics, "topic", "t", []string{benchTopic}, "topic to load; may be repeated")
		if kind != "route" {
			f.StringArrayVarP(&o.brokers, "broker", "b", nil, "load this broker only, by name or address; may be repeated (default: those of the route)")
			f.IntVar(&o.queues, "queues", 0, "queues to use of each topic and broker (default: all)")
		}
	})
	grouped(c, groupLoad, func(f *pflag.FlagSet) {
		f.IntVar(&o.connections, "connections", 4, "connections to each server")
		f.IntVar(&o.inFlight, "in-flight", 64, "requests under way at a time, over all connections")
		f.Int64Var(&o.count, "count", 0, "end after this many messages or queries")
		f.DurationVar(&o.duration, "duration", 10*time.Second, "end after this time; with --count alone there is no such end")
		f.DurationVar(&o.warmup, "warmup", time.Second, "time before measuring begins")
		f.IntVar(&o.runs, "runs", 1, "repeat, and print the median as well")
		if kind == "produce" {
			f.Var(&o.size, "size", fmt.Sprintf("size of a message body, at least %s: what the check needs", words.Count(client.LoadHeaderLen, "byte")))
			f.BoolVar(&o.waitStore, "wait-store", true, "ask to be answered when the message is as safe as the broker makes it")
			f.BoolVar(&o.verify, "verify", true, "read everything back and check it")
		}
		switch kind {
		case "produce":
			f.IntVar(&o.batch, "batch", 1, "messages in a request")
			f.IntVar(&o.delayLevel, "delay-level", 0, "delay each message by this level of the broker's table; levels of up to a minute can be read back")
			f.DurationVar(&o.delay, "delay", 0, "send timer messages, each to come after this time; reading back waits for them")
			f.BoolVar(&o.transaction, "transaction", false, "send each message in a transaction: a half message and its end, two requests")
			f.IntVar(&o.rollbacks, "rollback-share", 0, "percent of the transactions to roll back; the others are committed")
		case "consume":
			f.IntVar(&o.batch, "batch", 32, "messages asked for in a request")
			f.BoolVar(&o.verify, "verify", false, "check the numbers that mqx bench produce wrote")
			f.BoolVar(&o.pop, "pop", false, "pop and acknowledge, as a group of its own, until nothing is left")
		}
	})
	o.output.add(c)
	if kind == "produce" {
		addConfirm(c, &o.confirm, "the topic")
	}
	if kind != "route" {
		completeFlag(c, "broker", completeBrokers(a, &o.target))
	}
	return c
}

func (o *benchOptions) check(c *cobra.Command) error {
	if c.Flags().Changed("count") && !c.Flags().Changed("duration") {
		o.duration = 0
	}
	for _, n := range []struct {
		flag  string
		value int64
		least int64
	}{
		{"connections", int64(o.connections), 1},
		{"in-flight", int64(o.inFlight), 1},
		{"runs", int64(o.runs), 1},
		{"count", o.count, 0},
		{"queues", int64(o.queues), 0},
	} {
		if n.value < n.least {
			return usagef("cannot use --%s %d: it must be at least %d", n.flag, n.value, n.least)
		}
	}
	if o.duration < 0 {
		return usagef("cannot use --duration %s: it must not be negative", o.duration)
	}
	if o.warmup < 0 {
		return usagef("cannot use --warmup %s: it must not be negative", o.warmup)
	}
	if c.Flags().Lookup("batch") != nil && o.batch < 1 {
		return usagef("cannot use --batch %d: it must be at least 1", o.batch)
	}
	if err := o.checkTransaction(); err != nil {
		return err
	}
	if o.size < client.LoadHeaderLen {
		return usagef("cannot use --size %d: a body holds at least the %s that the check needs", o.size, words.Count(client.LoadHeaderLen, "byte")).try("--size %d", client.LoadHeaderLen)
	}
	if o.duration == 0 && o.count == 0 {
		return usagef("cannot begin a load without an end: it has neither a time nor a number of messages").try("--duration 10s, or --count N")
	}
	return nil
}

func (o *benchOptions) checkTransaction() error {
	switch {
	case o.rollbacks < 0 || o.rollbacks > 100:
		return usagef("cannot use --rollback-share %d: it is a percentage", o.rollbacks)
	case o.rollbacks > 0 && !o.transaction:
		return usagef("cannot use --rollback-share without --transaction")
	case o.transaction && (o.batch > 1 || o.delayLevel > 0 || o.delay > 0):
		return usagef("cannot use --transaction with --batch, --delay-level or --delay: half messages are single and not delayed")
	case o.delay < 0 || o.delay > 0 && (o.delayLevel > 0 || o.batch > 1 || o.delay < time.Millisecond):
		return usagef("cannot use --delay %v: it is at least a millisecond, and goes neither with --delay-level nor with --batch", o.delay)
	}
	return nil
}

func runBench(a *app, c *cobra.Command, o *benchOptions, kind string, run loadFunc) error {
	if err := o.check(c); err != nil {
		return err
	}
	if kind == "produce" && !o.output.help() {
		if err := a.mayWrite(&o.target, o.confirm, strings.Join(o.topics, ",")); err != nil {
			return err
		}
	}
	out, closeOut, err := a.open(&o.output)
	if err != nil {
		return err
	}
	w, err := a.renderer(out, &o.output, benchSchema, false)
	if err != nil {
		return err
	}
	if w.Help() {
		return w.Close()
	}
	cfg, err := a.clientConfig(c.Context(), &o.target)
	if err != nil {
		return err
	}
	ctx, cancel := a.deadline(c, false)
	defer cancel()
	if err := o.findBrokers(ctx, a); err != nil {
		return errors.Join(a.withTimeout(ctx, err), closeOut())
	}
	var reports []*client.LoadReport
	for n := range o.runs {
		h := &history{}
		r, err := run(ctx, o.load(a, cfg, n, h))
		if err != nil {
			return errors.Join(a.withTimeout(ctx, err), w.Close(), closeOut())
		}
		reports = append(reports, r)
		a.errorKinds(r)
		if err := w.Row(benchRow(fmt.Sprint(n+1), r, h.rates)...); err != nil {
			return err
		}
	}
	if len(reports) > 1 {
		if err := w.Row(benchRow("median", median(reports), perSecond(reports))...); err != nil {
			return err
		}
	}
	if err := errors.Join(w.Close(), closeOut()); err != nil {
		return err
	}
	return verdict(reports)
}

// findBrokers makes addresses of the names among the brokers: an address has a port.
func (o *benchOptions) findBrokers(ctx context.Context, a *app) error {
	if !slices.ContainsFunc(o.brokers, isBrokerName) {
		return nil
	}
	c, err := a.adminClient(ctx, &o.target)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	known, err := c.Cluster(ctx)
	if err != nil {
		return err
	}
	var names []string
	masters := map[string]string{}
	for _, b := range known {
		if b.ID == 0 {
			names, masters[b.Name] = append(names, b.Name), b.Addr
		}
	}
	for i, name := range o.brokers {
		if !isBrokerName(name) {
			continue
		}
		addr, ok := masters[name]
		if !ok {
			return failf(ExitNotFound, "broker %s not found; known: %s", name, strings.Join(names, ", "))
		}
		o.brokers[i] = addr
	}
	return nil
}

func isBrokerName(text string) bool { return !strings.Contains(text, ":") }

func (o *benchOptions) load(a *app, cfg client.Config, run int, h *history) client.LoadConfig {
	return client.LoadConfig{
		Config: cfg, Brokers: o.brokers, Topics: o.topics, Queues: o.queues,
		InFlight: o.inFlight, Connections: o.connections, BodySize: int(o.size), Batch: o.batch, DelayLevel: o.delayLevel, Delay: o.delay,
		Transaction: o.transaction, RollbackShare: o.rollbacks,
		Count: o.count, Duration: o.duration, Warmup: o.warmup, WaitStore: o.waitStore, Verify: o.verify,
		Progress: func(p client.LoadProgress) {
			phase := ""
			if p.Warmup {
				phase = " (warm-up)"
			}
			h.add(p)
			a.note("run %d: %s%s, %d done, %s", run+1, p.Elapsed.Round(time.Second), phase, p.Messages, words.Count(p.Errors, "error"))
		},
	}
}

// history is the rate of a run, second by second.
type history struct {
	rates []float64
	last  client.LoadProgress
}

// maxHistory bounds what is kept of a run of many hours: then every second value goes.
const maxHistory = 4096

func (h *history) add(p client.LoadProgress) {
	if took := (p.Elapsed - h.last.Elapsed).Seconds(); took > 0 {
		h.rates = append(h.rates, math.Round(float64(p.Messages-h.last.Messages)/took))
	}
	h.last = p
	if len(h.rates) > maxHistory {
		for i := range maxHistory / 2 {
			h.rates[i] = h.rates[2*i]
		}
		h.rates = h.rates[:maxHistory/2]
	}
}

// perSecond is the rate of each run.
func perSecond(reports []*client.LoadReport) []float64 {
	rates := make([]float64, len(reports))
	for i, r := range reports {
		rates[i] = math.Round(r.PerSecond)
	}
	return rates
}

// errorKinds says what failed, the most frequent first.
func (a *app) errorKinds(r *client.LoadReport) {
	kinds := slices.SortedFunc(maps.Keys(r.ErrorKinds), func(x, y string) int { return cmp.Compare(r.ErrorKinds[y], r.ErrorKinds[x]) })
	for _, k := range kinds {
		a.warn("%s failed: %s", words.Count(r.ErrorKinds[k], "request"), k)
	}
}

func benchRow(run string, r *client.LoadReport, rates []float64) []any {
	checked := func(n int64) any {
		if !r.Verified {
			return nil
		}
		return n
	}
	lost := checked(r.Lost)
	if r.LossUnknown {
		lost = nil
	}
	l := r.Latency
	return []any{
		r.Kind, run, r.PerSecond, l.P50, l.P99, l.P999, l.Max, r.Messages, r.Errors,
		lost, checked(r.Duplicated), checked(r.OutOfOrder), checked(r.Corrupt),
		r.Elapsed, r.Requests, r.Bytes, l.P90, l.Mean, checked(r.Checked), r.CPUPer100k, rates,
	}
}

// median takes the median of each figure over the runs, the lower one of two.
func median(reports []*client.LoadReport) *client.LoadReport {
	pick := func(value func(*client.LoadReport) float64) float64 {
		values := make([]float64, len(reports))
		for i, r := range reports {
			values[i] = value(r)
		}
		slices.Sort(values)
		return values[(len(values)-1)/2]
	}
	count := func(value func(*client.LoadReport) int64) int64 {
		return int64(pick(func(r *client.LoadReport) float64 { return float64(value(r)) }))
	}
	latency := func(value func(client.Latency) time.Duration) time.Duration {
		return time.Duration(pick(func(r *client.LoadReport) float64 { return float64(value(r.Latency)) }))
	}
	m := &client.LoadReport{Kind: reports[0].Kind, Verified: reports[0].Verified}
	m.LossUnknown = slices.ContainsFunc(reports, func(r *client.LoadReport) bool { return r.LossUnknown })
	m.PerSecond = pick(func(r *client.LoadReport) float64 { return r.PerSecond })
	m.CPUPer100k = pick(func(r *client.LoadReport) float64 { return r.CPUPer100k })
	m.Messages = count(func(r *client.LoadReport) int64 { return r.Messages })
	m.Requests = count(func(r *client.LoadReport) int64 { return r.Requests })
	m.Bytes = count(func(r *client.LoadReport) int64 { return r.Bytes })
	m.Errors = count(func(r *client.LoadReport) int64 { return r.Errors })
	m.Checked = count(func(r *client.LoadReport) int64 { return r.Checked })
	m.Lost = count(func(r *client.LoadReport) int64 { return r.Lost })
	m.Duplicated = count(func(r *client.LoadReport) int64 { return r.Duplicated })
	m.OutOfOrder = count(func(r *client.LoadReport) int64 { return r.OutOfOrder })
	m.Corrupt = count(func(r *client.LoadReport) int64 { return r.Corrupt })
	m.Elapsed = time.Duration(pick(func(r *client.LoadReport) float64 { return float64(r.Elapsed) }))
	m.Latency = client.Latency{
		P50: latency(func(l client.Latency) time.Duration { return l.P50 }), P90: latency(func(l client.Latency) time.Duration { return l.P90 }),
		P99: latency(func(l client.Latency) time.Duration { return l.P99 }), P999: latency(func(l client.Latency) time.Duration { return l.P999 }),
		Max: latency(func(l client.Latency) time.Duration { return l.Max }), Mean: latency(func(l client.Latency) time.Duration { return l.Mean }),
	}
	return m
}

// verdict: a loss is worse than an error, and an error is no success.
func verdict(reports []*client.LoadReport) error {
	var lost, twice, disorder, corrupt, failed int64
	for _, r := range reports {
		lost += r.Lost
		twice += r.Duplicated
		disorder += r.OutOfOrder
		corrupt += r.Corrupt
		failed += r.Errors
	}
	if lost+twice+disorder+corrupt > 0 {
		return failf(ExitCheckFailed, "the check failed: %d lost, %d duplicated, %d out of order, %d corrupt", lost, twice, disorder, corrupt)
	}
	if failed > 0 {
		return failf(ExitFailed, "%s failed", words.Count(failed, "request"))
	}
	return nil
}
