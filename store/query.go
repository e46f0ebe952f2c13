package store

import (
	"context"
	"errors"

	"mqx/message"
	"mqx/store/commitlog"
	"mqx/store/index"
)

// KeyKind says which kind of key a Query is about.
type KeyKind int8

// Kinds of keys.
const (
	KeyPlain  KeyKind = iota // one of the words of KEYS, or the unique key
	KeyUnique                // the unique key only
	KeyTag                   // the whole TAGS text (index type T)
)

// maxFalseHits bounds how many records of other keys with the same hash a query reads.
const maxFalseHits = 100_000

// ErrIndexBehind says that the index does not yet cover the log and the wait for it ended.
// What was found so far is returned with it.
var ErrIndexBehind = errors.New("the key index is still catching up with the log")

// ErrIndexOff says that the configuration keeps or reads no key index (messageIndexEnable, indexFileReadEnable).
var ErrIndexOff = errors.New("the key index is switched off (messageIndexEnable, indexFileReadEnable)")

// QueryRequest asks for messages by key.
type QueryRequest struct {
	Topic, Key string
	Kind       KeyKind
	Max        int   // at most; maxMsgsNumBatch (KeyUnique: defaultQueryMaxNum) caps it, and is meant by 0
	Begin, End int64 // store time window in ms, inclusive
}

// QueryResult is what a Query found, newest first. Parts are copies owned by the caller.
type QueryResult struct {
	Parts           [][]byte
	PhysicalOffsets []int64
	LastUpdateTime  int64 // newest store time in the index, ms
	LastUpdatePhys  int64 // newest physical offset in the index
}

// Query finds messages by key. Only messages whose topic and key really are the ones asked for are returned (Apache's
// broker leaves that to its clients). When the index is still catching up with what is shown of the log, it waits for it until ctx ends: what still waits for
// its copies is not found.
//
// Errors: ErrIndexBehind (with a result), ErrIndexOff, or that of the disk.
func (s *Store) Query(ctx context.Context, req QueryRequest) (*QueryResult, error) {
	if !s.cfg.MessageIndexEnable || !s.cfg.IndexFileReadEnable {
		return nil, ErrIndexOff
	}
	res := &QueryResult{}
	shown := s.log.Confirmed()
	caughtUp := s.indexer.wait(ctx, shown)
	limit := s.conf().MaxMsgsNumBatch
	if req.Kind == KeyUnique {
		limit = s.conf().DefaultQueryMaxNum
	}
	if req.Max > 0 {
		limit = min(limit, req.Max)
	}
	hasher := index.NewHasher([]byte(req.Topic))
	hash := hasher.Key([]byte(req.Key))
	if req.Kind == KeyTag {
		hash = hasher.Tags([]byte(req.Key))
	}
	res.LastUpdateTime, res.LastUpdatePhys = s.index.LastUpdate()
	logMin, falseHits := s.log.Min(), 0
	last, failed := int64(-1), error(nil)
	err := s.index.Query(hash, req.Begin, req.End, func(phys int64) bool {
		if phys == last || phys < logMin || phys >= shown { // what is held back may be in the index since before
			return true
		}
		last = phys
		rec, err := s.recordAt(phys)
		switch {
		case errors.Is(err, ErrNoRecord) || errors.Is(err, commitlog.ErrOutOfRange):
			return true
		case err != nil:
			failed = err
			return false
		case !req.matches(rec):
			falseHits++
			return falseHits < maxFalseHits
		}
		res.Parts = append(res.Parts, rec)
		res.PhysicalOffsets = append(res.PhysicalOffsets, phys)
		return len(res.Parts) < limit
	})
	if err := errors.Join(err, failed); err != nil {
		return nil, err
	}
	if !caughtUp {
		return res, ErrIndexBehind
	}
	return res, nil
}

// matches compares topic and key with the record: the hash does not identify them (N129).
func (r *QueryRequest) matches(rec message.View) bool {
	if string(rec.Topic()) != r.Topic {
		return false
	}
	props := rec.Properties()
	if r.Kind == KeyTag {
		tags, _ := message.Property(props, message.PropTags)
		return string(tags) == r.Key
	}
	if uniq, ok := message.Property(props, message.PropUniqKey); ok && string(uniq) == r.Key {
		return true
	}
	if r.Kind == KeyUnique {
		return false
	}
	keys, _ := message.Property(props, message.PropKeys)
	for word, rest := message.NextKey(keys); word != nil; word, rest = message.NextKey(rest) {
		if string(word) == r.Key {
			return true
		}
	}
	return false
}
