//go:build !linux && !darwin

package cmd

// serverCommands: the servers run on Linux and macOS; elsewhere there are the tools.
func serverCommands() []part { return nil }
