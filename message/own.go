package message

import "strings"

// ownProperties are properties of one send, of its broker or of its client: a
// message that is sent anew does not take them along.
var ownProperties = map[string]bool{
	PropUniqKey: true, PropExtendUniqInfo: true, PropMinOffset: true, PropMaxOffset: true,
	PropConsumeStartTime: true, PropMsgRegion: true, PropTraceOn: true, PropTraceContext: true,
	PropCluster: true, PropRealTopic: true, PropRealQueueID: true, PropRetryTopic: true,
	PropOriginMessageID: true, PropReconsumeTime: true, PropMaxReconsumeTimes: true, PropTranMsg: true,
	PropTransOffset: true, PropTranPreparedQueueOffset: true, PropTransactionCheckTimes: true,
	PropTransactionID: true, PropDelay: true, PropTimerDeliverMs: true, PropTimerDelaySec: true,
	PropTimerDelayMs: true, PropTimerOutMs: true, PropTimerEnqueueMs: true, PropTimerDequeueMs: true,
	PropTimerRollTimes: true, PropTimerRollLabel: true, PropTimerDelayLevel: true, PropTimerDelUniqKey: true,
	PropPopCK: true, PropPopCKOffset: true, PropFirstPopTime: true, PropOriginGroup: true,
	PropInnerNum: true, PropInnerBase: true, PropInnerMultiDispatch: true, PropInnerMultiQueueOffset: true,
	PropDLQOriginTopic: true, PropDLQOriginMessageID: true, PropBornHost: true, PropBornTimestamp: true,
	PropCRC32: true, PropForwardQueueID: true, PropRedirect: true, PropCorrelationID: true,
	PropReplyToClient: true, PropTTL: true, PropArriveTime: true, PropPushReplyTime: true,
	PropMsgType: true, PropProducerGroup: true, PropDupInfo: true, PropTransferFlag: true,
}

// IsOwnProperty reports whether a property belongs to one send, its broker or its client: a message that is sent anew
// does not take it along. The unique id is one.
func IsOwnProperty(name string) bool {
	return ownProperties[name] || strings.HasPrefix(name, PropTransientPrefix)
}
