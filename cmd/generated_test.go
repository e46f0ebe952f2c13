package cmd

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/internal/render"
)

var update = flag.Bool("update", false, "write man/, completions/ and docs/output.md anew")

// The manual pages and completions in the tree are those of this binary.
func TestManAndCompletionsAreFresh(t *testing.T) {
	for dir, args := range map[string][]string{"man": {"man", "--dir"}, "completions": {"completion", "--dir"}} {
		kept := filepath.Join("..", dir)
		if *update {
			if err := os.RemoveAll(kept); err != nil {
				t.Fatal(err)
			}
			run(t, append(args, kept)...)
		}
		fresh := t.TempDir()
		run(t, append(args, fresh)...)
		if diff := cmp.Diff(readDir(t, fresh), readDir(t, kept)); diff != "" {
			t.Errorf("%s/ is not what mqx writes now: go test ./cmd -run Fresh -update (-fresh +kept):\n%.2000s", dir, diff)
		}
	}
}

func run(t *testing.T, args ...string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	code := Execute(t.Context(), append([]string{"mqx"}, args...), Streams{In: strings.NewReader(""), Out: &out, Err: &errOut})
	if code != ExitOK {
		t.Fatalf("mqx %v: exit code %d: %s", args, code, errOut.String())
	}
	return out.String()
}

func readDir(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(text)
	}
	return files
}

// schemas are the records of every command, by command; each has a file in testdata/golden, which the command above writes too.
var schemas = map[string][]render.Schema{
	"mqx produce":                              {sendSchema},
	"mqx consume":                              {messageSchema},
	"mqx bench produce, consume, route":        {benchSchema},
	"mqx admin topic ls":                       {topicListSchema},
	"mqx admin topic get --show queues":        {topicQueueSchema},
	"mqx admin topic get --show config":        {topicConfigSchema},
	"mqx admin topic get --show groups":        {topicGroupSchema},
	"mqx admin topic create, rm, spread, …":    {changeSchema},
	"mqx admin cluster roll":                   {rollSchema},
	"mqx admin cluster rebalance plan":         {rebalanceSchema},
	"mqx debug bundle":                         {bundleSchema},
	"mqx doctor cluster, host, store":          {doctorSchema},
	"mqx admin group ls":                       {groupListSchema},
	"mqx admin cluster join-check":             {joinCheckSchema},
	"mqx admin group get --show queues":        {groupQueueSchema},
	"mqx admin group get --show members":       {groupMemberSchema},
	"mqx admin group get --show subscriptions": {groupSubscriptionSchema},
	"mqx admin group get --show config":        {groupConfigSchema},
	"mqx admin config get":                     {configSchema},
	"mqx admin plan apply":                     {changeSchema},
	"mqx admin undo --list":                    {undoSchema},
	"mqx top --view groups":                    {topGroupSchema},
	"mqx explain":                              {explainSchema},
	"mqx logs errors":                          {logErrorsSchema},
	"mqx logs slow":                            {logSlowSchema},
	"mqx top --view queues":                    {topQueueSchema},
	"mqx top --view brokers":                   {topBrokerSchema},
	"mqx top --view topics":                    {topTopicSchema},
	"mqx top --view clients":                   {topClientSchema},
	"mqx context ls":                           {contextSchema},
	"mqx context show":                         {contextValueSchema},
	"mqx version":                              {versionSchema},
	"mqx store info":                           {storeInfoSchema},
	"mqx store info --show topics":             {storeTopicSchema},
	"mqx store info --show files":              {storeFileSchema},
	"mqx store info --show parts":              {storePartSchema},
	"mqx store log":                            {storeLogSchema},
	"mqx store get, find":                      {storeFindSchema},
	"mqx store queue DIR":                      {storeQueueSchema},
	"mqx store queue DIR TOPIC QUEUE":          {storeUnitSchema},
	"mqx store index DIR":                      {storeIndexSchema},
	"mqx store index DIR FILE":                 {storeEntrySchema},
	"mqx store offsets":                        {storeOffsetSchema},
	"mqx store config --show files":            {storeConfigSchema},
	"mqx store config --show topics":           {storeTopicConfigSchema},
	"mqx store config --show groups":           {storeGroupConfigSchema},
	"mqx store config --show delay":            {storeDelaySchema},
	"mqx store timer --show due":               {storeDueSchema},
	"mqx store timer --show summary":           {storeTimerSchema},
	"mqx store timer --show slots":             {storeSlotSchema},
	"mqx store timer --show units":             {storeTimerUnitSchema},
	"mqx store verify":                         {storeFindingSchema},
	"mqx store verify --coverage":              {storeCoverageSchema},
	"mqx store repair, rebuild":                {storeStepSchema},
	"mqx admin message export":                 {messageExportSchema},
	"mqx store export":                         {storeExportSchema},
	"mqx store import":                         {storeImportSchema},
	"mqx store diff":                           {storeDiffSchema},
	"mqx store preflight":                      {storePreflightSchema},
}

const fieldsMark = "<!-- the rest is written by `go test ./cmd -run Fresh -update` -->\n"

// docs/output.md lists every field of every record.
func TestOutputFieldsAreFresh(t *testing.T) {
	var b strings.Builder
	var names []string
	for name := range schemas {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		for _, s := range schemas[name] {
			fmt.Fprintf(&b, "\n## %s\n\nKind `%s`; `-o name` prints `%s`.\n\n| field | type | meaning |\n|---|---|---|\n", name, s.Kind, s.Name)
			for _, f := range s.Fields {
				fmt.Fprintf(&b, "| %s | %s | %s |\n", f.Name, f.Kind, f.Doc)
				if f.Doc == "" {
					t.Errorf("%s: field %q is not explained", name, f.Name)
				}
			}
		}
	}
	path := filepath.Join("..", "docs", "output.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, kept, ok := strings.Cut(string(text), fieldsMark)
	if !ok {
		t.Fatalf("%s has no line %q", path, fieldsMark)
	}
	if *update {
		if err := os.WriteFile(path, []byte(head+fieldsMark+b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		kept = b.String()
	}
	if diff := cmp.Diff(b.String(), kept); diff != "" {
		t.Errorf("%s is not what the commands print: go test ./cmd -run Fresh -update (-commands +file):\n%.2000s", path, diff)
	}
}

func eachCommand(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, sub := range c.Commands() {
		eachCommand(sub, f)
	}
}

// A flag means one thing everywhere: one name, one short form, one type (N114).
func TestFlagsMeanOneThing(t *testing.T) {
	type meaning struct{ short, command string }
	byName := map[string]meaning{}
	byShort := map[string]string{}
	root := newRootCmd(&app{env: func(string) string { return "" }})
	eachCommand(root, func(c *cobra.Command) {
		if strings.HasPrefix(c.CommandPath(), "mqx mqadmin") {
			return // Apache's options
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if m, ok := byName[f.Name]; ok && m.short != f.Shorthand {
				t.Errorf("--%s is -%s in %q and -%s in %q", f.Name, f.Shorthand, c.CommandPath(), m.short, m.command)
			}
			byName[f.Name] = meaning{f.Shorthand, c.CommandPath()}
			if f.Shorthand == "" {
				return
			}
			// -c is the cluster, and under start the configuration file.
			if f.Shorthand == "c" && f.Name == "config" && c.Name() == "start" {
				return
			}
			if other, ok := byShort[f.Shorthand]; ok && other != f.Name {
				t.Errorf("-%s is --%s in %q and --%s elsewhere", f.Shorthand, f.Name, c.CommandPath(), other)
			}
			byShort[f.Shorthand] = f.Name
		})
	})
	if len(byName) < 20 {
		t.Fatalf("only %d flags looked at", len(byName))
	}
}

// Every command says what it is for, and one that does something shows how.
func TestHelpIsComplete(t *testing.T) {
	root := newRootCmd(&app{env: func(string) string { return "" }})
	eachCommand(root, func(c *cobra.Command) {
		if c.Hidden || c.Name() == "help" {
			return
		}
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%q: its one line is %q", c.CommandPath(), c.Short)
		}
		if !isGroup(c) && !c.HasExample() {
			t.Errorf("%q has no examples", c.CommandPath())
		}
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && len(f.Annotations[groupAnnotation]) == 0 {
				t.Errorf("%q: --%s is in no group", c.CommandPath(), f.Name)
			}
		})
		help := run(t, append(strings.Fields(c.CommandPath())[1:], "--help")...)
		if !strings.HasPrefix(help, c.Short+"\n") || !strings.Contains(help, "USAGE\n") {
			t.Errorf("%q: help is %.200q", c.CommandPath(), help)
		}
	})
}
