//go:build race

package ha

// Raced: the tests run under the race detector, which makes them ten times as slow.
const Raced = true
