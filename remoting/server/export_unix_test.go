//go:build linux || darwin

package server

// What the tests of late closes need to know.
const (
	LateClose     = lateClose
	LateCloseMost = lateCloseMost
)
