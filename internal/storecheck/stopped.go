package storecheck

import (
	"fmt"
	"path/filepath"

	"mqx/internal/vfs"
)

// Stopped is all that is read of a stopped store.
type Stopped struct {
	Log    *Log
	Queues map[QueueKey]*Queue
	Index  *Index
}

// CheckStopped reads a store that was closed in order and returns what does not agree: log, queues and index with each
// other, and with the journal, if there is one. slots is the number of slots of its index files.
func CheckStopped(fsys vfs.FS, root string, slots int, j *Journal) (*Stopped, []error) {
	s := &Stopped{}
	var err error
	if s.Log, err = ReadLog(fsys, filepath.Join(root, "commitlog")); err != nil {
		return nil, []error{err}
	}
	if s.Queues, err = ReadQueues(fsys, root); err != nil {
		return nil, []error{err}
	}
	if s.Index, err = ReadIndex(fsys, root, slots, s.Log); err != nil {
		return nil, []error{err}
	}
	var errs []error
	for _, tail := range s.Log.Tail {
		errs = append(errs, fmt.Errorf("commit log: %s", tail))
	}
	errs = append(errs, CheckQueues(s.Log, s.Queues)...)
	errs = append(errs, CheckIndex(s.Log, s.Index)...)
	if j != nil {
		errs = append(errs, j.Check(s.Log)...)
	}
	return s, errs
}
