//go:build !unix

package server

import (
	"net"
	"syscall"
)

func (s *Server) listenControl(string, string, syscall.RawConn) error { return nil }

func dropReceived(*net.TCPConn) {}
