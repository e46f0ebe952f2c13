package server

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// vectors is scratch for writev. unix.Writev allocates for more than 8 slices.
type vectors []unix.Iovec

// writev writes iov with one system call that does not wait.
func (v *vectors) writev(fd int, iov [][]byte) (int, error) {
	vecs := (*v)[:0]
	for _, p := range iov {
		if len(p) == 0 {
			continue
		}
		vec := unix.Iovec{Base: &p[0]}
		vec.SetLen(len(p))
		vecs = append(vecs, vec)
	}
	if len(vecs) == 0 {
		return 0, nil
	}
	n, _, errno := unix.Syscall(unix.SYS_WRITEV, uintptr(fd), uintptr(unsafe.Pointer(&vecs[0])), uintptr(len(vecs)))
	clear(vecs)
	if *v = nil; cap(vecs) <= keptIovec {
		*v = vecs[:0]
	}
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
