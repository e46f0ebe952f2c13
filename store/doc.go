// Package store is the message store of a broker: it takes messages in (Put), gives
// them out by queue offset (Get), by physical offset, by time and by key, and keeps what
// is derived from the commit log (consume queues, key index, checkpoint) in step with it.
//
// The bytes on disk are Apache RocketMQ's; docs/format describes them: record.md for the
// log, consumequeue.md, index.md, checkpoint.md, layout.md for the directory and
// recovery.md for what happens at start.
//
// A Store is made by Open, works while Run runs and is ended by Close:
//
//	s, err := store.Open(cfg)      // lock, checks, recovery; starts no goroutine
//	go s.Run(ctx)                  // flusher, dispatcher, cleaner, checkpoint
//	s.PutBatch(puts); s.Get(req)
//	cancel(); s.Close()            // the rest is dispatched and made durable
//
// Reading never creates anything on disk.
package store
