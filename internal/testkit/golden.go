// Package testkit gives tests the data that real Apache RocketMQ 5.5.0 components left behind: stores, conversations
// on the wire, and the output of mqadmin. The data and its description are in the folder golden beside this file.
//
// Only tests import it. Whatever is missing or unreadable fails the test; nothing is ever skipped.
package testkit

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// Dir returns the folder golden in the source tree.
func Dir() string {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		panic("testkit: the place of the source is not known")
	}
	return filepath.Join(filepath.Dir(file), "golden")
}

// names returns what precedes suffix in the names of the files of a golden folder, sorted.
func names(folder, suffix string) []string {
	entries, err := os.ReadDir(filepath.Join(Dir(), folder))
	if err != nil {
		panic("testkit: " + err.Error())
	}
	var out []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), suffix); ok && !e.IsDir() {
			out = append(out, name)
		}
	}
	if len(out) == 0 {
		panic("testkit: no files *" + suffix + " in " + folder)
	}
	slices.Sort(out)
	return out
}

// GoldenStores returns the names of all golden stores, sorted.
func GoldenStores() []string { return names("store", ".tar.zst") }

// GoldenWires returns the names of all recorded conversations, sorted.
func GoldenWires() []string { return names("wire", ".jsonl.gz") }

// GoldenMqadmins returns the names of all recorded mqadmin commands, sorted.
func GoldenMqadmins() []string { return names("mqadmin", ".txt") }

// GoldenAuthMqadmins returns the names of the commands recorded against a broker with local user and ACL providers, in
// the form that GoldenMqadmin takes.
func GoldenAuthMqadmins() []string {
	out := names(filepath.Join("mqadmin", "auth"), ".txt")
	for i, name := range out {
		out[i] = "auth/" + name
	}
	return out
}

// read returns the content of a golden file.
func read(t testing.TB, elem ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{Dir()}, elem...)...))
	if err != nil {
		t.Fatalf("golden data: %v", err)
	}
	return b
}
