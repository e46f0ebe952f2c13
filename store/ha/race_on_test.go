//go:build race

package ha_test

// raced: the tests run under the race detector, which makes them ten times as slow.
const raced = true
