package store

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"mqx/store/commitlog"
	"mqx/store/mapped"
)

// damagedFiles are log files that somebody cut short while they are in use. They are not read through the map any more,
// where the missing part is a fault, or an error of the socket that is given it, but with pread, which can say what is
// wrong. It is safe to share.
type damagedFiles struct {
	some atomic.Bool
	mu   struct {
		sync.Mutex
		files []commitlog.FileInfo
	}
}

// has reports whether a position lies in a damaged file.
func (d *damagedFiles) has(phys int64) bool {
	if !d.some.Load() {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.mu.files, func(f commitlog.FileInfo) bool { return phys >= f.Start && phys < f.Start+f.Size })
}

// add notes a file and reports whether it is new.
func (d *damagedFiles) add(f commitlog.FileInfo) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.ContainsFunc(d.mu.files, func(o commitlog.FileInfo) bool { return o.Start == f.Start }) {
		return false
	}
	d.mu.files = append(d.mu.files, f)
	d.some.Store(true)
	return true
}

// checkFiles looks for log files that are shorter than they have to be.
func (s *Store) checkFiles() error {
	files, err := s.log.Files()
	if err != nil {
		return err
	}
	for _, f := range files {
		st, err := s.cfg.FS.Stat(f.Path)
		if err != nil {
			continue // being deleted, or the next append will say what is wrong
		}
		if st.Size() < f.Size && s.damaged.add(f) {
			s.find(Finding{FindCut, f.Path, f.Start, fmt.Sprintf("the file was cut to %d of %d bytes while the store is in use; what is left of it is served", st.Size(), f.Size)})
		}
	}
	return nil
}

// fault gives a fault on the map the name of its file, and looks what is wrong with that. again says that reading with
// pread can do better.
func (s *Store) fault(err error, phys int64) (again bool, named error) {
	if !errors.Is(err, mapped.ErrFault) {
		return false, err
	}
	again = s.checkFiles() == nil && s.damaged.has(phys)
	files, listErr := s.log.Files()
	for _, f := range files {
		if phys >= f.Start && phys < f.Start+f.Size {
			return again, fmt.Errorf("cannot read commit log %q at %d: %w", f.Path, phys, err)
		}
	}
	return again, errors.Join(err, listErr)
}
