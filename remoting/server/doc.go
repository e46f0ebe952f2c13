// Package server accepts the connections of RocketMQ peers, cuts frames,
// hands requests to handlers and writes their answers. gnet lives here and is
// not seen outside.
//
// A Mux says which handler serves a request code and where it runs: on the
// event loop (it must not block), in a Class, a bounded queue with workers, or on
// the loop where that is possible at once and else in the class: what several
// connections of a loop have sent is served together then (held.go). What one
// read of a connection brings goes to its class as one batch, a worker takes what
// waits in its queue, and the answers of a batch are gathered into one write a
// connection.
//
// docs/wire/connection.md holds the rules of a connection's life: first byte,
// TLS, limits, time-outs and the texts that a refused peer reads.
package server
