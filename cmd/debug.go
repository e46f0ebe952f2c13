package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/bundle"
	"mqx/internal/render"
	"mqx/internal/words"
)

func newDebugCmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{Use: "debug", Short: "What somebody else needs to find a fault"}, newDebugBundleCmd(a))
}

var bundleSchema = render.Schema{Kind: "BundleFileList", Name: "file", Fields: []render.Field{
	{Name: "file", Whole: true, Doc: "file in the bundle"},
	{Name: "bytes", Kind: render.Size, Doc: "its length; unknown where it is not there"},
	{Name: "cut", Kind: render.Size, Doc: "bytes at its front that were left out, since it was too long"},
	{Name: "error", Doc: "why it is not there; unknown where it is"},
}}

// bundleOptions are the flags of mqx debug bundle.
type bundleOptions struct {
	target  targetFlags
	output  outputFlags
	file    string
	store   string
	config  []string
	logs    []string
	pprof   []string
	metrics []string
	offline bool
}

func newDebugBundleCmd(a *app) *cobra.Command {
	o := &bundleOptions{}
	c := &cobra.Command{
		Use:   "bundle",
		Short: "Gather what is needed to find a fault into one file",
		Long: `Use it before you ask somebody for help. The file (tar.gz) has the brokers and name
servers of the cluster with configuration and runtime information, topics, groups and
findings, and of this machine what you name: a store directory (its shape, no message),
configuration files, logs, profiles and metrics of running servers. Of the server that has
the store directory open (--store, else that of the context) its log files are taken along,
and its profiles where it was started with --pprof. Passwords, keys and tokens are taken
out; message bodies are never in it. Each part is bounded to 4 MiB, of a longer log the end
is kept. What cannot be had is listed with its reason; exit code 3 says that something is
missing that was asked for.`,
		Example: `  mqx debug bundle -O mqx-bundle.tar.gz
  mqx debug bundle -O b.tar.gz --store /var/lib/mqx --config-file /etc/mqx/broker.conf --log /var/log/mqx/broker.log
  mqx debug bundle -O b.tar.gz --offline --pprof 127.0.0.1:6060
  mqx debug bundle -O b.tar.gz -o json | jq -r '.items[] | select(.error) | .file'`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return runDebugBundle(a, c, o) },
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		f.StringVar(&o.store, "store", "", "store directory on this machine (default: that of the context)")
		f.StringArrayVar(&o.config, "config-file", nil, "configuration file to take along; may be repeated")
		f.StringArrayVar(&o.logs, "log", nil, "log file to take along; may be repeated")
		f.StringArrayVar(&o.pprof, "pprof", nil, "address at which a server serves its profiles (--pprof of the server); may be repeated")
		f.StringArrayVar(&o.metrics, "metrics", nil, "address or URL of metrics in text form; may be repeated")
		f.BoolVar(&o.offline, "offline", false, "ask no name server and no broker")
	})
	grouped(c, groupOutput, func(f *pflag.FlagSet) {
		f.StringVarP(&o.output.form, "output", "o", "table", "table, wide, json, ndjson, yaml, csv, name, template=TEXT; help lists the fields")
		f.StringVarP(&o.file, "output-file", "O", "", "the bundle to write, a tar.gz; - is stdout")
	})
	return c
}

func runDebugBundle(a *app, c *cobra.Command, o *bundleOptions) error {
	if err := o.output.check(); err != nil {
		return err
	}
	if o.output.help() {
		return a.printRows(&o.output, bundleSchema, func() ([][]any, error) { return nil, nil })
	}
	if o.file == "" {
		return usagef("cannot run %q: --output-file is missing", c.CommandPath()).because("it says where the bundle goes").try("-O mqx-bundle.tar.gz")
	}
	to := &outputFlags{file: o.file}
	out, closeOut, err := a.open(to)
	if err != nil {
		return err
	}
	if o.file != "-" {
		if err := os.Chmod(o.file, 0o600); err != nil {
			return errors.Join(fmt.Errorf("cannot close the bundle to others: %w", err), closeOut())
		}
	}
	g := &gatherer{app: a, cmd: c, o: o, w: bundle.New(out, time.Now())}
	err = errors.Join(g.all(), g.w.Close(), closeOut())
	if err != nil || o.file == "-" {
		return err
	}
	if err := a.printRows(&o.output, bundleSchema, func() ([][]any, error) { return g.rows(), nil }); err != nil {
		return err
	}
	if len(g.missing) > 0 && a.global.partial != "ok" {
		return silentError{ExitPartial}
	}
	return nil
}

// missingPart is a file that could not be had.
type missingPart struct {
	name string
	err  error
}

// gatherer fills a bundle.
type gatherer struct {
	app     *app
	cmd     *cobra.Command
	o       *bundleOptions
	w       *bundle.Writer
	missing []missingPart
	absent  []missingPart // nobody asked for it by name
	full    error
}

func (g *gatherer) rows() [][]any {
	var out [][]any
	for _, e := range g.w.Entries() {
		out = append(out, []any{e.Name, e.Bytes, e.Cut, nil})
	}
	for _, m := range g.notThere() {
		out = append(out, []any{m.name, nil, nil, oneLine(m.err.Error())})
	}
	return out
}

// notThere are the parts that could not be had.
func (g *gatherer) notThere() []missingPart { return slices.Concat(g.missing, g.absent) }

// all gathers the parts. Only a bundle that cannot be written, or is full, is an error.
func (g *gatherer) all() error {
	g.about()
	if !g.o.offline {
		g.cluster()
	}
	g.machine()
	var text bytes.Buffer
	for _, m := range g.notThere() {
		fmt.Fprintf(&text, "%s: %s\n", m.name, oneLine(m.err.Error()))
	}
	g.text("missing.txt", text.Bytes(), nil)
	return g.full
}

// text adds a text, or notes why it is not there.
func (g *gatherer) text(name string, text []byte, err error) {
	if err == nil {
		err = g.w.Text(name, text)
	}
	g.note(name, err)
}

func (g *gatherer) note(name string, err error) {
	if err == nil || g.full != nil {
		return
	}
	if errors.Is(err, bundle.ErrFull) {
		g.full = err
		return
	}
	g.missing = append(g.missing, missingPart{name, err})
}

// about is the machine and this binary.
func (g *gatherer) about() {
	v, rev, when := buildVersion()
	var b bytes.Buffer
	fmt.Fprintf(&b, "time %s\nmqx %s %s %s\ngo %s\nplatform %s/%s, %s\n", time.Now().UTC().Format(time.RFC3339), v, rev, when,
		runtime.Version(), runtime.GOOS, runtime.GOARCH, words.Count(runtime.NumCPU(), "processor"))
	if r, err := g.app.resolve(&g.o.target); err == nil {
		fmt.Fprintf(&b, "name servers %s (from %s)\n", strings.Join(r.nameServers.value, ";"), r.nameServers.source)
		if g.o.store == "" {
			g.o.store = r.store.value
		}
	}
	g.text("about.txt", b.Bytes(), nil)
}

// clusterReads are the commands whose records go into a bundle.
var clusterReads = map[string][]string{
	"cluster/topics.json":     {"admin", "topic", "ls", "--all"},
	"cluster/groups.json":     {"admin", "group", "ls"},
	"cluster/join-check.json": {"admin", "cluster", "join-check"},
}

// cluster is what name servers and brokers tell.
func (g *gatherer) cluster() {
	ctx, cancel := g.app.deadline(g.cmd, true)
	defer cancel()
	client, err := g.app.adminClient(ctx, &g.o.target)
	if err != nil {
		g.note("cluster", err)
		return
	}
	defer func() { _ = client.Close() }()
	if _, err := client.Cluster(ctx); err != nil { // nothing else would answer
		g.note("cluster", err)
		return
	}
	g.configs(ctx, client)
	for _, name := range slices.Sorted(maps.Keys(clusterReads)) {
		g.command(name, clusterReads[name])
	}
}

// configs are the configurations and runtime information of brokers and name servers.
func (g *gatherer) configs(ctx context.Context, client *admin.Client) {
	brokers, errs, err := client.BrokerConfigs(ctx, admin.Target{}, true)
	if err != nil {
		g.note("brokers", err)
		return
	}
	servers, serverErrs := client.NameServerConfigs(ctx)
	for _, e := range append(errs, serverErrs...) {
		g.note("servers/"+fileName(e.Broker, e.Addr)+".conf", e.Err)
	}
	for _, s := range append(brokers, servers...) {
		g.text("servers/"+fileName(s.Name, s.Addr)+".conf", bundle.Properties(s.Values), nil)
	}
	for _, s := range brokers {
		info, err := client.RuntimeInfo(ctx, s.Addr)
		g.text("servers/"+fileName(s.Name, s.Addr)+".runtime", bundle.Properties(info), err)
	}
}

// fileName is the name of a server as a file.
func fileName(name, addr string) string {
	return strings.Trim(strings.NewReplacer(":", "_", "/", "_", "[", "", "]", "").Replace(name+"-"+addr), "-")
}

// command adds the records of a command of mqx, run with the target of this one.
func (g *gatherer) command(name string, args []string) {
	full := append(append([]string{"mqx"}, args...), "-o", "json", "--partial", "ok")
	g.o.addTarget(g.cmd, &full)
	g.run(name, strings.Join(args, " "), full)
}

// addTarget repeats the flags that say which cluster is meant.
func (o *bundleOptions) addTarget(c *cobra.Command, args *[]string) {
	target := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&targetFlags{}).add(target)
	target.VisitAll(func(f *pflag.Flag) {
		given := c.Flags().Lookup(f.Name)
		if given == nil || !given.Changed {
			return
		}
		if list, ok := given.Value.(pflag.SliceValue); ok {
			for _, v := range list.GetSlice() {
				*args = append(*args, "--"+f.Name+"="+v)
			}
			return
		}
		text := given.Value.String()
		if s, ok := given.Value.(*sourceFlag); ok {
			text = string(s.source) // String hides a secret
		}
		*args = append(*args, "--"+f.Name+"="+text)
	})
	for _, name := range []string{"context", "timeout"} {
		if f := c.Flags().Lookup(name); f != nil && f.Changed {
			*args = append(*args, "--"+name+"="+f.Value.String())
		}
	}
}

// run adds what a command of mqx prints, called what in its failure: arguments may hold
// secrets. Findings are no failure of it.
func (g *gatherer) run(name, what string, args []string) {
	var out, errOut bytes.Buffer
	code := Execute(g.cmd.Context(), args, Streams{In: strings.NewReader(""), Out: &out, Err: &errOut})
	var err error
	if code != ExitOK && code != ExitCheckFailed && code != ExitPartial {
		err = fmt.Errorf("%s ended with %d: %s", what, code, oneLine(errOut.String()))
	}
	g.text(name, out.Bytes(), err)
}

// machine is what the flags name on this machine.
func (g *gatherer) machine() {
	if g.o.store != "" {
		for _, show := range []string{"summary", "topics", "files", "parts"} {
			g.run("store/"+show+".json", "store info", []string{"mqx", "store", "info", g.o.store, "--show", show, "-o", "json"})
		}
	}
	for i, path := range g.o.config {
		g.tail(fmt.Sprintf("config/%d-%s", i, filepath.Base(path)), path)
	}
	for i, path := range g.o.logs {
		g.tail(fmt.Sprintf("logs/%d-%s", i, filepath.Base(path)), path)
	}
	g.servers()
	for _, addr := range g.o.pprof {
		g.profiles(addr)
	}
	for _, addr := range g.o.metrics {
		if !strings.Contains(addr, "://") {
			addr = "http://" + addr + "/metrics"
		}
		g.fetch("metrics/"+strconv.Itoa(len(g.w.Entries()))+".txt", addr, true)
	}
}

// profiles are those of a server.
func (g *gatherer) profiles(addr string) {
	for _, p := range []string{"goroutine?debug=2", "heap", "mutex", "block", "allocs", "profile?seconds=1"} {
		name, _, _ := strings.Cut(p, "?")
		g.fetch("profiles/"+fileName("", addr)+"/"+name, "http://"+addr+"/debug/pprof/"+p, false)
	}
}

// tail adds the end of a file.
func (g *gatherer) tail(name, path string) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("cannot take %q along: it is no regular file", path)
	}
	if err != nil {
		g.note(name, err)
		return
	}
	f, err := os.Open(path)
	if err != nil {
		g.note(name, err)
		return
	}
	defer func() { _ = f.Close() }() // it was read
	g.note(name, g.w.Tail(name, f, info.Size()))
}

// fetchTime bounds one answer of a server for profiles or metrics.
const fetchTime = 5 * time.Second

// fetch adds what a server answers.
func (g *gatherer) fetch(name, from string, text bool) {
	data, err := get(g.cmd.Context(), from)
	switch {
	case err != nil:
		g.note(name, err)
	case text:
		g.text(name, data, nil)
	default:
		g.note(name, g.w.Blob(name, data))
	}
}

func get(ctx context.Context, from string) ([]byte, error) {
	if _, err := url.ParseRequestURI(from); err != nil {
		return nil, fmt.Errorf("cannot ask %q: %w", from, err)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("cannot ask %q: %w", from, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("cannot ask %q: %w", from, err)
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("cannot ask %q: %s", from, resp.Status)
	}
	return io.ReadAll(io.LimitReader(resp.Body, bundle.MaxFile))
}
