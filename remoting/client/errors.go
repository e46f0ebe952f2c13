package client

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Errors without further data.
var (
	// ErrClosed: the client has been closed.
	ErrClosed = errors.New("client is closed")
	// ErrTooManyPending: MaxPending requests wait for their answers.
	ErrTooManyPending = errors.New("too many requests wait for an answer")

	errClosedByCaller = errors.New("closed by the caller")
	errIdle           = errors.New("not used for long")
	errSilent         = errors.New("the peer does not answer")
	errNoAddress      = errors.New("no name server address is known")
)

// ConnectError says that no connection could be made. Nothing was sent.
type ConnectError struct {
	Addr    string
	Dialled string // the address that stands for Addr here (Config.Map); "" where none does
	Err     error
}

func (e *ConnectError) Error() string {
	if e.Dialled != "" {
		return fmt.Sprintf("cannot connect to %q, mapped to %q: %v", e.Addr, e.Dialled, e.Err)
	}
	return fmt.Sprintf("cannot connect to %q: %v", e.Addr, e.Err)
}

func (e *ConnectError) Unwrap() error { return e.Err }

// TimeoutError says that the answer did not come in time. The peer may have
// done what was asked.
type TimeoutError struct {
	Addr    string
	Request string // name of the request
	After   time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("cannot get an answer to %s from %q within %v", e.Request, e.Addr, e.After.Round(time.Millisecond))
}

// Timeout reports true, as net.Error wants it.
func (e *TimeoutError) Timeout() bool { return true }

// Unwrap returns context.DeadlineExceeded.
func (e *TimeoutError) Unwrap() error { return context.DeadlineExceeded }

// ClosedError says that the connection closed before the answer came. The
// peer may have done what was asked. Err is the reason; where the peer gave
// one (a refused connection) its text is in it.
type ClosedError struct {
	Addr string
	Err  error
}

func (e *ClosedError) Error() string {
	return fmt.Sprintf("connection to %q closed: %v", e.Addr, e.Err)
}
func (e *ClosedError) Unwrap() error { return e.Err }

// isClosed reports whether a connection had closed before a request was sent
// on it.
func isClosed(err error) bool {
	_, ok := errors.AsType[*ClosedError](err)
	return ok
}
