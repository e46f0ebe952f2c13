package inspect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"mqx/internal/vfs"
	"mqx/store"
)

// CopyOptions say how to copy a store directory.
type CopyOptions struct {
	FS         vfs.FS // nil means vfs.OS
	OnProgress func(done, total int64)
}

// ErrNotEmpty says that the target of a copy holds something.
var ErrNotEmpty = errors.New("the target of the copy is not empty")

// copyBlock is the unit in which bytes that cannot be read are left out.
const copyBlock = 4096

// Copy copies a store directory that nobody has open to one that is empty or does not exist. Holes stay holes; the lock
// is not copied. What the disk cannot read is left as zeros, for Verify to find: bad counts it in bytes. Errors:
// *store.LockedError, ErrNotEmpty, *NoSpaceError, those of writing.
func Copy(ctx context.Context, from, to string, o CopyOptions) (bad int64, err error) {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	d, err := Open(from, Options{FS: o.FS})
	if err != nil {
		return 0, err
	}
	if err := d.Close(); err != nil {
		return 0, err
	}
	if u := d.InUse(); u.Locked {
		return 0, &store.LockedError{Dir: from, PID: u.PID}
	}
	c := &copier{ctx: ctx, o: o, from: from, to: to}
	if err := c.run(); err != nil {
		return c.bad, fmt.Errorf("cannot copy store %q to %q: %w", from, to, err)
	}
	return c.bad, nil
}

type copier struct {
	ctx              context.Context //nolint:containedctx // of one call of Copy
	o                CopyOptions
	from, to         string
	done, total, bad int64
}

func (c *copier) run() error {
	entries, err := c.o.FS.ReadDir(c.to)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		return ErrNotEmpty
	}
	if err := c.each("", func(_ string, st fs.FileInfo) error {
		c.total += st.Size()
		return nil
	}); err != nil {
		return err
	}
	if err := vfs.MkdirAllDurable(c.o.FS, c.to); err != nil {
		return err
	}
	return c.each("", c.file)
}

// each calls f for every file below a directory.
func (c *copier) each(dir string, f func(name string, st fs.FileInfo) error) error {
	entries, err := c.o.FS.ReadDir(filepath.Join(c.from, dir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		if e.IsDir() {
			if err := c.each(name, f); err != nil {
				return err
			}
			continue
		}
		if name == nameLock {
			continue
		}
		st, err := c.o.FS.Stat(filepath.Join(c.from, name))
		if err != nil {
			return err
		}
		if err := f(name, st); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) file(name string, st fs.FileInfo) error {
	target := filepath.Join(c.to, name)
	if err := c.o.FS.MkdirAll(filepath.Dir(target)); err != nil {
		return err
	}
	in, err := c.o.FS.OpenFile(filepath.Join(c.from, name), os.O_RDONLY)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := c.o.FS.OpenFile(target, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	err = c.bytes(out, in, st.Size())
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close(), c.o.FS.SyncDir(filepath.Dir(target)))
}

func (c *copier) bytes(out, in vfs.File, size int64) error {
	if err := out.Truncate(size); err != nil {
		return err
	}
	f := File{Size: size}
	buf := make([]byte, 1<<20)
	for off := int64(0); off < size; {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		next, err := nextData(in, f, off, size)
		if err != nil {
			next = off
		}
		c.progress(next - off)
		if off = next; off >= size {
			break
		}
		b := buf[:min(int64(len(buf)), size-off)]
		if readFull(in, b, off) != nil {
			c.blocks(in, b, off)
		}
		if !isZero(b) {
			if _, err := out.WriteAt(b, off); err != nil {
				return err
			}
		}
		off += int64(len(b))
		c.progress(int64(len(b)))
	}
	return nil
}

// blocks reads what can be read of a piece.
func (c *copier) blocks(in vfs.File, b []byte, off int64) {
	for at := 0; at < len(b); at += copyBlock {
		part := b[at:min(at+copyBlock, len(b))]
		if readFull(in, part, off+int64(at)) != nil {
			clear(part)
			c.bad += int64(len(part))
		}
	}
}

func (c *copier) progress(n int64) {
	c.done += n
	if c.o.OnProgress != nil {
		c.o.OnProgress(c.done, c.total)
	}
}
