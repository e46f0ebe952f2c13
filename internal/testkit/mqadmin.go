package testkit

import (
	"bytes"
	"strings"
	"testing"
)

// GoldenMqadmin returns one recorded mqadmin command, by a name of GoldenMqadmins or GoldenAuthMqadmins: what follows
// "mqadmin" on its command line, and what it printed. Time stamps, addresses and rates are those of the recording.
func GoldenMqadmin(t testing.TB, name string) (args string, output []byte) {
	t.Helper()
	b := read(t, "mqadmin", name+".txt")
	first, rest, _ := bytes.Cut(b, []byte("\n"))
	args, ok := strings.CutPrefix(string(first), "$ mqadmin")
	if !ok || !bytes.HasPrefix(rest, []byte("#")) {
		t.Fatalf("golden mqadmin %s: does not begin with the command and a comment", name)
	}
	_, output, _ = bytes.Cut(rest, []byte("\n"))
	return strings.TrimSpace(args), output
}

// GoldenFile returns another golden file by its path below the folder golden, for example "mqadmin/cluster.json".
func GoldenFile(t testing.TB, path string) []byte {
	t.Helper()
	return read(t, path)
}
