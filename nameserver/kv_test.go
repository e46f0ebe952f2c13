package nameserver

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"mqx/internal/vfs"
)

// failingFS fails to open files for writing while broken is set.
type failingFS struct {
	vfs.FS
	broken bool
}

func (f *failingFS) OpenFile(name string, flag int) (vfs.File, error) {
	if f.broken {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("no space left on device")}
	}
	return f.FS.OpenFile(name, flag)
}

func TestKVSurvivesABadDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kv.json")
	disk := &failingFS{FS: vfs.OS}
	kv, err := openKV(disk, path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := kv.put("n", "k", "1"); err != nil {
		t.Fatal(err)
	}
	disk.broken = true
	if err := kv.put("n", "k", "2"); err == nil {
		t.Error("a value that was not saved was taken")
	}
	if err := kv.remove("n", "k"); err == nil {
		t.Error("a key whose removal was not saved was removed")
	}
	if v, _ := kv.get("n", "k"); v != "1" {
		t.Errorf("value %q", v)
	}
	if err := kv.put("n", "k", "1"); err != nil {
		t.Errorf("a put that changes nothing: %v", err)
	}
	if err := kv.remove("n", "absent"); err != nil {
		t.Errorf("removal of nothing: %v", err)
	}
	disk.broken = false
	if err := kv.put("n", "k", "3"); err != nil {
		t.Errorf("after the disk is well: %v", err)
	}
}

func TestKVFiles(t *testing.T) { // N010
	log := slog.New(slog.DiscardHandler)
	for _, c := range []struct {
		what, main, bak, want string
		fails                 bool
	}{
		{"none", "", "", "", false},
		{"Apache's", `{"configTable":{"n":{"k":"v"}}}`, "", "v", false},
		{"empty with a backup", "\x00", `{"configTable":{"n":{"k":"b"}}}`, "b", false},
		{"both bad", "{", "{", "", true},
		{"null", `{"configTable":null}`, "", "", false},
	} {
		path := filepath.Join(t.TempDir(), "kv.json")
		for name, text := range map[string]string{path: c.main, path + ".bak": c.bak} {
			if text == "\x00" {
				text = ""
			} else if text == "" {
				continue
			}
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		kv, err := openKV(vfs.OS, path, log)
		if (err != nil) != c.fails {
			t.Errorf("%s: %v", c.what, err)
		}
		if err != nil {
			continue
		}
		if v, _ := kv.get("n", "k"); v != c.want {
			t.Errorf("%s: value %q, want %q", c.what, v, c.want)
		}
		if err := kv.put("n", "new", "x"); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}
