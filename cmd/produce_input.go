package cmd

import (
	"maps"
	"strings"

	"mqx/message"
)

// The forms of what mqx produce reads.
const (
	inputLines  = "lines"
	inputNDJSON = "ndjson"
)

// ownProperties are properties of one send, of its broker or of its client: a
// message that is sent anew does not take them along.
var ownProperties = map[string]bool{
	message.PropUniqKey: true, message.PropExtendUniqInfo: true, message.PropMinOffset: true, message.PropMaxOffset: true,
	message.PropConsumeStartTime: true, message.PropMsgRegion: true, message.PropTraceOn: true, message.PropTraceContext: true,
	message.PropCluster: true, message.PropRealTopic: true, message.PropRealQueueID: true, message.PropRetryTopic: true,
	message.PropOriginMessageID: true, message.PropReconsumeTime: true, message.PropMaxReconsumeTimes: true, message.PropTranMsg: true,
	message.PropTransOffset: true, message.PropTranPreparedQueueOffset: true, message.PropTransactionCheckTimes: true,
	message.PropTransactionID: true, message.PropDelay: true, message.PropTimerDeliverMs: true, message.PropTimerDelaySec: true,
	message.PropTimerDelayMs: true, message.PropTimerOutMs: true, message.PropTimerEnqueueMs: true, message.PropTimerDequeueMs: true,
	message.PropTimerRollTimes: true, message.PropTimerRollLabel: true, message.PropTimerDelayLevel: true, message.PropTimerDelUniqKey: true,
	message.PropPopCK: true, message.PropPopCKOffset: true, message.PropFirstPopTime: true, message.PropOriginGroup: true,
	message.PropInnerNum: true, message.PropInnerBase: true, message.PropInnerMultiDispatch: true, message.PropInnerMultiQueueOffset: true,
	message.PropDLQOriginTopic: true, message.PropDLQOriginMessageID: true, message.PropBornHost: true, message.PropBornTimestamp: true,
	message.PropCRC32: true, message.PropForwardQueueID: true, message.PropRedirect: true, message.PropCorrelationID: true,
	message.PropReplyToClient: true, message.PropTTL: true, message.PropArriveTime: true, message.PropPushReplyTime: true,
	message.PropMsgType: true, message.PropProducerGroup: true, message.PropDupInfo: true, message.PropTransferFlag: true,
}

// message makes the message of one line: the line is the body, or with --input
// ndjson what mqx consume -o ndjson and mqx store export write. What the flags say
// wins over the line.
func (s *sender) message(line inputLine) (*message.Message, error) {
	m := *s.proto
	m.Properties = make(map[string]string, len(s.proto.Properties)+2)
	m.Body = line.text
	if s.input == inputNDJSON {
		l, err := message.ParseLine(line.text)
		if err != nil {
			return nil, usagef("cannot send line %d: %w", line.number, err).try("mqx consume TOPIC -o ndjson shows the form")
		}
		m.Body, m.Flag = l.Body, l.Flag
		for name, value := range l.Properties {
			if !ownProperties[name] && !strings.HasPrefix(name, message.PropTransientPrefix) && value != "" {
				m.Properties[name] = value
			}
		}
	}
	maps.Copy(m.Properties, s.proto.Properties)
	if s.input == inputNDJSON {
		if err := m.Validate(); err != nil {
			return nil, usagef("cannot send line %d: %w", line.number, err)
		}
	}
	return &m, nil
}
