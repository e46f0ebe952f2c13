package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"mqx/internal/vfs"
	"mqx/store/ha"
)

// replicationFile, in the mqx directory of the store, holds what a master remembers of its copies (docs/format/ha.md).
const replicationFile = "replication.json"

// replicationState is what the file holds.
type replicationState struct {
	// Level and Copies are the rules under which the end of the log was acknowledged.
	Level  ha.Level `json:"level"`
	Copies int      `json:"copies"`
	// Copied says that a slave has followed.
	Copied bool `json:"copied,omitempty"`
	// Degraded are the times in which fewer copies had to do, oldest first.
	Degraded []ha.Interval `json:"degraded"`
}

// open reads whether the log has copies, before it is opened. What cannot be read is told by recall.
func (r *replication) open(b *Broker) {
	r.b, r.file = b, filepath.Join(b.cfg().Store.RootDir, "mqx", replicationFile)
	data, err := vfs.ReadFile(b.fsys, r.file)
	var st replicationState
	r.copied.Store(err == nil && json.Unmarshal(data, &st) == nil && st.Copied)
}

// noteCopy remembers, with the first slave that follows, that the log has copies.
func (r *replication) noteCopy() {
	if r.copied.Swap(true) {
		return
	}
	st := r.master.Status()
	if err := r.save(st.Rules, st.Intervals); err != nil {
		r.copied.Store(false) // tried again with the next
		r.b.log.Error("that this log has copies could not be noted", "error", err)
	}
}

// recall reads what was remembered, and says before which position everything had its copies when it was acknowledged. A file
// that cannot be read is as none: nothing is known to have copies then.
func (r *replication) recall(rules ha.Rules, end int64) (before []ha.Interval, base int64, err error) {
	var st replicationState
	b, err := vfs.ReadFile(r.b.fsys, r.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if !rules.Waits() {
			return nil, 0, nil
		}
	case err != nil:
		return nil, 0, fmt.Errorf("cannot read what is remembered of copies: %w", err)
	default:
		if err := json.Unmarshal(b, &st); err != nil {
			r.b.log.Error("what is remembered of copies cannot be read; all of the log counts as without", "file", r.file, "error", err)
			st = replicationState{}
		}
	}
	if rules.Waits() && st.Level == rules.Level && st.Copies >= rules.Copies {
		return st.Degraded, end, nil
	}
	return st.Degraded, 0, r.save(rules, st.Degraded)
}

// record makes the times of fewer copies durable.
func (r *replication) record(list []ha.Interval) error { return r.save(r.master.Status().Rules, list) }

func (r *replication) save(rules ha.Rules, list []ha.Interval) error {
	r.saving.Lock()
	defer r.saving.Unlock()
	b, err := json.MarshalIndent(replicationState{Level: rules.Level, Copies: rules.Copies, Copied: r.copied.Load(), Degraded: list}, "", "  ")
	if err == nil {
		err = vfs.MkdirAllDurable(r.b.fsys, filepath.Dir(r.file))
	}
	if err == nil {
		err = vfs.WriteFileDurable(r.b.fsys, r.file, append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("cannot remember times of fewer copies: %w", err)
	}
	return nil
}
