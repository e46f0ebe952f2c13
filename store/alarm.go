package store

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Names of alarms: conditions that the store waits out, trying again for ever.
const (
	alarmDispatch   = "cannot read the log to build queues"
	alarmQueues     = "cannot write consume queues"
	alarmIndex      = "cannot build the key index"
	alarmIndexFile  = "cannot write the key index"
	alarmCheckpoint = "cannot write the checkpoint"
)

const (
	retryFirst = 10 * time.Millisecond
	retryMost  = 2 * time.Second
	// alarmRepeat is how often a standing alarm is logged again.
	alarmRepeat = time.Minute
)

// alarms are what is wrong now. It is safe to share.
type alarms struct {
	logger *slog.Logger
	mu     struct {
		sync.Mutex
		standing map[string]*alarm
	}
}

type alarm struct {
	err    error
	logged time.Time
	delay  time.Duration // of the next try
	count  int64
}

// raise notes a condition and logs it, at first and once a minute.
func (a *alarms) raise(name string, err error) (delay time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mu.standing == nil {
		a.mu.standing = map[string]*alarm{}
	}
	x := a.mu.standing[name]
	if x == nil {
		x = &alarm{delay: retryFirst}
		a.mu.standing[name] = x
	}
	x.err = err
	x.count++
	if now := time.Now(); now.Sub(x.logged) >= alarmRepeat {
		x.logged = now
		a.logger.Error("the store waits for the disk and tries again", "alarm", name, "err", err, "tries", x.count)
	}
	delay = x.delay
	x.delay = min(2*x.delay, retryMost)
	return delay
}

// raised reports whether an alarm stands.
func (a *alarms) raised(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mu.standing[name] != nil
}

// clear ends a condition.
func (a *alarms) clear(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if x := a.mu.standing[name]; x != nil {
		delete(a.mu.standing, name)
		a.logger.Info("the store goes on", "alarm", name, "tries", x.count)
	}
}

// pause raises an alarm and waits for the time of the next try. It returns false when ctx ended instead.
func (a *alarms) pause(ctx context.Context, name string, err error) bool {
	t := time.NewTimer(a.raise(name, err))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// text says what is wrong now, "" for nothing.
func (a *alarms) text() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(a.mu.standing)) {
		parts = append(parts, name+": "+a.mu.standing[name].err.Error())
	}
	return strings.Join(parts, "; ")
}
