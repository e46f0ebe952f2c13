package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"mqx/remoting"
)

const (
	// streamBuffer is the read buffer of a stream: one TLS record.
	streamBuffer = 16 << 10
	// alertTimeout bounds the farewell of a TLS connection.
	alertTimeout = time.Second
)

// stream is the transport of a connection that goroutines serve: TLS, peers
// with an IPv6 zone, systems without event loops.
type stream struct {
	raw  net.Conn // the socket
	nc   net.Conn // raw, or TLS over it; set by the reader before OnOpen
	turn *turn
	// Writers end before the connection is forgotten.
	writers sync.WaitGroup
	ended   bool // no writer starts any more; owned by Conn.out
}

// startStream serves c, which has been counted by the limits, on goroutines.
// pre is what has been read of a TLS handshake.
func (s *Server) startStream(c *Conn, nc net.Conn, pre []byte) {
	st := &stream{raw: nc, nc: nc, turn: newTurn(s)}
	c.out.Lock()
	first := c.tr == nil
	c.tr = st
	failed := c.out.reason != nil
	c.out.Unlock()
	if failed {
		_ = nc.Close()
	}
	if first {
		s.remember(c)
	}
	s.streams.Go(func() { st.serve(c, pre) })
}

func (st *stream) serve(c *Conn, pre []byte) {
	var err error
	if pre != nil {
		err = st.startTLS(c, pre)
	}
	if err == nil {
		err = st.read(c)
	}
	// 1. What has been answered is sent, if the peer still reads.
	c.out.Lock()
	if c.out.reason == nil {
		c.out.reason = err
	}
	st.ended = true
	c.out.Unlock()
	_ = st.raw.SetWriteDeadline(time.Now().Add(alertTimeout))
	// 2. The writer ends: nobody starts another.
	st.writers.Wait()
	// 3. The socket closes, with a farewell of TLS.
	_ = st.nc.Close()
	_ = st.raw.Close()
	// 4. The connection ends.
	c.closed(err)
}

// read feeds the connection until it ends.
func (st *stream) read(c *Conn) error {
	buf := make([]byte, streamBuffer)
	for {
		n, err := st.nc.Read(buf)
		if n > 0 {
			bad := c.feed(st.turn, buf[:n])
			if errors.Is(bad, errStartTLS) {
				pre := c.in.pre
				c.in.pre = nil
				bad = st.startTLS(c, pre)
			}
			if bad != nil {
				return bad
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				return &CloseError{Reason: ReasonPeer, Err: err}
			}
			return &CloseError{Reason: ReasonPeer, Err: io.EOF}
		}
	}
}

// startTLS does the handshake; pre is what has been read of it.
func (st *stream) startTLS(c *Conn, pre []byte) error {
	tc := tls.Server(&prefixed{Conn: st.raw, pre: pre}, c.srv.tls)
	_ = st.raw.SetDeadline(time.Now().Add(c.srv.cfg.HandshakeTimeout))
	if err := tc.HandshakeContext(context.Background()); err != nil { // the deadline ends it
		return &CloseError{Reason: ReasonTLSHandshake, Err: err}
	}
	_ = st.raw.SetDeadline(time.Time{})
	c.partSince.Store(0)
	st.nc = tc
	c.encrypted.Store(true)
	return nil
}

// prefixed is a connection of which some bytes have been read.
type prefixed struct {
	net.Conn
	pre []byte
}

func (p *prefixed) Read(b []byte) (int, error) {
	if len(p.pre) == 0 {
		return p.Conn.Read(b)
	}
	n := copy(b, p.pre)
	if p.pre = p.pre[n:]; len(p.pre) == 0 {
		p.pre = nil
	}
	return n, nil
}

// flush lets a goroutine write, which may wait for the peer.
func (st *stream) flush(c *Conn) {
	c.out.Lock()
	if st.ended {
		c.out.active = false
		if o := c.out.buf; o != nil {
			c.out.buf = nil
			o.free()
		}
		c.out.Unlock()
		return
	}
	st.writers.Add(1)
	c.out.Unlock()
	go st.write(c)
}

func (st *stream) write(c *Conn) {
	defer st.writers.Done()
	for {
		c.out.Lock()
		o := c.out.buf
		c.out.buf = nil
		if o == nil {
			c.out.active = false
			_ = c.setStuck(0)
			c.out.Unlock()
			return
		}
		over := c.setStuck(int64(len(o.b)))
		c.failLocked(over)
		c.out.Unlock()
		_, err := st.nc.Write(o.b)
		c.sent(o, 1)
		if err != nil {
			c.fail(&CloseError{Reason: ReasonPeer, Err: err})
			continue
		}
		c.alive.Store(true)
	}
}

func (st *stream) writeParts(c *Conn, cmd *remoting.Command, head *outbuf, parts [][]byte) {
	c.out.Lock()
	if c.out.closed || c.out.reason != nil {
		c.out.Unlock()
		head.free()
		return
	}
	before := 0
	if c.out.buf != nil {
		before = len(c.out.buf.b)
	}
	c.appendParts(cmd, head, parts)
	if stuck := c.stuck.Load(); stuck > 0 {
		c.failLocked(c.setStuck(stuck + int64(len(c.out.buf.b)-before)))
	}
	active := c.out.active
	c.out.active = true
	c.out.Unlock()
	if !active {
		st.flush(c)
	}
}

// shut closes the socket, which ends reader and writer.
func (st *stream) shut(*Conn) { _ = st.raw.Close() }

func (st *stream) nudge(*Conn) {}
