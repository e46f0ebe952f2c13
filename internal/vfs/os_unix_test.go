//go:build unix

package vfs_test

import (
	"os"
	"path/filepath"
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
