package broker

import (
	"fmt"
	"sort"
	"strings"

	"mqx/remoting"
	"mqx/remoting/server"
)

// stage says where a request is served.
type stage int

const (
	inline stage = iota // on the event loop
	sendStage
	pullStage
	litePullStage
	queryStage
	adminStage
	clientStage
	heartbeatStage
	ackStage
	loadStage
	endStage
	replyStage
)

var stageNames = [...]string{"event loop", "send", "pull", "lite pull", "query", "admin", "client", "heartbeat", "ack", "load balance", "end transaction", "reply"}

// service is one request code and how it is served.
type service struct {
	code  int32
	stage stage
	// handle serves one request; batch all that wait; try answers on the loop
	// or leaves it to handle.
	handle func(*Broker, *server.Request)
	batch  func(*Broker, []*server.Request)
	try    func(*Broker, *server.Request) bool
	// mainOnly: not on the VIP port.
	mainOnly bool
	// note says what is missing, "" for nothing.
	note string
}

// services is everything the broker answers with more than a refusal. It is
// also the source of docs/compatibility.md.
var services = []service{
	{code: remoting.ReqSendMessage, stage: sendStage, batch: (*Broker).handleSend, note: noteSend},
	{code: remoting.ReqSendMessageV2, stage: sendStage, batch: (*Broker).handleSend, note: noteSend},
	{code: remoting.ReqSendBatchMessage, stage: sendStage, batch: (*Broker).handleSend, note: noteSend},
	{code: remoting.ReqConsumerSendMsgBack, stage: sendStage, handle: (*Broker).handleSendBack},
	{code: remoting.ReqPullMessage, stage: pullStage, handle: (*Broker).handlePull, mainOnly: true},
	{code: remoting.ReqLitePullMessage, stage: litePullStage, handle: (*Broker).handleLitePull, mainOnly: true},
	{code: remoting.ReqSendReplyMessage, stage: replyStage, handle: (*Broker).handleReply},
	{code: remoting.ReqSendReplyMessageV2, stage: replyStage, handle: (*Broker).handleReply},
	{code: remoting.ReqInvokeBrokerToGetConsumerStatus, stage: adminStage, handle: (*Broker).handleConsumerStatus},
	{code: remoting.ReqQueryCorrectionOffset, stage: adminStage, handle: (*Broker).handleCorrection},
	{code: remoting.ReqEndTransaction, stage: endStage, batch: (*Broker).handleEnd},
	{code: remoting.ReqResumeCheckHalfMessage, stage: adminStage, handle: (*Broker).handleResumeCheck},
	{code: remoting.ReqQueryMessage, stage: queryStage, handle: (*Broker).handleQueryMessage},
	{code: remoting.ReqQueryConsumeQueue, stage: adminStage, handle: (*Broker).handleQueryQueue},
	{code: remoting.ReqViewMessageByID, stage: queryStage, handle: (*Broker).handleViewMessage},
	{code: remoting.ReqQueryConsumerOffset, stage: clientStage, try: (*Broker).tryQueryOffset, handle: (*Broker).handleQueryOffset},
	{code: remoting.ReqUpdateConsumerOffset, stage: inline, handle: (*Broker).handleUpdateOffset},
	{code: remoting.ReqGetConsumerListByGroup, stage: inline, handle: (*Broker).handleConsumerList},
	{code: remoting.ReqGetMaxOffset, stage: inline, handle: (*Broker).handleMaxOffset},
	{code: remoting.ReqGetMinOffset, stage: inline, handle: (*Broker).handleMinOffset},
	{code: remoting.ReqSearchOffsetByTimestamp, stage: adminStage, handle: (*Broker).handleSearchOffset},
	{code: remoting.ReqGetEarliestMsgStoreTime, stage: adminStage, handle: (*Broker).handleEarliest},
	{code: remoting.ReqHeartBeat, stage: heartbeatStage, try: (*Broker).tryHeartbeat, handle: (*Broker).handleHeartbeat},
	{code: remoting.ReqUnregisterClient, stage: clientStage, handle: (*Broker).handleUnregister},
	{code: remoting.ReqCheckClientConfig, stage: clientStage, handle: (*Broker).handleCheckClient},
	{code: remoting.ReqLockBatchMQ, stage: adminStage, handle: (*Broker).handleLock},
	{code: remoting.ReqUnlockBatchMQ, stage: adminStage, handle: (*Broker).handleUnlock},
	{code: remoting.ReqUpdateAndCreateTopic, stage: adminStage, handle: (*Broker).handleCreateTopic, note: noteTopic},
	{code: remoting.ReqUpdateAndCreateTopicList, stage: adminStage, handle: (*Broker).handleCreateTopics, note: noteTopic},
	{code: remoting.ReqUpdateAndCreateStaticTopic, stage: adminStage, handle: (*Broker).handleStaticTopic, note: noteTopic},
	{code: remoting.ReqGetAllTopicConfig, stage: adminStage, handle: (*Broker).handleAllTopics},
	{code: remoting.ReqDeleteTopicInBroker, stage: adminStage, handle: (*Broker).handleDeleteTopic},
	{code: remoting.ReqGetTopicConfig, stage: adminStage, handle: (*Broker).handleTopicConfig},
	{code: remoting.ReqGetTopicStatsInfo, stage: adminStage, handle: (*Broker).handleTopicStats},
	{code: remoting.ReqQueryTopicConsumeByWho, stage: adminStage, handle: (*Broker).handleWhoConsumes},
	{code: remoting.ReqQueryTopicsByConsumer, stage: adminStage, handle: (*Broker).handleTopicsOfGroup},
	{code: remoting.ReqGetSystemTopicListFromBroker, stage: adminStage, handle: (*Broker).handleSystemTopics},
	{code: remoting.ReqCleanUnusedTopic, stage: adminStage, handle: (*Broker).handleCleanUnusedTopics},
	{code: remoting.ReqCleanExpiredConsumeQueue, stage: adminStage, handle: (*Broker).handleCleanExpiredQueues},
	{code: remoting.ReqDeleteExpiredCommitLog, stage: adminStage, handle: (*Broker).handleDeleteExpired},
	{code: remoting.ReqUpdateAndCreateSubscriptionGroup, stage: adminStage, handle: (*Broker).handleCreateGroup, note: noteGroup},
	{code: remoting.ReqUpdateAndCreateSubscriptionGroupList, stage: adminStage, handle: (*Broker).handleCreateGroups, note: noteGroup},
	{code: remoting.ReqGetAllSubscriptionGroupConfig, stage: adminStage, handle: (*Broker).handleAllGroups},
	{code: remoting.ReqGetSubscriptionGroupConfig, stage: adminStage, handle: (*Broker).handleGroupConfig},
	{code: remoting.ReqDeleteSubscriptionGroup, stage: adminStage, handle: (*Broker).handleDeleteGroup},
	{code: remoting.ReqUpdateAndGetGroupForbidden, stage: adminStage, handle: (*Broker).handleGroupForbidden},
	{code: remoting.ReqGetConsumerConnectionList, stage: adminStage, handle: (*Broker).handleConsumerConnections},
	{code: remoting.ReqGetProducerConnectionList, stage: adminStage, handle: (*Broker).handleProducerConnections},
	{code: remoting.ReqGetAllProducerInfo, stage: adminStage, handle: (*Broker).handleProducers},
	{code: remoting.ReqQuerySubscriptionByConsumer, stage: adminStage, handle: (*Broker).handleSubscriptionOf},
	{code: remoting.ReqGetConsumeStats, stage: adminStage, handle: (*Broker).handleConsumeStats},
	{code: remoting.ReqGetBrokerConsumeStats, stage: adminStage, handle: (*Broker).handleBrokerConsumeStats},
	{code: remoting.ReqQueryConsumeTimeSpan, stage: adminStage, handle: (*Broker).handleTimeSpan},
	{code: remoting.ReqGetAllConsumerOffset, stage: adminStage, handle: (*Broker).handleAllOffsets},
	{code: remoting.ReqGetAllDelayOffset, stage: adminStage, handle: (*Broker).handleDelayOffsets},
	{code: remoting.ReqInvokeBrokerToResetOffset, stage: adminStage, handle: (*Broker).handleResetOffset},
	{code: remoting.ReqCloneGroupOffset, stage: adminStage, handle: (*Broker).handleCloneOffset},
	{code: remoting.ReqViewBrokerStatsData, stage: adminStage, handle: (*Broker).handleViewStats, note: "TOPIC_PUT_NUMS, TOPIC_PUT_SIZE, GROUP_GET_NUMS, GROUP_GET_SIZE, SNDBCK_PUT_NUMS, BROKER_PUT_NUMS, BROKER_GET_NUMS"},
	{code: remoting.ReqGetBrokerRuntimeInfo, stage: adminStage, handle: (*Broker).handleRuntimeInfo},
	{code: remoting.ReqNotifyMinBrokerIDChange, stage: adminStage, handle: (*Broker).handleMinIDChange},
	{code: remoting.ReqExchangeBrokerHAInfo, stage: adminStage, handle: (*Broker).handleExchangeHA},
	{code: remoting.ReqGetBrokerHAStatus, stage: adminStage, handle: (*Broker).handleHAStatus},
	{code: remoting.ReqGetBrokerEpochCache, stage: adminStage, handle: (*Broker).handleEpochs, note: "the promotions by mqx admin ha promote"},
	{code: remoting.ReqGetBrokerConfig, stage: adminStage, handle: (*Broker).handleGetConfig},
	{code: remoting.ReqUpdateBrokerConfig, stage: adminStage, handle: (*Broker).handleUpdateConfig, note: "keys without effect and unknown keys are refused"},
	{code: remoting.ReqGetConsumerRunningInfo, stage: adminStage, handle: (*Broker).handleRunningInfo},
	{code: remoting.ReqPopMessage, stage: pullStage, handle: (*Broker).handlePop, mainOnly: true},
	{code: remoting.ReqPeekMessage, stage: pullStage, handle: (*Broker).handlePeek, mainOnly: true},
	{code: remoting.ReqNotification, stage: pullStage, handle: (*Broker).handleNotification, mainOnly: true},
	{code: remoting.ReqPollingInfo, stage: pullStage, handle: (*Broker).handlePollingInfo, mainOnly: true},
	{code: remoting.ReqPopRollback, stage: adminStage, handle: (*Broker).handlePopRollback},
	{code: remoting.ReqAckMessage, stage: ackStage, batch: (*Broker).handleAcks},
	{code: remoting.ReqBatchAckMessage, stage: ackStage, batch: (*Broker).handleAcks},
	{code: remoting.ReqChangeMessageInvisibleTime, stage: ackStage, handle: (*Broker).handleChangeInvisible},
	{code: remoting.ReqQueryAssignment, stage: loadStage, handle: (*Broker).handleAssignment},
	{code: remoting.ReqSetMessageRequestMode, stage: loadStage, handle: (*Broker).handleSetRequestMode},
	{code: remoting.ReqGetAllMessageRequestMode, stage: adminStage, handle: (*Broker).handleRequestModes},
	{code: remoting.ReqRecallMessage, stage: sendStage, handle: (*Broker).handleRecall},
	{code: remoting.ReqGetTimerCheckPoint, stage: adminStage, handle: (*Broker).handleTimerCheckpoint},
	{code: remoting.ReqGetTimerMetrics, stage: adminStage, handle: (*Broker).handleTimerMetrics},
	{code: remoting.ReqConsumeMessageDirectly, stage: adminStage, handle: (*Broker).handleConsumeDirectly},
}

const (
	noteSend  = "lite messages (__LITE_TOPIC) are refused (INVALID_PARAMETER)"
	noteTopic = "attributes that are not honoured are refused: cleanup.policy=COMPACTION, queue.type=RocksDBCQ, message.type=LITE, reserve.time, lite.topic.expiration; mqx.forward, of mqx only, seals queues (docs/moves.md)"
	noteGroup = "attributes that are not honoured (lite.*) are refused"
)

// mux builds the request table of the main or of the VIP port.
func (b *Broker) mux(vip bool) *server.Mux {
	m := server.NewMux()
	for i := range services {
		if s := &services[i]; !vip || !s.mainOnly {
			b.bind(m, s)
		}
	}
	m.Handle(remoting.ReqMqxHA, b.classes.of(adminStage), b.handleHA)
	for code, why := range refusedReasons {
		m.HandleInline(code, refuseWith(why))
	}
	m.HandleInline(remoting.ReqReplicaHello, b.handleReplicaHello)
	m.HandleInline(remoting.ReqTablesChanged, b.handleTablesChanged)
	return m
}

func (b *Broker) bind(m *server.Mux, s *service) {
	if b.slave != nil && masterOnly[s.code] {
		m.HandleInline(s.code, b.refuseOnSlave)
		return
	}
	class := b.classes.of(s.stage)
	switch {
	case s.stage == ackStage && s.batch != nil:
		m.HandleBatch(s.code, class, b.ackHandler)
	case s.stage == endStage:
		m.HandleBatch(s.code, class, func(rs []*server.Request) { s.batch(b, rs) })
	case s.batch != nil:
		// One function value for all: their codes share batches.
		m.HandleTryBatch(s.code, b.trySends, class, b.sendHandler)
	case s.try != nil:
		m.HandleInlineOr(s.code, func(r *server.Request) bool { return s.try(b, r) }, class, func(r *server.Request) { s.handle(b, r) })
	case s.stage == inline:
		m.HandleInline(s.code, func(r *server.Request) { s.handle(b, r) })
	default:
		m.Handle(s.code, class, func(r *server.Request) { s.handle(b, r) })
	}
}

// CompatibilityTable is the broker's part of docs/compatibility.md: each request
// code that an Apache 5.5.0 broker serves, and what this one does with it.
func CompatibilityTable() string {
	served := map[int32]*service{}
	for i := range services {
		served[services[i].code] = &services[i]
	}
	codes := append([]int32(nil), brokerCodes...)
	sort.Slice(codes, func(i, j int) bool { return codes[i] < codes[j] })
	var w strings.Builder
	w.WriteString("| code | request | served | where | remark |\n|---|---|---|---|---|\n")
	for _, c := range codes {
		state, where, note := "refused", "", refusedReasons[c]
		if s := served[c]; s != nil {
			state, where, note = "yes", stageNames[s.stage], s.note
			if note != "" {
				state = "in part"
			}
			if s.mainOnly {
				where += ", main port only"
			}
		}
		fmt.Fprintf(&w, "| %d | %s | %s | %s | %s |\n", c, remoting.RequestName(c), state, where, note)
	}
	return w.String()
}

// brokerCodes are the requests that an Apache 5.5.0 broker serves.
var brokerCodes = []int32{
	10, 11, 12, 14, 15, 17, 18, 21, 25, 26, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 41, 42, 43, 45, 46, 60, 61,
	200, 201, 202, 203, 204, 207, 208, 215, 222, 223, 225, 300, 303, 305, 306, 307, 308, 309, 310, 314, 315, 316, 317,
	320, 321, 323, 324, 325, 328, 329, 343, 345, 351, 352, 353, 354, 355, 361, 370, 400, 401, 402, 513, 905, 906, 907,
	908, 1007, 1008, 2001, 2002, 2003, 2004, 3001, 3002, 3003, 3004, 3005, 3006, 3007, 3008, 3009, 3010, 5001,
	200050, 200051, 200052, 200053, 200054, 200055, 200056, 200070, 200071, 200074, 200075, 200076, 200077, 200078,
	200079, 200151,
}
