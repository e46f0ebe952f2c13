package store

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mqx/internal/vfs"
)

// A log file that goes by force may hold messages whose units are not durable, as the volume of the queues is full too.
// A loss of power right then would leave queues that know nothing of those messages, whose offsets would be given
// again. So the ends of all queues are noted before: in a file that has its room since the start, for there may be none
// left. It holds two notes, written in turns, so that the one before stays whatever becomes of the next one.
const (
	endsName = "ends"
	endsHead = "mqx queue ends 1"
	// endsLeast is the least room for a note.
	endsLeast = 4096
	// endsMost bounds it: more is no note.
	endsMost = 1 << 30
)

// endsNote says that the log may begin at a position from now on, and where the queues end.
type endsNote struct {
	number int64 // of the notes of a store, the newest counts
	logMin int64
	queues map[stopKey]int64
}

func (n *endsNote) encode() []byte {
	b := fmt.Appendf(nil, "%s\nnote %d\nlog %d\n", endsHead, n.number, n.logMin)
	for k, end := range n.queues {
		b = appendQueueLine(b, k, end)
	}
	return fmt.Appendf(b, "crc32 %08x\n", crc32.ChecksumIEEE(b))
}

func decodeEnds(b []byte) (*endsNote, error) {
	b, err := parseState(bytes.TrimRight(b, "\x00"), endsHead)
	if err != nil {
		return nil, err
	}
	n := &endsNote{queues: map[stopKey]int64{}}
	for line := range strings.Lines(string(b)) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch kind {
		case "note":
			_, err = fmt.Sscan(rest, &n.number)
		case "log":
			_, err = fmt.Sscan(rest, &n.logMin)
		case "queue":
			var k stopKey
			var numbers []int64
			if k, numbers, err = parseQueueLine(rest, 1); err == nil {
				n.queues[k] = numbers[0]
			}
		}
		if err != nil {
			return nil, errStateFile
		}
	}
	return n, nil
}

// endsFile is the file of the notes. Owned by Store.checkpointing once the store is open.
type endsFile struct {
	room  int64 // of each note; 0: there is no file
	notes int64 // so many were written
	note  *endsNote
}

func (s *Store) endsPath() string { return filepath.Join(s.cfg.RootDir, ownDir, endsName) }

// loadEnds reads the note that is in force, if there is one.
func (s *Store) loadEnds() error {
	b, err := vfs.ReadFile(s.cfg.FS, s.endsPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the ends of the queues: %w", err)
	}
	s.ends.room = int64(len(b)) / 2
	for _, half := range [][]byte{b[:s.ends.room], b[s.ends.room:]} {
		n, err := decodeEnds(half)
		if err != nil { // empty, of a loss before its file went, or of a note that is done with
			continue
		}
		if s.ends.note == nil || n.number > s.ends.note.number {
			s.ends.note, s.ends.notes = n, n.number
		}
	}
	return nil
}

// keepRoom sees to it that the file has room for a note of these queues. The store does without it where that fails.
func (s *Store) keepRoom(queues map[stopKey]int64) {
	need := int64(endsLeast / 2)
	for k := range queues {
		need += int64(len(k.topic)) + int64(len("queue -2147483648 9223372036854775807 \n"))
	}
	if need <= s.ends.room || s.ends.note != nil || need > endsMost {
		return
	}
	room := (2*need + endsLeast - 1) / endsLeast * endsLeast
	err := vfs.MkdirAllDurable(s.cfg.FS, filepath.Dir(s.endsPath()))
	if err == nil {
		err = vfs.WriteFileDurable(s.cfg.FS, s.endsPath(), make([]byte, 2*room))
	}
	if err != nil {
		s.cfg.Logger.Debug("store: no room is kept for the ends of the queues", "err", err)
		return
	}
	s.ends.room = room
}

// noteEnds makes the log durable, and where the queues end, before its first file goes, behind which it begins at logMin.
func (s *Store) noteEnds(logMin int64) error {
	s.checkpointing.Lock()
	defer s.checkpointing.Unlock()
	queues := s.queueMaxima()
	for q := range s.queues.all { // there may be messages in no queue yet, which go as well
		if next := q.counter.Next(); next > q.maxOffset() {
			queues[stopKey{q.topic, q.id}] = next
		}
	}
	if err := s.log.Flush(); err != nil {
		return err
	}
	return s.writeNote(logMin, queues)
}

// writeNote puts a new note in force. Needs checkpointing.
func (s *Store) writeNote(logMin int64, queues map[stopKey]int64) error {
	note := &endsNote{s.ends.notes + 1, logMin, queues}
	b := note.encode()
	if int64(len(b)) > s.ends.room {
		s.keepRoom(queues)
	}
	if int64(len(b)) > s.ends.room {
		return fmt.Errorf("cannot note the ends of the queues: %d bytes, room for %d", len(b), s.ends.room)
	}
	if err := s.writeEnds(append(b, make([]byte, s.ends.room-int64(len(b)))...), note.number%2*s.ends.room); err != nil {
		return fmt.Errorf("cannot note the ends of the queues: %w", err)
	}
	s.ends.note, s.ends.notes = note, note.number
	return nil
}

// forgetEnds is called when the queues are durable up to a position. Needs checkpointing.
func (s *Store) forgetEnds(durable int64) error {
	if s.ends.note == nil || durable < s.ends.note.logMin {
		return nil
	}
	if err := s.writeEnds(make([]byte, 2*s.ends.room), 0); err != nil {
		return fmt.Errorf("cannot forget the noted ends of the queues: %w", err)
	}
	s.ends.note = nil
	return nil
}

func (s *Store) writeEnds(b []byte, at int64) error {
	f, err := s.cfg.FS.OpenFile(s.endsPath(), os.O_RDWR)
	if err != nil {
		return err
	}
	n, err := f.WriteAt(b, at)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// explained reports whether the log begins behind the queues because its first files went by force.
func (n *endsNote) explained(logMin int64) bool { return n != nil && logMin <= n.logMin }

// keepEnds gives fillers to queues that end before the offset noted: the messages went with their log file.
func (r *recovery) keepEnds() error {
	s := r.s
	if s.ends.note == nil {
		return nil
	}
	for k, end := range s.ends.note.queues {
		if s.deleted.covers([]byte(k.topic), s.ends.note.logMin-1) {
			continue
		}
		q := s.queues.ensure([]byte(k.topic), k.id)
		if q.batch.Load() != nil {
			continue
		}
		c := q.cq.Load()
		if c == nil {
			c = s.cqs.New(q.topic, q.id)
			c.SetExt(q.ext.Load())
			q.cq.Store(c)
		}
		n, err := c.FillUpTo(end)
		if err != nil {
			return fmt.Errorf("cannot recover consume queues: %w", err)
		}
		if n > 0 {
			s.find(Finding{FindQueueGap, "", -1, fmt.Sprintf("queue %s/%d: the messages of its last %d offsets went by force with their log file; the offsets stay used", q.topic, q.id, n)})
		}
	}
	return nil
}
