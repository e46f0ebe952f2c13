package broker

import (
	"slices"

	"mqx/remoting"
)

// The epochs of a log say in which promotions its bytes were written. A slave keeps those of its master once its log is known
// to be a beginning of the master's, before it counts as a copy: who is promoted next is who has the newest epoch, and only
// among those the longest log (past bug r#2178: a longer log of an older epoch lacks what the newer one has acknowledged).

// epochUnknown is the beginning of an epoch that the next start fills in: where the log then ends.
const epochUnknown = -1

// lastEpoch is the epoch of the last bytes of a log that ends at end; 0 where there was no promotion before them.
func lastEpoch(epochs []remoting.HAEpoch, end int64) (last int64) {
	for _, e := range epochs {
		if e.Start >= 0 && e.Start < end {
			last = max(last, e.Epoch)
		}
	}
	return last
}

// cutEpochs are the epochs of a log that is cut at to.
func cutEpochs(epochs []remoting.HAEpoch, to int64) []remoting.HAEpoch {
	return slices.DeleteFunc(slices.Clone(epochs), func(e remoting.HAEpoch) bool { return e.Start >= to })
}

// beginEpoch notes, once the log of a promoted slave is whole, where its epoch begins. It comes before anything is served.
func (b *Broker) beginEpoch() error {
	if !slices.ContainsFunc(b.role.get().Epochs, func(e remoting.HAEpoch) bool { return e.Start == epochUnknown }) {
		return nil
	}
	end := b.store.LogEnd()
	return b.role.change(func(s *roleState) error {
		for i := range s.Epochs {
			if s.Epochs[i].Start == epochUnknown {
				s.Epochs[i].Start = end
			}
		}
		return nil
	})
}

// followed keeps the epochs of the master (ha.FollowerConfig.Followed). A master of Apache has none.
func (s *slave) followed() error {
	s.mu.Lock()
	epochs := s.mu.epochs
	s.mu.Unlock()
	if epochs == nil || slices.Equal(epochs, s.b.role.get().Epochs) {
		return nil
	}
	return s.b.role.change(func(st *roleState) error {
		st.Epochs = epochs[max(0, len(epochs)-epochsKept):]
		return nil
	})
}
