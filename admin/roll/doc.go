// Package roll decides how the brokers of a cluster are restarted one after the other:
// a pure state machine. Next takes the state, what was observed of the broker whose
// turn it is, and the time, and says what to do; it has no clock, does no I/O and starts
// nothing. The caller does it, notes the state, and asks again.
//
// The order: of each broker name its replicas, then its master. A broker is touched only
// when its name is healthy, and the next one only when it is healthy again. Where another
// master can take the writes, a master is first made read-only (brokerPermission) and is
// left alone until clients have asked for routes twice and nothing is written to it any
// more. A gate that does not open in time aborts: the permission that was taken is given
// back while the broker has not been restarted, and nothing else is touched.
package roll
