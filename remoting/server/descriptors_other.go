//go:build !unix

package server

// RaiseDescriptorLimit raises the soft limit of open files to the hard one and
// returns what is in force; 0 where the system has none.
func RaiseDescriptorLimit() (uint64, error) { return 0, nil }
