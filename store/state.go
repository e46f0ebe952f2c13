package store

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"mqx/internal/vfs"
)

// A state file is text: a head line, lines of fields, and the CRC-32 of everything before as the last line.

// ErrStateFile says that a file of mqx's own cannot be read.
var ErrStateFile = errors.New("not a state file, or damaged")

var errStateFile = ErrStateFile

// DeletedTopics reads the note of deleted topics in a store directory: the position up to which the records of each are
// not to be dispatched again. Errors: fs.ErrNotExist, ErrStateFile, or the one of the disk.
func DeletedTopics(fsys vfs.FS, root string) (map[string]int64, error) {
	if _, err := fsys.Stat(filepath.Join(root, ownDir, deletedName)); err != nil {
		return nil, err
	}
	var d deletedTopics
	if err := d.load(fsys, root); err != nil {
		return nil, err
	}
	return d.mu.upTo, nil
}

// CheckStopNote reads the note of the last orderly stop in a store directory. Errors as those of DeletedTopics.
func CheckStopNote(fsys vfs.FS, root string) error {
	b, err := readState(fsys, filepath.Join(root, ownDir, stopName), stopHead)
	if err != nil {
		return err
	}
	_, err = decodeCleanStop(b)
	return err
}

// writeState makes a state file durable.
func writeState(fsys vfs.FS, path, head string, body []byte) error {
	b := append([]byte(head+"\n"), body...)
	b = fmt.Appendf(b, "crc32 %08x\n", crc32.ChecksumIEEE(b))
	if err := vfs.MkdirAllDurable(fsys, filepath.Dir(path)); err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}
	if err := vfs.WriteFileDurable(fsys, path, b); err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}
	return nil
}

// readState reads a state file and checks it. Errors: fs.ErrNotExist, errStateFile, or the one of the disk.
func readState(fsys vfs.FS, path, head string) ([]byte, error) {
	b, err := vfs.ReadFile(fsys, path)
	if err != nil {
		return nil, err
	}
	return parseState(b, head)
}

// parseState returns what stands between the head and the checksum of a state file.
func parseState(b []byte, head string) ([]byte, error) {
	i := bytes.LastIndex(bytes.TrimSuffix(b, []byte{'\n'}), []byte{'\n'}) + 1
	if string(b[i:]) != fmt.Sprintf("crc32 %08x\n", crc32.ChecksumIEEE(b[:i])) || !bytes.HasPrefix(b[:i], []byte(head+"\n")) {
		return nil, errStateFile
	}
	return b[len(head)+1 : i], nil
}

const (
	stopName = "stopped"
	stopHead = "mqx clean stop 1"

	deletedName = "deleted-topics"
	deletedHead = "mqx deleted topics 1"
)

// cleanStop says how an orderly stop left the store, so that the next start has nothing to search for. It is believed
// only after a clean stop, and only where the disk agrees with it.
type cleanStop struct {
	logMin, logEnd int64
	shown          int64 // how far consumers had seen; the rest was held back
	lastStart      int64 // of the last record, -1 for none
	indexPhys      int64 // last record in the index, -1 for none
	indexed        int64 // the index covers the log up to here
	queues         map[stopKey]stopQueue
}

type stopKey struct {
	topic string
	id    int32
}

type stopQueue struct{ max, lastEnd int64 }

func (c *cleanStop) encode() []byte {
	var b []byte
	b = fmt.Appendf(b, "log %d %d %d\nindex %d %d\n", c.logMin, c.logEnd, c.lastStart, c.indexPhys, c.indexed)
	if c.shown < c.logEnd {
		b = fmt.Appendf(b, "shown %d\n", c.shown)
	}
	for k, q := range c.queues {
		b = appendQueueLine(b, k, q.max, q.lastEnd)
	}
	return b
}

// appendQueueLine writes a line of a note: queue, number, what is said of it, topic.
func appendQueueLine(b []byte, k stopKey, numbers ...int64) []byte {
	b = strconv.AppendInt(append(b, "queue "...), int64(k.id), 10)
	for _, n := range numbers {
		b = strconv.AppendInt(append(b, ' '), n, 10)
	}
	return append(append(append(b, ' '), k.topic...), '\n')
}

// parseQueueLine reads what follows "queue" in such a line, with so many numbers.
func parseQueueLine(rest string, numbers int) (stopKey, []int64, error) {
	fields := strings.SplitN(rest, " ", numbers+2)
	if len(fields) != numbers+2 {
		return stopKey{}, nil, errStateFile
	}
	id, err := strconv.ParseInt(fields[0], 10, 32)
	if err != nil {
		return stopKey{}, nil, errStateFile
	}
	n := make([]int64, numbers)
	for i := range n {
		if n[i], err = strconv.ParseInt(fields[1+i], 10, 64); err != nil {
			return stopKey{}, nil, errStateFile
		}
	}
	return stopKey{fields[numbers+1], int32(id)}, n, nil
}

func decodeCleanStop(b []byte) (*cleanStop, error) {
	c := &cleanStop{shown: -1, queues: map[stopKey]stopQueue{}}
	for line := range strings.Lines(string(b)) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch kind {
		case "log":
			if _, err := fmt.Sscan(rest, &c.logMin, &c.logEnd, &c.lastStart); err != nil {
				return nil, errStateFile
			}
		case "shown":
			if _, err := fmt.Sscan(rest, &c.shown); err != nil {
				return nil, errStateFile
			}
		case "index":
			if _, err := fmt.Sscan(rest, &c.indexPhys, &c.indexed); err != nil {
				return nil, errStateFile
			}
		case "queue":
			k, n, err := parseQueueLine(rest, 2)
			if err != nil {
				return nil, err
			}
			c.queues[k] = stopQueue{n[0], n[1]}
		}
	}
	if c.shown < 0 || c.shown > c.logEnd {
		c.shown = c.logEnd
	}
	return c, nil
}

// deletedTopics remembers up to where in the log the records of deleted topics are not to be dispatched again. It is
// safe to share.
type deletedTopics struct {
	some atomic.Bool
	mu   struct {
		sync.RWMutex
		upTo map[string]int64
	}
}

// covers reports whether a record of a topic at phys was deleted with it.
func (d *deletedTopics) covers(topic []byte, phys int64) bool {
	if !d.some.Load() {
		return false
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	return phys < d.mu.upTo[string(topic)]
}

// WasDeleted reports whether a topic of this name was deleted and the log may still hold messages of it. It is also true
// for the one that was made anew since.
func (s *Store) WasDeleted(topic string) bool {
	if !s.deleted.some.Load() {
		return false
	}
	s.deleted.mu.RLock()
	defer s.deleted.mu.RUnlock()
	_, ok := s.deleted.mu.upTo[topic]
	return ok
}

func (d *deletedTopics) add(topic string, upTo int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.upTo == nil {
		d.mu.upTo = map[string]int64{}
	}
	d.mu.upTo[topic] = upTo
	d.some.Store(true)
}

// cut takes in that the log was cut: what is appended from its end on is not deleted. It reports whether that changed
// anything.
func (d *deletedTopics) cut(logEnd int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	changed := false
	for topic, upTo := range d.mu.upTo {
		if upTo > logEnd {
			d.mu.upTo[topic], changed = logEnd, true
		}
	}
	return changed
}

// load reads the file in a store directory.
func (d *deletedTopics) load(fsys vfs.FS, root string) error {
	b, err := readState(fsys, filepath.Join(root, ownDir, deletedName), deletedHead)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(bytes.NewReader(b))
	for lines.Scan() {
		n, topic, _ := strings.Cut(lines.Text(), " ")
		upTo, err := strconv.ParseInt(n, 10, 64)
		if err != nil {
			return errStateFile
		}
		d.add(topic, upTo)
	}
	return lines.Err()
}

// save makes the table durable, without topics whose records have all left the log.
func (d *deletedTopics) save(fsys vfs.FS, root string, logMin int64) error {
	d.mu.Lock()
	var b []byte
	for topic, upTo := range d.mu.upTo {
		if upTo <= logMin {
			delete(d.mu.upTo, topic)
			continue
		}
		b = fmt.Appendf(b, "%d %s\n", upTo, topic)
	}
	d.mu.Unlock()
	return writeState(fsys, filepath.Join(root, ownDir, deletedName), deletedHead, b)
}
