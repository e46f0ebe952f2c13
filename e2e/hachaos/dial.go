package main

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

// tcpRepair is the option of a socket that may take an address which is in use.
const tcpRepair = 19

// dialAs connects from the address of the slave, so that the master sees that address as it does without a link between
// them: a slave tells its master from where it has connected. It takes root; without it all slaves are one to their master.
func dialAs(from net.Addr, to string) (net.Conn, error) {
	d := net.Dialer{Timeout: 2 * time.Second}
	addr, ok := from.(*net.TCPAddr)
	if ok && os.Getuid() == 0 && addr.IP.To4() != nil {
		d.Control = func(_, _ string, c syscall.RawConn) error {
			var err error
			controlErr := c.Control(func(fd uintptr) {
				s := int(fd)
				sa := &syscall.SockaddrInet4{Port: addr.Port}
				copy(sa.Addr[:], addr.IP.To4())
				err = errors.Join(
					syscall.SetsockoptInt(s, syscall.IPPROTO_TCP, tcpRepair, 1),
					syscall.Bind(s, sa),
					syscall.SetsockoptInt(s, syscall.IPPROTO_TCP, tcpRepair, 0),
				)
			})
			return errors.Join(controlErr, err)
		}
	}
	return d.Dial("tcp4", to)
}
