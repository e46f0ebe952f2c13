package jsonfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mqx/internal/jsonfile"
	"mqx/internal/vfs"
)

const lossFile = "/s/config/x.json"

// version is a file content of several sectors that says which version it is and whether it is whole.
func version(n int) []byte {
	return []byte(strings.Repeat(fmt.Sprintf("v%d ", n), 400) + ".")
}

func parseVersion(b []byte) (int, error) {
	for n := range 10 {
		if bytes.Equal(b, version(n)) {
			return n, nil
		}
	}
	return 0, errors.New("no version")
}

// load returns the version that a start finds; -1 for none.
func load(fsys vfs.FS) (int, error) {
	got := -1
	src, err := jsonfile.Load(fsys, lossFile, func(b []byte) (err error) {
		got, err = parseVersion(b)
		return err
	})
	if src == jsonfile.None {
		got = -1
	}
	return got, err
}

var errOff = errors.New("the power is off")

// eachLoss runs f on copies of a disk, with the power failing before its first, second, ... operation and after its
// last one, and calls check with every disk that can be left. done says that f had returned without an error.
func eachLoss(t *testing.T, disk *vfs.Mem, f func(*vfs.Mem) error, check func(left *vfs.Mem, done bool)) {
	t.Helper()
	for at := 1; ; at++ {
		d := disk.Kill()
		var left []*vfs.Mem
		lose := func() {
			d.EachPowerLoss(func(m *vfs.Mem) bool {
				left = append(left, m)
				return true
			})
		}
		ops := 0
		d.Inject(func(vfs.Op) error {
			if ops++; ops == at {
				lose()
			}
			if ops >= at {
				return errOff
			}
			return nil
		})
		err := f(d)
		done := ops < at
		if done {
			if err != nil {
				t.Fatalf("without a fault: %v", err)
			}
			lose()
		}
		for _, m := range left {
			check(m, done)
		}
		if done {
			return
		}
	}
}

// fingerprint is all that lies on a disk.
func fingerprint(t *testing.T, m *vfs.Mem, dir string) string {
	t.Helper()
	entries, err := m.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		fmt.Fprintf(&b, "%s ", path)
		if e.IsDir() {
			b.WriteString(fingerprint(t, m, path))
			continue
		}
		text, err := vfs.ReadFile(m, path)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%q ", text)
	}
	return b.String()
}

// A save under every loss of power: before each operation, with every mixture of what was not synced, from every state
// that a disk may be in, and once more from every state that the first loss leaves. A start finds the version before or
// the new one, the new one when the save had returned, and never nothing where there was something. N010, N011, N012.
func TestSaveUnderEveryPowerLoss(t *testing.T) {
	for name, files := range map[string]map[string][]byte{
		"nothing":              {},
		"a file":               {lossFile: version(1)},
		"a file and a backup":  {lossFile: version(1), lossFile + ".bak": version(0)},
		"a backup alone":       {lossFile + ".bak": version(1)},
		"an empty file":        {lossFile: {}, lossFile + ".bak": version(1)},
		"a broken file":        {lossFile: version(3)[:700], lossFile + ".bak": version(1)},
		"a file of a dead try": {lossFile: version(1), lossFile + ".tmp": version(3)[:100]},
	} {
		t.Run(name, func(t *testing.T) {
			disk := vfs.NewMem()
			if err := errors.Join(disk.MkdirAll("/s/config"), disk.SyncDir("/"), disk.SyncDir("/s")); err != nil {
				t.Fatal(err)
			}
			for _, path := range slices.Sorted(maps.Keys(files)) {
				if err := vfs.WriteFileDurable(disk, path, files[path]); err != nil {
					t.Fatal(err)
				}
			}
			states := saveUnderLoss(t, disk, 2)
			again := map[string]bool{}
			for _, d := range states {
				for key := range saveUnderLoss(t, d, 4) {
					again[key] = true
				}
			}
			t.Logf("%d states after one loss, %d after two", len(states), len(again))
		})
	}
}

// saveUnderLoss loads and saves version n under every loss and returns the different disks that can be left.
func saveUnderLoss(t *testing.T, disk *vfs.Mem, n int) map[string]*vfs.Mem {
	t.Helper()
	before, err := load(disk.Kill())
	if err != nil {
		t.Fatalf("what one loss left cannot be loaded: %v", err)
	}
	states := map[string]*vfs.Mem{}
	start := func(d *vfs.Mem) error {
		got, err := load(d) // moves a broken file away
		if err == nil && got != before {
			t.Errorf("loaded version %d, want %d", got, before)
		}
		if err != nil {
			return err
		}
		return jsonfile.Save(d, lossFile, version(n))
	}
	eachLoss(t, disk, start, func(left *vfs.Mem, done bool) {
		key := fingerprint(t, left, "/")
		if states[key] != nil && !done {
			return
		}
		states[key] = left
		got, err := load(left.Kill())
		switch {
		case err != nil:
			t.Errorf("cannot be loaded: %v\n%.300s", err, key)
		case done && got != n:
			t.Errorf("version %d was saved, %d is there", n, got)
		case got != n && got != before:
			t.Errorf("version %d is there, want %d or %d", got, before, n)
		}
	})
	return states
}
