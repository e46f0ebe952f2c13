//go:build unix

package server

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// RaiseDescriptorLimit raises the soft limit of open files to the hard one and
// returns what is in force; 0 where the system has none.
func RaiseDescriptorLimit() (uint64, error) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0, fmt.Errorf("cannot read the limit of open files: %w", err)
	}
	if l.Cur < l.Max {
		raised := unix.Rlimit{Cur: l.Max, Max: l.Max}
		if unix.Setrlimit(unix.RLIMIT_NOFILE, &raised) == nil {
			l = raised
		}
		// Where the system refuses (macOS has a lower limit of its own), what
		// was there stays in force.
	}
	return uint64(l.Cur), nil //nolint:unconvert // its type differs between systems
}
