//go:build unix

package client

import (
	"errors"
	"net"
	"syscall"
)

// tryWriter writes to a socket without waiting for the peer.
type tryWriter struct {
	rc   syscall.RawConn
	call func(fd uintptr) bool
	b    []byte
	n    int
	err  error
}

// newTryWriter returns nil for a connection that only knows how to wait (TLS).
func newTryWriter(nc net.Conn) *tryWriter {
	tc, ok := nc.(*net.TCPConn)
	if !ok {
		return nil
	}
	rc, err := tc.SyscallConn()
	if err != nil {
		return nil
	}
	w := &tryWriter{rc: rc}
	w.call = func(fd uintptr) bool {
		w.n, w.err = syscall.Write(int(fd), w.b)
		return true
	}
	return w
}

// write returns how much of b the kernel took. One goroutine at a time.
func (w *tryWriter) write(b []byte) (int, error) {
	w.b, w.n, w.err = b, 0, nil
	err := w.rc.Write(w.call)
	w.b = nil
	switch {
	case err != nil:
		return 0, err
	case errors.Is(w.err, syscall.EAGAIN) || errors.Is(w.err, syscall.EINTR):
		return 0, nil
	case w.err != nil:
		return 0, w.err
	}
	return w.n, nil
}
