//go:build !linux && !darwin

package cmd

import "github.com/spf13/cobra"

// serverCommands: the servers run on Linux and macOS; elsewhere there are the tools.
func serverCommands(*app) []*cobra.Command { return nil }
