package store

import "fmt"

// LockedError says that another process has the store open.
type LockedError struct {
	Dir string
	PID int // 0 when unknown
}

func (e *LockedError) Error() string {
	if e.PID > 0 {
		return fmt.Sprintf("cannot open store %q: it is in use by process %d", e.Dir, e.PID)
	}
	return fmt.Sprintf("cannot open store %q: it is in use by another process", e.Dir)
}

// LayoutError says that a store directory is of a kind that is not served, or that its parts
// do not belong together.
type LayoutError struct {
	Dir  string
	What string // what was found, with paths
	Hint string // what to do
}

func (e *LayoutError) Error() string {
	s := fmt.Sprintf("cannot open store %q: %s", e.Dir, e.What)
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}
