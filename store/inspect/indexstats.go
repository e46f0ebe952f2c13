package inspect

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"mqx/message"
)

// IndexStats is what the entries of an index file say together.
type IndexStats struct {
	Entries      int64
	Slots        int64 // that have entries
	LongestChain int64
	SlotSharing  int64 // entries behind one of another hash in the same slot
	BrokenLinks  int64 // entries whose previous one is not the one before in their slot, and slots whose head is not the newest
	// HasMatch says that the log was asked; then:
	HasMatch   bool
	Expired    int64 // entries whose record lies before the start of the log
	Mismatches int64 // entries whose record cannot be read or has no key with the hash
	// Collisions are entries with the hash of another, different key of the same file.
	Collisions int64
}

// Stats reads all entries; with match also the record of each, which takes a read of the log for every one.
func (x *IndexFile) Stats(ctx context.Context, match bool) (IndexStats, error) {
	s := IndexStats{HasMatch: match}
	if x.Err != nil {
		return s, x.Err
	}
	last := make([]int32, x.Slots)
	count := make([]int32, x.Slots)
	hashes := make([]int32, x.Slots) // of the newest entry of a slot
	keys := map[int32]string{}
	err := x.EachEntry(ctx, func(e IndexEntry) error {
		s.Entries++
		slot := e.Hash % x.Slots
		if slot < 0 {
			s.BrokenLinks++
			return nil
		}
		if e.Prev != last[slot] {
			s.BrokenLinks++
		}
		if last[slot] != 0 && hashes[slot] != e.Hash {
			s.SlotSharing++
		}
		last[slot], hashes[slot] = e.N, e.Hash
		count[slot]++
		s.LongestChain = max(s.LongestChain, int64(count[slot]))
		if match {
			return x.match(&s, e, keys)
		}
		return nil
	})
	if err != nil {
		return s, err
	}
	err = x.EachSlot(ctx, func(slot, head int32) error {
		s.Slots++
		if head != last[slot] {
			s.BrokenLinks++
		}
		return nil
	})
	return s, err
}

// maxCollisionKeys bounds the keys that are remembered to tell collisions.
const maxCollisionKeys = 1 << 20

func (x *IndexFile) match(s *IndexStats, e IndexEntry, keys map[int32]string) error {
	if e.Phys < x.d.log.Min() {
		s.Expired++
		return nil
	}
	key, err := x.KeyOf(e)
	if err != nil {
		return err
	}
	if key == "" {
		s.Mismatches++
		return nil
	}
	if before, ok := keys[e.Hash]; ok && before != key {
		s.Collisions++
	} else if len(keys) < maxCollisionKeys {
		keys[e.Hash] = key
	}
	return nil
}

// KeyOf is the index key of the record of an entry that has its hash, "" when the record cannot be read or has none.
func (x *IndexFile) KeyOf(e IndexEntry) (string, error) {
	v, err := x.d.log.Record(e.Phys)
	switch {
	case errors.Is(err, ErrNoRecord), errors.Is(err, fs.ErrNotExist), errors.Is(err, io.ErrUnexpectedEOF):
		return "", nil
	case err != nil:
		return "", err
	}
	for _, key := range IndexKeys(v) {
		if KeyHash(key) == e.Hash {
			return key, nil
		}
	}
	return "", nil
}

// IndexKeys are the keys that the index has of a record, in their order: docs/format/index.md.
func IndexKeys(v message.View) []string {
	if v.Transaction() == message.TransactionRollback {
		return nil
	}
	topic := string(v.Topic())
	m := message.Message{Properties: message.ParseProperties(v.Properties())}
	var keys []string
	if id := m.UniqKey(); id != "" {
		keys = append(keys, topic+"#"+id)
	}
	for _, k := range m.Keys() {
		keys = append(keys, topic+"#"+k)
	}
	if t := m.Tags(); t != "" {
		keys = append(keys, topic+"#T#"+t)
	}
	return keys
}
