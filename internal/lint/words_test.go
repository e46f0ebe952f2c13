package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// forPeople are the rooms whose texts people read.
var forPeople = []string{"cmd", "admin", "admin/move", "admin/roll", "doctor", "tui", "client", "store/inspect"}

// countedNoun is a number with several of something in a format.
var countedNoun = regexp.MustCompile(`(?:^|(\S+) )%d ([a-z]+s)\b`)

// noNouns are words behind a number that count nothing, or are the same for one.
var noNouns = []string{"is", "has", "was", "does", "ms", "as", "points", "ends", "goes", "says", "holds", "belongs", "differs", "others", "its", "this", "less", "shows", "lets"}

// Things are counted by words.Count, so that no text says "1 messages".
func TestThingsAreCountedInOnePlace(t *testing.T) {
	seen := 0
	for _, room := range forPeople {
		names, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(room), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			src, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			seen += strings.Count(string(src), "words.Count(")
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok { // what is read is not for people
					if fun, ok := call.Fun.(*ast.SelectorExpr); ok && strings.HasPrefix(fun.Sel.Name, "Sscan") {
						return false
					}
				}
				literal, ok := n.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					return true
				}
				text, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range countedNoun.FindAllStringSubmatch(text, -1) {
					if m[1] != "of" && !slices.Contains(noNouns, m[2]) {
						t.Errorf("%s: %q counts %s without words.Count", fset.Position(literal.Pos()), text, m[2])
					}
				}
				return true
			})
		}
	}
	if seen < 100 {
		t.Errorf("only %d places count", seen)
	}
}
