// Package client sends requests to RocketMQ peers: one pipelined connection
// an address, answers matched by opaque, requests of the peer handed to a
// callback. Everything mqx says to a broker or a name server goes through it.
package client
