package store

import (
	"context"
	"testing"
	"time"
)

// A query by key does not wait for what is held back until it has its copies, and does not find it.
func TestQueryWhileHeldBack(t *testing.T) {
	s, _ := openMem(t)
	s.Gate()
	shown := mustPut(t, s, newRecord("T", 0, "shown", "KEYS\x01key\x02"))
	s.Confirm(s.LogEnd())
	mustPut(t, s, newRecord("T", 0, "held back", "KEYS\x01key\x02"))
	catchUp(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	res, err := s.Query(ctx, QueryRequest{Topic: "T", Key: "key", End: 1 << 60})
	if err != nil || len(res.Parts) != 1 || res.PhysicalOffsets[0] != shown.PhysicalOffset {
		t.Errorf("%+v, %v", res, err)
	}
}
