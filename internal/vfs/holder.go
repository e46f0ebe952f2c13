package vfs

// LockTester is an FS that can tell whether somebody holds a lock without taking it. It is optional.
type LockTester interface {
	// LockedBy reports whether byte 0 of the named file is locked for writing, as FS.Lock does. pid is 0 when the
	// system does not say who holds it. A missing file is not locked. It changes nothing.
	LockedBy(name string) (pid int, locked bool, err error)
}

// Advised is a file that can be read without driving what others need out of the page cache. It is optional.
type Advised interface {
	// Cached returns how many bytes of a range are in the page cache; ok is false when the system does not say.
	Cached(off, n int64) (cached int64, ok bool)
	// Forget says that nobody will need the range soon; clean pages of it leave the page cache.
	Forget(off, n int64)
	// Sequential says that the file is about to be read from front to back.
	Sequential()
}

// HolderFinder is an FS that can tell which process has a lock file open. It is optional.
type HolderFinder interface {
	// HolderOf is the process that holds a lock on the named file, or at least has it open; guess, if above 0, is looked at
	// first. 0 when none is seen.
	HolderOf(name string, guess int) int
}

// Holder is the process that has the named lock file open, 0 when the system does not say. guess is what a note says; it is
// believed where nothing can be asked.
func Holder(fsys FS, name string, guess int) int {
	if h, ok := fsys.(HolderFinder); ok {
		return h.HolderOf(name, guess)
	}
	return guess
}
