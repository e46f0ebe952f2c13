package broker

import (
	"sync"
)

// saver writes a table to disk so that many changes share one write: a change
// asks for a write and is told when a write that began after it has ended.
// While one write runs, all askers wait for the next one.
type saver struct {
	write func() error
	asked func() // told of each change, may be nil
	mu    struct {
		sync.Mutex
		waiting []func(error)
		running bool
	}
	idle sync.Cond // broadcast when running becomes false
}

func newSaver(write func() error) *saver {
	s := &saver{write: write}
	s.idle.L = &s.mu
	return s
}

// Then asks for a write and calls done when it is on disk (or failed), on
// another goroutine. done may be nil.
func (s *saver) Then(done func(error)) {
	if done == nil {
		done = func(error) {}
	}
	if s.asked != nil {
		s.asked()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.waiting = append(s.mu.waiting, done)
	if !s.mu.running {
		s.mu.running = true
		go s.run()
	}
}

// Save asks for a write and waits for it.
func (s *saver) Save() error {
	ch := make(chan error, 1)
	s.Then(func(err error) { ch <- err })
	return <-ch
}

// Wait returns when no write is running or asked for.
func (s *saver) Wait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.mu.running {
		s.idle.Wait()
	}
}

func (s *saver) run() {
	for {
		s.mu.Lock()
		batch := s.mu.waiting
		s.mu.waiting = nil
		if len(batch) == 0 {
			s.mu.running = false
			s.idle.Broadcast()
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		err := s.write()
		for _, done := range batch {
			done(err)
		}
	}
}
