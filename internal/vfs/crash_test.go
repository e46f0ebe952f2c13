package vfs_test

import (
	"bytes"
	"os"
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

// PowerLossBy with every answer gives every mixture of old and new sectors, times lengths and names.
func TestPowerLossByIsExhaustive(t *testing.T) {
	m := vfs.NewMem()
	must(t, vfs.WriteFileDurable(m, "/f", bytes.Repeat([]byte("o"), 1024)))
	f, err := m.OpenFile("/f", os.O_RDWR)
	must(t, err)
	_, err = f.WriteAt(bytes.Repeat([]byte("n"), 1536), 0)
	must(t, err)
	seen := map[string]bool{}
	for answers := []int(nil); ; {
		asked := []int{}
		p := m.PowerLossBy(func(n int) int {
			i := len(asked)
			asked = append(asked, n)
			if i == len(answers) {
				answers = append(answers, 0)
			}
			return answers[i]
		})
		b, err := vfs.ReadFile(p, "/f")
		must(t, err)
		text := ""
		for at := 0; at < len(b); at += 512 {
			text += string(b[at : at+1])
		}
		seen[text] = true
		for len(answers) > 0 && answers[len(answers)-1] == asked[len(answers)-1]-1 {
			answers = answers[:len(answers)-1]
		}
		if len(answers) == 0 {
			break
		}
		answers[len(answers)-1]++
	}
	// Long or short, each of the sectors old or new; the third was a hole.
	if len(seen) != 4+8 {
		t.Fatalf("seen %d states: %v", len(seen), seen)
	}
}
