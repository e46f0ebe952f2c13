package lint

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// file is one Go file of the module, of any platform and build tag.
type file struct {
	name    string // slash-separated, from the root of the module
	room    string // its directory; "" for the root
	pkg     string
	test    bool
	lines   int
	imports []string
}

// moduleFiles parses every Go file of the module. Nested modules (a directory
// with a go.mod of its own) are modules of their own and left out.
func moduleFiles(t *testing.T) (modulePath string, files []file) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	gomod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(gomod), "\n")
	modulePath = strings.TrimSpace(strings.TrimPrefix(first, "module"))
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipDir(root, p, d)
		}
		if strings.HasSuffix(p, ".go") {
			files = append(files, parseFile(t, root, p))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 10 {
		t.Fatalf("found only %d Go files under %s", len(files), root)
	}
	return modulePath, files
}

func skipDir(root, p string, d fs.DirEntry) error {
	if p == root {
		return nil
	}
	if strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "dist" {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func parseFile(t *testing.T, root, p string) file {
	t.Helper()
	src, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(root, p)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.ToSlash(rel)
	parsed, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	f := file{name: name, room: path.Dir(name), pkg: parsed.Name.Name, test: strings.HasSuffix(name, "_test.go"), lines: bytes.Count(src, []byte("\n"))}
	if f.room == "." {
		f.room = ""
	}
	for _, spec := range parsed.Imports {
		f.imports = append(f.imports, importPath(t, spec))
	}
	return f
}

func importPath(t *testing.T, spec *ast.ImportSpec) string {
	t.Helper()
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// covers says whether pattern names room: itself, or "x/..." for x and below,
// or "..." for every room.
func covers(pattern, room string) bool {
	if pattern == "..." {
		return true
	}
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return room == base || strings.HasPrefix(room, base+"/")
	}
	return pattern == room
}

func anyCovers(patterns []string, room string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return covers(p, room) })
}

// roomImports is the verdict on one import of this module; "" is fine.
func roomImports(f file, target string) string {
	if target == f.room || covers("internal/...", target) {
		if target == "internal/testkit" && !f.test && !covers("internal/testkit/...", f.room) {
			return "only tests import internal/testkit"
		}
		return ""
	}
	known := false
	for _, r := range rooms {
		if covers(r.room, f.room) {
			known = true
			if anyCovers(r.may, target) {
				return ""
			}
		}
	}
	if !known {
		return "the room has no row in internal/lint/rules_test.go"
	}
	if f.test {
		for _, r := range testRooms {
			if covers(r.room, f.room) && anyCovers(r.may, target) {
				return ""
			}
		}
	}
	return "not allowed"
}

// libraryImports is the verdict on one import of a third-party package.
func libraryImports(f file, imported string) string {
	in := func(module string) bool { return imported == module || strings.HasPrefix(imported, module+"/") }
	if (f.test || covers("internal/testkit/...", f.room)) && slices.ContainsFunc(testDoors, in) {
		return ""
	}
	for _, d := range doors {
		if in(d.module) {
			if anyCovers(d.rooms, f.room) {
				return ""
			}
			return "lives only in " + strings.Join(d.rooms, ", ")
		}
	}
	return "the library has no row in internal/lint/rules_test.go"
}

func TestImportRules(t *testing.T) {
	modulePath, files := moduleFiles(t)
	checked := 0
	for _, f := range files {
		for _, imported := range f.imports {
			checked++
			first, _, _ := strings.Cut(imported, "/")
			verdict := ""
			switch target, own := strings.CutPrefix(imported, modulePath+"/"); {
			case own:
				verdict = roomImports(f, target)
			case imported == "C":
				verdict = "cgo is not used here"
			case strings.Contains(first, "."):
				verdict = libraryImports(f, imported)
			}
			if verdict != "" {
				t.Errorf("%s imports %s: %s", f.name, imported, verdict)
			}
		}
	}
	if checked == 0 {
		t.Fatal("no import was looked at")
	}
}

func TestPackageNames(t *testing.T) {
	_, files := moduleFiles(t)
	for _, f := range files {
		if slices.Contains(bannedPackageNames, strings.TrimSuffix(f.pkg, "_test")) {
			t.Errorf("%s: package %s: name the room by what it holds", f.name, f.pkg)
		}
	}
}

func TestFileLength(t *testing.T) {
	_, files := moduleFiles(t)
	for _, f := range files {
		if f.lines > maxFileLines {
			t.Errorf("%s has %d lines, more than %d: it holds more than one concept", f.name, f.lines, maxFileLines)
		}
	}
}

// The rules themselves: what they must refuse, so that a slip in the table or
// in the matching does not let everything through.
func TestRulesRefuse(t *testing.T) {
	for _, c := range []struct {
		from, imported string
		test, ok       bool
	}{
		{from: "store", imported: "remoting"},
		{from: "store/commitlog", imported: "remoting"},
		{from: "store/commitlog", imported: "store"},
		{from: "broker", imported: "nameserver"},
		{from: "nameserver", imported: "broker"},
		{from: "message", imported: "cmd"},
		{from: "filter", imported: "remoting"},
		{from: "remoting", imported: "filter"},
		{from: "remoting", imported: "remoting/server"},
		{from: "client", imported: "remoting/server"},
		{from: "client", imported: "remoting/server", test: true, ok: true},
		{from: "nosuchroom", imported: "message"},
		{from: "broker", imported: "internal/testkit"},
		{from: "broker", imported: "internal/testkit", test: true, ok: true},
		{from: "broker", imported: "store", ok: true},
		{from: "cmd", imported: "broker", ok: true},
	} {
		got := roomImports(file{room: c.from, test: c.test}, c.imported)
		if (got == "") != c.ok {
			t.Errorf("%s imports %s (test %v): verdict %q, want allowed %v", c.from, c.imported, c.test, got, c.ok)
		}
	}
	for _, c := range []struct {
		from, imported string
		test, ok       bool
	}{
		{from: "broker", imported: "github.com/spf13/cobra"},
		{from: "cmd", imported: "github.com/spf13/cobra/doc", ok: true},
		{from: "remoting", imported: "github.com/panjf2000/gnet/v2"},
		{from: "store/commitlog", imported: "github.com/edsrzf/mmap-go"},
		{from: "cmd", imported: "github.com/olekukonko/tablewriter"},
		{from: "cmd", imported: "charm.land/lipgloss/v2"},
		{from: "cmd", imported: "example.org/unheard/of"},
		{from: "broker", imported: "pgregory.net/rapid"},
		{from: "broker", imported: "pgregory.net/rapid", test: true, ok: true},
	} {
		got := libraryImports(file{room: c.from, test: c.test}, c.imported)
		if (got == "") != c.ok {
			t.Errorf("%s imports %s (test %v): verdict %q, want allowed %v", c.from, c.imported, c.test, got, c.ok)
		}
	}
}
