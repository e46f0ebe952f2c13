package store

import (
	"fmt"
	"path/filepath"
	"strings"

	"mqx/internal/failpoint"
	"mqx/message"
)

// Truncate cuts the log and everything derived from it back to a physical offset, where a record must begin. Puts are
// refused meanwhile. What is cut from the log is kept in mqx/salvage.
func (s *Store) Truncate(physicalOffset int64) error {
	s.checkpointing.Lock()
	defer s.checkpointing.Unlock()
	s.dispatching.Lock()
	defer s.dispatching.Unlock()
	s.indexing.Lock()
	defer s.indexing.Unlock()
	s.putting.Lock()
	defer s.putting.Unlock()

	// 1. The checkpoint goes back first: it must not be ahead of what follows, whenever that is interrupted.
	c := s.ckpt.last
	if c.LogicsPhysOffset >= physicalOffset {
		c.LogicsPhysOffset, c.LogicsTime, c.IndexTime = 0, 0, 0
	}
	c.ConfirmPhys = min(c.ConfirmPhys, physicalOffset)
	if err := s.ckpt.write(c); err != nil {
		return err
	}
	// 2. What points into the log, then the log.
	for q := range s.queues.all {
		if err := s.truncateQueue(q, physicalOffset); err != nil {
			return fmt.Errorf("cannot truncate store: %w", err)
		}
	}
	if _, err := s.index.DropBehind(physicalOffset); err != nil {
		return fmt.Errorf("cannot truncate store: %w", err)
	}
	if s.ends.note != nil { // what is cut keeps no offset
		if err := s.writeNote(s.ends.note.logMin, s.queueMaxima()); err != nil {
			return fmt.Errorf("cannot truncate store: %w", err)
		}
	}
	if err := s.log.Truncate(physicalOffset, filepath.Join(s.cfg.RootDir, ownDir, salvageDir)); err != nil {
		return fmt.Errorf("cannot truncate store: %w", err)
	}
	if s.deleted.cut(physicalOffset) {
		if err := s.deleted.save(s.cfg.FS, s.cfg.RootDir, s.log.Min()); err != nil {
			return fmt.Errorf("cannot truncate store: %w", err)
		}
	}
	if err := s.clipTimer(physicalOffset); err != nil {
		return fmt.Errorf("cannot truncate store: %w", err)
	}
	// 3. Positions and counters.
	s.dispatcher.pos.Store(min(s.dispatcher.pos.Load(), physicalOffset))
	s.dispatcher.lastStart = -1
	for q := range s.queues.all {
		q.counter.Set(q.maxOffset())
	}
	return s.indexer.start(false, 0, s.log.Min(), s.log.End())
}

func (s *Store) truncateQueue(q *queue, phys int64) error {
	if b := q.batch.Load(); b != nil {
		if err := b.Reset(phys); err != nil {
			return err
		}
		return b.Finish()
	}
	if c := q.cq.Load(); c != nil {
		return s.cqs.Truncate(c, phys)
	}
	return nil
}

// DeleteTopic removes the consume queues of a topic. Its records stay in the log until they
// expire; they are not dispatched again, also when a topic of that name is made anew.
func (s *Store) DeleteTopic(topic string) error {
	s.deleting.Lock()
	defer s.deleting.Unlock()
	// 1. The dispatcher stands still: for it the queues, the counters and the note change in one step.
	s.dispatching.Lock()
	defer s.dispatching.Unlock()
	// 2. Nobody numbers messages with the old counters any more; what was appended with them lies before upTo.
	s.putting.Lock()
	queues := s.queues.remove(topic)
	if len(queues) > 0 {
		s.deleted.add(topic, s.log.End())
	}
	s.putting.Unlock()
	if len(queues) == 0 {
		return nil
	}
	s.dispatcher.lastQueue = nil
	// 3. The note is durable before the files go, so that no recovery brings them back.
	if err := s.deleted.save(s.cfg.FS, s.cfg.RootDir, s.log.Min()); err != nil {
		return fmt.Errorf("cannot delete topic %q: %w", topic, err)
	}
	failpoint.Pass(failpoint.TopicNoted)
	for _, q := range queues {
		if err := s.removeQueue(q); err != nil {
			return fmt.Errorf("cannot delete topic %q: %w", topic, err)
		}
	}
	return nil
}

func (s *Store) removeQueue(q *queue) error {
	if e := q.ext.Load(); e != nil {
		if err := s.cqs.RemoveExt(e); err != nil {
			return err
		}
	}
	if b := q.batch.Load(); b != nil {
		return s.cqs.RemoveBatch(b)
	}
	if c := q.cq.Load(); c != nil {
		return s.cqs.Remove(c)
	}
	return nil
}

// CleanUnusedTopics removes the queues of topics that keep does not know; system topics and
// light queues stay. It returns the names removed.
func (s *Store) CleanUnusedTopics(keep func(topic string) bool) ([]string, error) {
	names := map[string]bool{}
	for q := range s.queues.all {
		names[q.topic] = true
	}
	var removed []string
	for name := range names {
		if message.IsSystemTopic(name) || message.IsLMQ(name) || strings.HasPrefix(name, message.TopicReviveLogPrefix) || keep(name) {
			continue
		}
		if err := s.DeleteTopic(name); err != nil {
			return removed, err
		}
		removed = append(removed, name)
	}
	return removed, nil
}
