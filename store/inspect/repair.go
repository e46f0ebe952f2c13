package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"mqx/internal/clock"
	"mqx/internal/vfs"
	"mqx/internal/words"
	"mqx/message"
)

// Where a repair keeps its things, inside the store directory.
const (
	repairJournal = "mqx/repair.json"
	repairWork    = "mqx/repair"
	nameStopNote  = "mqx/stopped"
	quarantineDir = "mqx/quarantine"
	salvageDir    = "mqx/salvage"
)

// ApplyOptions say how to do a plan.
type ApplyOptions struct {
	FS    vfs.FS      // nil means vfs.OS
	Clock clock.Clock // nil means clock.System
	// OnStep is told before each step is done.
	OnStep func(i int, s *Step)
	// OnRead is told how many bytes of the log a step that builds something has read, piece by piece.
	OnRead func(n int64)
}

// NoSpaceError says that a repair needs more space than there is. Nothing was done. Free is without a reserve of 1 % of the
// volume: what has to be freed is the difference.
type NoSpaceError struct {
	Dir        string
	Need, Free int64
}

func (e *NoSpaceError) Error() string {
	return fmt.Sprintf("cannot repair store %q: it takes about %s, %d can be used on its volume", e.Dir, words.Count(e.Need, "byte"), e.Free)
}

// Pending reads the plan of a repair that did not end; nil when there is none.
func Pending(fsys vfs.FS, root string) (*RepairPlan, error) {
	b, err := vfs.ReadFile(fsys, filepath.Join(root, filepath.FromSlash(repairJournal)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read journal of a repair: %w", err)
	}
	p := &RepairPlan{}
	if err := json.Unmarshal(b, p); err != nil {
		return nil, fmt.Errorf("cannot read journal of a repair %q: %w", filepath.Join(root, filepath.FromSlash(repairJournal)), err)
	}
	p.Root = root
	return p, nil
}

// Apply does what is left of a plan. The caller holds the lock (store.LockDir). Every step is noted when it is done, so
// that Apply of the plan that Pending returns goes on where one was interrupted. What steps take away is kept in the
// salvage directory. Errors: *NoSpaceError, ErrNoFit before anything is done, and those of the disk.
func Apply(ctx context.Context, p *RepairPlan, o ApplyOptions) error {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.Clock == nil {
		o.Clock = clock.System
	}
	a := &applier{ctx: ctx, p: p, o: o, fs: o.FS}
	if err := a.space(); err != nil {
		return err
	}
	err := p.canFill() // before the journal is written: it would never be done
	if err == nil {
		err = a.run()
	}
	if err != nil {
		return fmt.Errorf("cannot repair store %q: %w", p.Root, err)
	}
	return nil
}

// applier does a plan.
type applier struct {
	ctx context.Context //nolint:containedctx // of one call of Apply
	p   *RepairPlan
	o   ApplyOptions
	fs  vfs.FS
}

func (a *applier) path(name string) string {
	return filepath.Join(a.p.Root, filepath.FromSlash(name))
}

// space refuses what does not fit on the volume, with a reserve of 1 %.
func (a *applier) space() error {
	u, err := a.fs.Usage(a.p.Root)
	if err != nil {
		return fmt.Errorf("cannot tell the free space of %q: %w", a.p.Root, err)
	}
	if need := a.p.Bytes(); u.Total > 0 && need > u.Free-u.Total/100 {
		return &NoSpaceError{a.p.Root, need, max(u.Free-u.Total/100, 0)}
	}
	return nil
}

func (a *applier) run() error {
	changesData := false
	if err := a.note(); err != nil {
		return err
	}
	for i, s := range a.p.Steps {
		switch s.Kind {
		case StepRename, StepMoveAway, StepTrim, StepExtend, StepDrop, StepCut, StepFill, StepPlace, StepQueues, StepIndex, StepTimer:
			changesData = true
		case StepRestore, StepBackup, StepQuarantine, StepTopics, StepClamp, StepCheckpoint:
		}
		if s.Done {
			continue
		}
		if err := a.ctx.Err(); err != nil {
			return err
		}
		if a.o.OnStep != nil {
			a.o.OnStep(i, s)
		}
		if err := a.step(s); err != nil {
			return fmt.Errorf("%s: %w", s.What, err)
		}
		s.Done = true
		if err := a.note(); err != nil {
			return err
		}
	}
	if changesData {
		if err := a.remove(nameStopNote); err != nil {
			return err
		}
	}
	return a.finish()
}

// note writes the journal.
func (a *applier) note() error {
	b, err := json.MarshalIndent(a.p, "", "  ")
	if err != nil {
		return err
	}
	if err := vfs.MkdirAllDurable(a.fs, a.path("mqx")); err != nil {
		return err
	}
	return a.write(a.path(repairJournal), b)
}

// finish keeps the journal beside what was salvaged, if anything was, and removes it.
func (a *applier) finish() error {
	if _, err := a.fs.Stat(a.path(a.p.Salvage)); err == nil {
		b, err := json.MarshalIndent(a.p, "", "  ")
		if err != nil {
			return err
		}
		if err := a.write(a.path(a.p.Salvage+"/plan.json"), b); err != nil {
			return err
		}
	}
	if err := a.fs.RemoveAll(a.path(repairWork)); err != nil {
		return err
	}
	return a.remove(repairJournal)
}

// remove removes a file, durably; a missing one is no error.
func (a *applier) remove(name string) error {
	if err := a.fs.Remove(a.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return a.syncDir(filepath.Dir(a.path(name)))
}

func (a *applier) syncDir(dir string) error {
	if err := a.fs.SyncDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (a *applier) step(s *Step) error {
	switch s.Kind {
	case StepRename:
		return a.renames()
	case StepMoveAway:
		return a.moveAway(s.File, a.p.Salvage+"/"+strings.ReplaceAll(s.File, "/", "."))
	case StepTrim:
		return a.trim(s)
	case StepExtend:
		return a.resize(s.File, s.Size)
	case StepDrop:
		return a.drop(s)
	case StepCut:
		return a.cut(s)
	case StepFill:
		return a.fill(s)
	case StepPlace:
		return a.mendPlaces(s)
	case StepQueues:
		return a.rebuildQueues(s)
	case StepIndex:
		return a.rebuildIndex()
	case StepTimer:
		return a.resetTimer(s)
	case StepQuarantine:
		return errors.Join(a.quarantine(s.File), a.quarantine(s.File+".bak"))
	case StepRestore:
		return a.restore(s.File+".bak", s.File)
	case StepBackup:
		return a.restore(strings.TrimSuffix(s.File, ".bak"), s.File)
	case StepTopics:
		return a.rebuildTopics(s.File)
	case StepClamp:
		return a.clamp(s)
	case StepCheckpoint:
		return a.write(a.path(nameCheckpoint), make([]byte, 4096))
	}
	return fmt.Errorf("step of unknown kind %q", s.Kind)
}

// exists reports whether something lies at a place.
func (a *applier) exists(name string) (bool, error) {
	_, err := a.fs.Stat(a.path(name))
	if !vfs.Absent(err) {
		return err == nil, err
	}
	entries, err := a.fs.ReadDir(filepath.Dir(a.path(name)))
	if vfs.Absent(err) {
		return false, nil
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == path.Base(name) }), err // a link to nothing
}

// write replaces a small file; its directory may be missing, or have been moved away.
func (a *applier) write(path string, b []byte) error {
	if err := vfs.MkdirAllDurable(a.fs, filepath.Dir(path)); err != nil {
		return err
	}
	return vfs.WriteFileDurable(a.fs, path, b)
}

// move renames a file, durably.
func (a *applier) move(from, to string) error {
	if err := vfs.MkdirAllDurable(a.fs, filepath.Dir(a.path(to))); err != nil {
		return err
	}
	if err := a.fs.Rename(a.path(from), a.path(to)); err != nil {
		return err
	}
	return errors.Join(a.syncDir(filepath.Dir(a.path(to))), a.syncDir(filepath.Dir(a.path(from))))
}

// moveAway moves a file; that it is gone already is no error. One that lies there already, which a power loss can leave, is
// not kept twice.
func (a *applier) moveAway(from, to string) error {
	ok, err := a.exists(from)
	if err != nil || !ok {
		return err
	}
	for n := 1; ; n++ {
		target := to
		if n > 1 {
			target += "." + strconv.Itoa(n)
		}
		if taken, err := a.exists(target); err != nil {
			return err
		} else if !taken {
			return a.move(from, target)
		}
		if same, err := a.same(from, target); err != nil {
			return err
		} else if same {
			return a.remove(from)
		}
	}
}

// same reports whether two files hold the same bytes.
func (a *applier) same(x, y string) (same bool, err error) {
	f, err := a.fs.OpenFile(a.path(x), os.O_RDONLY)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	g, err := a.fs.OpenFile(a.path(y), os.O_RDONLY)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	size, err := f.Size()
	if err != nil {
		return false, err
	}
	if other, err := g.Size(); err != nil || other != size {
		return false, err
	}
	b, c := make([]byte, 256<<10), make([]byte, 256<<10)
	for off := int64(0); off < size; off += int64(len(b)) {
		n := min(int64(len(b)), size-off)
		if err := errors.Join(readFull(f, b[:n], off), readFull(g, c[:n], off)); err != nil {
			return false, err
		}
		if !bytes.Equal(b[:n], c[:n]) {
			return false, nil
		}
	}
	return true, nil
}

// renames gives log files the names of what they hold. Files may change places: first all are moved aside, and when that
// is noted, put where they belong.
func (a *applier) renames() error {
	aside := func(s *Step) string { return repairWork + "/" + path.Base(s.Target) }
	for _, s := range a.p.Steps {
		if s.Kind != StepRename || s.Phase > 0 {
			continue
		}
		there, err := a.exists(aside(s))
		if err != nil {
			return err
		}
		if !there {
			if err := a.move(s.File, aside(s)); err != nil {
				return err
			}
		}
	}
	for _, s := range a.p.Steps {
		if s.Kind == StepRename {
			s.Phase = 1
		}
	}
	if err := a.note(); err != nil {
		return err
	}
	for _, s := range a.p.Steps {
		if s.Kind != StepRename {
			continue
		}
		there, err := a.exists(aside(s))
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		if err := a.moveAway(s.Target, a.p.Salvage+"/"+strings.ReplaceAll(s.Target, "/", ".")); err != nil {
			return err
		}
		if err := a.move(aside(s), s.Target); err != nil {
			return err
		}
	}
	return nil
}

func (a *applier) resize(name string, size int64) error {
	f, err := a.fs.OpenFile(a.path(name), os.O_RDWR)
	if err != nil {
		return err
	}
	err = f.Truncate(size)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (a *applier) trim(s *Step) error {
	st, err := a.fs.Stat(a.path(s.File))
	if err != nil {
		return err
	}
	if st.Size() > s.Size {
		if err := a.salvage(s.File, s.Size, st.Size(), path.Base(s.File)+".behind"); err != nil {
			return err
		}
	}
	return a.resize(s.File, s.Size)
}

func (a *applier) drop(s *Step) error {
	st, err := a.fs.Stat(a.path(s.File))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if st.Size() > 0 {
		return errors.New("the file is not empty any more")
	}
	return a.remove(s.File)
}

// salvage keeps bytes of a file, durably. What an interrupted step has kept already stays: the file may have been changed
// since.
func (a *applier) salvage(name string, from, to int64, as string) error {
	target := a.p.Salvage + "/" + as
	if there, err := a.exists(target); err != nil || there {
		return err
	}
	if err := vfs.MkdirAllDurable(a.fs, a.path(a.p.Salvage)); err != nil {
		return err
	}
	in, err := a.fs.OpenFile(a.path(name), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	tmp := target + ".tmp"
	out, err := a.fs.OpenFile(a.path(tmp), os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	err = copyRange(out, in, from, to)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return a.move(tmp, target)
}

// copyRange copies the bytes of a range as far as the file has them, leaving holes where they are zero.
func copyRange(out, in vfs.File, from, to int64) error {
	buf := make([]byte, 1<<20)
	size, err := in.Size()
	if err != nil {
		return err
	}
	to = min(to, size)
	for off := from; off < to; {
		b := buf[:min(int64(len(buf)), to-off)]
		if err := readFull(in, b, off); err != nil {
			return err
		}
		if !vfs.AllZero(b) {
			if _, err := out.WriteAt(b, off-from); err != nil {
				return err
			}
		}
		off += int64(len(b))
	}
	return out.Truncate(max(to-from, 0))
}

// logFile is the name of the log file that holds a position; the files of a log have one size.
func (s *Step) logStart(fileSize, off int64) int64 { return off - off%fileSize }

func (a *applier) cut(s *Step) error {
	start, ok := fileNumber(path.Base(s.File))
	if !ok {
		return fmt.Errorf("%q is no log file", s.File)
	}
	if err := a.salvage(s.File, s.From-start, s.To-start, fmt.Sprintf("commitlog-%020d-%d", s.From, s.To-s.From)); err != nil {
		return err
	}
	f, err := a.fs.OpenFile(a.path(s.File), os.O_RDWR)
	if err != nil {
		return err
	}
	err = zeroRange(f, s.From-start, s.To-start)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func zeroRange(f vfs.File, from, to int64) error {
	size, err := f.Size()
	if err != nil {
		return err
	}
	b := make([]byte, 1<<20)
	for to = min(to, size); from < to; {
		n := min(int64(len(b)), to-from)
		if _, err := f.WriteAt(b[:n], from); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// fill puts placeholders into a range, file by file. Files that are missing are made.
func (a *applier) fill(s *Step) error {
	return s.files(func(name string, start, end, from, to int64) error { return a.fillFile(s, name, start, end, from, to) })
}

// files calls f with what each file has of the range of a step: the file begins at start and ends at end, and so do from and to of its part.
func (s *Step) files(f func(name string, start, end, from, to int64) error) error {
	for from := s.From; from < s.To; {
		start := from
		if s.Size > 0 {
			start = s.logStart(s.Size, from)
		}
		if n, ok := fileNumber(path.Base(s.File)); ok && from == s.From {
			start = n
		}
		end := start + s.Size
		to := min(s.To, end)
		if to <= from {
			return fmt.Errorf("cannot fill the log at %d: %w", from, ErrNoFit)
		}
		if err := f(path.Join(path.Dir(s.File), FileName(start)), start, end, from, to); err != nil {
			return err
		}
		from = to
	}
	return nil
}

func (a *applier) fillFile(s *Step, name string, start, end, from, to int64) error {
	there, err := a.exists(name)
	if err != nil {
		return err
	}
	if there && !s.Missing { // else it is what an interrupted run has made of it
		if err := a.salvage(name, from-start, to-start, fmt.Sprintf("commitlog-%020d-%d", from, to-from)); err != nil {
			return err
		}
	}
	f, err := a.fs.OpenFile(a.path(name), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	err = a.writePieces(f, s, start, end, from, to)
	return errors.Join(err, f.Close(), a.syncDir(filepath.Dir(a.path(name))))
}

func (a *applier) writePieces(f vfs.File, s *Step, start, end, from, to int64) error {
	size, err := f.Size()
	if err != nil {
		return err
	}
	if size != end-start {
		if err := f.Truncate(end - start); err != nil {
			return err
		}
	}
	for _, p := range layPieces(from, to, end, s.Lost) {
		b, err := p.encode(s.StoreTime)
		if err != nil {
			return err
		}
		if _, err := f.WriteAt(b, p.from-start); err != nil {
			return err
		}
		if p.blank {
			if err := zeroRange(f, p.from-start+message.BlankLen, end-start); err != nil {
				return err
			}
		}
	}
	return f.Sync()
}

// quarantine moves a configuration file that cannot be read away.
func (a *applier) quarantine(name string) error {
	return a.moveAway(name, quarantineDir+"/"+path.Base(name)+".1")
}

// restore makes a configuration file a copy of another one. What was there is kept in quarantine.
func (a *applier) restore(from, to string) error {
	b, err := vfs.ReadFile(a.fs, a.path(from))
	if err != nil {
		return err
	}
	if old, err := vfs.ReadFile(a.fs, a.path(to)); err == nil && string(old) == string(b) {
		return nil // what cannot be read, or is too long to be, is moved away as it is
	}
	if err := a.quarantine(to); err != nil {
		return err
	}
	return a.write(a.path(to), b)
}

var _ io.Closer = (*Dir)(nil)
