// Package remoting is the wire of RocketMQ: frames, their JSON and binary
// headers, the request and response codes, the header fields and the JSON
// bodies that travel with them.
//
// The package opens no connection; remoting/server and remoting/client do.
// The byte layout is described in docs/wire.
package remoting
