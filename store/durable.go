package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"mqx/internal/vfs"
)

const (
	durableName = "durable"
	durableHead = "mqx durable 1"
)

// durableNote says what was durable when a checkpoint was written: with it the start after a dirty stop begins at the
// record the checkpoint names, not at the file that record lies in. It is believed only beside that very checkpoint: an
// Apache broker that ran in between has written another one, and its own is not exact enough.
type durableNote struct {
	ckpt   Checkpoint
	queues map[stopKey]int64 // of each queue a maximum that its durable units reach
}

func (n *durableNote) encode() []byte {
	b := []byte("checkpoint")
	for _, field := range n.ckpt.fields() {
		b = fmt.Appendf(b, " %d", *field)
	}
	b = append(b, '\n')
	for k, maxOffset := range n.queues {
		b = appendQueueLine(b, k, maxOffset)
	}
	return b
}

func decodeDurableNote(b []byte) (*durableNote, error) {
	n := &durableNote{queues: map[stopKey]int64{}}
	for line := range strings.Lines(string(b)) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch kind {
		case "checkpoint":
			f := n.ckpt.fields()
			if _, err := fmt.Sscan(rest, f[0], f[1], f[2], f[3], f[4], f[5]); err != nil {
				return nil, errStateFile
			}
		case "queue":
			k, numbers, err := parseQueueLine(rest, 1)
			if err != nil {
				return nil, err
			}
			n.queues[k] = numbers[0]
		}
	}
	return n, nil
}

// CheckDurableNote reads the note of the last checkpoint in a store directory. Errors as those of DeletedTopics.
func CheckDurableNote(fsys vfs.FS, root string) error {
	b, err := readState(fsys, filepath.Join(root, ownDir, durableName), durableHead)
	if err != nil {
		return err
	}
	_, err = decodeDurableNote(b)
	return err
}

// queueMaxima is what a note says of the queues. It is taken before the position of the checkpoint, so that it is
// never ahead of that.
func (s *Store) queueMaxima() map[stopKey]int64 {
	m := map[stopKey]int64{}
	for q := range s.queues.all {
		if q.exists() {
			m[stopKey{q.topic, q.id}] = q.maxOffset()
		}
	}
	return m
}

// writeDurable notes what is durable with the checkpoint that was just written. Without the note the next dirty start
// only takes longer: an error is for the log.
func (s *Store) writeDurable(queues map[stopKey]int64) {
	note := durableNote{ckpt: s.ckpt.last, queues: queues}
	if err := writeState(s.cfg.FS, filepath.Join(s.cfg.RootDir, ownDir, durableName), durableHead, note.encode()); err != nil {
		s.cfg.Logger.Warn("store: a start after a crash will take longer", "err", err)
	}
}

// readDurable returns the note that belongs to the checkpoint found, nil when there is none or a record does not begin
// where they say.
func (r *recovery) readDurable() *durableNote {
	s := r.s
	path := filepath.Join(s.cfg.RootDir, ownDir, durableName)
	b, err := readState(s.cfg.FS, path, durableHead)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var note *durableNote
	if err == nil {
		note, err = decodeDurableNote(b)
	}
	if err != nil {
		s.find(Finding{FindStateUnreadable, path, -1, fmt.Sprintf("the note of the last checkpoint is not used: %v", err)})
		return nil
	}
	if r.noCheckpoint || note.ckpt != r.ckpt || note.ckpt.LogicsPhysOffset < max(1, s.log.Min()) {
		return nil
	}
	if rec, err := s.recordAt(note.ckpt.LogicsPhysOffset); err != nil || rec.StoreTimestamp() != note.ckpt.LogicsTime {
		return nil
	}
	return note
}

// lacking are the queues that do not hold what a note says is durable, to be built from the log.
func (r *recovery) lacking(note *durableNote) map[*queue]int64 {
	short := map[*queue]int64{}
	for k, want := range note.queues {
		if r.s.deleted.covers([]byte(k.topic), note.ckpt.LogicsPhysOffset) {
			continue
		}
		if q := r.s.queues.ensure([]byte(k.topic), k.id); !q.exists() || q.maxOffset() < want {
			short[q] = q.lastEnd()
		}
	}
	return short
}
