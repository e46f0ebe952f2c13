// Package client is a messaging client of RocketMQ brokers, mqx's own and Apache's:
// a producer, a reader that looks at queues beside any group, a consumer that is a
// member of a group, and a load generator that checks what it sends.
//
// It stands on remoting/client for connections and keeps what a client has to know:
// routes (routes.go), the choice of a queue (select.go), decoding of pulled records
// (received.go). It speaks as the Java client does (docs/wire/client.md); a broker
// cannot tell the two apart but by the language in the header.
package client
