package cmd

import (
	"bytes"
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// operator begins a word that a shell reads as none.
const operator = "\x00"

// exampleWords are the words of a line of a shell; an operator is a word of its own.
func exampleWords(line string) []string {
	var words []string
	var word strings.Builder
	open, some := rune(0), false
	end := func() {
		if some {
			words = append(words, word.String())
		}
		word.Reset()
		some = false
	}
	for _, r := range line {
		switch {
		case open != 0 && r == open:
			open = 0
		case open != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			open, some = r, true
		case r == ' ' || r == '\t':
			end()
		case strings.ContainsRune("|;&<>()", r):
			end()
			words = append(words, operator+string(r))
		default:
			word.WriteRune(r)
			some = true
		}
	}
	end()
	return words
}

// exampleCommand is a command of mqx in an example, and the program behind it in the pipe.
type exampleCommand struct{ args, next []string }

// exampleCommands are the commands of mqx that stand in a text of lines of a shell.
func exampleCommands(text string) []exampleCommand {
	var out []exampleCommand
	text = strings.NewReplacer("\\\n", " ", ", mqx ", "; mqx ").Replace(text)
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
		if strings.HasPrefix(line, "#") {
			continue
		}
		words := exampleWords(line)
		for i := 0; i < len(words); i++ {
			if words[i] != "mqx" || i > 0 && !beginsCommand(words[i-1], i == 1) {
				continue
			}
			c := exampleCommand{}
			for i++; i < len(words) && !strings.HasPrefix(words[i], operator); i++ {
				c.args = append(c.args, words[i])
			}
			if i < len(words) && words[i] == operator+"|" {
				for i++; i < len(words) && !strings.HasPrefix(words[i], operator); i++ {
					c.next = append(c.next, words[i])
				}
			}
			if n := len(c.args); n > 0 && i < len(words) && words[i] == operator+">" && c.args[n-1] == "2" {
				c.args = c.args[:n-1]
			}
			i--
			out = append(out, c)
		}
	}
	return out
}

// beginsCommand reports whether a word of a line can be a command behind another one, the first of its line or not.
func beginsCommand(before string, first bool) bool {
	return strings.HasPrefix(before, operator) || slices.Contains([]string{"do", "then", "if", "!", "while", "until", "exec", "sudo", "$"}, before) ||
		first && strings.Contains(before, "=") && !strings.HasPrefix(before, "-")
}

// topicExamples are the lines of a help topic that are commands; what stands behind them in a column of its own is no part.
func topicExamples(write func(w io.Writer)) string {
	var text, out strings.Builder
	write(&text)
	for line := range strings.Lines(text.String()) {
		if command := strings.TrimLeft(line, " "); command != line && strings.HasPrefix(command, "mqx ") {
			command, _, _ = strings.Cut(strings.TrimSpace(command), "  ")
			out.WriteString(command + "\n")
		}
	}
	return out.String()
}

// serversOf are commands whose examples would go on for ever.
var serversOf = regexp.MustCompile(`^mqx (nameserver start|broker start|dev|top|man|completion|debug|context edit|wait .*|store .*|bench .*|exporter.*|logs.*|doctor.*)$`)

// missingHere is what a right example fails with where nothing is that it needs: files, secrets, a person.
var missingHere = regexp.MustCompile(`confirm|no terminal to ask|it is not there|no such file|cannot get the secret|why: EOF`)

// fieldWord is a field of an item in a program of jq.
var fieldWord = regexp.MustCompile(`(?:\.items\[\d*\]|^|[^\w.])\.([a-zA-Z]\w*)`)

// checkExample holds one command of an example to the flags and fields there are. Brokers are not reached.
func checkExample(t *testing.T, root *cobra.Command, where string, e exampleCommand) {
	t.Helper()
	if len(e.args) > 0 && e.args[0] == "help" || slices.ContainsFunc(e.args, func(word string) bool { return strings.HasPrefix(word, "$") && !strings.HasPrefix(word, "$(") }) && isGroup(first(root.Find(e.args))) {
		return
	}
	c, rest, err := root.Find(e.args)
	if err != nil || c == root && len(e.args) > 0 && !strings.HasPrefix(e.args[0], "-") {
		t.Errorf("%s: mqx %q: no such command (%v)", where, e.args, err)
		return
	}
	if isGroup(c) {
		if len(rest) > 0 && !strings.HasPrefix(rest[0], "-") && c != root {
			t.Errorf("%s: mqx %q: no such command", where, e.args)
		}
		return
	}
	if c.DisableFlagParsing || c.Name() == "help" || c.Name() == "mqadmin" || strings.Contains(strings.Join(e.args, " "), "...") {
		return
	}
	for _, word := range rest {
		name, isLong := strings.CutPrefix(word, "--")
		name, _, _ = strings.Cut(name, "=")
		if isLong && name != "" && name != "help" && c.Flags().Lookup(name) == nil && c.InheritedFlags().Lookup(name) == nil {
			t.Errorf("%s: mqx %q: there is no --%s", where, e.args, name)
			return
		}
	}
	if strings.HasPrefix(where, "mqx mqadmin ") || serversOf.MatchString(c.CommandPath()) || slices.Contains(rest, "--watch") || slices.Contains(rest, "-f") || strings.Contains(strings.Join(rest, " "), "$") {
		return
	}
	if code, errOut := tried(t, e.args...); code == ExitUsage && !missingHere.MatchString(errOut) {
		t.Errorf("%s: mqx %q: %s", where, e.args, errOut)
	}
	if c.Flags().Lookup("output") == nil || c.Flags().Lookup("output").Shorthand != "o" || asksNagiosIn(e.args) {
		return
	}
	checkFields(t, where, e)
}

func asksNagiosIn(args []string) bool {
	return slices.Contains(args, formNagios) || slices.Contains(args, "-o="+formNagios)
}

// checkFields asks for the fields of what an example prints and looks for those that jq takes.
func checkFields(t *testing.T, where string, e exampleCommand) {
	t.Helper()
	var out, errOut bytes.Buffer
	code := Execute(t.Context(), append(append([]string{"mqx"}, e.args...), "-o", "help", "-O", "-"), Streams{In: strings.NewReader(""), Out: &out, Err: &errOut})
	if code != ExitOK {
		if missingHere.MatchString(errOut.String()) {
			return
		}
		t.Errorf("%s: mqx %q -o help: exit code %d: %s", where, e.args, code, errOut.String())
		return
	}
	if len(e.next) == 0 || e.next[0] != "jq" {
		return
	}
	fields := map[string]bool{"items": true, "errors": true, "kind": true, "asOf": true, "apiVersion": true, "target": true, "addr": true, "message": true}
	for line := range strings.Lines(out.String()) {
		if words := strings.Fields(line); len(words) > 0 {
			fields[words[0]] = true
		}
	}
	for _, word := range e.next[1:] {
		if strings.HasPrefix(word, "-") {
			continue
		}
		for _, m := range fieldWord.FindAllStringSubmatch(word, -1) {
			if !fields[m[1]] {
				t.Errorf("%s: mqx %q | jq %q: there is no field %s", where, e.args, word, m[1])
			}
		}
	}
}

// tried runs mqx where no cluster is.
func tried(t *testing.T, args ...string) (Exit, string) {
	t.Helper()
	var out, errOut bytes.Buffer
	if slices.Contains(args, "context") || slices.Contains(args, "--context") {
		mend(t, args)
	}
	defer func() { // what one has written is no file of the next
		written, err := filepath.Glob("*")
		for _, name := range written {
			err = errors.Join(err, os.RemoveAll(name))
		}
		if err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // some would go on
	defer cancel()
	code := Execute(ctx, append([]string{"mqx"}, args...), Streams{In: strings.NewReader(""), Out: &out, Err: &errOut})
	return code, errOut.String()
}

// mend makes sure that contexts which examples add are not there, and those that they use are.
func mend(t *testing.T, args []string) {
	t.Helper()
	var out bytes.Buffer
	streams := Streams{In: strings.NewReader(""), Out: &out, Err: &out}
	if slices.Contains(args, "add") {
		name := args[slices.Index(args, "add")+1]
		Execute(t.Context(), []string{"mqx", "context", "rm", name, "--confirm", name}, streams)
		return
	}
	Execute(t.Context(), []string{"mqx", "context", "add", "prod", "-n", "127.0.0.1:1"}, streams)
}

// nowhere makes a home without anything but the contexts that examples name, and leads clients to where nobody is.
func nowhere(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	home := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"} {
		t.Setenv(name, home)
	}
	for _, name := range []string{"MQX_CONTEXT", "NAMESRV_ADDR", "EDITOR", "VISUAL", "ROCKETMQ_HOME"} {
		t.Setenv(name, "")
	}
	t.Setenv("MQX_NAMESRV", "127.0.0.1:1")
	for _, name := range []string{"test", "staging", "old", "new", "here", "dr", "copy"} {
		run(t, "context", "add", name, "-n", "127.0.0.1:1")
	}
}

// The examples of every command are commands that there are, with flags that there are,
// and the fields that they sort by, match, and give to jq are fields of what they print.
func TestExamplesAreRight(t *testing.T) {
	if raced {
		t.Skip("it runs without the race detector: nothing is concurrent here")
	}
	nowhere(t)
	root := newRootCmd(&app{env: func(string) string { return "" }})
	seen := 0
	eachCommand(root, func(c *cobra.Command) {
		if !c.HasExample() && !c.Hidden {
			t.Errorf("%q has no example", c.CommandPath())
		}
		commands := exampleCommands(c.Example)
		if c.HasExample() && len(commands) == 0 && c.Parent() != nil && c.Parent().Name() != "mqadmin" {
			t.Errorf("%q: there is no command in its examples: %s", c.CommandPath(), c.Example)
		}
		for _, e := range commands {
			seen++
			checkExample(t, root, c.CommandPath(), e)
		}
	})
	for _, topic := range helpTopics {
		for _, e := range exampleCommands(topicExamples(topic.write)) {
			seen++
			checkExample(t, root, "mqx help "+topic.name, e)
		}
	}
	if seen < 250 {
		t.Errorf("only %d examples", seen)
	}
}

// The commands in the shell blocks of the pages are commands that there are.
func TestPagesNameCommandsThatExist(t *testing.T) {
	if raced {
		t.Skip("it runs without the race detector: nothing is concurrent here")
	}
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, "../README.md", "../README.zh-CN.md", "../ARCHITECTURE.md", "../SECURITY.md", "../CHANGELOG.md", "../docs/runbooks/README.md")
	scripts, err := filepath.Glob("../docs/runbooks/*.sh")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, path := range append(pages, scripts...) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[path] = string(text)
	}
	nowhere(t)
	root := newRootCmd(&app{env: func(string) string { return "" }})
	seen := 0
	for path, text := range texts {
		blocks := []string{text}
		if strings.HasSuffix(path, ".md") {
			blocks = nil
			for i, part := range strings.Split(text, "```") {
				if body, ok := strings.CutPrefix(part, "sh\n"); ok && i%2 == 1 {
					blocks = append(blocks, body)
				}
			}
		}
		for _, block := range blocks {
			for _, e := range exampleCommands(block) {
				seen++
				checkExample(t, root, path, e)
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d commands", seen)
	}
}

// hint is what a text tells to type: mqx, the words of a command, and its flags.
var hint = regexp.MustCompile("mqx ([a-z][a-z-]*(?: [a-z][a-z-]+)*)((?: (?:%[a-z]|[A-Z][A-Z_=]*|--[a-z][a-z-]*|-[a-zA-Z]|[A-Za-z0-9=._:-]+))*)")

// What errors say to try names commands and flags that there are.
func TestHintsNameCommandsThatExist(t *testing.T) {
	root := newRootCmd(&app{env: func(string) string { return "" }})
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); !ok || f.Sel.Name != "try" && f.Sel.Name != "because" && f.Sel.Name != "warn" && f.Sel.Name != "note" {
				return true
			}
			literal, ok := call.Args[0].(*ast.BasicLit)
			if !ok {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			seen++
			checkHint(t, root, name, text)
			return true
		})
	}
	if seen < 100 {
		t.Errorf("only %d hints", seen)
	}
}

func checkHint(t *testing.T, root *cobra.Command, name, text string) {
	t.Helper()
	for _, m := range hint.FindAllStringSubmatch(text, -1) {
		words := strings.Fields(m[1])
		if !slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == words[0] }) {
			continue // a sentence about mqx
		}
		c, rest, err := root.Find(words)
		if err != nil || c == root || isGroup(c) && len(rest) > 0 {
			t.Errorf("%s: %q names no command: %q (%v)", name, text, m[1], err)
			continue
		}
		for _, word := range strings.Fields(m[2]) {
			flag, ok := strings.CutPrefix(word, "--")
			if flag, _, _ = strings.Cut(flag, "="); ok && flag != "help" && c.Flags().Lookup(flag) == nil && c.InheritedFlags().Lookup(flag) == nil {
				t.Errorf("%s: %q: %q has no --%s", name, text, c.CommandPath(), flag)
			}
		}
	}
}

func first(c *cobra.Command, _ []string, _ error) *cobra.Command { return c }
