// Package nameserver is the name server role: which brokers are alive, which topics
// they serve, and a small persisted key-value table.
//
// The tables (routes, liveness, write permissions) are a pure core in table*.go:
// decoded registrations and times go in, decisions come out; it does no I/O and
// reads no clock. Handlers translate requests of docs/wire/nameserver.md into calls
// on the core. Nothing but kvConfig.json and, after an UPDATE_NAMESRV_CONFIG,
// the configuration file is ever written; several name servers side by side know
// nothing of each other.
package nameserver
