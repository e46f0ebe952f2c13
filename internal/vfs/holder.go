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
