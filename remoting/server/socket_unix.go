//go:build unix

package server

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// listenControl sets what accepted sockets inherit.
func (s *Server) listenControl(_, _ string, rc syscall.RawConn) error {
	var err error
	cerr := rc.Control(func(fd uintptr) {
		if n := s.cfg.SendBuffer; n > 0 {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF, n)
		}
		if n := s.cfg.ReceiveBuffer; n > 0 && err == nil {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, n)
		}
	})
	if cerr != nil {
		return cerr
	}
	return err
}

// dropReceived reads what has come already, without waiting: a socket that is
// closed with unread bytes resets the connection, and the peer may then not
// read what was written.
func dropReceived(nc *net.TCPConn) {
	rc, err := nc.SyscallConn()
	if err != nil {
		return
	}
	_ = rc.Read(func(fd uintptr) bool {
		var b [4096]byte
		for range 16 {
			if n, err := unix.Read(int(fd), b[:]); n <= 0 || err != nil {
				break
			}
		}
		return true
	})
}
