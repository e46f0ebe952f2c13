package vfs

import (
	"errors"
	"io"
	"io/fs"
	"syscall"
	"time"
)

const (
	memPage   = 4096
	memSector = 512
)

// pageState tells what a page of a node has. A page without an entry is a hole.
type pageState struct {
	written bool
	// before is the durable content of the page, nil when the content is durable itself. A page that was a hole has
	// zeros there.
	before []byte
	// lost: a sync of before's successor failed; later syncs pass the page by until it is written again.
	lost bool
}

// memNode is the content of a file. Mem.mu owns it.
type memNode struct {
	fs          *Mem
	data        []byte // the capacity is kept as long as a mapping aliases it
	size        int64
	durableSize int64
	pages       map[int64]pageState
	cut         map[int64][]byte // durable content of pages that a truncation took, until the next sync
	modTime     time.Time
	refs        int // open files and mappings
	maps        int
	unlinked    bool
	freed       bool // unlinked and not in use: the blocks count no more
}

// freeIfUnused gives the blocks of a removed file back. The content stays: a removal that was not synced may be undone.
func (n *memNode) freeIfUnused() {
	if n.unlinked && n.refs == 0 && !n.freed {
		n.freed = true
		n.fs.mu.used -= int64(len(n.pages)) * memPage
	}
}

// grow makes room for size bytes.
func (n *memNode) grow(size int64) {
	if size <= int64(cap(n.data)) {
		n.data = n.data[:max(int64(len(n.data)), size)]
		return
	}
	if n.maps > 0 {
		panic("vfs.Mem: a mapped file cannot grow beyond its size when it was mapped")
	}
	room := max(size, min(2*int64(cap(n.data)), size+1<<20))
	data := make([]byte, size, room)
	copy(data, n.data)
	n.data = data
}

func (n *memNode) truncate(size int64) {
	if size < n.size {
		n.cutPages(size)
		clear(n.data[size:n.size])
	}
	n.grow(size)
	n.size = size
	n.modTime = n.fs.mu.now()
}

// cutPages takes the blocks behind size away and remembers what the disk holds there.
func (n *memNode) cutPages(size int64) {
	for p, st := range n.pages {
		if (p+1)*memPage <= size {
			continue
		}
		if n.cut == nil {
			n.cut = map[int64][]byte{}
		}
		if n.cut[p] == nil {
			n.cut[p] = st.before
		}
		if n.cut[p] == nil {
			n.cut[p] = n.pageCopy(p)
		}
		if p*memPage >= size {
			delete(n.pages, p)
			n.fs.mu.used -= memPage
		} else if st.before != nil {
			st.before = append([]byte(nil), st.before...)
			clear(st.before[size-p*memPage:])
			n.pages[p] = st
		}
	}
}

// allocate gives the pages of [off, off+size) blocks, as many as there is space for, and returns how many bytes from
// off on have some.
func (n *memNode) allocate(off, size int64) int64 {
	m := n.fs
	for p := off / memPage; p*memPage < off+size; p++ {
		if _, ok := n.pages[p]; ok {
			continue
		}
		if m.mu.capacity > 0 && m.mu.used+memPage > m.mu.capacity {
			return max(0, p*memPage-off)
		}
		n.pages[p] = pageState{}
		m.mu.used += memPage
	}
	return size
}

// write copies b to off; the blocks are there.
func (n *memNode) write(b []byte, off int64) {
	end := off + int64(len(b))
	n.grow(end)
	n.size = max(n.size, end)
	for p := off / memPage; p*memPage < end; p++ {
		st := n.pages[p]
		if st.before == nil {
			st.before = n.pageCopy(p)
		}
		st.written, st.lost = true, false
		n.pages[p] = st
	}
	copy(n.data[off:end], b)
	n.modTime = n.fs.mu.now()
	if r := n.fs.mu.writeback; r != nil && r.Float64() < n.fs.mu.prob {
		n.writebackOne(off / memPage)
	}
}

// writebackOne makes one page other than p durable as it is.
func (n *memNode) writebackOne(p int64) {
	for q, st := range n.pages {
		if q != p && st.before != nil && !st.lost {
			st.before = n.pageCopy(q) // it may be written again: then this is what a crash can bring back
			n.pages[q] = st
			return
		}
	}
}

// pageCopy returns the content of a page as it is, padded with zeros.
func (n *memNode) pageCopy(p int64) []byte {
	b := make([]byte, memPage)
	if p*memPage < int64(len(n.data)) {
		copy(b, n.data[p*memPage:])
	}
	return b
}

func (n *memNode) sync() {
	for p, st := range n.pages {
		if !st.lost {
			st.before = nil
			n.pages[p] = st
		}
	}
	n.durableSize = n.size
	n.cut = nil
}

func (n *memNode) syncFailed() {
	for p, st := range n.pages {
		if st.before != nil {
			st.lost = true
			n.pages[p] = st
		}
	}
}

// memFile is an open file of a Mem.
type memFile struct {
	node     *memNode
	name     string
	writable bool
	closed   bool // owned by Mem.mu
}

// Name is the path the file was opened with.
func (f *memFile) Name() string { return f.name }

// enter takes the lock of the file system if the file is open.
func (f *memFile) enter(op string) error {
	f.node.fs.mu.Lock()
	if f.closed {
		f.node.fs.mu.Unlock()
		return pathError(op, f.name, fs.ErrClosed)
	}
	return nil
}

func (f *memFile) leave() { f.node.fs.mu.Unlock() }

func (f *memFile) enterWrite(op string) error {
	if !f.writable {
		return pathError(op, f.name, syscall.EBADF)
	}
	return f.enter(op)
}

// Close closes the file.
func (f *memFile) Close() error {
	if err := f.enter("close"); err != nil {
		return err
	}
	defer f.leave()
	f.closed = true
	f.node.refs--
	f.node.freeIfUnused()
	return nil
}

// Size is the length in bytes.
func (f *memFile) Size() (int64, error) {
	if err := f.enter("stat"); err != nil {
		return 0, err
	}
	defer f.leave()
	return f.node.size, nil
}

// ReadAt is an io.ReaderAt.
func (f *memFile) ReadAt(b []byte, off int64) (int, error) {
	if err := f.node.fs.op(OpRead, f.name, off, int64(len(b))); err != nil {
		return 0, err
	}
	if err := f.enter("read"); err != nil {
		return 0, err
	}
	defer f.leave()
	if off >= f.node.size {
		return 0, io.EOF
	}
	n := copy(b, f.node.data[off:f.node.size])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt is an io.WriterAt; on a full volume it writes what fits.
func (f *memFile) WriteAt(b []byte, off int64) (int, error) {
	opErr := f.node.fs.op(OpWrite, f.name, off, int64(len(b)))
	var short *ShortWrite
	if opErr != nil {
		if !errors.As(opErr, &short) {
			return 0, opErr
		}
		b = b[:min(short.N, len(b))]
	}
	if err := f.enterWrite("write"); err != nil {
		return 0, err
	}
	defer f.leave()
	room := f.node.allocate(off, int64(len(b)))
	if room < int64(len(b)) {
		b = b[:room]
		opErr = pathError("write", f.name, syscall.ENOSPC)
	}
	if len(b) > 0 {
		f.node.write(b, off)
	}
	return len(b), opErr
}

// Truncate sets the length.
func (f *memFile) Truncate(size int64) error {
	if err := f.node.fs.op(OpTruncate, f.name, size, 0); err != nil {
		return err
	}
	if err := f.enterWrite("truncate"); err != nil {
		return err
	}
	defer f.leave()
	f.node.truncate(size)
	return nil
}

// Sync makes bytes and length durable, or loses the bytes when the hook says so.
func (f *memFile) Sync() error {
	opErr := f.node.fs.op(OpSync, f.name, 0, 0)
	if err := f.enter("sync"); err != nil {
		return err
	}
	defer f.leave()
	if opErr != nil {
		f.node.syncFailed()
		return opErr
	}
	f.node.sync()
	return nil
}

// Allocate takes blocks from the capacity.
func (f *memFile) Allocate(off, n int64) error {
	if err := f.node.fs.op(OpAllocate, f.name, off, n); err != nil {
		return err
	}
	if err := f.enterWrite("allocate"); err != nil {
		return err
	}
	defer f.leave()
	if f.node.allocate(off, n) < n {
		return pathError("allocate", f.name, syscall.ENOSPC)
	}
	return nil
}

// Zero writes zeros.
func (f *memFile) Zero(off, n int64) error {
	_, err := f.WriteAt(make([]byte, n), off)
	return err
}

// NextData finds the next page that was written.
func (f *memFile) NextData(off int64) (int64, error) {
	if err := f.enter("seek"); err != nil {
		return 0, err
	}
	defer f.leave()
	next := int64(-1)
	for p, st := range f.node.pages {
		if st.written && (p+1)*memPage > off && (next < 0 || p < next) {
			next = p
		}
	}
	if next < 0 || next*memPage >= f.node.size {
		return 0, io.EOF
	}
	return max(off, next*memPage), nil
}

// Map maps the first n bytes on the heap.
func (f *memFile) Map(n int64) (Mapping, error) {
	if err := f.node.fs.op(OpMap, f.name, 0, n); err != nil {
		return nil, err
	}
	if err := f.enter("map"); err != nil {
		return nil, err
	}
	defer f.leave()
	if n > f.node.size {
		return nil, pathError("map", f.name, syscall.EINVAL)
	}
	f.node.grow(n)
	f.node.maps++
	f.node.refs++
	return &memMapping{node: f.node, b: f.node.data[:n:n]}, nil
}

type memMapping struct {
	node *memNode
	b    []byte
}

// Bytes is the content of the file itself.
func (m *memMapping) Bytes() []byte { return m.b }

// Unmap ends the mapping.
func (m *memMapping) Unmap() error {
	m.node.fs.mu.Lock()
	defer m.node.fs.mu.Unlock()
	m.b = nil
	m.node.maps--
	m.node.refs--
	m.node.freeIfUnused()
	return nil
}
