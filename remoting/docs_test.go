package remoting

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var updateDocs = flag.Bool("update", false, "write the tables of docs/wire again")

// The tables of docs/wire are made from the table of requests and the structs
// of this package, so that they cannot tell anything else.
func TestWireDocsAreFresh(t *testing.T) {
	checkDoc(t, "codes.md", map[string]string{"requests": requestTable(), "responses": responseTable()})
	checkDoc(t, "bodies.md", map[string]string{"bodies": bodyTable()})
}

func checkDoc(t *testing.T, name string, sections map[string]string) {
	t.Helper()
	file := filepath.Join("..", "docs", "wire", name)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for section, table := range sections {
		before, rest, ok := strings.Cut(page, "<!-- "+section+" -->\n")
		_, after, ok2 := strings.Cut(rest, "<!-- end -->\n")
		if !ok || !ok2 {
			t.Fatalf("%s has no section %s", file, section)
		}
		page = before + "<!-- " + section + " -->\n" + table + "<!-- end -->\n" + after
	}
	if page == string(text) {
		return
	}
	if !*updateDocs {
		t.Fatalf("%s is not fresh: go test ./remoting -run Docs -update", file)
	}
	if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
}

func requestTable() string {
	var b strings.Builder
	b.WriteString("| code | name | peer | request fields | response fields | request body | response body |\n|---|---|---|---|---|---|---|\n")
	for _, d := range Defs() {
		fmt.Fprintf(&b, "| %d | %s | %s | %s | %s | %s | %s |\n", d.Code, d.Name, d.Peer,
			fieldList(d.Request), fieldList(d.Response), bodyName(d.RequestBody), bodyName(d.ResponseBody))
	}
	return b.String()
}

func fieldList(t reflect.Type) string {
	if t == nil {
		return ""
	}
	var list []string
	for i := range t.NumField() {
		sf := t.Field(i)
		switch sf.Type {
		case reflect.TypeFor[RPCHeader]():
			list = append(list, "+R")
			continue
		case reflect.TypeFor[TopicHeader]():
			list = append(list, "+T")
			continue
		}
		tag := sf.Tag.Get("rmq")
		if tag == "" {
			continue
		}
		names, opt, _ := strings.Cut(tag, ",")
		s := strings.ReplaceAll(names, "|", "/")
		if opt == "required" {
			s += "*"
		}
		kind := sf.Type.Kind().String()
		if sf.Type.Kind() == reflect.Struct {
			kind = sf.Type.Field(0).Type.Kind().String() + "?"
		}
		list = append(list, s+":"+strings.NewReplacer("string", "text", "int32", "int", "int64", "long").Replace(kind))
	}
	switch t {
	case reflect.TypeFor[RPCHeader]():
		return "+R"
	case reflect.TypeFor[TopicHeader]():
		return "+T"
	}
	return strings.Join(list, ", ")
}

func responseTable() string {
	codes := make([]int32, 0, len(responseNames))
	for code := range responseNames {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	var b strings.Builder
	b.WriteString("| code | name |\n|---|---|\n")
	for _, code := range codes {
		fmt.Fprintf(&b, "| %d | %s |\n", code, ResponseName(code))
	}
	return b.String()
}

func bodyName(t reflect.Type) string {
	if t == nil {
		return ""
	}
	return typeName(t)
}

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Int32:
		return "int"
	case reflect.Int64:
		return "long"
	case reflect.Float64:
		return "double"
	case reflect.Slice:
		return "[]" + typeName(t.Elem())
	case reflect.Map:
		return "{" + typeName(t.Key()) + ":" + typeName(t.Elem()) + "}"
	case reflect.Pointer:
		return typeName(t.Elem()) + "?"
	case reflect.Struct:
		return t.Name()
	}
	return t.Kind().String()
}

// bodyTable lists every struct that is a body or part of one.
func bodyTable() string {
	seen := map[string]reflect.Type{}
	for _, d := range Defs() {
		collectStructs(d.RequestBody, seen)
		collectStructs(d.ResponseBody, seen)
	}
	collectStructs(reflect.TypeFor[TopicConfigTable](), seen)
	collectStructs(reflect.TypeFor[ResetOffsetBodyForC](), seen)
	collectStructs(reflect.TypeFor[OffsetMovedEvent](), seen)
	names := make([]string, 0, len(seen))
	for name := range seen {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString("| object | members |\n|---|---|\n")
	for _, name := range names {
		members := memberList(seen[name])
		slices.Sort(members)
		fmt.Fprintf(&b, "| %s | %s |\n", name, strings.Join(members, ", "))
	}
	return b.String()
}

func collectStructs(t reflect.Type, seen map[string]reflect.Type) {
	if t == nil {
		return
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Pointer:
		collectStructs(t.Elem(), seen)
	case reflect.Map:
		collectStructs(t.Key(), seen)
		collectStructs(t.Elem(), seen)
	case reflect.Struct:
		if seen[t.Name()] != nil {
			return
		}
		seen[t.Name()] = t
		for i := range t.NumField() {
			collectStructs(t.Field(i).Type, seen)
		}
	}
}

func memberList(t reflect.Type) []string {
	var list []string
	for i := range t.NumField() {
		sf := t.Field(i)
		if sf.Anonymous {
			list = append(list, memberList(sf.Type)...)
			continue
		}
		name, opt, _ := strings.Cut(sf.Tag.Get("json"), ",")
		s := name + ":" + typeName(sf.Type)
		if opt == "omitempty" {
			s += "?"
		}
		list = append(list, s)
	}
	return list
}
