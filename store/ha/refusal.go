package ha

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

const (
	// turnedMost is how many connections in a row may end before a frame until a slave says that its master refuses it.
	turnedMost = 3
	// refusedRetry is how many times Retry such a slave waits before it tries again.
	refusedRetry = 10
	// turnAwayWait is how long a slave that is refused may take to read why.
	turnAwayWait = time.Second
)

// turnAway tells a slave that is not served the nearest position of this log, by an empty frame. Apache's slaves take an empty
// frame for another position than their own as the end of the connection, which it is. What the slave still sends is read: a
// connection that is closed with something unread may lose the frame.
func (m *Master) turnAway(c net.Conn, s Span, report int64) {
	b := make([]byte, headLen)
	putHead(b, min(max(report, s.Min), s.End), 0)
	if c.SetDeadline(time.Now().Add(turnAwayWait)) != nil {
		return
	}
	if _, err := c.Write(b); err == nil {
		_, _ = io.Copy(io.Discard, c)
	}
}

// nearest is a position of the log of the master at addr that lies in the last record of the slave: that log begins there.
type nearest struct {
	addr string
	at   int64
}

// begunError says that the master's log begins at a position that the slave has, behind what it asked for.
type begunError struct{ asked, at int64 }

func (e *begunError) Error() string {
	return fmt.Sprintf("the master has nothing at %d any more; the next try begins at %d, where its log does", e.asked, e.at)
}

// turnedError says that the master ended the connection before it sent a frame.
type turnedError struct {
	reported int64
	err      error
}

func (e *turnedError) Error() string {
	return fmt.Sprintf("the master ended the connection without a frame, after the report of %d: %v", e.reported, e.err)
}

func (e *turnedError) Unwrap() error { return e.err }

// turned makes a turnedError of what ended a connection before the first frame, unless nobody ended it.
func (l *link) turned(err error) error {
	if !l.heard && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)) {
		return &turnedError{l.first, err}
	}
	return err
}

// empty is told of an empty frame: a sign of life, or that this slave is not served from where it asked to be. A master of
// mqx then tells the nearest position of its log; one of Apache's goes on with empty frames for what it was asked for.
func (l *link) empty(off int64) error {
	if l.at < 0 || l.same.Load() && l.moved || off == l.at && (l.same.Load() || off >= l.own) {
		return nil
	}
	switch {
	case off == l.at && l.ranged: // it has sent all that it has
		return &PartedError{Phase: PhaseAhead, End: l.own, At: off, Err: fmt.Errorf("that of the master ends at %d", off)}
	case off == l.at:
		return &PartedError{Phase: PhaseAhead, End: l.own, Err: fmt.Errorf(
			"the master has nothing to send at %d: its log ends there, or does not begin before a later position; it could not be asked which", off)}
	case off < l.at:
		return &PartedError{Phase: PhaseAhead, End: l.own, At: off, Err: fmt.Errorf("that of the master ends at %d", off)}
	case off > l.own:
		return &PartedError{Phase: PhaseBehind, End: l.own, Err: fmt.Errorf("the master has nothing before %d any more", off)}
	}
	return &begunError{l.at, off}
}

// refusal counts connections that the master ended before a frame, and after turnedMost in a row says that it refuses this slave.
func (f *Follower) refusal(addr string, err error) error {
	if begun := (*begunError)(nil); errors.As(err, &begun) {
		f.near = nearest{addr, begun.at}
	}
	if turned := (*turnedError)(nil); !errors.As(err, &turned) {
		f.turned = 0
		return nil
	}
	if f.turned++; f.turned < turnedMost {
		return nil
	}
	return fmt.Errorf("%d times in a row %w; it may have no place for another slave or be no replication port, or its log may begin behind that or end "+
		"before it; the next try is in %s", f.turned, err, refusedRetry*f.cfg.Retry)
}

// refused says so and waits for the next try.
func (f *Follower) refused(ctx context.Context, addr string, err error) {
	f.set(PhaseRefused, addr, err)
	ctx, cancel := context.WithTimeout(ctx, refusedRetry*f.cfg.Retry)
	defer cancel()
	f.awaitChange(ctx, addr)
}
