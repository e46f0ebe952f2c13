package server

import (
	"context"
	"time"
)

// ClassConfig describes a class of requests.
type ClassConfig struct {
	// Name is the stage that overload texts and statistics name.
	Name string
	// Workers and Queue bound the requests that run and that wait.
	Workers, Queue int
	// MaxWait is how long a request may wait before it is answered
	// SYSTEM_BUSY; 0 means for ever.
	MaxWait time.Duration
	// MaxBatch bounds the requests of one call of a batch handler, default 256.
	MaxBatch int
}

// Class is a bounded queue of requests and the workers that serve it. Several
// servers may share one. Safe to share.
type Class struct {
	cfg ClassConfig
}

// NewClass returns a class; its workers start with Run.
func NewClass(cfg ClassConfig) *Class { return &Class{cfg: cfg} }

// Name returns the name of the class.
func (c *Class) Name() string { return c.cfg.Name }

// Run serves the queue until ctx is done or Close is called, then serves what
// waits and returns.
func (c *Class) Run(ctx context.Context) error { panic("not yet") }

// Close refuses new requests, lets the workers finish what waits, and returns
// when Run has (or at once when it never ran; what waits is then answered
// SYSTEM_BUSY).
func (c *Class) Close() {}

// ClassStats are the counters of a class since its start.
type ClassStats struct {
	Name         string
	Waiting      int           // requests in the queue
	Running      int           // workers inside a handler
	OldestWait   time.Duration // age of the request at the head of the queue
	Requests     uint64        // taken by a worker
	Batches      uint64        // calls of handlers
	Overloaded   uint64        // answered because the queue was full
	Late         uint64        // answered because they waited too long
	Panics       uint64
	TotalWait    time.Duration // sum over Requests
	TotalRunning time.Duration // sum over Batches
}

// Stats returns the counters.
func (c *Class) Stats() ClassStats { return ClassStats{Name: c.cfg.Name} }
