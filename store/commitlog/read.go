package commitlog

// View returns n bytes at off as a slice of the mapped file, which is valid until release is called (once). The bytes
// must lie within one file. It never copies and may fault on bytes that are not in memory: use it for recent ones.
// Reading the slice of a file that somebody truncated faults; mapped.Guard turns that into an error.
func (l *Log) View(off int64, n int) (b []byte, release func(), err error) { panic("not written yet") }

// ReadAt reads len(b) bytes at off with pread, over file boundaries.
func (l *Log) ReadAt(b []byte, off int64) error { panic("not written yet") }
