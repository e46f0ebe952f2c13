// Package move is the pure core of queue moves: a state machine that takes queues of
// ordinary topics from one broker to others under unmodified clients, drains queues,
// changes their number and retires brokers.
//
// It has no clock, no connection and no goroutine: Next takes a State, what was seen of
// the cluster (Observation) and the time, and returns commands of the form "set this to X
// if it is still Y" with the state that holds once they are done. Runner is the protocol
// around it: who owns a plan, what is written to the journal before and after a step. The
// parent package carries the commands out; the tests of this one run the machine against
// a model of a cluster, with kills, second owners and clients that lag behind.
//
// A move goes PLANNED, CHECKED, CREATED, VISIBLE, SEALED, DRAINING, DRAINED, OPENED,
// SETTLED, REMOVED, DONE. Until DRAINING it can go back: REOPENED, DRAINING_BACK,
// ROLLED_BACK. docs/moves.md says what each of them waits for, and why.
package move
