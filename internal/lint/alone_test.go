package lint

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// The repository stands alone: no text in it points to a place on somebody's
// machine, and no test goes by for lack of data.
func TestNothingOutsideIsReferredTo(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	// Written in pieces, so that this file does not find itself.
	banned := [][]byte{[]byte("/work" + "/shared"), []byte("/work" + "/main"), []byte("/work" + "/team"), []byte("/root" + "/")}
	looked := 0
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch d.Name() {
			case ".git", "dist", "golden":
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		looked++
		for _, b := range banned {
			if bytes.Contains(text, b) {
				rel, _ := filepath.Rel(root, p)
				t.Errorf("%s refers to %s", rel, b)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if looked < 10 {
		t.Fatalf("looked at only %d files", looked)
	}
}
