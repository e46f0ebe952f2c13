package server

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"mqx/remoting"
)

const (
	// maxAcceptors is the most goroutines that accept: each has one
	// connection on its way to a loop, with two descriptors for that moment.
	maxAcceptors = 4
	// The pauses after a failed accept.
	minAcceptPause = 5 * time.Millisecond
	maxAcceptPause = 500 * time.Millisecond
)

// acceptLoop accepts until the listener is closed. It owns accepting instead
// of gnet, which ends the whole engine when accept finds no descriptor.
func (s *Server) acceptLoop(ln *net.TCPListener) {
	pause := minAcceptPause
	for {
		nc, err := ln.AcceptTCP()
		if err == nil {
			pause = minAcceptPause
			if !s.life.spare.held() {
				// This one got the descriptor that another acceptor had freed to
				// refuse a connection with.
				s.counts.accepted.Add(1)
				s.refuse(nc, ReasonDescriptors)
				s.life.spare.held()
				continue
			}
			s.admit(nc)
			continue
		}
		select {
		case <-s.quit:
			return
		default:
		}
		if outOfDescriptors(err) {
			s.quiet.warn("connections wait: out of file descriptors", ReasonDescriptors, "open", s.limits.Open(), "error", err)
			s.shed(ln)
		} else if !errors.Is(err, os.ErrDeadlineExceeded) {
			s.quiet.warn("cannot accept a connection", "accept", "error", err)
		}
		select {
		case <-s.quit:
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, maxAcceptPause)
	}
}

func outOfDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// admit hands an accepted connection to a loop, or refuses it.
func (s *Server) admit(nc *net.TCPConn) {
	s.counts.accepted.Add(1)
	remote := addrPort(nc.RemoteAddr())
	local := addrPort(nc.LocalAddr())
	if !remote.IsValid() {
		_ = nc.Close() // gone already
		return
	}
	// A link-local peer is one address on whatever interface.
	peer := remote.Addr().WithZone("")
	if why := s.limits.acquire(peer); why != "" {
		s.refuse(nc, why)
		return
	}
	c := s.newConn(remote, local, peer)
	if s.cfg.streams || remote.Addr().Zone() != "" || local.Addr().Zone() != "" || !s.engine.enroll(c, nc) {
		// gnet recycles the text of a zone, which other addresses of the
		// process share: such a connection is served by a goroutine.
		s.startStream(c, nc, nil)
	}
}

// addrPort returns a TCP address with an IPv4 one in its short form.
func addrPort(a net.Addr) netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok || t == nil {
		return netip.AddrPort{}
	}
	ap := t.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// refuse tells a client why it is not served and closes the connection.
func (s *Server) refuse(nc *net.TCPConn, why string) {
	s.counts.refuse(why)
	total, perIP := s.limits.Max()
	s.quiet.warn("connection refused", "refused: "+why, "peer", nc.RemoteAddr(), "reason", why,
		"open", s.limits.Open(), "max_connections", total, "max_connections_per_ip", perIP)
	if s.cfg.TLS.Mode != TLSEnforcing {
		if b, err := refusalFrame(why, s.cfg.Serialize); err == nil {
			_ = nc.SetWriteDeadline(time.Now().Add(minAcceptPause))
			_, _ = nc.Write(b)
			_ = nc.CloseWrite()
			dropReceived(nc)
		}
	}
	_ = nc.Close()
}

// refusalFrame is what a client reads that is not served: a response to no
// request of its, which clients log.
func refusalFrame(why string, ser remoting.Serialize) ([]byte, error) {
	cmd := remoting.Command{
		Code: remoting.RespSystemBusy, Language: remoting.LanguageGo, Version: remoting.Version,
		Opaque: -1, Flag: remoting.FlagResponse | remoting.FlagOneway,
		Remark: "[OVERLOAD]connection refused, reason: " + why,
	}
	return cmd.AppendFrame(nil, ser)
}

// shed uses the spare descriptor to accept one waiting connection and refuse
// it, so that a client learns of it rather than wait.
func (s *Server) shed(ln *net.TCPListener) {
	s.life.spare.lend(func() {
		_ = ln.SetDeadline(time.Now().Add(minAcceptPause))
		nc, err := ln.AcceptTCP()
		_ = ln.SetDeadline(time.Time{})
		if err == nil {
			s.counts.accepted.Add(1)
			s.refuse(nc, ReasonDescriptors)
		}
	})
}

// spareDescriptor is kept open to be closed when no other is left.
type spareDescriptor struct {
	mu   sync.Mutex
	f    *os.File
	done bool
}

func (d *spareDescriptor) open() {
	if !d.done && d.f == nil {
		d.f, _ = os.Open(os.DevNull)
	}
}

// held reports whether the spare is there, and takes one anew where it is not and
// there is a descriptor again.
func (d *spareDescriptor) held() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open()
	return d.f != nil || d.done
}

// lend calls f while the descriptor is free for others.
func (d *spareDescriptor) lend(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.f != nil {
		_ = d.f.Close()
		d.f = nil
		f()
	}
	d.open()
}

func (d *spareDescriptor) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done = true
	if d.f != nil {
		_ = d.f.Close()
		d.f = nil
	}
}
