package server_test

import (
	"io"
	"log/slog"
	"sync"
)

// quiet keeps tests of refusals from printing.
var quiet = slog.New(slog.DiscardHandler)

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

func logTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(&lockedWriter{w: w}, nil)) }
