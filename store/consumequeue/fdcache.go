package consumequeue

import (
	"errors"
	"os"
	"sync"

	"mqx/internal/vfs"
)

// fdCache keeps at most limit files open, closing the one that was not used for longest. Files in use are never closed
// under their user, so that for a moment there may be as many more as there are users.
type fdCache struct {
	fs    vfs.FS
	limit int

	mu struct {
		sync.Mutex
		byKey map[fileKey]*openFile
		head  openFile // ring: head.next was used last
	}
}

// fileKey names a file without building its path.
type fileKey struct {
	queue uint64 // number of the queue in its Set
	start int64  // first byte, which is the file's name
}

// pather builds the path of a file when it has to be opened.
type pather interface{ path(start int64) string }

type openFile struct {
	f          vfs.File
	key        fileKey
	users      int
	gone       bool // not in the map any more; the last user closes it
	prev, next *openFile
}

func newFDCache(fs vfs.FS, limit int) *fdCache {
	c := &fdCache{fs: fs, limit: limit}
	c.mu.byKey = map[fileKey]*openFile{}
	c.mu.head.next, c.mu.head.prev = &c.mu.head, &c.mu.head
	return c
}

// use opens a file for reading and writing, creating it only when flag says so, and pins it until release.
func (c *fdCache) use(key fileKey, p pather, flag int) (*openFile, error) {
	c.mu.Lock()
	if o := c.mu.byKey[key]; o != nil {
		o.users++
		o.unlink()
		c.pushFront(o)
		c.mu.Unlock()
		return o, nil
	}
	c.mu.Unlock()

	f, err := c.fs.OpenFile(p.path(key.start), os.O_RDWR|flag)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	if o := c.mu.byKey[key]; o != nil { // somebody else was faster
		o.users++
		c.mu.Unlock()
		_ = f.Close()
		return o, nil
	}
	o := &openFile{f: f, key: key, users: 1}
	c.mu.byKey[key] = o
	c.pushFront(o)
	old := c.evict()
	c.mu.Unlock()
	_ = closeAll(old) // of reads and writes that have their errors already
	return o, nil
}

// release ends a use.
func (c *fdCache) release(o *openFile) {
	c.mu.Lock()
	o.users--
	last := o.users == 0 && o.gone
	c.mu.Unlock()
	if last {
		_ = o.f.Close()
	}
}

// forget drops a file, because it is going to be removed.
func (c *fdCache) forget(key fileKey) {
	c.mu.Lock()
	o := c.mu.byKey[key]
	if o == nil {
		c.mu.Unlock()
		return
	}
	c.drop(o)
	idle := o.users == 0
	c.mu.Unlock()
	if idle {
		_ = o.f.Close()
	}
}

// close closes everything that is not in use; the cache can be used again.
func (c *fdCache) close() error {
	c.mu.Lock()
	var idle []*openFile
	for _, o := range c.mu.byKey {
		c.drop(o)
		if o.users == 0 {
			idle = append(idle, o)
		}
	}
	c.mu.Unlock()
	return closeAll(idle)
}

func (c *fdCache) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.mu.byKey)
}

func (c *fdCache) evict() (old []*openFile) {
	for o := c.mu.head.prev; o != &c.mu.head && len(c.mu.byKey) > c.limit; {
		prev := o.prev
		if o.users == 0 {
			c.drop(o)
			old = append(old, o)
		}
		o = prev
	}
	return old
}

func (c *fdCache) drop(o *openFile) {
	o.unlink()
	o.gone = true
	delete(c.mu.byKey, o.key)
}

func (c *fdCache) pushFront(o *openFile) {
	o.prev, o.next = &c.mu.head, c.mu.head.next
	o.prev.next, o.next.prev = o, o
}

func (o *openFile) unlink() {
	o.prev.next, o.next.prev = o.next, o.prev
}

func closeAll(files []*openFile) error {
	var errs []error
	for _, o := range files {
		errs = append(errs, o.f.Close())
	}
	return errors.Join(errs...)
}
