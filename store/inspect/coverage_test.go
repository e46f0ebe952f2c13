package inspect_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"mqx/store/inspect"
)

var update = flag.Bool("update", false, "write docs/format/coverage.md anew")

const coverageMark = "<!-- the table is written by `go test ./store/inspect -run Coverage -update` -->\n"

// docs/format/coverage.md holds the table that verify --coverage prints.
func TestCoverageIsDocumented(t *testing.T) {
	const path = "../../docs/format/coverage.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, _, ok := strings.Cut(string(page), coverageMark)
	if !ok {
		t.Fatalf("%s has no mark", path)
	}
	var b strings.Builder
	b.WriteString(head + coverageMark + "\n| part | every change is found | by |\n|---|---|---|\n")
	for _, c := range inspect.CoverageTable() {
		yes := "no"
		if c.Covered {
			yes = "yes"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.Part, yes, c.By)
	}
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(page) != b.String() {
		t.Errorf("%s is not what verify --coverage prints: go test ./store/inspect -run Coverage -update", path)
	}
}
