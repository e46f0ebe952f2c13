package admin

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"mqx/internal/sorted"
	"mqx/remoting"
)

// ItemError is what a broker could not tell of one group or topic.
type ItemError struct {
	Broker
	Kind string // group, topic, groups: all of them at once
	Item string
	Err  error
}

// Error names broker, item and cause.
func (e ItemError) Error() string {
	return cmp.Or(e.Name, e.Addr) + ", " + e.Kind + " " + e.Item + ": " + e.Err.Error()
}

// Unwrap is the cause.
func (e ItemError) Unwrap() error { return e.Err }

func sortItems(items []ItemError) {
	sorted.Stably(items, func(a, b ItemError) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Item, b.Item))
	})
}

// maxSilentItems is how many requests of a reading a broker may leave unanswered before
// it counts as silent: each costs the whole time-out.
const maxSilentItems = 3

// skips are the items that one broker could not tell of, where that is to be no failure
// of the broker. The zero value is of a reading that is not lenient. It is safe to share.
type skips struct {
	lenient bool
	mu      sync.Mutex
	silent  int
	list    []ItemError
}

// pass notes that an item failed and returns nil when the reading may go on: the broker
// said no, said what cannot be read, or was silent not too often yet.
func (s *skips) pass(ctx context.Context, b Broker, kind, item string, err error) error {
	if err == nil || !s.lenient || ctx.Err() != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, answered := errors.AsType[*remoting.ResponseError](err); !answered {
		if s.silent++; s.silent > maxSilentItems {
			return err
		}
	}
	s.list = append(s.list, ItemError{b, kind, item, err})
	return nil
}
