// Package jsonfile keeps small configuration files (topics.json, consumerOffset.json, ...) so that a crash or a broken
// file never leaves a broker without a good copy. Beside `name` lies `name.bak`, the version before, as Apache
// RocketMQ keeps it, and both are files that Apache reads. See docs/format/layout.md, "Configuration files".
package jsonfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"

	"mqx/internal/failpoint"
	"mqx/internal/vfs"
)

// Source says where Load found the content.
type Source int8

// Sources of a Load.
const (
	None   Source = iota // neither file exists: a fresh start
	Main                 // the file itself
	Backup               // name.bak, because the file was missing or bad
)

// String names the source for logs.
func (s Source) String() string {
	switch s {
	case Main:
		return "file"
	case Backup:
		return "backup"
	default:
		return "none"
	}
}

// maxQuarantined bounds how many bad versions of one file are kept; the last place is overwritten after that.
const maxQuarantined = 100

// BadError says that there is content but none of it can be used: starting from nothing would lose it. Neither file
// has been touched.
type BadError struct {
	Path    string
	MainErr error // what is wrong with the file; fs.ErrNotExist when it is missing
	BakErr  error // the same of the backup
}

// Error names both files and what is wrong with each.
func (e *BadError) Error() string {
	return fmt.Sprintf("cannot load %q: %v; and not its backup %q either: %v", e.Path, e.MainErr, BackupName(e.Path), e.BakErr)
}

// Unwrap gives both causes.
func (e *BadError) Unwrap() []error { return []error{e.MainErr, e.BakErr} }

// BackupName is the name of a file's backup.
func BackupName(path string) string { return path + ".bak" }

// errEmpty says that a file exists and holds nothing, or JSON's null, which no writer leaves behind on purpose.
var errEmpty = errors.New("the file is empty")

// errDangling says that a name leads to no file.
var errDangling = errors.New("it is a link to a file that is not there")

// Load reads path and hands its content to parse; when the file is missing, empty or refused by parse, the backup is
// tried. A bad file with a good backup is moved to the quarantine directory (QuarantineDir), so that a later Save
// cannot push it over the good backup. parse must leave nothing behind when it fails; it may be called twice.
//
// With neither file there it returns None and no error, and parse is not called. Errors: *BadError when nothing
// usable was found, or the error of moving the bad file away.
func Load(fsys vfs.FS, path string, parse func([]byte) error) (Source, error) {
	mainErr := try(fsys, path, parse)
	if mainErr == nil {
		return Main, nil
	}
	bakErr := try(fsys, BackupName(path), parse)
	mainMissing, bakMissing := errors.Is(mainErr, fs.ErrNotExist), errors.Is(bakErr, fs.ErrNotExist)
	switch {
	case mainMissing && bakMissing:
		return None, named(fsys, path)
	case bakErr != nil:
		return None, &BadError{Path: path, MainErr: mainErr, BakErr: bakErr}
	case mainMissing:
		return Backup, nil
	}
	return Backup, quarantine(fsys, path)
}

func try(fsys vfs.FS, path string, parse func([]byte) error) error {
	b, err := vfs.ReadFile(fsys, path)
	if err != nil {
		return err
	}
	switch string(bytes.TrimSpace(b)) {
	case "", "null":
		return errEmpty
	}
	return parse(b)
}

// named returns an error when a name is there whose file is missing, as that of a link to a volume that is not mounted:
// starting from nothing would lose what is there.
func named(fsys vfs.FS, path string) error {
	entries, err := fsys.ReadDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot load %q: %w", path, err)
	}
	for _, e := range entries {
		if e.Name() == filepath.Base(path) {
			return &BadError{Path: path, MainErr: errDangling, BakErr: fs.ErrNotExist}
		}
	}
	return nil
}

// Save replaces path by data and makes the content before the backup. At every moment a crash leaves at least one
// whole version behind: the new one is written and synced beside the file before anything is renamed. An empty file is
// never made the backup. When Save returns nil the new content is durable.
func Save(fsys vfs.FS, path string, data []byte) error {
	tmp := path + ".tmp"
	err := vfs.WriteSynced(fsys, tmp, data)
	if errors.Is(err, fs.ErrNotExist) { // somebody removed the directory
		if err = vfs.MkdirAllDurable(fsys, filepath.Dir(path)); err == nil {
			err = vfs.WriteSynced(fsys, tmp, data)
		}
	}
	if err != nil {
		_ = fsys.Remove(tmp)
		return fmt.Errorf("cannot save %q: %w", path, err)
	}
	failpoint.Pass(failpoint.JSONWritten)
	if err := shift(fsys, path); err != nil {
		_ = fsys.Remove(tmp)
		return fmt.Errorf("cannot save %q: %w", path, err)
	}
	failpoint.Pass(failpoint.JSONShifted)
	if err := fsys.Rename(tmp, path); err != nil {
		return fmt.Errorf("cannot save %q: %w", path, err)
	}
	if err := fsys.SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("cannot save %q: %w", path, err)
	}
	return nil
}

// shift makes the current file the backup if it holds anything.
func shift(fsys vfs.FS, path string) error {
	st, err := fsys.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case st.Size() == 0:
		return nil // the rename of the new file replaces it
	}
	return fsys.Rename(path, BackupName(path))
}

// Remove removes a file and its backup durably. Missing ones are no error.
func Remove(fsys vfs.FS, path string) error {
	for _, name := range []string{path, BackupName(path)} {
		if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return fsys.SyncDir(filepath.Dir(path))
}

// QuarantineDir is where Load moves a bad file: mqx/quarantine in the store directory for files of its config
// directory, else mqx/quarantine beside the file.
func QuarantineDir(path string) string {
	dir := filepath.Dir(path)
	if filepath.Base(dir) == "config" {
		dir = filepath.Dir(dir)
	}
	return filepath.Join(dir, "mqx", "quarantine")
}

// PutAside moves a file and its backup, of which Load could use neither, to the quarantine directory, for a caller who can
// do without. Missing ones are no error.
func PutAside(fsys vfs.FS, path string) error {
	for _, name := range []string{path, BackupName(path)} {
		if _, err := fsys.Stat(name); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := quarantine(fsys, name); err != nil {
			return err
		}
	}
	return nil
}

func quarantine(fsys vfs.FS, path string) error {
	dir := QuarantineDir(path)
	if err := vfs.MkdirAllDurable(fsys, dir); err != nil {
		return fmt.Errorf("cannot move bad file %q away: %w", path, err)
	}
	target := ""
	for n := range maxQuarantined {
		target = filepath.Join(dir, filepath.Base(path)+"."+strconv.Itoa(n+1))
		if _, err := fsys.Stat(target); errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err := fsys.Rename(path, target); err != nil {
		return fmt.Errorf("cannot move bad file %q away: %w", path, err)
	}
	return errors.Join(fsys.SyncDir(dir), fsys.SyncDir(filepath.Dir(path)))
}
