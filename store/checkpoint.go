package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"mqx/internal/failpoint"
	"mqx/internal/vfs"
	"mqx/store/consumequeue"
)

// checkpointBytes is the length of the file; its fields take the first 48 bytes, which lie in one sector, so that a
// write in place is never torn.
const checkpointBytes = 4096

// Checkpoint is the content of the file `checkpoint`: how far things are durable. Zero means unknown. The bytes are
// docs/format/checkpoint.md.
type Checkpoint struct {
	PhysicTime       int64 // store time of the last durable record, ms
	LogicsTime       int64 // store time of the last record with a durable queue unit, ms
	IndexTime        int64 // store time of the last record in a full, durable index file, ms
	MasterFlushed    int64 // of replication: durable position of the master
	ConfirmPhys      int64 // start of the last valid record, as recovery found it
	LogicsPhysOffset int64 // start of the last record with a durable queue unit
}

// ReadCheckpoint reads the file in a store directory; ok is false when there is none or it is too short.
func ReadCheckpoint(fsys vfs.FS, root string) (c Checkpoint, ok bool, err error) {
	f, err := fsys.Open(filepath.Join(root, "checkpoint"))
	if errors.Is(err, fs.ErrNotExist) {
		return c, false, nil
	}
	if err != nil {
		return c, false, fmt.Errorf("cannot read checkpoint: %w", err)
	}
	defer func() { _ = f.Close() }()
	var b [48]byte
	if n, err := f.ReadAt(b[:], 0); n < len(b) {
		if errors.Is(err, io.EOF) {
			return c, false, nil
		}
		return c, false, fmt.Errorf("cannot read checkpoint: %w", err)
	}
	for i, field := range c.fields() {
		*field = int64(binary.BigEndian.Uint64(b[8*i:]))
	}
	return c, true, nil
}

func (c *Checkpoint) fields() [6]*int64 {
	return [...]*int64{&c.PhysicTime, &c.LogicsTime, &c.IndexTime, &c.MasterFlushed, &c.ConfirmPhys, &c.LogicsPhysOffset}
}

// plausible reports whether the fields can be true; a file of garbage is treated as missing.
func (c *Checkpoint) plausible() bool {
	for _, field := range c.fields() {
		if *field < 0 {
			return false
		}
	}
	return true
}

// checkpointFile writes the file in place.
type checkpointFile struct {
	f    vfs.File
	last Checkpoint
}

// openCheckpoint opens the file for writing, making it durably when it is missing.
func openCheckpoint(fsys vfs.FS, root string) (*checkpointFile, error) {
	path := filepath.Join(root, "checkpoint")
	f, err := fsys.OpenFile(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, fmt.Errorf("cannot open checkpoint: %w", err)
	}
	size, err := f.Size()
	if err == nil && size < checkpointBytes {
		if err = f.Truncate(checkpointBytes); err == nil {
			if err = f.Sync(); err == nil {
				err = fsys.SyncDir(root)
			}
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open checkpoint: %w", err), f.Close())
	}
	return &checkpointFile{f: f}, nil
}

// write makes c durable.
func (x *checkpointFile) write(c Checkpoint) error {
	b := make([]byte, 0, 48)
	for _, field := range c.fields() {
		b = binary.BigEndian.AppendUint64(b, uint64(*field))
	}
	if _, err := x.f.WriteAt(b, 0); err != nil {
		return fmt.Errorf("cannot write checkpoint: %w", err)
	}
	failpoint.Pass(failpoint.CheckpointWritten)
	if err := x.f.Sync(); err != nil {
		return fmt.Errorf("cannot write checkpoint: %w", err)
	}
	x.last = c
	return nil
}

// checkpoint makes everything that was dispatched so far durable, the log first, and then writes how far that is. The
// checkpoint is never ahead of the slowest part. full says that the index is to be made durable too, even in a file
// that is not full: at an orderly end.
func (s *Store) checkpoint(full bool) error {
	s.checkpointing.Lock()
	defer s.checkpointing.Unlock()
	var queues map[stopKey]int64
	if !full { // an orderly end leaves a note of its own
		queues = s.queueMaxima()
	}
	s.dispatching.Lock()
	start, storeTime, end := s.dispatcher.lastStart, s.dispatcher.lastStore, s.dispatcher.pos.Load()
	s.dispatching.Unlock()
	if err := s.log.Flush(); err != nil {
		return err
	}
	if s.queuesFailed.Load() {
		return errQueuesFailed
	}
	if err := s.cqs.Sync(); err != nil {
		// What a failed sync left on the disk is unknown: the queues have to be built again at the next start.
		var failed *consumequeue.SyncError
		s.queuesFailed.Store(errors.As(err, &failed))
		return err
	}
	c := s.ckpt.last
	if start >= 0 {
		c.PhysicTime = max(c.PhysicTime, storeTime)
		c.LogicsTime, c.LogicsPhysOffset = storeTime, start
	}
	if full && s.indexer.enabled {
		if err := s.index.Sync(); err != nil {
			return err
		}
		c.IndexTime, _ = s.index.LastUpdate()
	} else {
		c.IndexTime = max(c.IndexTime, s.index.DurableTime())
	}
	failpoint.Pass(failpoint.CheckpointDue)
	if err := s.ckpt.write(c); err != nil {
		return err
	}
	if !full {
		s.writeDurable(queues)
	}
	s.checkpointed.Store(end)
	if err := s.forgetEnds(end); err != nil {
		return err
	}
	if !full {
		s.keepRoom(queues)
	}
	return nil
}

var errQueuesFailed = errors.New("consume queues could not be made durable once; the checkpoint stays where it is until the next start")
