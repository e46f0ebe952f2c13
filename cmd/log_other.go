//go:build !unix

package cmd

import "os"

var logSignals []os.Signal

func isReopen(os.Signal) bool { return false }
