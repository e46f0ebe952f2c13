//go:build !race

package move

// slowdown divides the runs of a simulation.
const slowdown = 1
