//go:build race

package cmd

// raced: the tests run under the race detector. What looks at texts alone, one call after
// the other, a thousand times over, is left to the run without it.
const raced = true
