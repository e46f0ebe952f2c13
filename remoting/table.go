package remoting

import (
	"reflect"
	"strconv"
)

// Def is one request: what it is called, who answers it, and what it and its
// response carry.
type Def struct {
	Code int32
	Name string
	// Peer is who serves the request: broker, name server, client, controller
	// or container, several with commas, "" when nobody does.
	Peer string
	// Request and Response are the header structs, nil when there are no
	// fields to carry.
	Request, Response reflect.Type
	// RequestBody and ResponseBody are the structs of JSON bodies, nil for
	// other bodies and none.
	RequestBody, ResponseBody reflect.Type
}

// Defs returns the table of all requests, by code. It must not be changed.
func Defs() []Def { return defs }

// Lookup returns the entry of a request code.
func Lookup(code int32) (Def, bool) {
	d, ok := defByCode[code]
	if !ok {
		return Def{}, false
	}
	return *d, true
}

// RequestName returns the name of a request code, for example
// "SEND_MESSAGE_V2", or the number of an unknown one.
func RequestName(code int32) string {
	if d, ok := defByCode[code]; ok {
		return d.Name
	}
	switch code {
	case ReqMqxHA:
		return "MQX_HA"
	case ReqReplicaHello:
		return "MQX_REPLICA_HELLO"
	case ReqTablesChanged:
		return "MQX_TABLES_CHANGED"
	case ReqProbeBroker:
		return "MQX_PROBE_BROKER"
	}
	return strconv.Itoa(int(code))
}

var defByCode = func() map[int32]*Def {
	m := make(map[int32]*Def, len(defs))
	for i := range defs {
		m[defs[i].Code] = &defs[i]
	}
	return m
}()

func typ[T any]() reflect.Type { return reflect.TypeFor[T]() }

// defs is the table of requests, by code. Entries without a peer are reserved
// numbers that nobody serves.
var defs = []Def{
	{Code: ReqSendMessage, Name: "SEND_MESSAGE", Peer: "broker", Request: typ[SendMessageHeader](), Response: typ[SendMessageResponseHeader]()},
	{Code: ReqPullMessage, Name: "PULL_MESSAGE", Peer: "broker", Request: typ[PullMessageHeader](), Response: typ[PullMessageResponseHeader]()},
	{Code: ReqQueryMessage, Name: "QUERY_MESSAGE", Peer: "broker", Request: typ[QueryMessageHeader](), Response: typ[QueryMessageResponseHeader]()},
	{Code: ReqQueryBrokerOffset, Name: "QUERY_BROKER_OFFSET"},
	{Code: ReqQueryConsumerOffset, Name: "QUERY_CONSUMER_OFFSET", Peer: "broker", Request: typ[QueryConsumerOffsetHeader](), Response: typ[QueryConsumerOffsetResponseHeader]()},
	{Code: ReqUpdateConsumerOffset, Name: "UPDATE_CONSUMER_OFFSET", Peer: "broker", Request: typ[UpdateConsumerOffsetHeader]()},
	{Code: ReqUpdateAndCreateTopic, Name: "UPDATE_AND_CREATE_TOPIC", Peer: "broker", Request: typ[CreateTopicHeader]()},
	{Code: ReqUpdateAndCreateTopicList, Name: "UPDATE_AND_CREATE_TOPIC_LIST", Peer: "broker", Request: typ[RPCHeader](), RequestBody: typ[CreateTopicListBody]()},
	{Code: ReqGetAllTopicConfig, Name: "GET_ALL_TOPIC_CONFIG", Peer: "broker", Request: typ[GetAllTopicConfigHeader](), Response: typ[GetAllTopicConfigResponseHeader](), ResponseBody: typ[TopicConfigAndMappingTable]()},
	{Code: ReqGetTopicConfigList, Name: "GET_TOPIC_CONFIG_LIST"},
	{Code: ReqGetTopicNameList, Name: "GET_TOPIC_NAME_LIST"},
	{Code: ReqUpdateBrokerConfig, Name: "UPDATE_BROKER_CONFIG", Peer: "broker"},
	{Code: ReqGetBrokerConfig, Name: "GET_BROKER_CONFIG", Peer: "broker, container", Response: typ[GetBrokerConfigResponseHeader]()},
	{Code: ReqTriggerDeleteFiles, Name: "TRIGGER_DELETE_FILES"},
	{Code: ReqGetBrokerRuntimeInfo, Name: "GET_BROKER_RUNTIME_INFO", Peer: "broker", ResponseBody: typ[KVTable]()},
	{Code: ReqSearchOffsetByTimestamp, Name: "SEARCH_OFFSET_BY_TIMESTAMP", Peer: "broker", Request: typ[SearchOffsetHeader](), Response: typ[SearchOffsetResponseHeader]()},
	{Code: ReqGetMaxOffset, Name: "GET_MAX_OFFSET", Peer: "broker", Request: typ[GetMaxOffsetHeader](), Response: typ[GetMaxOffsetResponseHeader]()},
	{Code: ReqGetMinOffset, Name: "GET_MIN_OFFSET", Peer: "broker", Request: typ[GetMinOffsetHeader](), Response: typ[GetMinOffsetResponseHeader]()},
	{Code: ReqGetEarliestMsgStoreTime, Name: "GET_EARLIEST_MSG_STORETIME", Peer: "broker", Request: typ[GetEarliestMsgStoreTimeHeader](), Response: typ[GetEarliestMsgStoreTimeResponseHeader]()},
	{Code: ReqViewMessageByID, Name: "VIEW_MESSAGE_BY_ID", Peer: "broker", Request: typ[ViewMessageHeader]()},
	{Code: ReqHeartBeat, Name: "HEART_BEAT", Peer: "broker", Request: typ[RPCHeader](), RequestBody: typ[HeartbeatData]()},
	{Code: ReqUnregisterClient, Name: "UNREGISTER_CLIENT", Peer: "broker", Request: typ[UnregisterClientHeader]()},
	{Code: ReqConsumerSendMsgBack, Name: "CONSUMER_SEND_MSG_BACK", Peer: "broker", Request: typ[ConsumerSendMsgBackHeader]()},
	{Code: ReqEndTransaction, Name: "END_TRANSACTION", Peer: "broker", Request: typ[EndTransactionHeader]()},
	{Code: ReqGetConsumerListByGroup, Name: "GET_CONSUMER_LIST_BY_GROUP", Peer: "broker", Request: typ[GetConsumerListByGroupHeader](), ResponseBody: typ[ConsumerIDList]()},
	{Code: ReqCheckTransactionState, Name: "CHECK_TRANSACTION_STATE", Peer: "client", Request: typ[CheckTransactionStateHeader](), Response: typ[CheckTransactionStateResponseHeader]()},
	{Code: ReqNotifyConsumerIDsChanged, Name: "NOTIFY_CONSUMER_IDS_CHANGED", Peer: "client", Request: typ[NotifyConsumerIDsChangedHeader]()},
	{Code: ReqLockBatchMQ, Name: "LOCK_BATCH_MQ", Peer: "broker", Request: typ[RPCHeader](), RequestBody: typ[LockBatchBody](), ResponseBody: typ[LockBatchResponseBody]()},
	{Code: ReqUnlockBatchMQ, Name: "UNLOCK_BATCH_MQ", Peer: "broker", Request: typ[RPCHeader](), RequestBody: typ[LockBatchBody]()},
	{Code: ReqGetAllConsumerOffset, Name: "GET_ALL_CONSUMER_OFFSET", Peer: "broker", ResponseBody: typ[ConsumerOffsets]()},
	{Code: ReqGetAllDelayOffset, Name: "GET_ALL_DELAY_OFFSET", Peer: "broker", ResponseBody: typ[DelayOffsets]()},
	{Code: ReqCheckClientConfig, Name: "CHECK_CLIENT_CONFIG", Peer: "broker", RequestBody: typ[CheckClientBody]()},
	{Code: ReqGetClientConfig, Name: "GET_CLIENT_CONFIG"},
	{Code: ReqGetTimerCheckPoint, Name: "GET_TIMER_CHECK_POINT", Peer: "broker"},
	{Code: ReqGetTimerMetrics, Name: "GET_TIMER_METRICS", Peer: "broker"},
	{Code: ReqPutKVConfig, Name: "PUT_KV_CONFIG", Peer: "name server", Request: typ[PutKVConfigHeader]()},
	{Code: ReqGetKVConfig, Name: "GET_KV_CONFIG", Peer: "name server", Request: typ[GetKVConfigHeader](), Response: typ[GetKVConfigResponseHeader]()},
	{Code: ReqDeleteKVConfig, Name: "DELETE_KV_CONFIG", Peer: "name server", Request: typ[DeleteKVConfigHeader]()},
	{Code: ReqRegisterBroker, Name: "REGISTER_BROKER", Peer: "name server", Request: typ[RegisterBrokerHeader](), Response: typ[RegisterBrokerResponseHeader](), RequestBody: typ[RegisterBrokerBody](), ResponseBody: typ[KVTable]()},
	{Code: ReqUnregisterBroker, Name: "UNREGISTER_BROKER", Peer: "name server", Request: typ[UnregisterBrokerHeader]()},
	{Code: ReqGetRouteInfoByTopic, Name: "GET_ROUTEINFO_BY_TOPIC", Peer: "name server", Request: typ[GetRouteInfoHeader](), ResponseBody: typ[TopicRouteData]()},
	{Code: ReqGetBrokerClusterInfo, Name: "GET_BROKER_CLUSTER_INFO", Peer: "name server", ResponseBody: typ[ClusterInfo]()},
	{Code: ReqUpdateAndCreateSubscriptionGroup, Name: "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP", Peer: "broker", RequestBody: typ[SubscriptionGroupConfig]()},
	{Code: ReqGetAllSubscriptionGroupConfig, Name: "GET_ALL_SUBSCRIPTIONGROUP_CONFIG", Peer: "broker", Request: typ[GetAllSubscriptionGroupConfigHeader](), Response: typ[GetAllSubscriptionGroupConfigResponseHeader](), ResponseBody: typ[SubscriptionGroupTable]()},
	{Code: ReqGetTopicStatsInfo, Name: "GET_TOPIC_STATS_INFO", Peer: "broker", Request: typ[GetTopicStatsInfoHeader](), ResponseBody: typ[TopicStatsTable]()},
	{Code: ReqGetConsumerConnectionList, Name: "GET_CONSUMER_CONNECTION_LIST", Peer: "broker", Request: typ[GetConsumerConnectionListHeader](), ResponseBody: typ[ConsumerConnection]()},
	{Code: ReqGetProducerConnectionList, Name: "GET_PRODUCER_CONNECTION_LIST", Peer: "broker", Request: typ[GetProducerConnectionListHeader](), ResponseBody: typ[ProducerConnection]()},
	{Code: ReqWipeWritePermOfBroker, Name: "WIPE_WRITE_PERM_OF_BROKER", Peer: "name server", Request: typ[WipeWritePermOfBrokerHeader](), Response: typ[WipeWritePermOfBrokerResponseHeader]()},
	{Code: ReqGetAllTopicListFromNameServer, Name: "GET_ALL_TOPIC_LIST_FROM_NAMESERVER", Peer: "name server", ResponseBody: typ[TopicList]()},
	{Code: ReqDeleteSubscriptionGroup, Name: "DELETE_SUBSCRIPTIONGROUP", Peer: "broker", Request: typ[DeleteSubscriptionGroupHeader]()},
	{Code: ReqGetConsumeStats, Name: "GET_CONSUME_STATS", Peer: "broker", Request: typ[GetConsumeStatsHeader](), ResponseBody: typ[ConsumeStats]()},
	{Code: ReqSuspendConsumer, Name: "SUSPEND_CONSUMER"},
	{Code: ReqResumeConsumer, Name: "RESUME_CONSUMER"},
	{Code: ReqResetConsumerOffsetInConsumer, Name: "RESET_CONSUMER_OFFSET_IN_CONSUMER"},
	{Code: ReqResetConsumerOffsetInBroker, Name: "RESET_CONSUMER_OFFSET_IN_BROKER"},
	{Code: ReqAdjustConsumerThreadPool, Name: "ADJUST_CONSUMER_THREAD_POOL"},
	{Code: ReqWhoConsumeTheMessage, Name: "WHO_CONSUME_THE_MESSAGE"},
	{Code: ReqDeleteTopicInBroker, Name: "DELETE_TOPIC_IN_BROKER", Peer: "broker", Request: typ[DeleteTopicHeader]()},
	{Code: ReqDeleteTopicInNamesrv, Name: "DELETE_TOPIC_IN_NAMESRV", Peer: "name server", Request: typ[DeleteTopicFromNamesrvHeader]()},
	{Code: ReqRegisterTopicInNamesrv, Name: "REGISTER_TOPIC_IN_NAMESRV", Peer: "name server", Request: typ[RegisterTopicHeader](), RequestBody: typ[TopicRouteData]()},
	{Code: ReqGetKVListByNamespace, Name: "GET_KVLIST_BY_NAMESPACE", Peer: "name server", Request: typ[GetKVListByNamespaceHeader](), ResponseBody: typ[KVTable]()},
	{Code: ReqResetConsumerClientOffset, Name: "RESET_CONSUMER_CLIENT_OFFSET", Peer: "client", Request: typ[ResetOffsetHeader](), RequestBody: typ[ResetOffsetBody]()},
	{Code: ReqGetConsumerStatusFromClient, Name: "GET_CONSUMER_STATUS_FROM_CLIENT", Peer: "client", Request: typ[GetConsumerStatusHeader](), ResponseBody: typ[GetConsumerStatusBody]()},
	{Code: ReqInvokeBrokerToResetOffset, Name: "INVOKE_BROKER_TO_RESET_OFFSET", Peer: "broker", Request: typ[ResetOffsetHeader](), ResponseBody: typ[ResetOffsetBody]()},
	{Code: ReqInvokeBrokerToGetConsumerStatus, Name: "INVOKE_BROKER_TO_GET_CONSUMER_STATUS", Peer: "broker", Request: typ[GetConsumerStatusHeader](), ResponseBody: typ[GetConsumerStatusBody]()},
	{Code: ReqGetTopicsByCluster, Name: "GET_TOPICS_BY_CLUSTER", Peer: "name server", Request: typ[GetTopicsByClusterHeader](), ResponseBody: typ[TopicList]()},
	{Code: ReqUpdateAndCreateSubscriptionGroupList, Name: "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST", Peer: "broker", RequestBody: typ[SubscriptionGroupList]()},
	{Code: ReqQueryTopicConsumeByWho, Name: "QUERY_TOPIC_CONSUME_BY_WHO", Peer: "broker", Request: typ[QueryTopicConsumeByWhoHeader](), ResponseBody: typ[GroupList]()},
	{Code: ReqRegisterFilterServer, Name: "REGISTER_FILTER_SERVER"},
	{Code: ReqRegisterMessageFilterClass, Name: "REGISTER_MESSAGE_FILTER_CLASS"},
	{Code: ReqQueryConsumeTimeSpan, Name: "QUERY_CONSUME_TIME_SPAN", Peer: "broker", Request: typ[QueryConsumeTimeSpanHeader](), ResponseBody: typ[QueryConsumeTimeSpanBody]()},
	{Code: ReqGetSystemTopicListFromNS, Name: "GET_SYSTEM_TOPIC_LIST_FROM_NS", Peer: "name server", ResponseBody: typ[TopicList]()},
	{Code: ReqGetSystemTopicListFromBroker, Name: "GET_SYSTEM_TOPIC_LIST_FROM_BROKER", Peer: "broker", ResponseBody: typ[TopicList]()},
	{Code: ReqCleanExpiredConsumeQueue, Name: "CLEAN_EXPIRED_CONSUMEQUEUE", Peer: "broker"},
	{Code: ReqGetConsumerRunningInfo, Name: "GET_CONSUMER_RUNNING_INFO", Peer: "broker", Request: typ[GetConsumerRunningInfoHeader](), ResponseBody: typ[ConsumerRunningInfo]()},
	{Code: ReqQueryCorrectionOffset, Name: "QUERY_CORRECTION_OFFSET", Peer: "broker", Request: typ[QueryCorrectionOffsetHeader](), ResponseBody: typ[QueryCorrectionOffsetBody]()},
	{Code: ReqConsumeMessageDirectly, Name: "CONSUME_MESSAGE_DIRECTLY", Peer: "broker", Request: typ[ConsumeMessageDirectlyHeader](), ResponseBody: typ[ConsumeMessageDirectlyResult]()},
	{Code: ReqSendMessageV2, Name: "SEND_MESSAGE_V2", Peer: "broker", Request: typ[SendMessageHeader](), Response: typ[SendMessageResponseHeader]()},
	{Code: ReqGetUnitTopicList, Name: "GET_UNIT_TOPIC_LIST", Peer: "name server", ResponseBody: typ[TopicList]()},
	{Code: ReqGetHasUnitSubTopicList, Name: "GET_HAS_UNIT_SUB_TOPIC_LIST", Peer: "name server", ResponseBody: typ[TopicList]()},
	{Code: ReqGetHasUnitSubUnUnitTopicList, Name: "GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST", Peer: "name server", ResponseBody: typ[TopicList]()},
	{Code: ReqCloneGroupOffset, Name: "CLONE_GROUP_OFFSET", Peer: "broker", Request: typ[CloneGroupOffsetHeader]()},
	{Code: ReqViewBrokerStatsData, Name: "VIEW_BROKER_STATS_DATA", Peer: "broker", Request: typ[ViewBrokerStatsDataHeader](), ResponseBody: typ[BrokerStatsData]()},
	{Code: ReqCleanUnusedTopic, Name: "CLEAN_UNUSED_TOPIC", Peer: "broker"},
	{Code: ReqGetBrokerConsumeStats, Name: "GET_BROKER_CONSUME_STATS", Peer: "broker", Request: typ[GetBrokerConsumeStatsHeader](), ResponseBody: typ[ConsumeStatsList]()},
	{Code: ReqUpdateNamesrvConfig, Name: "UPDATE_NAMESRV_CONFIG", Peer: "name server"},
	{Code: ReqGetNamesrvConfig, Name: "GET_NAMESRV_CONFIG", Peer: "name server"},
	{Code: ReqSendBatchMessage, Name: "SEND_BATCH_MESSAGE", Peer: "broker", Request: typ[SendMessageHeader](), Response: typ[SendMessageResponseHeader]()},
	{Code: ReqQueryConsumeQueue, Name: "QUERY_CONSUME_QUEUE", Peer: "broker", Request: typ[QueryConsumeQueueHeader](), ResponseBody: typ[QueryConsumeQueueBody]()},
	{Code: ReqQueryDataVersion, Name: "QUERY_DATA_VERSION", Peer: "name server", Request: typ[QueryDataVersionHeader](), Response: typ[QueryDataVersionResponseHeader](), RequestBody: typ[DataVersion](), ResponseBody: typ[DataVersion]()},
	{Code: ReqResumeCheckHalfMessage, Name: "RESUME_CHECK_HALF_MESSAGE", Peer: "broker", Request: typ[ResumeCheckHalfMessageHeader]()},
	{Code: ReqSendReplyMessage, Name: "SEND_REPLY_MESSAGE", Peer: "broker", Request: typ[SendMessageHeader](), Response: typ[SendMessageResponseHeader]()},
	{Code: ReqSendReplyMessageV2, Name: "SEND_REPLY_MESSAGE_V2", Peer: "broker", Request: typ[SendMessageHeader](), Response: typ[SendMessageResponseHeader]()},
	{Code: ReqPushReplyMessageToClient, Name: "PUSH_REPLY_MESSAGE_TO_CLIENT", Peer: "client", Request: typ[ReplyMessageHeader]()},
	{Code: ReqAddWritePermOfBroker, Name: "ADD_WRITE_PERM_OF_BROKER", Peer: "name server", Request: typ[AddWritePermOfBrokerHeader](), Response: typ[AddWritePermOfBrokerResponseHeader]()},
	{Code: ReqGetAllProducerInfo, Name: "GET_ALL_PRODUCER_INFO", Peer: "broker", ResponseBody: typ[ProducerTableInfo]()},
	{Code: ReqDeleteExpiredCommitLog, Name: "DELETE_EXPIRED_COMMITLOG", Peer: "broker"},
	{Code: ReqQueryTopicsByConsumer, Name: "QUERY_TOPICS_BY_CONSUMER", Peer: "broker", Request: typ[QueryTopicsByConsumerHeader](), ResponseBody: typ[TopicList]()},
	{Code: ReqQuerySubscriptionByConsumer, Name: "QUERY_SUBSCRIPTION_BY_CONSUMER", Peer: "broker", Request: typ[QuerySubscriptionByConsumerHeader](), ResponseBody: typ[QuerySubscriptionBody]()},
	{Code: ReqGetTopicConfig, Name: "GET_TOPIC_CONFIG", Peer: "broker", Request: typ[GetTopicConfigHeader](), ResponseBody: typ[TopicConfigAndMapping]()},
	{Code: ReqGetSubscriptionGroupConfig, Name: "GET_SUBSCRIPTIONGROUP_CONFIG", Peer: "broker", Request: typ[GetSubscriptionGroupConfigHeader](), ResponseBody: typ[SubscriptionGroupConfig]()},
	{Code: ReqUpdateAndGetGroupForbidden, Name: "UPDATE_AND_GET_GROUP_FORBIDDEN", Peer: "broker", Request: typ[UpdateAndGetGroupForbiddenHeader](), ResponseBody: typ[GroupForbidden]()},
	{Code: ReqCheckRocksDBCQWriteProgress, Name: "CHECK_ROCKSDB_CQ_WRITE_PROGRESS", Peer: "broker", Request: typ[CheckRocksDBCQWriteProgressHeader]()},
	{Code: ReqExportRocksDBConfigToJSON, Name: "EXPORT_ROCKSDB_CONFIG_TO_JSON", Peer: "broker", Request: typ[ExportRocksDBConfigToJSONHeader]()},
	{Code: ReqLitePullMessage, Name: "LITE_PULL_MESSAGE", Peer: "broker", Request: typ[PullMessageHeader](), Response: typ[PullMessageResponseHeader]()},
	{Code: ReqRecallMessage, Name: "RECALL_MESSAGE", Peer: "broker", Request: typ[RecallMessageHeader](), Response: typ[RecallMessageResponseHeader]()},
	{Code: ReqQueryAssignment, Name: "QUERY_ASSIGNMENT", Peer: "broker", RequestBody: typ[QueryAssignmentBody](), ResponseBody: typ[QueryAssignmentResponseBody]()},
	{Code: ReqSetMessageRequestMode, Name: "SET_MESSAGE_REQUEST_MODE", Peer: "broker", RequestBody: typ[MessageRequestMode]()},
	{Code: ReqGetAllMessageRequestMode, Name: "GET_ALL_MESSAGE_REQUEST_MODE", Peer: "broker", ResponseBody: typ[MessageRequestModes]()},
	{Code: ReqUpdateAndCreateStaticTopic, Name: "UPDATE_AND_CREATE_STATIC_TOPIC", Peer: "broker", Request: typ[CreateTopicHeader](), RequestBody: typ[TopicQueueMappingDetail]()},
	{Code: ReqGetBrokerMemberGroup, Name: "GET_BROKER_MEMBER_GROUP", Peer: "name server", Request: typ[GetBrokerMemberGroupHeader](), ResponseBody: typ[GetBrokerMemberGroupBody]()},
	{Code: ReqAddBroker, Name: "ADD_BROKER", Peer: "container", Request: typ[AddBrokerHeader]()},
	{Code: ReqRemoveBroker, Name: "REMOVE_BROKER", Peer: "container", Request: typ[RemoveBrokerHeader]()},
	{Code: ReqBrokerHeartbeat, Name: "BROKER_HEARTBEAT", Peer: "name server, controller", Request: typ[BrokerHeartbeatHeader]()},
	{Code: ReqNotifyMinBrokerIDChange, Name: "NOTIFY_MIN_BROKER_ID_CHANGE", Peer: "broker", Request: typ[NotifyMinBrokerIDChangeHeader]()},
	{Code: ReqExchangeBrokerHAInfo, Name: "EXCHANGE_BROKER_HA_INFO", Peer: "broker", Request: typ[ExchangeBrokerHAInfoHeader](), Response: typ[ExchangeBrokerHAInfoResponseHeader]()},
	{Code: ReqGetBrokerHAStatus, Name: "GET_BROKER_HA_STATUS", Peer: "broker", ResponseBody: typ[HARuntimeInfo]()},
	{Code: ReqResetMasterFlushOffset, Name: "RESET_MASTER_FLUSH_OFFSET", Peer: "broker", Request: typ[ResetMasterFlushOffsetHeader]()},
	{Code: ReqControllerAlterSyncStateSet, Name: "CONTROLLER_ALTER_SYNC_STATE_SET", Peer: "controller", Request: typ[ControllerAlterSyncStateSetHeader](), Response: typ[ControllerAlterSyncStateSetResponseHeader](), RequestBody: typ[SyncStateSet](), ResponseBody: typ[SyncStateSet]()},
	{Code: ReqControllerElectMaster, Name: "CONTROLLER_ELECT_MASTER", Peer: "controller", Request: typ[ControllerElectMasterHeader](), Response: typ[ControllerElectMasterResponseHeader](), ResponseBody: typ[ElectMasterBody]()},
	{Code: ReqControllerRegisterBroker, Name: "CONTROLLER_REGISTER_BROKER", Peer: "controller", Request: typ[ControllerRegisterBrokerHeader](), Response: typ[ControllerRegisterBrokerResponseHeader](), ResponseBody: typ[SyncStateSet]()},
	{Code: ReqControllerGetReplicaInfo, Name: "CONTROLLER_GET_REPLICA_INFO", Peer: "controller", Request: typ[ControllerGetReplicaInfoHeader](), Response: typ[ControllerGetReplicaInfoResponseHeader](), ResponseBody: typ[SyncStateSet]()},
	{Code: ReqControllerGetMetadataInfo, Name: "CONTROLLER_GET_METADATA_INFO", Peer: "controller", Response: typ[ControllerGetMetadataInfoResponseHeader]()},
	{Code: ReqControllerGetSyncStateData, Name: "CONTROLLER_GET_SYNC_STATE_DATA", Peer: "controller", RequestBody: typ[[]string](), ResponseBody: typ[BrokerReplicasInfo]()},
	{Code: ReqGetBrokerEpochCache, Name: "GET_BROKER_EPOCH_CACHE", Peer: "broker", ResponseBody: typ[EpochEntryCache]()},
	{Code: ReqNotifyBrokerRoleChanged, Name: "NOTIFY_BROKER_ROLE_CHANGED", Peer: "broker", Request: typ[NotifyBrokerRoleChangedHeader](), RequestBody: typ[SyncStateSet]()},
	{Code: ReqUpdateControllerConfig, Name: "UPDATE_CONTROLLER_CONFIG", Peer: "controller"},
	{Code: ReqGetControllerConfig, Name: "GET_CONTROLLER_CONFIG", Peer: "controller"},
	{Code: ReqCleanBrokerData, Name: "CLEAN_BROKER_DATA", Peer: "controller", Request: typ[CleanBrokerDataHeader]()},
	{Code: ReqControllerGetNextBrokerID, Name: "CONTROLLER_GET_NEXT_BROKER_ID", Peer: "controller", Request: typ[ControllerGetNextBrokerIDHeader](), Response: typ[ControllerGetNextBrokerIDResponseHeader]()},
	{Code: ReqControllerApplyBrokerID, Name: "CONTROLLER_APPLY_BROKER_ID", Peer: "controller", Request: typ[ControllerApplyBrokerIDHeader](), Response: typ[ControllerApplyBrokerIDResponseHeader]()},
	{Code: ReqBrokerCloseChannelRequest, Name: "BROKER_CLOSE_CHANNEL_REQUEST", Peer: "controller", Request: typ[BrokerCloseChannelRequestHeader]()},
	{Code: ReqCheckNotActiveBrokerRequest, Name: "CHECK_NOT_ACTIVE_BROKER_REQUEST", Peer: "controller", Request: typ[CheckNotActiveBrokerRequestHeader]()},
	{Code: ReqGetBrokerLiveInfoRequest, Name: "GET_BROKER_LIVE_INFO_REQUEST", Peer: "controller", Request: typ[GetBrokerLiveInfoRequestHeader]()},
	{Code: ReqGetSyncStateDataRequest, Name: "GET_SYNC_STATE_DATA_REQUEST", Peer: "controller", Request: typ[GetSyncStateDataRequestHeader]()},
	{Code: ReqRaftBrokerHeartBeatEventRequest, Name: "RAFT_BROKER_HEART_BEAT_EVENT_REQUEST", Peer: "controller", Request: typ[RaftBrokerHeartBeatEventRequestHeader]()},
	{Code: ReqUpdateColdDataFlowCtrConfig, Name: "UPDATE_COLD_DATA_FLOW_CTR_CONFIG", Peer: "broker"},
	{Code: ReqRemoveColdDataFlowCtrConfig, Name: "REMOVE_COLD_DATA_FLOW_CTR_CONFIG", Peer: "broker"},
	{Code: ReqGetColdDataFlowCtrInfo, Name: "GET_COLD_DATA_FLOW_CTR_INFO", Peer: "broker"},
	{Code: ReqSetCommitLogReadMode, Name: "SET_COMMITLOG_READ_MODE", Peer: "broker"},
	{Code: ReqAuthCreateUser, Name: "AUTH_CREATE_USER", Peer: "broker", Request: typ[AuthCreateUserHeader](), RequestBody: typ[UserInfo]()},
	{Code: ReqAuthUpdateUser, Name: "AUTH_UPDATE_USER", Peer: "broker", Request: typ[AuthUpdateUserHeader]()},
	{Code: ReqAuthDeleteUser, Name: "AUTH_DELETE_USER", Peer: "broker", Request: typ[AuthDeleteUserHeader]()},
	{Code: ReqAuthGetUser, Name: "AUTH_GET_USER", Peer: "broker", Request: typ[AuthGetUserHeader](), ResponseBody: typ[UserInfo]()},
	{Code: ReqAuthListUser, Name: "AUTH_LIST_USER", Peer: "broker", Request: typ[AuthListUserHeader](), ResponseBody: typ[[]UserInfo]()},
	{Code: ReqAuthCreateACL, Name: "AUTH_CREATE_ACL", Peer: "broker", Request: typ[AuthCreateACLHeader](), RequestBody: typ[ACLInfo]()},
	{Code: ReqAuthUpdateACL, Name: "AUTH_UPDATE_ACL", Peer: "broker", Request: typ[AuthUpdateACLHeader](), RequestBody: typ[ACLInfo]()},
	{Code: ReqAuthDeleteACL, Name: "AUTH_DELETE_ACL", Peer: "broker", Request: typ[AuthDeleteACLHeader]()},
	{Code: ReqAuthGetACL, Name: "AUTH_GET_ACL", Peer: "broker", Request: typ[AuthGetACLHeader](), ResponseBody: typ[ACLInfo]()},
	{Code: ReqAuthListACL, Name: "AUTH_LIST_ACL", Peer: "broker", Request: typ[AuthListACLHeader](), ResponseBody: typ[[]ACLInfo]()},
	{Code: ReqSwitchTimerEngine, Name: "SWITCH_TIMER_ENGINE", Peer: "broker"},
	{Code: ReqPopMessage, Name: "POP_MESSAGE", Peer: "broker", Request: typ[PopMessageHeader](), Response: typ[PopMessageResponseHeader]()},
	{Code: ReqAckMessage, Name: "ACK_MESSAGE", Peer: "broker", Request: typ[AckMessageHeader]()},
	{Code: ReqPeekMessage, Name: "PEEK_MESSAGE", Peer: "broker", Request: typ[PeekMessageHeader](), Response: typ[PeekMessageResponseHeader]()},
	{Code: ReqChangeMessageInvisibleTime, Name: "CHANGE_MESSAGE_INVISIBLETIME", Peer: "broker", Request: typ[ChangeMessageInvisibleTimeHeader](), Response: typ[ChangeMessageInvisibleTimeResponseHeader]()},
	{Code: ReqNotification, Name: "NOTIFICATION", Peer: "broker", Request: typ[NotificationHeader](), Response: typ[NotificationResponseHeader]()},
	{Code: ReqPollingInfo, Name: "POLLING_INFO", Peer: "broker", Request: typ[PollingInfoHeader](), Response: typ[PollingInfoResponseHeader]()},
	{Code: ReqPopRollback, Name: "POP_ROLLBACK", Peer: "broker"},
	{Code: ReqPopLiteMessage, Name: "POP_LITE_MESSAGE", Peer: "broker", Request: typ[PopLiteMessageHeader](), Response: typ[PopLiteMessageResponseHeader]()},
	{Code: ReqLiteSubscriptionCtl, Name: "LITE_SUBSCRIPTION_CTL", Peer: "broker", Request: typ[RPCHeader](), RequestBody: typ[LiteSubscriptionCtlBody]()},
	{Code: ReqAckLiteMessage, Name: "ACK_LITE_MESSAGE"},
	{Code: ReqNotifyUnsubscribeLite, Name: "NOTIFY_UNSUBSCRIBE_LITE", Peer: "client", Request: typ[NotifyUnsubscribeLiteHeader]()},
	{Code: ReqGetBrokerLiteInfo, Name: "GET_BROKER_LITE_INFO", Peer: "broker", ResponseBody: typ[BrokerLiteInfo]()},
	{Code: ReqGetParentTopicInfo, Name: "GET_PARENT_TOPIC_INFO", Peer: "broker", Request: typ[GetParentTopicInfoHeader](), ResponseBody: typ[ParentTopicInfo]()},
	{Code: ReqGetLiteTopicInfo, Name: "GET_LITE_TOPIC_INFO", Peer: "broker", Request: typ[GetLiteTopicInfoHeader](), ResponseBody: typ[LiteTopicInfo]()},
	{Code: ReqGetLiteClientInfo, Name: "GET_LITE_CLIENT_INFO", Peer: "broker", Request: typ[GetLiteClientInfoHeader](), ResponseBody: typ[LiteClientInfo]()},
	{Code: ReqGetLiteGroupInfo, Name: "GET_LITE_GROUP_INFO", Peer: "broker", Request: typ[GetLiteGroupInfoHeader](), ResponseBody: typ[LiteGroupInfo]()},
	{Code: ReqTriggerLiteDispatch, Name: "TRIGGER_LITE_DISPATCH", Peer: "broker", Request: typ[TriggerLiteDispatchHeader]()},
	{Code: ReqBatchAckMessage, Name: "BATCH_ACK_MESSAGE", Peer: "broker", RequestBody: typ[BatchAckBody]()},
}
