package main

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A signal that is sent twice at once is one signal; a later one ends the
// process without waiting.
func TestSignalSentTwiceIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal, 2)
		over := make(chan time.Duration, 1)
		began := time.Now()
		go func() {
			awaitSecond(signals)
			over <- time.Since(began)
		}()
		signals <- syscall.SIGTERM
		time.Sleep(sameSignal / 2)
		signals <- syscall.SIGTERM
		time.Sleep(sameSignal)
		signals <- syscall.SIGTERM
		if after := <-over; after != sameSignal/2+sameSignal {
			t.Errorf("it ended after %v", after)
		}
	})
}
