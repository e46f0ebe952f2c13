// Package filter decides which messages a subscription wants: by tags, by their hashes, and by SQL92 expressions over the
// properties of a message, with the bloom bit map that brokers keep beside consume queues.
//
// An expression is compiled once and then matched against many messages without allocating. It means what it means to
// Apache RocketMQ 5.5, down to the corners: which operands a comparison takes, when text becomes a number, what is
// unknown, and what makes a message fail. docs/format/sql92.md has the rules. The package does no I/O, knows no clock and
// has no state of its own; everything in it may be shared between goroutines once it is made.
package filter
