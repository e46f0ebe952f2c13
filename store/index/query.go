package index

// maxChain bounds how many entries of one slot a query follows in one file.
const maxChain = 1 << 20

// Query calls yield with the physical offsets of entries of a hash, newest first, whose store time lies in [begin, end]
// (ms; entries know it to the second, so that some just before begin are given too). Different keys may have the hash, and
// a record may come more than once. yield ends the query by returning false.
//
// A damaged chain ends where it is damaged. Errors are those of the disk.
func (x *Index) Query(hash int32, begin, end int64, yield func(phys int64) bool) error {
	x.mu.Lock()
	files := append([]*file(nil), x.mu.files...)
	x.mu.Unlock()
	for i := len(files) - 1; i >= 0; i-- {
		h := files[i].header()
		if h.Count <= 1 || h.BeginTime > end || h.EndTime < begin && monotonic(h) {
			continue
		}
		more, err := files[i].query(hash, h, begin, end, yield)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// monotonic reports whether the end time of a file bounds its messages: it does not when the clock was set back.
func monotonic(h Header) bool { return h.EndTime >= h.BeginTime }

func (x *file) query(hash int32, h Header, begin, end int64, yield func(int64) bool) (more bool, err error) {
	n, err := x.slot(hash)
	if err != nil {
		return false, err
	}
	for range maxChain {
		// The slot may be newer than the head that was read before.
		if n <= 0 || n >= x.header().Count {
			return true, nil
		}
		e, err := x.entry(n)
		if err != nil {
			return false, err
		}
		t := h.BeginTime + int64(max(e.diff, 0))*1000
		if e.hash == hash && t >= begin-999 && t <= end && !yield(e.phys) {
			return false, nil
		}
		if e.prev >= n {
			return true, nil
		}
		n = e.prev
	}
	return true, nil
}
