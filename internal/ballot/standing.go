package ballot

// Standing is what is known of the log of a replica that may be promoted.
type Standing struct {
	// Epoch is that of its last bytes, 0 where they were written before the first promotion; nil: not known, as of Apache's
	// brokers. That is not 0.
	Epoch *int64
	// End is where its log ends, -1: not known.
	End int64
	// Parted is where it parts from that of its master, for which it has stopped; nil where it has not.
	Parted *int64
}

// Epochs are those of two logs; ok is false where one of them is not known.
func (s Standing) Epochs(o Standing) (own, other int64, ok bool) {
	if s.Epoch == nil || o.Epoch == nil {
		return 0, 0, false
	}
	return *s.Epoch, *o.Epoch, true
}

// HasParted reports whether the log goes on where it is not its master's.
func (s Standing) HasParted() bool { return s.Parted != nil && *s.Parted < s.End }

// Groups is how far the log may be the group's: all of it, unless it has parted. The master has gone on from there with others, so
// that length tells nothing of what follows.
func (s Standing) Groups() int64 {
	if s.HasParted() {
		return *s.Parted
	}
	return s.End
}

// Ahead reports whether s has what o lacks: the log that ends in the newer epoch, of two that end in the same the longer. A longer
// log of an older epoch has a tail that was never acknowledged in the newer one, and lacks what was. Where an epoch is not known, the
// longer log may have what was acknowledged. What is known of neither is ahead of nothing.
func (s Standing) Ahead(o Standing) bool {
	if own, other, ok := s.Epochs(o); ok && own != other {
		return own > other
	}
	return s.Groups() > o.Groups()
}

// Before reports whether a promotion takes s rather than o: who is ahead, and of two that have the same who has not parted.
func (s Standing) Before(o Standing) bool {
	return s.Ahead(o) || !o.Ahead(s) && o.HasParted() && !s.HasParted()
}
