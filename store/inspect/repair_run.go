package inspect

import (
	"context"
	"errors"
	"fmt"
	"path"

	"mqx/internal/vfs"
	"mqx/internal/words"
	"mqx/store"
)

// RepairOptions say how to repair.
type RepairOptions struct {
	Open   Options
	Verify VerifyOptions
	Plan   PlanOptions
	Apply  ApplyOptions
	// Agree is asked before a plan is done, and before one that was interrupted goes on (then r is nil). An error ends
	// the repair with it. Nil agrees to everything.
	Agree func(r *Report, p *RepairPlan) error
	// OnReport is told of what each look at the directory found.
	OnReport func(r *Report)
}

// maxRounds bounds how often the directory is looked at and mended: what a first round brings to light, when log files were
// put in their places, is mended in the next.
const maxRounds = 4

// Repair brings a store directory into a state on which Apache's broker and mqx start, and returns the report of the last
// look at it. It holds the lock of the directory. Errors: *store.LockedError, *UnsupportedError, *ShapeError,
// *NoSpaceError, what Agree returned, and those of the disk.
func Repair(ctx context.Context, root string, o RepairOptions) (r *Report, err error) {
	if o.Open.FS == nil {
		o.Open.FS = vfs.OS
	}
	o.Apply.FS, o.Apply.Clock = o.Open.FS, o.Open.Clock
	if err := probe(root, o.Open); err != nil {
		return nil, err
	}
	lock, err := store.LockDir(o.Open.FS, root)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	o.Open.Owned = true
	if err := resume(ctx, root, o); err != nil {
		return nil, err
	}
	for round := 0; ; round++ {
		r, p, err := look(ctx, root, o)
		if err != nil {
			return r, err
		}
		if o.OnReport != nil {
			o.OnReport(r)
		}
		if len(p.Steps) == 0 {
			return r, nil
		}
		if round == maxRounds {
			return r, fmt.Errorf("cannot repair store %q: after %s there still are findings", root, words.Count(maxRounds, "round"))
		}
		if o.Agree != nil {
			if err := o.Agree(r, p); err != nil {
				return r, err
			}
		}
		if err := Apply(ctx, p, o.Apply); err != nil {
			return r, err
		}
	}
}

// probe refuses what is no store before a lock file is made there.
func probe(root string, o Options) error {
	d, err := Open(root, o)
	if err != nil {
		return err
	}
	err = d.Close()
	if e := shapeOfOwn(d); e != nil {
		return errors.Join(e, err)
	}
	if e := d.unsupported(); e != nil {
		return errors.Join(e, err)
	}
	if u := d.InUse(); u.Locked {
		return errors.Join(&store.LockedError{Dir: root, PID: u.PID}, err)
	}
	return err
}

// CanRepair says why a directory is of a kind that is not repaired, without asking who works on it. Errors:
// *UnsupportedError, and those of Open.
func CanRepair(root string, o Options) error {
	d, err := Open(root, o)
	if err != nil {
		return err
	}
	return errors.Join(d.unsupported(), d.Close())
}

// unsupported says what there is that is not repaired.
func (d *Dir) unsupported() error {
	for _, k := range d.Foreign() {
		return &UnsupportedError{d.root, k}
	}
	for _, dir := range d.o.CommitLogDirs {
		own, err := resolved(d.Path(nameCommitLog))
		other, e := resolved(dir)
		if err = errors.Join(err, e); err != nil {
			return err
		}
		if own != other {
			return &UnsupportedError{d.root, Kind{Name: KindLogElsewhere, Path: dir, What: "its commit log in another directory (storePathCommitLog)"}}
		}
	}
	return nil
}

// ShapeError says that something else lies where a repair locks the directory, or keeps its notes.
type ShapeError struct{ Path, What string }

func (e *ShapeError) Error() string { return fmt.Sprintf("cannot repair with %q: %s", e.Path, e.What) }

func shapeOfOwn(d *Dir) error {
	for _, name := range []string{nameLock, ownDir, repairJournal, repairWork, salvageDir, quarantineDir} {
		dir := path.Dir(name)
		entries, err := d.fs.ReadDir(d.Path(dir))
		if vfs.Absent(err) {
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Name() != path.Base(name) {
				continue
			}
			got, err := entryLies(d.fs, d.Path(dir), e)
			if err != nil {
				return err
			}
			if want := belongs(name); got != want && got != liesNothing {
				return &ShapeError{d.Path(name), misplacedText(got, want)}
			}
		}
	}
	return nil
}

// resume goes on with a repair that was interrupted.
func resume(ctx context.Context, root string, o RepairOptions) error {
	p, err := Pending(o.Open.FS, root)
	if err != nil || p == nil {
		return err
	}
	if p.canFill() != nil {
		// The steps before it are done, and nothing lies aside: what is left follows from another look.
		a := &applier{ctx: ctx, p: p, o: o.Apply, fs: o.Open.FS}
		return a.finish()
	}
	if o.Agree != nil {
		if err := o.Agree(nil, p); err != nil {
			return err
		}
	}
	return Apply(ctx, p, o.Apply)
}

// look verifies a directory and makes the plan of what was found.
func look(ctx context.Context, root string, o RepairOptions) (r *Report, p *RepairPlan, err error) {
	d, err := Open(root, o.Open)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if r, err = Verify(ctx, d, o.Verify); err != nil {
		return nil, nil, err
	}
	p, err = PlanRepair(r, o.Plan)
	return r, p, err
}
