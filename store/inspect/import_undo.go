package inspect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"mqx/internal/vfs"
)

// before is what an import into a new directory found there, so that one that makes nothing leaves nothing.
type before struct {
	dirs  []string // that were not there, the deepest first
	notes bool     // mqx/ was there
	lock  bool
}

func (i *importer) remember() (before, error) {
	var b before
	for dir := filepath.Clean(i.root); ; dir = filepath.Dir(dir) {
		_, err := i.fs.Stat(dir)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return b, err
		}
		b.dirs = append(b.dirs, dir)
		if dir == filepath.Dir(dir) {
			break
		}
	}
	for name, there := range map[string]*bool{"mqx": &b.notes, nameLock: &b.lock} {
		_, err := i.fs.Stat(i.path(name))
		if *there = err == nil; err != nil && !vfs.Absent(err) {
			return b, err
		}
	}
	return b, nil
}

// undo leaves the directory as it was, and ends the lock. The lock file goes while it is held: who opens it before cannot
// have it, and who comes later makes a new one.
func (i *importer) undo(b before, lock io.Closer) error {
	var errs []error
	remove := func(path string) bool {
		err := i.fs.Remove(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("cannot take away what the import began: %w", err))
		}
		return err == nil
	}
	if !b.notes {
		remove(i.path("mqx"))
	}
	if !b.lock && i.fs.Remove(i.path(nameLock)) != nil { // some systems keep a file that is open
		errs = append(errs, lock.Close())
		remove(i.path(nameLock))
	} else {
		errs = append(errs, lock.Close())
	}
	for _, dir := range b.dirs {
		if !remove(dir) {
			break
		}
	}
	if len(b.dirs) == 0 {
		errs = append(errs, i.fs.SyncDir(i.root))
	}
	return errors.Join(errs...)
}
