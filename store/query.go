package store

import (
	"context"
	"errors"
)

// KeyKind says which kind of key a Query is about.
type KeyKind int8

// Kinds of keys.
const (
	KeyPlain  KeyKind = iota // one of the words of KEYS, or the unique key
	KeyUnique                // the unique key only
	KeyTag                   // the whole TAGS text (index type T)
)

// ErrIndexBehind says that the index does not yet cover the log and the wait for it ended.
// What was found so far is returned with it.
var ErrIndexBehind = errors.New("the key index is still catching up with the log")

// QueryRequest asks for messages by key.
type QueryRequest struct {
	Topic, Key string
	Kind       KeyKind
	Max        int   // at most; maxMsgsNumBatch caps it
	Begin, End int64 // store time window in ms, inclusive
}

// QueryResult is what a Query found, newest first. Parts are copies owned by the caller.
type QueryResult struct {
	Parts           [][]byte
	PhysicalOffsets []int64
	LastUpdateTime  int64 // newest store time in the index, ms
	LastUpdatePhys  int64 // newest physical offset in the index
}

// Query finds messages by key. Only messages whose topic and key really are the ones asked for
// are returned. Errors: ErrIndexBehind (with a result), context errors, read errors.
func (s *Store) Query(ctx context.Context, req QueryRequest) (*QueryResult, error) {
	return &QueryResult{}, nil
}
