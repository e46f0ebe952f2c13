// Package transaction holds the rules of transactional messages: how a half
// message and its copies are built, which half messages have ended, when one is
// to be checked with its producer, and how far the queues of half and of op
// messages are done with.
//
// It does no I/O, knows no clock and starts nothing: bytes and times come in,
// decisions and bytes go out. Nothing here is safe to share; the broker's
// transaction service owns it. The bytes are those of docs/format/transaction.md.
package transaction
