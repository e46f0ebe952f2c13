package mapped

import (
	"errors"

	"mqx/internal/vfs"
)

// ErrClosed is returned for a file that was closed (or deleted by expiry).
var ErrClosed = errors.New("file is closed")

// ErrFault is returned when mapped memory could not be read or written, because the file is shorter than it was when
// it was mapped or because of an I/O error of the device.
var ErrFault = errors.New("mapped memory is gone")

// File is an open file with an optional mapping. It is safe to share between goroutines.
type File struct {
	f vfs.File
}
