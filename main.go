// Command mqx is a drop-in Apache RocketMQ name server and broker, and the
// toolkit that operates them.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"mqx/cmd"
)

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		first := <-signals
		cmd.NoteSignal(first)
		cancel()
		<-signals // the second one does not wait for an orderly end
		os.Exit(int(cmd.ExitInterrupted))
	}()
	code := cmd.Execute(ctx, os.Args, cmd.StdStreams())
	cancel()
	os.Exit(int(code))
}
