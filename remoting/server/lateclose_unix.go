//go:build linux || darwin

package server

import (
	"sync"
	"time"

	"github.com/panjf2000/gnet/v2"
	"golang.org/x/sys/unix"
)

const (
	// lateClose is how long the socket of a peer that has sent what is no frame stays open, unread. Closed at once, the peer would be
	// back at once, and cost the loop more than everybody else.
	lateClose = 200 * time.Millisecond
	// lateCloseMost bounds those sockets, together with an eighth of the descriptors beside those of connections; more are closed at
	// once.
	lateCloseMost = 256
)

// closedLate are the reasons for it.
var closedLate = map[string]bool{ReasonBadFrame: true, ReasonTLSDisabled: true, ReasonFlood: true}

// lateCloses are the sockets whose connections have ended, but which are not closed yet. Safe to share.
type lateCloses struct {
	most int
	mu   sync.Mutex
	open map[int]*time.Timer // by descriptor; nil once the server ends
}

func newLateCloses(rest int) *lateCloses {
	return &lateCloses{most: min(lateCloseMost, rest/8), open: map[int]*time.Timer{}}
}

// keep holds the socket of a connection that the loop is about to close.
func (l *lateCloses) keep(gc gnet.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil || len(l.open) >= l.most {
		return
	}
	fd, err := unix.FcntlInt(uintptr(gc.Fd()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return // it is closed at once
	}
	l.open[fd] = time.AfterFunc(lateClose, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.open[fd] != nil {
			delete(l.open, fd)
			_ = unix.Close(fd)
		}
	})
}

// end closes all of them, and those to come at once.
func (l *lateCloses) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for fd, t := range l.open {
		t.Stop()
		_ = unix.Close(fd)
	}
	l.open = nil
}
