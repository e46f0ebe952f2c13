package vfs

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"
)

// Kill returns what a new process finds after this one was killed: everything that was written, synced or not, and no
// locks. What the old file system is used for afterwards does not show in the new one.
func (m *Mem) Kill() *Mem {
	return m.survive(
		func(_ *memDir, removed bool) bool { return !removed },
		func(d *memDir) map[string]*memNode { return d.names },
		func(n *memNode) *memNode { return n.clone() },
		func(n int) int { return n })
}

// KillUnsynced is Kill, but what was not synced is still not: it may go when the power fails later.
func (m *Mem) KillUnsynced() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := NewMem()
	out.mu.now, out.mu.capacity = m.mu.now, m.mu.capacity
	seen := map[*memNode]*memNode{}
	copyNode := func(n *memNode) *memNode {
		if n == nil || seen[n] != nil {
			return seen[n]
		}
		c := n.cloneUnsynced()
		c.fs = out
		if !n.unlinked {
			out.mu.used += int64(len(c.pages)) * memPage
		}
		seen[n] = c
		return c
	}
	copyDirs := func(to, from map[string]*memDir) {
		for path, d := range from {
			c := newMemDir(d.modTime)
			c.saved = d.saved
			for name, n := range d.names {
				c.names[name] = copyNode(n)
			}
			for name, n := range d.durable {
				c.durable[name] = copyNode(n)
			}
			for _, op := range d.pending {
				op.node = copyNode(op.node)
				c.pending = append(c.pending, op)
			}
			to[path] = c
		}
	}
	copyDirs(out.mu.dirs, m.mu.dirs)
	copyDirs(out.mu.gone, m.mu.gone)
	out.mu.moves = slices.Clone(m.mu.moves)
	return out
}

// cloneUnsynced copies the content with what is known of its durability.
func (n *memNode) cloneUnsynced() *memNode {
	c := n.clone()
	c.durableSize, c.cut = n.durableSize, maps.Clone(n.cut)
	for p, st := range n.pages {
		st.before = bytes.Clone(st.before)
		c.pages[p] = st
	}
	c.unlinked, c.freed = n.unlinked, n.unlinked
	return c
}

// PowerLoss returns what is found after the power failed. Of every page written since the last sync, one of these
// stays, by chance of the seed: the old content, the new one, or a mixture of both by sectors of 512 bytes. A length
// that was not synced is the old or the new one; with the old one, what a truncation had taken is back. Of the names
// changed since the last SyncDir of a directory, the changes up to some point in time stay. A new directory whose parent
// was not synced is there or not, with all that is in it; a removed one is gone or back.
func (m *Mem) PowerLoss(seed uint64) *Mem {
	return m.PowerLossBy(rand.New(rand.NewPCG(seed, 2)).IntN)
}

// PowerLossBy is PowerLoss with every chance taken by choose, which returns a number from 0 to n-1. A caller that goes
// through all answers of choose sees every state that a power loss can leave.
func (m *Mem) PowerLossBy(choose func(n int) int) *Mem {
	return m.survive(
		func(d *memDir, removed bool) bool { return d.saved && !removed || choose(2) == 1 },
		func(d *memDir) map[string]*memNode {
			names := maps.Clone(d.durable)
			if n := len(d.pending); n > 0 {
				for _, op := range d.pending[:choose(n+1)] {
					apply(names, op)
				}
			}
			return names
		},
		func(n *memNode) *memNode { return n.afterPowerLoss(choose) },
		func(n int) int {
			if n == 0 {
				return 0
			}
			return choose(n + 1)
		})
}

// EachPowerLoss calls f with every state that a power loss can leave now, until f returns false. There are as many as
// there are mixtures of sectors, lengths and names that are not durable: it is for a few small files.
func (m *Mem) EachPowerLoss(f func(*Mem) bool) {
	var answers, sizes []int
	for {
		asked := 0
		after := m.PowerLossBy(func(n int) int {
			if asked == len(answers) {
				answers, sizes = append(answers, 0), append(sizes, n)
			}
			asked++
			return answers[asked-1]
		})
		if !f(after) {
			return
		}
		last := len(answers) - 1
		for last >= 0 && answers[last] == sizes[last]-1 {
			last--
		}
		if last < 0 {
			return
		}
		answers, sizes = answers[:last+1], sizes[:last+1]
		answers[last]++
	}
}

// survive builds the file system that is found afterwards: keep decides about a directory that is there or was removed,
// names about the names in it, file about the bytes of a file, moves how many renamings of directories stay.
func (m *Mem) survive(keep func(d *memDir, removed bool) bool, names func(*memDir) map[string]*memNode, file func(*memNode) *memNode, moves func(n int) int) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := NewMem()
	out.mu.now, out.mu.capacity = m.mu.now, m.mu.capacity
	seen := map[*memNode]*memNode{}
	all, removed := maps.Clone(m.mu.gone), map[*memDir]bool{}
	for _, d := range all {
		removed[d] = true
	}
	maps.Copy(all, m.mu.dirs)
	for _, v := range slices.Backward(m.mu.moves[moves(len(m.mu.moves)):]) {
		if all[v.from] == nil {
			moveTree(all, dirMove{v.to, v.from})
		}
	}
	for _, dir := range sortedKeys(all) {
		if parent := filepath.Dir(dir); parent != dir && out.mu.dirs[parent] == nil || !keep(all[dir], removed[all[dir]]) {
			continue
		}
		d := newMemDir(all[dir].modTime)
		d.saved = true
		live := names(all[dir])
		for _, name := range sortedKeys(live) {
			n := live[name]
			c := seen[n]
			if c == nil {
				c = file(n)
				c.fs = out
				out.mu.used += int64(len(c.pages)) * memPage
				seen[n] = c
			}
			d.names[name], d.durable[name] = c, c
		}
		out.mu.dirs[dir] = d
	}
	return out
}

func sortedKeys[K ~string, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// clone copies the pages that have data; everything in the copy is durable.
func (n *memNode) clone() *memNode {
	c := &memNode{
		data: make([]byte, len(n.data)), size: n.size, durableSize: n.size,
		pages: make(map[int64]pageState, len(n.pages)), modTime: n.modTime,
	}
	for p, st := range n.pages {
		c.pages[p] = pageState{written: st.written}
		if st.written && p*memPage < int64(len(n.data)) {
			copy(c.data[p*memPage:min((p+1)*memPage, int64(len(c.data)))], n.data[p*memPage:])
		}
	}
	return c
}

// afterPowerLoss is clone with chance applied to what is not durable.
func (n *memNode) afterPowerLoss(choose func(n int) int) *memNode {
	c := n.clone()
	lengthLost := (n.durableSize != n.size || n.cut != nil) && choose(2) == 0
	pages := make([]int64, 0, len(n.pages))
	for p, st := range n.pages {
		if st.before != nil {
			pages = append(pages, p)
		}
	}
	slices.Sort(pages)
	for _, p := range pages {
		before := n.pages[p].before
		changed := n.changedSectors(p)
		how := 0 // dropped; 1 kept, 2 torn
		if !n.pages[p].lost && len(changed) > 0 {
			how = choose(min(len(changed)+1, 3)) // one sector is not torn
		}
		for _, s := range changed {
			off := p*memPage + s
			if how == 0 || how == 2 && choose(2) == 0 {
				copy(c.data[off:min(off+memSector, int64(len(c.data)))], before[s:])
			}
		}
	}
	if lengthLost {
		c.size = n.durableSize
		for p, before := range n.cut {
			copy(c.data[p*memPage:], before)
			c.pages[p] = pageState{written: true}
		}
	}
	c.durableSize = c.size
	if c.size < int64(len(c.data)) {
		clear(c.data[c.size:])
	}
	for p := range c.pages {
		if p*memPage >= c.size {
			delete(c.pages, p)
		}
	}
	return c
}

// changedSectors are the starts of those sectors of a page that hold something else than what is durable.
func (n *memNode) changedSectors(p int64) []int64 {
	var changed []int64
	is, was := n.pageCopy(p), n.pages[p].before
	for s := int64(0); s < memPage; s += memSector {
		if !bytes.Equal(is[s:s+memSector], was[s:s+memSector]) {
			changed = append(changed, s)
		}
	}
	return changed
}

// Corrupt changes bytes behind the back of everybody, as a failing disk does; they are durable at once. Modification
// times stay.
func (m *Mem) Corrupt(name string, off int64, b []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.lookup(name)
	if !ok {
		panic("vfs.Mem: Corrupt of a missing file " + name)
	}
	copy(n.data[off:n.size], b)
	for p := off / memPage; p*memPage < off+int64(len(b)); p++ {
		st := n.pages[p]
		st.written = true
		n.pages[p] = st
	}
}

// SetModTime sets the modification time of a file.
func (m *Mem) SetModTime(name string, t time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n, ok := m.lookup(name); ok {
		n.modTime = t
	}
}
