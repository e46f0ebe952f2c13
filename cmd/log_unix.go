//go:build unix

package cmd

import (
	"os"
	"syscall"
)

var logSignals = []os.Signal{syscall.SIGHUP, syscall.SIGUSR1}

func isReopen(s os.Signal) bool { return s == syscall.SIGHUP }
