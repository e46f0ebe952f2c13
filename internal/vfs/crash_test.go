package vfs_test

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"testing"

	"mqx/internal/vfs"
)

// A directory is durable once its parent was synced: a new one may be missing, a removed one may be back.
func TestPowerLossOfNewAndRemovedDirectories(t *testing.T) {
	m := vfs.NewMem()
	seen := map[string]bool{}
	state := func() {
		t.Helper()
		clear(seen)
		for seed := range uint64(40) {
			p := m.PowerLoss(seed)
			b, err := vfs.ReadFile(p, "/d/e/f")
			if _, dirErr := p.Stat("/d"); dirErr != nil && err == nil {
				t.Fatal("a file without its directory")
			}
			seen[string(b)] = true
		}
	}
	must(t, m.MkdirAll("/d/e"))
	must(t, vfs.WriteFileDurable(m, "/d/e/f", []byte("x")))
	if state(); !seen["x"] || !seen[""] {
		t.Fatalf("nothing but the file was synced: seen %v", seen)
	}
	must(t, m.SyncDir("/d"))
	must(t, m.SyncDir("/"))
	if state(); !seen["x"] || seen[""] {
		t.Fatalf("all names were synced: seen %v", seen)
	}
	must(t, m.RemoveAll("/d/e"))
	if state(); !seen["x"] || !seen[""] {
		t.Fatalf("a removal was not synced: seen %v", seen)
	}
	must(t, m.SyncDir("/d"))
	if state(); seen["x"] || !seen[""] {
		t.Fatalf("a removal was synced: seen %v", seen)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A file whose replacement or removal is undone by a power loss has the bytes it had.
func TestPowerLossBringsReplacedFilesBack(t *testing.T) {
	m := vfs.NewMem()
	must(t, vfs.WriteFileDurable(m, "/a", []byte("old")))
	must(t, vfs.WriteFileDurable(m, "/b", []byte("new")))
	must(t, m.Rename("/b", "/a"))
	seen := map[string]bool{}
	for seed := range uint64(40) {
		b, err := vfs.ReadFile(m.PowerLoss(seed), "/a")
		must(t, err)
		seen[string(b)] = true
	}
	if len(seen) != 2 || !seen["old"] || !seen["new"] {
		t.Fatalf("seen %v, want old and new", seen)
	}
}

// What was written and not synced before a kill is there after it, and may go when the power fails then.
func TestPowerLossAfterAKill(t *testing.T) {
	m := vfs.NewMem()
	must(t, vfs.WriteFileDurable(m, "/f", []byte("old")))
	f, err := m.OpenFile("/f", os.O_RDWR)
	must(t, err)
	_, err = f.WriteAt([]byte("new"), 0)
	must(t, err)
	must(t, m.MkdirAll("/d"))
	must(t, vfs.WriteFileDurable(m, "/d/g", []byte("x")))
	k := m.KillUnsynced()
	_, err = f.WriteAt([]byte("late"), 0) // the old process is none of its business
	must(t, err)
	if b, err := vfs.ReadFile(k, "/f"); err != nil || string(b) != "new" {
		t.Fatalf("after the kill: %q, %v", b, err)
	}
	seen := map[string]bool{}
	look := func() {
		clear(seen)
		k.EachPowerLoss(func(left *vfs.Mem) bool {
			b, err := vfs.ReadFile(left, "/f")
			must(t, err)
			_, dirErr := left.Stat("/d/g")
			seen[string(b)+" "+strconv.FormatBool(dirErr == nil)] = true
			return true
		})
	}
	if look(); len(seen) != 4 {
		t.Fatalf("after kill and loss: %v", seen)
	}
	g, err := k.OpenFile("/f", os.O_RDWR)
	must(t, err)
	must(t, g.Sync())
	must(t, k.SyncDir("/"))
	if look(); len(seen) != 1 || !seen["new true"] {
		t.Fatalf("after kill, sync and loss: %v", seen)
	}
}

// Every mixture of old and new sectors comes up, times lengths and names.
func TestEachPowerLossIsExhaustive(t *testing.T) {
	m := vfs.NewMem()
	must(t, vfs.WriteFileDurable(m, "/f", bytes.Repeat([]byte("o"), 1024)))
	f, err := m.OpenFile("/f", os.O_RDWR)
	must(t, err)
	_, err = f.WriteAt(bytes.Repeat([]byte("n"), 1536), 0)
	must(t, err)
	must(t, m.Rename("/f", "/g"))
	seen := map[string]bool{}
	m.EachPowerLoss(func(p *vfs.Mem) bool {
		for _, name := range []string{"/f", "/g"} {
			b, err := vfs.ReadFile(p, name)
			if err != nil {
				continue
			}
			text := name
			for at := 0; at < len(b); at += 512 {
				text += string(b[at : at+1])
			}
			seen[text] = true
		}
		return true
	})
	// Two names; long or short, each of the sectors old or new; the third was a hole.
	if len(seen) != 2*(4+8) {
		t.Fatalf("seen %d states: %v", len(seen), seen)
	}
}

// WriteFileDurable leaves the old content or the new one, whenever the power fails, and the new one when it has returned.
func TestWriteFileDurableUnderEveryPowerLoss(t *testing.T) {
	old, fresh := bytes.Repeat([]byte("old "), 300), bytes.Repeat([]byte("new "), 400)
	for at := 1; ; at++ {
		m := vfs.NewMem()
		must(t, vfs.WriteFileDurable(m, "/f", old))
		ops, states := 0, 0
		look := func(mayBeOld bool) {
			m.EachPowerLoss(func(left *vfs.Mem) bool {
				states++
				b, err := vfs.ReadFile(left, "/f")
				if err != nil || !bytes.Equal(b, fresh) && !(mayBeOld && bytes.Equal(b, old)) {
					t.Fatalf("operation %d: %d bytes, %v", at, len(b), err)
				}
				return true
			})
		}
		m.Inject(func(vfs.Op) error {
			if ops++; ops == at {
				look(true)
			}
			if ops >= at {
				return errors.New("the power is off")
			}
			return nil
		})
		if err := vfs.WriteFileDurable(m, "/f", fresh); ops < at {
			must(t, err)
			look(false)
			return
		}
	}
}

// A process that is killed between making a directory and making its name durable leaves that to the next one.
func TestMkdirAllDurableAfterAKill(t *testing.T) {
	m := vfs.NewMem()
	must(t, m.MkdirAll("/data/store")) // and killed here
	m = m.KillUnsynced()
	must(t, vfs.MkdirAllDurable(m, "/data/store"))
	must(t, vfs.MkdirAllDurable(m, "/data/store/commitlog"))
	must(t, vfs.WriteFileDurable(m, "/data/store/commitlog/f", []byte("x")))
	m.EachPowerLoss(func(left *vfs.Mem) bool {
		_, err := vfs.ReadFile(left, "/data/store/commitlog/f")
		must(t, err)
		return true
	})
}
