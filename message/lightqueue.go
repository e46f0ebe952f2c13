package message

import (
	"bytes"
	"iter"
	"strconv"
)

// LightQueues yields the light queues that a record is in beside its own queue,
// with its offset in each, of the values of INNER_MULTI_DISPATCH and
// INNER_MULTI_QUEUE_OFFSET: two lists with commas that go together. Names that
// are no light queues or can name no directory, and offsets that are no numbers are passed over, as by the
// dispatch. Names alias the list.
func LightQueues(names, offsets []byte) iter.Seq2[[]byte, int64] {
	return func(yield func([]byte, int64) bool) {
		for len(names) > 0 && len(offsets) > 0 {
			var name, at []byte
			name, names, _ = bytes.Cut(names, []byte{','})
			at, offsets, _ = bytes.Cut(offsets, []byte{','})
			n, err := strconv.ParseInt(string(at), 10, 64)
			if err == nil && IsLMQ(string(name)) && NamesDirectory(name) && !yield(name, n) {
				return
			}
		}
	}
}
