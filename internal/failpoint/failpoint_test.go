package failpoint_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mqx/internal/failpoint"
)

// A point that nobody passes tests nothing, and one without a row in the document is known to nobody.
func TestEveryPointIsPassedAndDescribed(t *testing.T) {
	root := filepath.Join("..", "..")
	passed := pointsPassed(t, root)
	doc, err := os.ReadFile(filepath.Join(root, "docs", "reliability.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := constants(t)
	if len(names) != len(failpoint.All()) {
		t.Errorf("%d points are declared, All lists %d", len(names), len(failpoint.All()))
	}
	for constant, name := range names {
		if !slices.Contains(failpoint.All(), failpoint.Point(name)) {
			t.Errorf("All does not list %s", constant)
		}
		if passed[constant] == 0 {
			t.Errorf("nobody passes failpoint.%s", constant)
		}
		if !strings.Contains(string(doc), "| `"+name+"` |") {
			t.Errorf("docs/reliability.md has no row for %s", name)
		}
	}
}

// constants are the points as they are declared: name of the constant, name of the point.
func constants(t *testing.T) map[string]string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "failpoint.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if id, ok := v.Type.(*ast.Ident); ok && id.Name == "Point" {
				out[v.Names[0].Name] = strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`)
			}
		}
	}
	return out
}

// pointsPassed counts the calls of Pass in the tree by the name of the constant.
func pointsPassed(t *testing.T, root string) map[string]int {
	t.Helper()
	found := map[string]int{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); n != ".." && strings.HasPrefix(n, ".") || n == "testdata" || n == "e2e" {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && isSelector(call.Fun, "failpoint", "Pass") && len(call.Args) == 1 {
				if arg, ok := call.Args[0].(*ast.SelectorExpr); ok {
					found[arg.Sel.Name]++
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func isSelector(e ast.Expr, pkg, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg
}
