//go:build unix

package vfs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mqx/internal/vfs"
)

// A file that only its owner may read stays so when it is replaced: a configuration file may hold passwords.
func TestReplacedFileKeepsItsPermissions(t *testing.T) {
	name := filepath.Join(t.TempDir(), "broker.conf")
	must(t, os.WriteFile(name, []byte("tls.server.keyPassword=x\n"), 0o600))
	must(t, vfs.WriteFileDurable(vfs.OS, name, []byte("tls.server.keyPassword=y\n")))
	st, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if mode := st.Mode().Perm(); mode != 0o600 {
		t.Errorf("permissions are %o after the file was replaced, they were 600", mode)
	}
	if b, err := os.ReadFile(name); err != nil || string(b) != "tls.server.keyPassword=y\n" {
		t.Errorf("the file holds %q, %v", b, err)
	}
}

// The share that is used is what df says: a reserve for the super-user counts neither as used nor as free.
func TestUsageIsThatOfDF(t *testing.T) {
	dir := t.TempDir()
	out, err := exec.Command("df", "-P", "-k", dir).Output()
	if err != nil {
		t.Skip("df cannot be run: ", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	f := strings.Fields(lines[len(lines)-1])
	if len(f) < 5 {
		t.Fatalf("df says %q", out)
	}
	want, err := strconv.Atoi(strings.TrimSuffix(f[4], "%"))
	if err != nil {
		t.Fatal(err)
	}
	u, err := vfs.OS.Usage(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := 100 * u.Used(); got < float64(want)-2 || got > float64(want)+1 {
		t.Errorf("%.1f %% used, df says %d %%", got, want)
	}
}
