//go:build !linux

package startpages

// Drop does nothing on this system.
func Drop() {}
