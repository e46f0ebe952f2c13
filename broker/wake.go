package broker

import (
	"context"
	"time"
)

// signal wakes the loop that waits on c, which has room for one signal: one that
// is already on its way serves for this one too. It does not block.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// sleep waits for d; it reports false when ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
