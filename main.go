// Command mqx is a drop-in Apache RocketMQ name server and broker, and the
// toolkit that operates them.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"mqx/cmd"
	"mqx/internal/startpages"
)

func main() {
	if !cmd.Serves(os.Args) { // a server has used its own by the first message, and is what people trace with breakpoints in its code
		startpages.Drop()
	}
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		first := <-signals
		cmd.NoteSignal(first)
		cancel()
		awaitSecond(signals) // it does not wait for an orderly end
		os.Exit(int(cmd.ExitInterrupted))
	}()
	code := cmd.Execute(ctx, os.Args, cmd.StdStreams())
	cancel()
	os.Exit(int(code))
}

// sameSignal is how long after the first signal another one counts as the same:
// timeout(1), and whoever signals a process and then its group, send two.
const sameSignal = time.Second

// awaitSecond returns with the first signal that comes a while from now.
func awaitSecond(signals <-chan os.Signal) {
	began := time.Now()
	for range signals {
		if time.Since(began) >= sameSignal {
			return
		}
	}
}
