package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"mqx/deploy"
)

func deployed(t *testing.T, name string) []byte {
	t.Helper()
	b, err := fs.ReadFile(deploy.Files, name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// listedSeries are the names that docs/metrics.md lists, with what a histogram makes of
// its own.
func listedSeries(t *testing.T) map[string]bool {
	t.Helper()
	doc, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_0-9]+)` \\| (\\w+) ").FindAllStringSubmatch(string(doc), -1) {
		out[m[1]] = true
		if m[2] == "histogram" {
			for _, end := range []string{"_bucket", "_sum", "_count"} {
				out[m[1]+end] = true
			}
		}
	}
	return out
}

// seriesIn are the series that a query names, and the labels that it matches.
var seriesIn = regexp.MustCompile(`\b(?:rocketmq|mqx|process|go)_[a-z_0-9]+\b`)

// goSeries are of the process: docs/metrics.md names them by their beginning.
var goSeries = regexp.MustCompile(`^(process|go)_`)

func checkQuery(t *testing.T, listed map[string]bool, where, query string) {
	t.Helper()
	names := seriesIn.FindAllString(query, -1)
	if len(names) == 0 && !strings.HasPrefix(query, "up{") {
		t.Errorf("%s: no series in %q", where, query)
	}
	for _, name := range names {
		if !listed[name] && !goSeries.MatchString(name) {
			t.Errorf("%s: %s is not in docs/metrics.md", where, name)
		}
	}
}

type dashboard struct {
	Title, UID    string
	SchemaVersion int
	Panels        []struct {
		ID      int
		Type    string
		Title   string
		GridPos struct{ H, W, X, Y int }
		Targets []struct{ RefID, Expr string }
		Source  struct{ Type, UID string } `json:"datasource"`
	}
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
}

// The dashboard is one that Grafana takes: panels with ids of their own that do not lie on
// each other, queries with series that exist, and variables for all that they use.
func TestDashboard(t *testing.T) {
	var d dashboard
	if err := json.Unmarshal(deployed(t, "grafana/mqx.json"), &d); err != nil {
		t.Fatal(err)
	}
	if d.Title == "" || d.UID == "" || d.SchemaVersion != 39 || len(d.Panels) < 20 {
		t.Errorf("%q %q %d, %d panels", d.Title, d.UID, d.SchemaVersion, len(d.Panels))
	}
	listed, variables := listedSeries(t), map[string]bool{"__rate_interval": true}
	for _, v := range d.Templating.List {
		variables[v.Name] = true
		if v.Type == "query" {
			checkQuery(t, listed, "variable "+v.Name, v.Definition)
		}
	}
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if p.ID == 0 || ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d %q", p.ID, p.Title)
		}
		ids[p.ID] = true
		g := p.GridPos
		if g.W < 1 || g.H < 1 || g.X < 0 || g.X+g.W > 24 {
			t.Errorf("%s: %+v", p.Title, g)
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other, taken := cells[[2]int{x, y}]; taken {
					t.Fatalf("%s lies on %s", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 || p.Source.Type != "prometheus" || p.Source.UID != "${datasource}" {
			t.Errorf("%s: %+v", p.Title, p)
		}
		for _, q := range p.Targets {
			checkQuery(t, listed, p.Title, q.Expr)
			for _, v := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(q.Expr, -1) {
				if !variables[v[1]] {
					t.Errorf("%s: there is no variable %s", p.Title, v[1])
				}
			}
		}
	}
}

// The alerts name series that exist, and cover what must be told.
func TestAlerts(t *testing.T) {
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr         string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(deployed(t, "prometheus/alerts.yml"), &rules); err != nil {
		t.Fatal(err)
	}
	listed, all := listedSeries(t), ""
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			checkQuery(t, listed, r.Alert, r.Expr)
			all += r.Expr + "\n"
			if r.Labels["severity"] == "" || r.Annotations["summary"] == "" {
				t.Errorf("%s: %+v", r.Alert, r)
			}
			if action := r.Annotations["action"]; strings.HasPrefix(action, "mqx ") {
				checkCommand(t, strings.Fields(regexp.MustCompile(`\{\{[^}]*\}\}`).ReplaceAllString(action, "X"))[1:])
			}
		}
	}
	for _, name := range []string{"rocketmq_consumer_lag_messages", "rocketmq_consumer_lag_latency_milliseconds", "rocketmq_messages_out_total", "mqx_disk_used_ratio", "mqx_send_refused_total", "mqx_broker_up", "mqx_consumer_lag_expires"} {
		if !strings.Contains(all, name) {
			t.Errorf("no alert on %s", name)
		}
	}
	var config struct {
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []any    `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal(deployed(t, "prometheus/prometheus.yml"), &config); err != nil || len(config.RuleFiles) != 1 || len(config.ScrapeConfigs) != 3 {
		t.Errorf("%+v %v", config, err)
	}
}

// checkCommand asks whether there is such a command with such flags.
func checkCommand(t *testing.T, args []string) {
	t.Helper()
	root := newRootCmd(&app{Streams: Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}, env: func(string) string { return "" }})
	c, rest, err := root.Find(args)
	if err != nil {
		t.Errorf("%v: %v", args, err)
		return
	}
	if err := c.ParseFlags(rest); err != nil && !errors.Is(err, pflag.ErrHelp) {
		t.Errorf("%v: %v", args, err)
		return
	}
	if err := c.ValidateArgs(c.Flags().Args()); err != nil {
		t.Errorf("%v: %v", args, err)
	}
}

// Units and manifests parse and run commands that exist.
func TestManifests(t *testing.T) {
	found := 0
	run := func(where string, args []string) {
		found++
		if len(args) == 0 {
			t.Errorf("%s runs nothing", where)
			return
		}
		checkCommand(t, args)
	}
	for _, unit := range systemdUnits {
		m := regexp.MustCompile(`(?m)^ExecStart=/usr/bin/mqx (.*)$`).FindSubmatch(deployed(t, "systemd/mqx-"+unit+".service"))
		if m == nil {
			t.Errorf("%s starts nothing", unit)
			continue
		}
		run(unit, strings.Fields(string(m[1])))
	}
	var compose struct {
		Services map[string]struct {
			Image   string
			Command []string
		}
	}
	if err := yaml.Unmarshal(deployed(t, "compose/compose.yaml"), &compose); err != nil {
		t.Fatal(err)
	}
	for name, s := range compose.Services {
		if strings.Contains(s.Image, "mqx") {
			run(name, s.Command)
		}
	}
	type pods struct {
		Template struct {
			Spec struct {
				Containers []struct{ Args []string }
			}
		}
	}
	for docs := yaml.NewDecoder(bytes.NewReader(deployed(t, "k8s/mqx.yaml"))); ; {
		var doc struct {
			APIVersion string `yaml:"apiVersion"`
			Kind       string
			Metadata   struct{ Name string }
			Spec       pods
		}
		if err := docs.Decode(&doc); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if doc.APIVersion == "" || doc.Kind == "" || doc.Metadata.Name == "" {
			t.Errorf("%+v", doc)
		}
		for _, c := range doc.Spec.Template.Spec.Containers {
			run(doc.Metadata.Name, c.Args)
		}
	}
	if found != 9 {
		t.Errorf("%d commands", found)
	}
}
