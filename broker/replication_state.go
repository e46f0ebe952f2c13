package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
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
	// Copied says that a slave follows, CopiedTo where the log ended when the last one left: what lies behind has no copies.
	Copied   bool  `json:"copied,omitempty"`
	CopiedTo int64 `json:"copiedTo,omitempty"`
	// Degraded are the times in which fewer copies had to do, oldest first.
	Degraded []ha.Interval `json:"degraded"`
}

// gapless is how far the log may have copies.
func (s *replicationState) gapless() int64 {
	if s.Copied {
		return math.MaxInt64
	}
	return s.CopiedTo
}

// open reads how far the log has copies, before it is opened. What cannot be read is told by recall.
func (r *replication) open(b *Broker) {
	r.b, r.file = b, filepath.Join(b.cfg().Store.RootDir, "mqx", replicationFile)
	data, err := vfs.ReadFile(b.fsys, r.file)
	if err == nil && json.Unmarshal(data, &r.state) != nil {
		r.state = replicationState{}
	}
}

// noteCopy remembers whether a slave follows, and when none does any more how far they may have come.
func (r *replication) noteCopy(follows bool) {
	r.saving.Lock()
	defer r.saving.Unlock()
	if follows {
		r.following++
	} else {
		r.following--
	}
	if err := r.noteCopies(); err != nil {
		r.b.log.Error("how far this log has copies could not be noted", "error", err)
	}
}

// noteCopies brings what is remembered of copies to who follows now. Needs saving.
func (r *replication) noteCopies() error {
	if follows := r.following > 0; follows != r.state.Copied {
		return r.write(func(s *replicationState) {
			if s.Copied = follows; !follows {
				s.CopiedTo = r.b.store.LogEnd()
			}
		})
	}
	return nil
}

// recall reads what was remembered, and says before which position everything had its copies when it was acknowledged. A file
// that cannot be read is as none: nothing is known to have copies then. No slave follows yet.
func (r *replication) recall(rules ha.Rules, end int64) (before []ha.Interval, base int64, err error) {
	r.saving.Lock()
	defer r.saving.Unlock()
	var st replicationState
	b, err := vfs.ReadFile(r.b.fsys, r.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if r.state.Level, r.state.Copies = rules.Level, rules.Copies; !rules.Waits() {
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
	r.state = st
	if list, changed := ha.Reopened(st.Degraded, end); changed {
		st.Degraded = list
		if err := r.write(func(s *replicationState) { s.Degraded = list }); err != nil {
			return nil, 0, err
		}
	}
	if err := r.noteCopies(); err != nil {
		return nil, 0, err
	}
	if rules.Waits() && st.Level == rules.Level && st.Copies >= rules.Copies {
		return st.Degraded, end, nil
	}
	return st.Degraded, 0, r.write(func(s *replicationState) { s.Level, s.Copies = rules.Level, rules.Copies })
}

// record makes the times of fewer copies durable.
func (r *replication) record(list []ha.Interval) error {
	rules := r.master.Status().Rules
	r.saving.Lock()
	defer r.saving.Unlock()
	return r.write(func(s *replicationState) { s.Level, s.Copies, s.Degraded = rules.Level, rules.Copies, list })
}

// ruled remembers the rules that are in force.
func (r *replication) ruled(rules ha.Rules) error {
	r.saving.Lock()
	defer r.saving.Unlock()
	return r.write(func(s *replicationState) { s.Level, s.Copies = rules.Level, rules.Copies })
}

// write changes what is remembered, and nothing else of it: others have changed that since. Needs saving.
func (r *replication) write(change func(*replicationState)) error {
	next := r.state
	change(&next)
	b, err := json.MarshalIndent(next, "", "  ")
	if err == nil {
		err = vfs.MkdirAllDurable(r.b.fsys, filepath.Dir(r.file))
	}
	if err == nil {
		err = vfs.WriteFileDurable(r.b.fsys, r.file, append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("cannot remember times of fewer copies: %w", err)
	}
	r.state = next
	return nil
}
