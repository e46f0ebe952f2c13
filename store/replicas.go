package store

import "errors"

// Replicas are the slaves that puts wait for. Its methods are safe to share and must not block.
type Replicas interface {
	// Copies is how many slaves must have a message that is put now and waits (Put.WaitFlush).
	Copies() int
	// Wait calls done exactly once, maybe before it returns: with true when that many slaves have the log up to the
	// physical offset end, with false when they do not in time. The message stays in the log either way.
	Wait(end int64, copies int, done func(ok bool))
}

// errNoCopies is why a put has the status FlushSlaveTimeout.
var errNoCopies = errors.New("too few slaves had the message in time; it is stored here")

func (s *Store) copies() int {
	if s.cfg.Replicas == nil {
		return 0
	}
	return s.cfg.Replicas.Copies()
}
