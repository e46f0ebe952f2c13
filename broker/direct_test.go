package broker

import (
	"testing"

	"mqx/message"
	"mqx/store"
)

// putDirect stores a record past the send path.
func putDirect(t *testing.T, r *running, rec message.Record) {
	t.Helper()
	done := make(chan store.Status, 1)
	r.store.PutBatch([]*store.Put{{Record: rec, Done: func(p *store.Put) { done <- p.Status }}})
	if s := <-done; s != store.PutOK {
		t.Fatalf("put: %v", s)
	}
	r.settle()
}
