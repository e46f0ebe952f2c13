package jsonfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"mqx/internal/vfs"
)

const (
	dir  = "/store/config"
	path = dir + "/topics.json"
)

var errDown = errors.New("the machine went down")

func newFS(t *testing.T, main, bak string) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem()
	if err := vfs.MkdirAllDurable(m, dir); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{path: main, BackupName(path): bak} {
		if text == "missing" {
			continue
		}
		if err := vfs.WriteFileDurable(m, name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func load(fsys vfs.FS) (version int, src Source, err error) {
	src, err = Load(fsys, path, func(b []byte) error {
		var v struct{ Version int }
		if err := json.Unmarshal(b, &v); err != nil {
			return err
		}
		version = v.Version
		return nil
	})
	return version, src, err
}

func text(version int) string { return fmt.Sprintf("{\n\t\"version\":%d\n}", version) }

// N010, N012: an empty, cut or garbled file falls back to its backup; two bad ones are an error and stay as they are.
func TestLoad(t *testing.T) {
	for name, c := range map[string]struct {
		main, bak string
		version   int
		src       Source
		bad       bool
	}{
		"both good":            {text(2), text(1), 2, Main, false},
		"no backup":            {text(2), "missing", 2, Main, false},
		"bad backup":           {text(2), "{", 2, Main, false},
		"empty":                {"", text(1), 1, Backup, false},
		"cut":                  {text(2)[:9], text(1), 1, Backup, false},
		"binary":               {"\x00\xff\x00\x01", text(1), 1, Backup, false},
		"missing":              {"missing", text(1), 1, Backup, false},
		"neither":              {"missing", "missing", 0, None, false},
		"both bad":             {"{", "", 0, None, true},
		"empty without backup": {"", "missing", 0, None, true},
		"null":                 {" null\n", text(1), 1, Backup, false},
		"null without backup":  {"null", "missing", 0, None, true},
		"missing, bad backup":  {"missing", "{", 0, None, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := newFS(t, c.main, c.bak)
			version, src, err := load(m)
			var bad *BadError
			if errors.As(err, &bad) != c.bad || (err != nil) != c.bad || src != c.src || version != c.version {
				t.Fatalf("version %d from %v, %v", version, src, err)
			}
			moved := src == Backup && c.main != "missing"
			if _, err := m.Stat(QuarantineDir(path) + "/topics.json.1"); (err == nil) != moved {
				t.Errorf("in quarantine: %v", err)
			}
			if _, err := m.Stat(path); (err == nil) != (c.main != "missing" && !moved) {
				t.Errorf("the file: %v", err)
			}
		})
	}
}

// N011: started from the backup, the first save does not push the bad file over it, wherever it is interrupted.
func TestSaveAfterLoadFromBackup(t *testing.T) {
	m := newFS(t, "garbage", text(1))
	if _, src, err := load(m); src != Backup || err != nil {
		t.Fatal(src, err)
	}
	crashEverywhere(t, m, 1)
}

func TestSaveInterrupted(t *testing.T) {
	crashEverywhere(t, newFS(t, text(1), text(0)), 1)
	crashEverywhere(t, newFS(t, text(1), "missing"), 1)
	crashEverywhere(t, newFS(t, "missing", "missing"), 0)
}

// crashEverywhere saves version 2 over old, stopping at each operation in turn, by a kill and by power losses, and
// expects one of the two versions behind it; the new one for certain when Save had returned.
func crashEverywhere(t *testing.T, start *vfs.Mem, old int) {
	t.Helper()
	const next = 2
	for stop := 0; ; stop++ {
		m := start.Kill()
		ops := 0
		m.Inject(func(vfs.Op) error {
			if ops++; ops > stop {
				return errDown
			}
			return nil
		})
		err := Save(m, path, []byte(text(next)))
		m.Inject(nil)
		survivors := []*vfs.Mem{m.Kill()}
		for seed := range uint64(8) {
			survivors = append(survivors, m.PowerLoss(seed))
		}
		for i, after := range survivors {
			version, src, loadErr := load(after)
			if loadErr != nil || version != old && version != next || err == nil && version != next {
				t.Fatalf("stopped at operation %d, survivor %d: version %d from %v, %v", stop, i, version, src, loadErr)
			}
			if saveErr := Save(after, path, []byte(text(next+1))); saveErr != nil {
				t.Fatal(saveErr)
			}
			if version, src, loadErr := load(after.PowerLoss(1)); version != next+1 || src != Main || loadErr != nil {
				t.Fatalf("saved again after operation %d: version %d from %v, %v", stop, version, src, loadErr)
			}
		}
		if err == nil {
			return
		}
		if stop > 100 {
			t.Fatal("save does not end")
		}
	}
}

func TestSaveMakesTheDirectoryAgain(t *testing.T) {
	m := newFS(t, text(1), "missing")
	if err := m.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := Save(m, path, []byte(text(2))); err != nil {
		t.Fatal(err)
	}
	if version, src, err := load(m.PowerLoss(1)); version != 2 || src != Main || err != nil {
		t.Errorf("version %d from %v, %v", version, src, err)
	}
}

func TestSaveKeepsTheVersionBefore(t *testing.T) {
	m := newFS(t, text(1), text(0))
	if err := Save(m, path, []byte(text(2))); err != nil {
		t.Fatal(err)
	}
	if b, err := vfs.ReadFile(m, BackupName(path)); err != nil || string(b) != text(1) {
		t.Errorf("backup %q, %v", b, err)
	}
	if _, err := m.Stat(path + ".tmp"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("temporary file: %v", err)
	}
	if err := Remove(m, path); err != nil {
		t.Fatal(err)
	}
	if _, src, err := load(m.PowerLoss(3)); src != None || err != nil {
		t.Errorf("after removal: %v, %v", src, err)
	}
}

// A link to nothing, as to a volume that is not mounted, is not taken for a fresh start.
func TestLoadOfADanglingLink(t *testing.T) {
	name := filepath.Join(t.TempDir(), "topics.json")
	if err := os.Symlink("/nonexistent/topics.json", name); err != nil {
		t.Skip(err)
	}
	var bad *BadError
	src, err := Load(vfs.OS, name, func([]byte) error { return nil })
	if src != None || !errors.As(err, &bad) {
		t.Errorf("from %v, %v", src, err)
	}
}

// A file and a backup that cannot be used are put aside for a caller who can do without, and both are kept.
func TestPutAside(t *testing.T) {
	fsys := vfs.NewMem()
	if err := fsys.MkdirAll("/s/config"); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"/s/config/m": "{{", "/s/config/m.bak": "]"} {
		if err := vfs.WriteFileDurable(fsys, name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second time there is nothing
		if err := PutAside(fsys, "/s/config/m"); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"m.1": "{{", "m.bak.1": "]"} {
		if b, err := vfs.ReadFile(fsys, "/s/mqx/quarantine/"+name); err != nil || string(b) != text {
			t.Errorf("%s: %q %v", name, b, err)
		}
	}
	if src, err := Load(fsys, "/s/config/m", func([]byte) error { return nil }); src != None || err != nil {
		t.Errorf("%v %v", src, err)
	}
}
