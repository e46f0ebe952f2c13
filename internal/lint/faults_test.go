package lint

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The numbers by which comments name faults are explained in the repository itself.
func TestFaultNumbersAreExplained(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "known-faults.md"))
	if err != nil {
		t.Fatal(err)
	}
	number := regexp.MustCompile(`\b(?:N[01][0-9]{2}|AT0[0-9])\b`)
	explained := map[string]bool{}
	for line := range bytes.Lines(page) {
		if n, ok := bytes.CutPrefix(line, []byte("| ")); ok && number.Match(n[:min(4, len(n))]) {
			explained[string(n[:4])] = true
		}
	}
	used := map[string]string{}
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipDir(root, p, d)
		}
		if !strings.HasSuffix(p, ".go") || filepath.Base(p) == "faults_test.go" {
			return nil
		}
		text, err := os.ReadFile(p)
		for _, n := range number.FindAllString(string(text), -1) {
			used[n] = p
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Glob(filepath.Join(root, "cmd", "testdata", "script", "*.txtar"))
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	withServers, err := filepath.Glob(filepath.Join(root, "e2e", "*_test.go"))
	if err != nil || len(withServers) == 0 {
		t.Fatalf("no tests with servers: %v", err)
	}
	for _, p := range append(scripts, withServers...) {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range number.FindAllString(string(text), -1) {
			used[n] = p
		}
	}
	for _, n := range slices.Sorted(maps.Keys(used)) {
		if !explained[n] {
			t.Errorf("%s names fault %s, which has no row in docs/known-faults.md", used[n], n)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(explained)) {
		if used[n] == "" {
			t.Errorf("docs/known-faults.md explains %s, which no Go file and no script names", n)
		}
	}
	if len(explained) < 50 {
		t.Errorf("%d rows were read", len(explained))
	}
}
