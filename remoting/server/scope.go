package server

import "sync/atomic"

// scope gathers the answers that are given while a loop or a worker serves one
// batch: they are appended to their connections and written when the batch is
// done. An answer that is given later, or by another goroutine after the batch
// has ended, is written at once.
//
// The order makes that safe: an answer is appended first and then asks whether
// its scope is still open; the batch closes its scope first and then flushes
// every connection it has touched.
type scope struct {
	gen atomic.Uint64 // odd while open
}

func (s *scope) open() uint64 { return s.gen.Add(1) }

func (s *scope) close() { s.gen.Add(1) }

// isOpen reports whether the scope is still in its period gen.
func (s *scope) isOpen(gen uint64) bool { return s != nil && s.gen.Load() == gen }
