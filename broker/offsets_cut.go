package broker

import (
	"slices"

	"mqx/message"
	"mqx/store"
)

// cutOffsets brings committed offsets that lie behind the end of their queue back to it. After a loss of power the log
// may end before what a group has consumed; the messages that get those offsets next are others, and must not be passed
// over. The table is saved before anything is appended: the next start could not tell any more. It is done after a stop
// that was not in order only: else an offset behind the end is what somebody has set.
func (b *Broker) cutOffsets() error {
	dirty := slices.ContainsFunc(b.store.Findings(), func(f store.Finding) bool { return f.Kind == store.FindDirtyStop })
	if !dirty || !b.offsets.cut(b.store.EndOffset) {
		return nil
	}
	return b.offsets.Save()
}

// cut lowers committed offsets to the end of their queue, says so, and reports whether there were any above.
func (t *offsetTable) cut(end func(topic string, queue int32) int64) bool {
	return t.lower(func(k offsetKey, queue int32) int64 { return end(k.topic, queue) })
}

// lower is cut with what each offset may be at most. It asks under the lock of a part of the table.
func (t *offsetTable) lower(limit func(k offsetKey, queue int32) int64) bool {
	found := false
	for i := range t.shards {
		s := &t.shards[i]
		s.Lock()
		for k, g := range s.table {
			for q, offset := range g.committed {
				most := limit(k, q)
				if offset <= most || message.IsLMQ(k.topic) && t.light == "" { // light queues that are off have no end that is known
					continue
				}
				found = true
				g.committed[q] = most
				t.log.Warn("a committed offset lay behind the end of its queue, whose last messages were lost; it is set back",
					"topic", k.topic, "group", k.group, "queue", q, "was", offset, "is", most)
			}
		}
		s.Unlock()
	}
	if found {
		t.dirty.Store(true)
	}
	return found
}
