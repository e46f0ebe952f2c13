package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

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

// ErrInside says that the target of a copy lies in the directory that is only read.
var ErrInside = errors.New("the target of the copy is the store or lies inside the store")

// within reports whether a path lies in a directory, or is it, whatever links lead there.
func within(dir, path string) (bool, error) {
	d, err := resolved(dir)
	p, e := resolved(path)
	if err = errors.Join(err, e); err != nil {
		return false, err
	}
	rel, err := filepath.Rel(d, p)
	return err == nil && filepath.IsLocal(rel), nil
}

// resolved is a path without links, as far as it exists, also behind a link to what does not exist yet.
func resolved(path string) (string, error) {
	at, err := filepath.Abs(path)
	rest := ""
	for links := 0; err == nil; {
		var there string
		if there, err = filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(there, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		if to, e := os.Readlink(at); e == nil && links < maxLinks {
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(at), to)
			}
			at, err, links = to, nil, links+1
			continue
		}
		if filepath.Dir(at) == at {
			break
		}
		at, rest, err = filepath.Dir(at), filepath.Join(filepath.Base(at), rest), nil
	}
	return "", fmt.Errorf("cannot tell where %q leads: %w", path, err)
}

// maxLinks bounds the links that are followed one after the other.
const maxLinks = 40

// copyBlock is the unit in which bytes that cannot be read are left out.
const copyBlock = 4096

// copyNote stands in a copy until its repair is done, so that a copy that was interrupted is made again and one that is
// whole is not.
const copyNote = "mqx/copy.json"

type copyState struct {
	From  string `json:"from"`
	Whole bool   `json:"whole"`
	Bad   int64  `json:"bad"` // bytes that could not be read
}

// Copy copies a store directory that nobody has open to one that is empty or does not exist, or that an earlier Copy of it
// has begun. One that is whole already is left alone. Holes stay holes; the lock is not copied. What the disk cannot read
// is left as zeros, for Verify to find: bad counts it in bytes. CopyUsed ends what Copy remembers. Errors:
// *store.LockedError, ErrNotEmpty, ErrInside, *NoSpaceError, those of writing.
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
	to = filepath.Clean(to)
	inside, err := within(from, to)
	if err == nil && inside {
		err = ErrInside
	}
	if err != nil {
		return 0, fmt.Errorf("cannot copy store %q to %q: %w", from, to, err)
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

// CopyUsed says that a copy has been repaired: from now on it is a store like any other.
func CopyUsed(fsys vfs.FS, dir string) error {
	path := filepath.Join(dir, filepath.FromSlash(copyNote))
	err := fsys.Remove(path)
	if err == nil {
		err = fsys.SyncDir(filepath.Dir(path))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// begun reads what an earlier run has left.
func (c *copier) begun() (s copyState, ok bool, err error) {
	b, err := vfs.ReadFile(c.o.FS, filepath.Join(c.to, filepath.FromSlash(copyNote)))
	if errors.Is(err, fs.ErrNotExist) {
		return s, false, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	return s, err == nil, err
}

func (c *copier) note(s copyState) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	path := filepath.Join(c.to, filepath.FromSlash(copyNote))
	if err := vfs.MkdirAllDurable(c.o.FS, filepath.Dir(path)); err != nil {
		return err
	}
	return vfs.WriteFileDurable(c.o.FS, path, b)
}

func (c *copier) run() error {
	from, err := filepath.Abs(c.from)
	if err != nil {
		return err
	}
	state, again, err := c.begun()
	if err != nil {
		return err
	}
	if again && state.From == from && state.Whole {
		c.bad = state.Bad
		return nil
	}
	entries, err := c.o.FS.ReadDir(c.to)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	only := len(entries) == 1 && entries[0].Name() == path.Dir(copyNote) && c.nothingIn(entries[0].Name())
	if len(entries) > 0 && !only && (!again || state.From != from) {
		return ErrNotEmpty
	}
	if err := c.copy(from); err != nil {
		return err
	}
	return c.note(copyState{From: from, Whole: true, Bad: c.bad})
}

// nothingIn reports that a directory of the target is empty but for what the note leaves when it is not written whole.
func (c *copier) nothingIn(name string) bool {
	entries, err := c.o.FS.ReadDir(filepath.Join(c.to, name))
	return err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() != path.Base(copyNote)+".tmp" })
}

func (c *copier) copy(from string) error {
	if err := c.each("", func(_ string, st fs.FileInfo) error {
		c.total += st.Size()
		return nil
	}); err != nil {
		return err
	}
	if u, err := c.o.FS.Usage(existing(c.o.FS, c.to)); err == nil && u.Total > 0 && c.total > u.Free-u.Total/100 {
		return &NoSpaceError{c.to, c.total, max(u.Free-u.Total/100, 0)}
	}
	if err := c.note(copyState{From: from}); err != nil {
		return err
	}
	return c.each("", c.file)
}

// existing is the nearest directory above a path that is there.
func existing(fsys vfs.FS, dir string) string {
	for filepath.Dir(dir) != dir {
		if _, err := fsys.Stat(dir); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir
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
		if name == nameLock || filepath.ToSlash(name) == copyNote {
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
	if err := vfs.MkdirAllDurable(c.o.FS, filepath.Dir(target)); err != nil {
		return err
	}
	in, err := c.o.FS.OpenFile(filepath.Join(c.from, name), os.O_RDONLY)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := c.o.FS.OpenFile(target, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
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
		if !vfs.AllZero(b) {
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
