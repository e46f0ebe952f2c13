package storecheck

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"mqx/internal/vfs"
)

// Stopped is all that is read of a stopped store.
type Stopped struct {
	Log    *Log
	Queues map[QueueKey]*Queue
	Index  *Index
}

// readDir lists a directory; a missing one is empty.
func readDir(fsys vfs.FS, dir string) ([]fs.DirEntry, error) {
	entries, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}

// Options are what the reader of a store has to know.
type Options struct {
	Slots   int                     // of the index files
	Journal *Journal                // what was sent; nil when that is not known
	Gone    func(topic string) bool // topics that were deleted, whose records have no queues; nil for none
	// BitMap is what extension units hold of a message with these properties; nil when that is not known.
	BitMap func(props map[string]string) []byte
}

// CheckStopped reads a store that was closed in order and returns what does not agree: log, queues and index with each
// other, and with the journal, if there is one.
func CheckStopped(fsys vfs.FS, root string, o Options) (*Stopped, []error) {
	s := &Stopped{}
	var err error
	if s.Log, err = ReadLog(fsys, filepath.Join(root, "commitlog")); err != nil {
		return nil, []error{err}
	}
	if s.Queues, err = ReadQueues(fsys, root); err != nil {
		return nil, []error{err}
	}
	if s.Index, err = ReadIndex(fsys, root, o.Slots, s.Log); err != nil {
		return nil, []error{err}
	}
	var errs []error
	for _, tail := range s.Log.Tail {
		errs = append(errs, fmt.Errorf("commit log: %s", tail))
	}
	errs = append(errs, CheckQueues(s.Log, s.Queues, o.Gone, o.BitMap)...)
	errs = append(errs, CheckIndex(s.Log, s.Index)...)
	if o.Journal != nil {
		errs = append(errs, o.Journal.Check(s.Log)...)
	}
	return s, errs
}
