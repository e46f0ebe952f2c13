package cmd

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Every schema of a command stands in docs/output.md and has a golden file.
func TestEverySchemaIsListed(t *testing.T) {
	listed := map[string]bool{}
	for _, s := range allSchemas() {
		listed[s.Kind] = true
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			kind, ok := schemaKind(n)
			if !ok {
				return true
			}
			found++
			if !listed[kind] {
				t.Errorf("%s: the schema of kind %s is in none of the lists of schemas of the tests", name, kind)
			}
			return true
		})
	}
	if found < 100 {
		t.Errorf("only %d schemas found", found)
	}
}

// schemaKind is the kind of a schema that is written down there.
func schemaKind(n ast.Node) (string, bool) {
	literal, ok := n.(*ast.CompositeLit)
	if !ok {
		return "", false
	}
	if of, ok := literal.Type.(*ast.SelectorExpr); !ok || of.Sel.Name != "Schema" {
		return "", false
	}
	for _, e := range literal.Elts {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		key, isName := pair.Key.(*ast.Ident)
		value, isText := pair.Value.(*ast.BasicLit)
		if isName && isText && key.Name == "Kind" {
			kind, err := strconv.Unquote(value.Value)
			return kind, err == nil
		}
	}
	return "", false
}

// Where scripts run mqx: a line of their own, with an exit code or without, or somewhere in a shell.
var (
	scriptRun = regexp.MustCompile(`^(! )?(?:exec mqx|exit (\d+)|plainly (\d+)|retry(?:gone)? (?:'[^']*'|\S+)|server \S+ (?:'[^']*'|\S+)|every|silent|agree) (.*)$`)
	shellRun  = regexp.MustCompile(`(! )?mqx ([a-z][^|;>)]*)`)
)

// notServed are verbs of what no mqx broker serves, so that no script can see them succeed: they run against Apache's in e2e.
var notServed = map[string]string{
	"mqx admin acl":            "ACL 2.0",
	"mqx admin controller":     "controllers",
	"mqx admin ha get":         "controllers",
	"mqx admin broker create":  "broker containers",
	"mqx admin broker rm":      "broker containers",
	"mqx admin broker promote": "controllers",
	"mqx admin queue verify":   "queues in RocksDB",
	"mqx admin broker export":  "what is kept in RocksDB",
}

// scriptRuns are the commands that a script runs, and whether the script expects them to end well.
func scriptRuns(text string) (runs []string, well []bool) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if m := scriptRun.FindStringSubmatch(line); m != nil {
			code := m[2] + m[3]
			m[4] = strings.TrimPrefix(m[4], "mqx ")
			runs = append(runs, m[4])
			well = append(well, m[1] == "" && (code == "" || code == "0" || code == "3" || code == "6"))
			continue
		}
		if !strings.HasPrefix(line, "exec sh") && !strings.HasPrefix(line, "! exec sh") {
			continue
		}
		for _, m := range shellRun.FindAllStringSubmatch(line, -1) {
			runs = append(runs, m[2])
			well = append(well, m[1] == "" && !strings.HasPrefix(line, "!"))
		}
	}
	return runs, well
}

// Every verb of mqx admin is run by a script of testdata/script, once as it is meant to be and once with a mistake.
func TestEveryVerbHasAScript(t *testing.T) {
	scripts, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	root := newRootCmd(&app{env: func(string) string { return "" }})
	right, wrong := map[string]bool{}, map[string]bool{}
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		runs, well := scriptRuns(string(text))
		for i, run := range runs {
			c, _, err := root.Find(strings.Fields(run))
			switch {
			case err != nil:
			case well[i]:
				right[c.CommandPath()] = true
			default:
				wrong[c.CommandPath()] = true
			}
		}
	}
	seen := 0
	eachCommand(root, func(c *cobra.Command) {
		path := c.CommandPath()
		if c.Hidden || isGroup(c) || c.Name() == "help" || !strings.HasPrefix(path, "mqx admin ") {
			return
		}
		seen++
		foreign := false
		for prefix := range notServed {
			foreign = foreign || strings.HasPrefix(path, prefix)
		}
		if !right[path] && !foreign {
			t.Errorf("no script runs %q", path)
		}
		if !wrong[path] {
			t.Errorf("no script runs %q with a mistake", path)
		}
	})
	if seen < 100 {
		t.Errorf("only %d verbs looked at", seen)
	}
}
