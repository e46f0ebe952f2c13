package cmd

import (
	"context"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/term"
)

// Streams are the three standard streams of a command and what is known of
// them. They come in through Execute so that a test can see what a command
// would have written to a terminal.
type Streams struct {
	In  io.Reader
	Out io.Writer // data only
	Err io.Writer // everything else

	InTTY, OutTTY, ErrTTY bool
	Width                 int // columns of the terminal on Out; 0 when it is none
}

// StdStreams returns the streams of the process.
func StdStreams() Streams {
	s := Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTTY:  term.IsTerminal(int(os.Stdin.Fd())),
		OutTTY: term.IsTerminal(int(os.Stdout.Fd())),
		ErrTTY: term.IsTerminal(int(os.Stderr.Fd())),
	}
	if s.OutTTY {
		if w, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
			s.Width = w
		}
	}
	return s
}

// lastSignal is the signal that cancelled the context of Execute, as its
// number; 0 while none came.
var lastSignal atomic.Int32

// NoteSignal remembers the signal that is about to cancel the context given to
// Execute: a server ends with 0 after it, every other command with
// ExitInterrupted.
func NoteSignal(sig os.Signal) {
	if s, ok := sig.(syscall.Signal); ok {
		lastSignal.Store(int32(s))
		return
	}
	lastSignal.Store(1)
}

func signalled() bool { return lastSignal.Load() != 0 }

// interrupted reports whether a signal ended what failed: with another error something has gone wrong in the same moment, and
// that is what is to be said.
func interrupted(err error) bool { return errors.Is(err, context.Canceled) && signalled() }

// terminated: the signal asked for an orderly end (SIGTERM), not for an interruption.
func terminated() bool { return lastSignal.Load() == int32(syscall.SIGTERM) }
