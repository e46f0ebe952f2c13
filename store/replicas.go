package store

import "errors"

// Replicas are the slaves that puts wait for. Its methods are safe to share and must not block.
type Replicas interface {
	// Admit tells why a put that waits (Put.WaitFlush) must not be appended now: too few slaves have what was appended
	// before. Nil lets it pass.
	Admit() error
	// Waits reports whether puts that wait do so for slaves now.
	Waits() bool
	// Wait calls done exactly once, maybe before it returns: with true when the slaves that must have the log up to the
	// physical offset end have it, with false when they do not in time. The message stays in the log either way.
	Wait(end int64, done func(ok bool))
}

// errNoCopies is why a put has the status FlushSlaveTimeout.
var errNoCopies = errors.New("too few slaves had the message in time; it is stored here")

func (s *Store) waitsForCopies() bool { return s.cfg.Replicas != nil && s.cfg.Replicas.Waits() }

// admit refuses a put that slaves would have to have and that too few would.
func (s *Store) admit(p *Put) error {
	if s.cfg.Replicas == nil || !p.WaitFlush {
		return nil
	}
	return s.cfg.Replicas.Admit()
}

// Gate lets queues and readers see only what Confirm has told, from now on. Whoever closes the gate confirms.
func (s *Store) Gate() { s.log.Gate() }

// Ungate lets queues and readers see the whole log.
func (s *Store) Ungate() {
	s.log.Ungate()
	signal(s.dispatcher.kick)
}

// LogShown is how far the log is shown to queues and readers.
func (s *Store) LogShown() int64 { return s.log.Confirmed() }

// Confirm lets queues and readers see the log up to a physical offset; the end of an append, not a part of it.
func (s *Store) Confirm(pos int64) {
	if s.log.Confirm(pos) {
		signal(s.dispatcher.kick)
	}
}
