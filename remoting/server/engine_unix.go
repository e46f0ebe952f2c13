//go:build linux || darwin

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"sync"

	"github.com/panjf2000/gnet/v2"
	"golang.org/x/sys/unix"
)

const (
	// readBuffer is what one read of a loop takes.
	readBuffer = 64 << 10
)

// engine is the event loops. gnet has no listener here: connections are
// accepted by the server and registered with a loop.
type engine struct {
	gnet.BuiltinEventEngine
	srv    *Server
	client *gnet.Client
	turns  sync.Map // gnet.EventLoop -> *turn
	late   *lateCloses
}

func startEngine(s *Server) (*engine, error) {
	e := &engine{srv: s, late: newLateCloses(s.limits.Rest())}
	loops := s.cfg.Loops
	if loops == 0 {
		loops = runtime.GOMAXPROCS(0)
	}
	var err error
	e.client, err = gnet.NewClient(e,
		gnet.WithNumEventLoop(loops),
		gnet.WithReadBufferCap(readBuffer),
		gnet.WithTCPNoDelay(gnet.TCPNoDelay),
		gnet.WithLogger(gnetLog{s.log}),
	)
	if err != nil {
		return nil, err
	}
	return e, e.client.Start()
}

// stop ends the loops; OnClose has been called for every connection when it
// returns.
func (e *engine) stop() {
	if e == nil {
		return
	}
	if err := e.client.Stop(); err != nil {
		e.srv.log.Warn("event loops ended", "error", err)
	}
	e.late.end()
	e.turns.Range(func(_, t any) bool { t.(*turn).dropHeld(); return true })
}

// enroll registers a connection with a loop. It returns false when there is no
// loop for it on this system.
func (e *engine) enroll(c *Conn, nc *net.TCPConn) bool {
	t := &loopConn{fd: -1}
	c.tr = t
	var err error
	if canDuplicate(nc) {
		_, err = e.client.EnrollContext(nc, c) // closes nc, having duplicated it
	} else {
		e.srv.refuse(nc, ReasonDescriptors)
	}
	if !t.opened.Load() {
		// No loop took it: no descriptor, or the peer has gone already.
		e.srv.limits.release(c.peer)
		if err != nil {
			e.srv.quiet.warn("cannot serve a connection", "enroll", "peer", c.Remote(), "error", err)
		}
	}
	return true
}

// canDuplicate tells whether there is a descriptor for the moment in which a
// connection has two. gnet closes it without a word when there is none.
func canDuplicate(nc *net.TCPConn) bool {
	rc, err := nc.SyscallConn()
	if err != nil {
		return false
	}
	ok := false
	err = rc.Control(func(fd uintptr) {
		if d, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0); err == nil {
			ok = unix.Close(d) == nil
		}
	})
	return err == nil && ok
}

// OnOpen runs on the loop.
func (e *engine) OnOpen(gc gnet.Conn) ([]byte, gnet.Action) {
	c, ok := gc.Context().(*Conn)
	if !ok {
		return nil, gnet.Close
	}
	t := c.tr.(*loopConn)
	t.gc, t.turn = gc, e.turnOf(gc.EventLoop())
	t.wmu.Lock()
	t.fd = gc.Fd()
	t.wmu.Unlock()
	t.opened.Store(true)
	e.srv.remember(c)
	return nil, gnet.None
}

func (e *engine) turnOf(l gnet.EventLoop) *turn {
	if t, ok := e.turns.Load(l); ok {
		return t.(*turn)
	}
	t := newTurn(e.srv)
	serve := gnet.RunnableFunc(func(context.Context) error { t.serveHeld(); return nil })
	t.held.later = func() error { return l.Execute(context.Background(), serve) }
	e.turns.Store(l, t)
	return t
}

// OnTraffic runs on the loop when bytes have come and when the connection was
// woken.
func (e *engine) OnTraffic(gc gnet.Conn) gnet.Action {
	c, ok := gc.Context().(*Conn)
	if !ok {
		return gnet.Close
	}
	t := c.tr.(*loopConn)
	// Everything is taken: gnet's own inbound buffer stays empty.
	data, err := gc.Next(-1)
	if err == nil && len(data) > 0 {
		if c.stuck.Load() > 0 {
			t.resume(c) // feed is to know what the peer has not read by now
		}
		err = c.feed(t.turn, data)
	}
	if c.stuck.Load() > 0 {
		t.resume(c)
	} else if len(data) == 0 {
		t.rest(c)
		c.flushPending()
	}
	if err == nil {
		return gnet.None
	}
	if errors.Is(err, errStartTLS) {
		e.handOver(c, t)
		return gnet.Close
	}
	if bad, ok := errors.AsType[*CloseError](err); ok && closedLate[bad.Reason] {
		e.late.keep(gc)
	}
	c.out.Lock()
	if c.out.reason == nil {
		c.out.reason = err
	}
	c.out.Unlock()
	return gnet.Close
}

// OnClose runs on the loop, before the descriptor is closed.
func (e *engine) OnClose(gc gnet.Conn, cause error) gnet.Action {
	c, ok := gc.Context().(*Conn)
	if !ok {
		return gnet.None // handed over to a goroutine
	}
	t := c.tr.(*loopConn)
	t.wmu.Lock()
	t.fd = -1
	t.wmu.blocked, t.wmu.held = false, 0 // what comes now is dropped
	t.wmu.spill, t.wmu.iov = nil, nil
	t.wmu.Unlock()
	if cause == nil {
		cause = io.EOF
	}
	c.closed(&CloseError{Reason: ReasonPeer, Err: cause})
	return gnet.None
}

// handOver moves the connection from the loop to a goroutine that speaks TLS.
func (e *engine) handOver(c *Conn, t *loopConn) {
	gc := t.gc
	nc, err := duplicate(gc)
	if err != nil {
		c.out.Lock()
		c.out.reason = &CloseError{Reason: ReasonTLSHandshake, Err: err}
		c.out.Unlock()
		return
	}
	gc.SetContext(nil)
	pre := c.in.pre
	c.in.pre = nil
	e.srv.startStream(c, nc, pre)
}

// duplicate returns the socket of gc as a net.Conn of its own.
func duplicate(gc gnet.Conn) (net.Conn, error) {
	fd, err := gc.Dup()
	if err != nil {
		return nil, fmt.Errorf("cannot duplicate the socket: %w", err)
	}
	f := os.NewFile(uintptr(fd), "connection")
	defer func() { _ = f.Close() }() // net.FileConn has a descriptor of its own
	nc, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("cannot duplicate the socket: %w", err)
	}
	return nc, nil
}

// gnetLog sends gnet's log lines to slog; gnet says at level info what is
// detail for the rest of mqx.
type gnetLog struct{ log *slog.Logger }

// Debugf drops what gnet says of every step.
func (l gnetLog) Debugf(string, ...any) {}

// Infof is detail for the rest of mqx.
func (l gnetLog) Infof(format string, args ...any) {
	l.log.Debug("event loop", "text", fmt.Sprintf(format, args...))
}

// Warnf is detail for the rest of mqx.
func (l gnetLog) Warnf(format string, args ...any) {
	l.log.Debug("event loop", "text", fmt.Sprintf(format, args...))
}

// Errorf warns.
func (l gnetLog) Errorf(format string, args ...any) {
	l.log.Warn("event loop", "text", fmt.Sprintf(format, args...))
}

// Fatalf says it as an error; the process goes on, unlike gnet's own logger.
func (l gnetLog) Fatalf(format string, args ...any) {
	l.log.Error("event loop", "text", fmt.Sprintf(format, args...))
}
