// Package crash kills a broker again and again while it works, starts it anew and checks that nothing was lost, doubled,
// moved or made up. It is the program of docs/reliability.md, "The crash loop".
//
// A run is a sequence of stores; a store lives for some rounds, each of which ends with the death of the broker (SIGKILL
// at a random moment, or by itself at a named point) or with a clean stop. All that a store does follows from one seed,
// which is printed:
//
//	go test ./crash -v                                        a few rounds
//	MQX_CRASH_ROUNDS=2000 go test ./crash -v -timeout 3h      the long form
//	MQX_CRASH_SEED=77 MQX_CRASH_ROUNDS=9 go test ./crash -v   the store of seed 77 up to its 9th round
//	MQX_CRASH_STORE=dir go test ./crash -run TestKeptStore    what a failed round left behind, recovered once more
//
// The commands are run in e2e. Scheduling is not in the seed: a replay goes through the same plan, not the same
// microseconds; what a failed round left behind is kept for that.
package crash
