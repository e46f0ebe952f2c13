// Package ha copies a commit log from a master to its slaves, in the protocol of
// RocketMQ's classic replication (docs/format/ha.md): a byte stream on a port of its own.
//
//	slave -> master: 8 bytes     how far the slave's log goes, first to say where to begin
//	master -> slave: 12 bytes+n  where the n bytes of the log that follow belong; n = 0 is a sign of life
//
// frame.go is the codec. acks.go decides, without a clock or a socket, which appends have
// the copies that they wait for; source.go where a slave may begin. master.go and
// follower.go carry bytes: one accepts slaves, the other follows a master. The master's times
// go with the runtime's timers and the deadlines of its connections: they are the system's.
package ha
