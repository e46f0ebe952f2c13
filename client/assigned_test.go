package client

import (
	"testing"

	"mqx/remoting"
)

// A member that was set back and has read up to where it stood commits that again: the
// broker has the offset that it was set to.
func TestCommitAfterReset(t *testing.T) {
	a := newAssigned(remoting.MessageQueue{Topic: "T"}, 10, 10)
	if _, due := a.toCommit(); due {
		t.Error("due at the start")
	}
	a.reset(7)
	if off, due := a.toCommit(); !due || off != 7 {
		t.Errorf("after the reset: %d, %v", off, due)
	}
	a.committed(7)
	_, epoch := a.position()
	a.taken(&handOff{from: a, epoch: epoch, next: 10})
	if off, due := a.toCommit(); !due || off != 10 {
		t.Errorf("where it stood before: %d, %v", off, due)
	}
}
