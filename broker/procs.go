package broker

import (
	"os"
	"runtime"
)

// cores is how many processors the process was given at its start.
var cores = runtime.GOMAXPROCS(0)

// spareProcs is how many goroutines may be in a system call that waits for the disk beside those that run.
const spareProcs = 2

// SpareProcs lets as many goroutines run as there are processors while others wait for the disk: a goroutine in a system call keeps its
// place in the scheduler of Go until somebody notices, which takes up to some milliseconds, and on a machine of two processors a flush
// and a read from disk would keep the event loop waiting. It is for the start of a process that runs brokers; GOMAXPROCS no longer
// follows the limits of a container that change later. Where the environment has GOMAXPROCS, that is in force.
func SpareProcs() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(cores + spareProcs)
	}
}
