//go:build race

package move

// slowdown divides the runs of a simulation: the race detector makes each many times as slow.
const slowdown = 4
