package testkit

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// CheckTables compares the generated tables of a page with what they should be,
// by name; each stands between <!-- NAME: begin --> and <!-- NAME: end -->. With
// update the page is rewritten instead; rewrite is the command that does so.
func CheckTables(t testing.TB, path string, tables map[string]string, update bool, rewrite string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	for name, table := range tables {
		begin, end := fmt.Sprintf("<!-- %s: begin -->\n", name), fmt.Sprintf("<!-- %s: end -->\n", name)
		i, j := strings.Index(page, begin), strings.Index(page, end)
		if i < 0 || j < i {
			t.Fatalf("%s has no place for %q", path, name)
		}
		i += len(begin)
		if page[i:j] == table {
			continue
		}
		if !update {
			t.Errorf("the table %q in %s is not what the code does; run %s", name, path, rewrite)
		}
		page = page[:i] + table + page[j:]
	}
	if update {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
