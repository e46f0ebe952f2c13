package broker

import "slices"

// The epochs of a log say in which promotions its bytes were written. A slave keeps those of its master once its log is known
// to be a beginning of the master's, before it counts as a copy: who is promoted next is who has the newest epoch, and only
// among those the longest log (past bug r#2178: a longer log of an older epoch lacks what the newer one has acknowledged).

// beginEpoch notes, once the log of a promoted slave is whole, where its epoch begins. It comes before anything is served.
func (b *Broker) beginEpoch() error {
	if own := b.role.Get(); !own.BeginEpoch(0) {
		return nil
	}
	// What its master had told of offsets may be of messages that it had not sent: those that come in their place must not be
	// passed over.
	if b.offsets.cut(b.store.EndOffset) {
		if err := b.offsets.Save(); err != nil {
			return err
		}
	}
	end := b.store.LogEnd()
	return b.role.Change(func(s *roleState) error { s.BeginEpoch(end); return nil })
}

// followed keeps the epochs of the master (ha.FollowerConfig.Followed). A master of Apache has none.
func (s *slave) followed() error {
	s.mu.Lock()
	epochs := s.mu.epochs
	s.mu.Unlock()
	if epochs == nil || slices.Equal(epochs, s.b.role.Get().Epochs) {
		return nil
	}
	return s.b.role.Change(func(st *roleState) error { st.Followed(epochs); return nil })
}

// ownOffsets makes a master forget what was committed to it as a slave.
func (b *Broker) ownOffsets() error {
	if b.slave != nil {
		return nil
	}
	return b.offsets.forgetOwn()
}
