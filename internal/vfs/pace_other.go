//go:build !linux

package vfs

// StepBack does nothing where it is not known how.
func StepBack() {}

// Aside calls f.
func Aside(f func()) { f() }
