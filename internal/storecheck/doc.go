// Package storecheck reads a store directory that nobody has open, and proves that its parts agree: the consume queues
// and the key index hold exactly what follows from the commit log, and the log holds exactly what was sent (Journal).
//
// It shares no code with packages store and message, so that a mistake there is not made here as well: what it knows of
// the bytes is docs/format. It is for the crash and power-loss tests.
package storecheck
