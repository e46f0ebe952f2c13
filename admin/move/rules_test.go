package move

import "slices"

// store appends a message to a queue. I1: it is in one queue only. I2: not in one that its broker has sealed, nor in one that is shut.
// I4: not in the old queue of a key whose new one is read already.
func (w *world) store(t *simTopic, q int, m simMessage) {
	if w.stored[m]++; w.stored[m] > 1 {
		w.fault("message %d of %s is stored %d times (I1)", m.seq, m.key, w.stored[m])
	}
	if f := t.config.forward(); f != nil {
		if _, sealed := f.Slot(int32(q)); sealed {
			w.fault("message %d of %s is stored in sealed queue %d (I2)", m.seq, m.key, q)
		}
	}
	if q >= int(max(t.config.Read, t.config.Write)) {
		w.fault("message %d of %s is stored in queue %d, which is taken away (I2)", m.seq, m.key, q)
	}
	if d := w.brokers["d"].topics[simTopicName]; w.ordered && t == w.brokers["a"].topics[simTopicName] && d != nil && d.config.Perm == PermRead|PermWrite {
		w.fault("message %d of %s is stored in queue %d on a, and d is open: what follows it may be read first (I4)", m.seq, m.key, q)
	}
	t.queues[q] = append(t.queues[q], m)
}

// mayLayOut: the places that keys go to stay as many, and each leads to its queue or to the one that took its place (I5).
func (w *world) mayLayOut(queues []simQueue) {
	if !w.ordered {
		return
	}
	if w.layout == nil {
		w.layout = slices.Clone(queues)
	}
	if len(queues) != len(w.layout) {
		w.fault("an ordered topic with %d places has %d (I5)", len(w.layout), len(queues))
		return
	}
	for i, q := range queues {
		if was := w.layout[i]; q != was && q != (simQueue{"d", was.id}) {
			w.fault("place %d of an ordered topic was %v and is %v (I5)", i, was, q)
		}
	}
}

// mayOpen: a target is read only when every group has read what was in the place of its queues before (I4).
func (w *world) mayOpen(b *simBroker, from, to *Topic) {
	a := w.brokers["a"].topics[simTopicName]
	if !w.ordered || b.name != "d" || a == nil || from.Perm&PermRead != 0 || to.Perm&PermRead == 0 || to.Perm&PermWrite == 0 { // read-only: it goes back, and nothing came there
		return
	}
	for _, g := range w.groups {
		for q := range a.queues {
			if at := max(0, offsetIn(w.brokers["a"].offsets[g.name], q)); at < int64(len(a.queues[q])) {
				w.fault("d is opened while group %s has not read %d messages of queue %d on a (I4)", g.name, int64(len(a.queues[q]))-at, q)
			}
		}
	}
}

// mayHide: queues from a number on are no longer read; every group must have read them (I3).
func (w *world) mayHide(b *simBroker, t *simTopic, from int) {
	for _, g := range w.groups {
		if g.broadcast {
			continue
		}
		for q := from; q < len(t.queues); q++ {
			if at := max(0, offsetIn(b.offsets[g.name], q)); at < int64(len(t.queues[q])) {
				w.fault("queue %d of %s is taken away with %d messages that group %s has not read (I3)", q, b.name, int64(len(t.queues[q]))-at, g.name)
			}
		}
		for _, f := range g.flight {
			if f.q.broker == b.name && (f.q.id >= from || f.q.id < 0 && from == 0) {
				w.fault("queue %d of %s is taken away with a message of group %s in flight (I3)", f.q.id, b.name, g.name)
			}
		}
		if n := len(b.retry[g.name]); n > 0 && from == 0 && g.pop {
			w.fault("topic on %s is taken away with %d messages that group %s is to retry (I3)", b.name, n, g.name)
		}
	}
	for _, h := range b.held {
		if h.kind != "retry" && h.queue >= from {
			w.fault("queue %d of %s is taken away with a %s message (I3)", h.queue, b.name, h.kind)
		}
	}
}
