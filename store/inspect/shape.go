package inspect

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mqx/internal/vfs"
)

// lies is what lies at a place.
type lies int

const (
	liesNothing lies = iota // no entry
	liesFile
	liesDir
	liesSpecial  // a pipe, a socket, a device
	liesDangling // a link to nothing, or to itself
)

func (l lies) String() string {
	return [...]string{"nothing lies", "a file lies", "a directory lies", "a pipe, a socket or a device lies", "a link to nothing lies"}[l]
}

// entryLies says what an entry of a directory is, links followed.
func entryLies(fsys vfs.FS, dir string, e fs.DirEntry) (lies, error) {
	st, err := fsys.Stat(filepath.Join(dir, e.Name()))
	switch {
	case vfs.Absent(err) && e.Type()&fs.ModeSymlink != 0:
		return liesDangling, nil
	case vfs.Absent(err):
		return liesNothing, nil
	case err != nil:
		return 0, err
	case st.IsDir():
		return liesDir, nil
	case vfs.Special(st.Mode()):
		return liesSpecial, nil
	}
	return liesFile, nil
}

// belongs says what should lie at a name in the store directory: a file, a directory, or nothing that is known of it.
func belongs(name string) lies {
	dir, base := path.Split(name)
	switch dir {
	case "":
		switch {
		case slices.Contains([]string{
			nameCommitLog, nameQueues, nameBatchQueues, nameExtUnits, nameIndex, nameConfig, nameTimerLog, ownDir, "compaction",
			"consumequeue_rocksdb", "rocksdbstore", "kvStore",
		}, base):
			return liesDir
		case slices.Contains([]string{nameCheckpoint, nameAbort, "abort.bak", nameLock, "epochFileCheckpoint", "brokerIdentity"}, base),
			base == nameTimerWheel, strings.HasPrefix(base, nameTimerWheel+"."):
			return liesFile
		}
	case nameConfig + "/":
		of := strings.TrimSuffix(strings.TrimSuffix(base, ".bak"), ".tmp")
		if strings.HasSuffix(of, ".json") || slices.Contains([]string{"timercheck", "timermetrics", "transactionMetrics"}, of) {
			return liesFile
		}
	case nameTimerLog + "/":
		if _, ok := fileNumber(base); ok {
			return liesFile
		}
	case ownDir + "/":
		switch base {
		case "stopped", "durable", "deleted-topics", "ends", "held", "timer-progress", path.Base(repairJournal):
			return liesFile
		case path.Base(repairWork), "salvage", "quarantine", "import":
			return liesDir
		}
	case "compaction/":
		if base == "position-checkpoint" {
			return liesFile
		}
	}
	return liesNothing
}

const ownDir = "mqx"

// shape reports what is of another kind than belongs at its place: brokers do not start on it, and nothing can be built there.
// What lies among the files of log, queues and index is told by those who list them.
func (v *verifier) shape() error {
	for _, dir := range []string{"", nameConfig, nameTimerLog, ownDir, "compaction"} {
		entries, err := v.d.fs.ReadDir(v.d.Path(dir))
		if vfs.Absent(err) {
			continue
		}
		if err != nil {
			if st, e := v.d.fs.Stat(v.d.Path(dir)); e == nil && !st.IsDir() {
				continue // told where it was an entry
			}
			return err
		}
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			want := belongs(name)
			if want == liesNothing {
				continue
			}
			got, err := entryLies(v.d.fs, v.d.Path(dir), e)
			if err != nil {
				return err
			}
			if got != want && got != liesNothing {
				v.misshapen(name, got, want)
			}
		}
	}
	return nil
}

func (v *verifier) misshapen(name string, got, want lies) {
	f := &Finding{
		Kind: FindForeign, File: name, Offset: -1, Phys: -1, Messages: 0, Derived: true,
		What: "this is no part of the store: " + misplacedText(got, want),
		Mend: "move it to mqx/salvage",
	}
	if byHand(name) {
		f.Mend = "move it away by hand: repair locks the directory with it, or keeps its notes there"
	}
	v.found.add(f)
}

func misplacedText(got, want lies) string {
	thing := "file"
	if want == liesDir {
		thing = "directory"
	}
	return got.String() + " where a " + thing + " belongs"
}

// byHand reports whether repair needs a place itself before it can mend anything.
func byHand(name string) bool {
	return name == nameLock || name == ownDir || name == repairJournal || name == repairWork || name == salvageDir || name == quarantineDir
}

// plainFS is a disk on which pipes, sockets, devices and links to nothing are not there, nor directories with the name of a
// numbered file: for readers that take what lies at a place for a file.
type plainFS struct{ vfs.FS }

// Stat describes a file or directory.
func (p plainFS) Stat(name string) (fs.FileInfo, error) {
	st, err := p.FS.Stat(name)
	if err == nil && vfs.Special(st.Mode()) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return st, plainErr(name, err)
}

// Open opens a file for reading.
func (p plainFS) Open(name string) (vfs.File, error) {
	if _, err := p.Stat(name); err != nil {
		return nil, err
	}
	return p.FS.Open(name)
}

// OpenFile opens a file.
func (p plainFS) OpenFile(name string, flag int) (vfs.File, error) {
	if _, err := p.Stat(name); err != nil {
		return nil, err
	}
	return p.FS.OpenFile(name, flag)
}

// ReadDir lists a directory.
func (p plainFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if _, err := p.Stat(name); err != nil {
		return nil, err
	}
	list, err := p.FS.ReadDir(name)
	return slices.DeleteFunc(list, func(e fs.DirEntry) bool {
		if e.Type().IsRegular() {
			return false
		}
		got, err := entryLies(p.FS, name, e)
		_, numbered := fileNumber(e.Name())
		return err == nil && (got == liesDangling || got == liesSpecial || got == liesDir && numbered)
	}), plainErr(name, err)
}

// plainErr makes an error that says that nothing is there one of a kind.
func plainErr(name string, err error) error {
	if vfs.Absent(err) {
		return &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return err
}
