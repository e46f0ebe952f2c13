package remoting

import (
	"reflect"
	"strconv"
)

// Def is one request: its code and name, and the header structs that it and
// its response carry, nil when they carry none of their own.
type Def struct {
	Code              int32
	Name              string
	Request, Response reflect.Type
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
	return strconv.Itoa(int(code))
}

var defByCode = func() map[int32]*Def {
	m := make(map[int32]*Def, len(defs))
	for i := range defs {
		m[defs[i].Code] = &defs[i]
	}
	return m
}()

var defs = []Def{
	{Code: ReqSendMessage, Name: "SEND_MESSAGE", Request: reflect.TypeFor[SendMessageHeader](), Response: reflect.TypeFor[SendMessageResponseHeader]()},
	{Code: ReqPullMessage, Name: "PULL_MESSAGE", Request: reflect.TypeFor[PullMessageHeader](), Response: reflect.TypeFor[PullMessageResponseHeader]()},
	{Code: ReqQueryMessage, Name: "QUERY_MESSAGE", Request: reflect.TypeFor[QueryMessageHeader](), Response: reflect.TypeFor[QueryMessageResponseHeader]()},
	{Code: ReqQueryBrokerOffset, Name: "QUERY_BROKER_OFFSET"},
	{Code: ReqQueryConsumerOffset, Name: "QUERY_CONSUMER_OFFSET", Request: reflect.TypeFor[QueryConsumerOffsetHeader](), Response: reflect.TypeFor[QueryConsumerOffsetResponseHeader]()},
	{Code: ReqUpdateConsumerOffset, Name: "UPDATE_CONSUMER_OFFSET", Request: reflect.TypeFor[UpdateConsumerOffsetHeader]()},
	{Code: ReqUpdateAndCreateTopic, Name: "UPDATE_AND_CREATE_TOPIC", Request: reflect.TypeFor[CreateTopicHeader]()},
	{Code: ReqUpdateAndCreateTopicList, Name: "UPDATE_AND_CREATE_TOPIC_LIST", Request: reflect.TypeFor[RPCHeader]()},
	{Code: ReqGetAllTopicConfig, Name: "GET_ALL_TOPIC_CONFIG", Request: reflect.TypeFor[GetAllTopicConfigHeader](), Response: reflect.TypeFor[GetAllTopicConfigResponseHeader]()},
	{Code: ReqGetTopicConfigList, Name: "GET_TOPIC_CONFIG_LIST"},
	{Code: ReqGetTopicNameList, Name: "GET_TOPIC_NAME_LIST"},
	{Code: ReqUpdateBrokerConfig, Name: "UPDATE_BROKER_CONFIG"},
	{Code: ReqGetBrokerConfig, Name: "GET_BROKER_CONFIG", Response: reflect.TypeFor[GetBrokerConfigResponseHeader]()},
	{Code: ReqTriggerDeleteFiles, Name: "TRIGGER_DELETE_FILES"},
	{Code: ReqGetBrokerRuntimeInfo, Name: "GET_BROKER_RUNTIME_INFO"},
	{Code: ReqSearchOffsetByTimestamp, Name: "SEARCH_OFFSET_BY_TIMESTAMP", Request: reflect.TypeFor[SearchOffsetHeader](), Response: reflect.TypeFor[SearchOffsetResponseHeader]()},
	{Code: ReqGetMaxOffset, Name: "GET_MAX_OFFSET", Request: reflect.TypeFor[GetMaxOffsetHeader](), Response: reflect.TypeFor[GetMaxOffsetResponseHeader]()},
	{Code: ReqGetMinOffset, Name: "GET_MIN_OFFSET", Request: reflect.TypeFor[GetMinOffsetHeader](), Response: reflect.TypeFor[GetMinOffsetResponseHeader]()},
	{Code: ReqGetEarliestMsgStoreTime, Name: "GET_EARLIEST_MSG_STORETIME", Request: reflect.TypeFor[GetEarliestMsgStoreTimeHeader](), Response: reflect.TypeFor[GetEarliestMsgStoreTimeResponseHeader]()},
	{Code: ReqViewMessageByID, Name: "VIEW_MESSAGE_BY_ID", Request: reflect.TypeFor[ViewMessageHeader]()},
	{Code: ReqHeartBeat, Name: "HEART_BEAT", Request: reflect.TypeFor[RPCHeader]()},
	{Code: ReqUnregisterClient, Name: "UNREGISTER_CLIENT", Request: reflect.TypeFor[UnregisterClientHeader]()},
	{Code: ReqConsumerSendMsgBack, Name: "CONSUMER_SEND_MSG_BACK", Request: reflect.TypeFor[ConsumerSendMsgBackHeader]()},
	{Code: ReqEndTransaction, Name: "END_TRANSACTION", Request: reflect.TypeFor[EndTransactionHeader]()},
	{Code: ReqGetConsumerListByGroup, Name: "GET_CONSUMER_LIST_BY_GROUP", Request: reflect.TypeFor[GetConsumerListByGroupHeader]()},
	{Code: ReqCheckTransactionState, Name: "CHECK_TRANSACTION_STATE", Request: reflect.TypeFor[CheckTransactionStateHeader](), Response: reflect.TypeFor[CheckTransactionStateResponseHeader]()},
	{Code: ReqNotifyConsumerIDsChanged, Name: "NOTIFY_CONSUMER_IDS_CHANGED", Request: reflect.TypeFor[NotifyConsumerIDsChangedHeader]()},
	{Code: ReqLockBatchMQ, Name: "LOCK_BATCH_MQ", Request: reflect.TypeFor[RPCHeader]()},
	{Code: ReqUnlockBatchMQ, Name: "UNLOCK_BATCH_MQ", Request: reflect.TypeFor[RPCHeader]()},
	{Code: ReqGetAllConsumerOffset, Name: "GET_ALL_CONSUMER_OFFSET"},
	{Code: ReqGetAllDelayOffset, Name: "GET_ALL_DELAY_OFFSET"},
	{Code: ReqCheckClientConfig, Name: "CHECK_CLIENT_CONFIG"},
	{Code: ReqGetClientConfig, Name: "GET_CLIENT_CONFIG"},
	{Code: ReqGetTimerCheckPoint, Name: "GET_TIMER_CHECK_POINT"},
	{Code: ReqGetTimerMetrics, Name: "GET_TIMER_METRICS"},
	{Code: ReqPutKVConfig, Name: "PUT_KV_CONFIG", Request: reflect.TypeFor[PutKVConfigHeader]()},
	{Code: ReqGetKVConfig, Name: "GET_KV_CONFIG", Request: reflect.TypeFor[GetKVConfigHeader](), Response: reflect.TypeFor[GetKVConfigResponseHeader]()},
	{Code: ReqDeleteKVConfig, Name: "DELETE_KV_CONFIG", Request: reflect.TypeFor[DeleteKVConfigHeader]()},
	{Code: ReqRegisterBroker, Name: "REGISTER_BROKER", Request: reflect.TypeFor[RegisterBrokerHeader](), Response: reflect.TypeFor[RegisterBrokerResponseHeader]()},
	{Code: ReqUnregisterBroker, Name: "UNREGISTER_BROKER", Request: reflect.TypeFor[UnregisterBrokerHeader]()},
	{Code: ReqGetRouteInfoByTopic, Name: "GET_ROUTEINFO_BY_TOPIC", Request: reflect.TypeFor[GetRouteInfoHeader]()},
	{Code: ReqGetBrokerClusterInfo, Name: "GET_BROKER_CLUSTER_INFO"},
	{Code: ReqUpdateAndCreateSubscriptionGroup, Name: "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP"},
	{Code: ReqGetAllSubscriptionGroupConfig, Name: "GET_ALL_SUBSCRIPTIONGROUP_CONFIG", Request: reflect.TypeFor[GetAllSubscriptionGroupConfigHeader](), Response: reflect.TypeFor[GetAllSubscriptionGroupConfigResponseHeader]()},
	{Code: ReqGetTopicStatsInfo, Name: "GET_TOPIC_STATS_INFO", Request: reflect.TypeFor[GetTopicStatsInfoHeader]()},
	{Code: ReqGetConsumerConnectionList, Name: "GET_CONSUMER_CONNECTION_LIST", Request: reflect.TypeFor[GetConsumerConnectionListHeader]()},
	{Code: ReqGetProducerConnectionList, Name: "GET_PRODUCER_CONNECTION_LIST", Request: reflect.TypeFor[GetProducerConnectionListHeader]()},
	{Code: ReqWipeWritePermOfBroker, Name: "WIPE_WRITE_PERM_OF_BROKER", Request: reflect.TypeFor[WipeWritePermOfBrokerHeader](), Response: reflect.TypeFor[WipeWritePermOfBrokerResponseHeader]()},
	{Code: ReqGetAllTopicListFromNameServer, Name: "GET_ALL_TOPIC_LIST_FROM_NAMESERVER"},
	{Code: ReqDeleteSubscriptionGroup, Name: "DELETE_SUBSCRIPTIONGROUP", Request: reflect.TypeFor[DeleteSubscriptionGroupHeader]()},
	{Code: ReqGetConsumeStats, Name: "GET_CONSUME_STATS", Request: reflect.TypeFor[GetConsumeStatsHeader]()},
	{Code: ReqSuspendConsumer, Name: "SUSPEND_CONSUMER"},
	{Code: ReqResumeConsumer, Name: "RESUME_CONSUMER"},
	{Code: ReqResetConsumerOffsetInConsumer, Name: "RESET_CONSUMER_OFFSET_IN_CONSUMER"},
	{Code: ReqResetConsumerOffsetInBroker, Name: "RESET_CONSUMER_OFFSET_IN_BROKER"},
	{Code: ReqAdjustConsumerThreadPool, Name: "ADJUST_CONSUMER_THREAD_POOL"},
	{Code: ReqWhoConsumeTheMessage, Name: "WHO_CONSUME_THE_MESSAGE"},
	{Code: ReqDeleteTopicInBroker, Name: "DELETE_TOPIC_IN_BROKER", Request: reflect.TypeFor[DeleteTopicHeader]()},
	{Code: ReqDeleteTopicInNamesrv, Name: "DELETE_TOPIC_IN_NAMESRV", Request: reflect.TypeFor[DeleteTopicFromNamesrvHeader]()},
	{Code: ReqRegisterTopicInNamesrv, Name: "REGISTER_TOPIC_IN_NAMESRV", Request: reflect.TypeFor[RegisterTopicHeader]()},
	{Code: ReqGetKVListByNamespace, Name: "GET_KVLIST_BY_NAMESPACE", Request: reflect.TypeFor[GetKVListByNamespaceHeader]()},
	{Code: ReqResetConsumerClientOffset, Name: "RESET_CONSUMER_CLIENT_OFFSET", Request: reflect.TypeFor[ResetOffsetHeader]()},
	{Code: ReqGetConsumerStatusFromClient, Name: "GET_CONSUMER_STATUS_FROM_CLIENT", Request: reflect.TypeFor[GetConsumerStatusHeader]()},
	{Code: ReqInvokeBrokerToResetOffset, Name: "INVOKE_BROKER_TO_RESET_OFFSET", Request: reflect.TypeFor[ResetOffsetHeader]()},
	{Code: ReqInvokeBrokerToGetConsumerStatus, Name: "INVOKE_BROKER_TO_GET_CONSUMER_STATUS", Request: reflect.TypeFor[GetConsumerStatusHeader]()},
	{Code: ReqGetTopicsByCluster, Name: "GET_TOPICS_BY_CLUSTER", Request: reflect.TypeFor[GetTopicsByClusterHeader]()},
	{Code: ReqUpdateAndCreateSubscriptionGroupList, Name: "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST"},
	{Code: ReqQueryTopicConsumeByWho, Name: "QUERY_TOPIC_CONSUME_BY_WHO", Request: reflect.TypeFor[QueryTopicConsumeByWhoHeader]()},
	{Code: ReqRegisterFilterServer, Name: "REGISTER_FILTER_SERVER"},
	{Code: ReqRegisterMessageFilterClass, Name: "REGISTER_MESSAGE_FILTER_CLASS"},
	{Code: ReqQueryConsumeTimeSpan, Name: "QUERY_CONSUME_TIME_SPAN", Request: reflect.TypeFor[QueryConsumeTimeSpanHeader]()},
	{Code: ReqGetSystemTopicListFromNS, Name: "GET_SYSTEM_TOPIC_LIST_FROM_NS"},
	{Code: ReqGetSystemTopicListFromBroker, Name: "GET_SYSTEM_TOPIC_LIST_FROM_BROKER"},
	{Code: ReqCleanExpiredConsumeQueue, Name: "CLEAN_EXPIRED_CONSUMEQUEUE"},
	{Code: ReqGetConsumerRunningInfo, Name: "GET_CONSUMER_RUNNING_INFO", Request: reflect.TypeFor[GetConsumerRunningInfoHeader]()},
	{Code: ReqQueryCorrectionOffset, Name: "QUERY_CORRECTION_OFFSET", Request: reflect.TypeFor[QueryCorrectionOffsetHeader]()},
	{Code: ReqConsumeMessageDirectly, Name: "CONSUME_MESSAGE_DIRECTLY", Request: reflect.TypeFor[ConsumeMessageDirectlyHeader]()},
	{Code: ReqSendMessageV2, Name: "SEND_MESSAGE_V2", Request: reflect.TypeFor[SendMessageHeader](), Response: reflect.TypeFor[SendMessageResponseHeader]()},
	{Code: ReqGetUnitTopicList, Name: "GET_UNIT_TOPIC_LIST"},
	{Code: ReqGetHasUnitSubTopicList, Name: "GET_HAS_UNIT_SUB_TOPIC_LIST"},
	{Code: ReqGetHasUnitSubUnUnitTopicList, Name: "GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST"},
	{Code: ReqCloneGroupOffset, Name: "CLONE_GROUP_OFFSET", Request: reflect.TypeFor[CloneGroupOffsetHeader]()},
	{Code: ReqViewBrokerStatsData, Name: "VIEW_BROKER_STATS_DATA", Request: reflect.TypeFor[ViewBrokerStatsDataHeader]()},
	{Code: ReqCleanUnusedTopic, Name: "CLEAN_UNUSED_TOPIC"},
	{Code: ReqGetBrokerConsumeStats, Name: "GET_BROKER_CONSUME_STATS", Request: reflect.TypeFor[GetBrokerConsumeStatsHeader]()},
	{Code: ReqUpdateNamesrvConfig, Name: "UPDATE_NAMESRV_CONFIG"},
	{Code: ReqGetNamesrvConfig, Name: "GET_NAMESRV_CONFIG"},
	{Code: ReqSendBatchMessage, Name: "SEND_BATCH_MESSAGE", Request: reflect.TypeFor[SendMessageHeader](), Response: reflect.TypeFor[SendMessageResponseHeader]()},
	{Code: ReqQueryConsumeQueue, Name: "QUERY_CONSUME_QUEUE", Request: reflect.TypeFor[QueryConsumeQueueHeader]()},
	{Code: ReqQueryDataVersion, Name: "QUERY_DATA_VERSION", Request: reflect.TypeFor[QueryDataVersionHeader](), Response: reflect.TypeFor[QueryDataVersionResponseHeader]()},
	{Code: ReqResumeCheckHalfMessage, Name: "RESUME_CHECK_HALF_MESSAGE", Request: reflect.TypeFor[ResumeCheckHalfMessageHeader]()},
	{Code: ReqSendReplyMessage, Name: "SEND_REPLY_MESSAGE", Request: reflect.TypeFor[SendMessageHeader](), Response: reflect.TypeFor[SendMessageResponseHeader]()},
	{Code: ReqSendReplyMessageV2, Name: "SEND_REPLY_MESSAGE_V2", Request: reflect.TypeFor[SendMessageHeader](), Response: reflect.TypeFor[SendMessageResponseHeader]()},
	{Code: ReqPushReplyMessageToClient, Name: "PUSH_REPLY_MESSAGE_TO_CLIENT", Request: reflect.TypeFor[ReplyMessageHeader]()},
	{Code: ReqAddWritePermOfBroker, Name: "ADD_WRITE_PERM_OF_BROKER", Request: reflect.TypeFor[AddWritePermOfBrokerHeader](), Response: reflect.TypeFor[AddWritePermOfBrokerResponseHeader]()},
	{Code: ReqGetAllProducerInfo, Name: "GET_ALL_PRODUCER_INFO"},
	{Code: ReqDeleteExpiredCommitLog, Name: "DELETE_EXPIRED_COMMITLOG"},
	{Code: ReqQueryTopicsByConsumer, Name: "QUERY_TOPICS_BY_CONSUMER", Request: reflect.TypeFor[QueryTopicsByConsumerHeader]()},
	{Code: ReqQuerySubscriptionByConsumer, Name: "QUERY_SUBSCRIPTION_BY_CONSUMER", Request: reflect.TypeFor[QuerySubscriptionByConsumerHeader]()},
	{Code: ReqGetTopicConfig, Name: "GET_TOPIC_CONFIG", Request: reflect.TypeFor[GetTopicConfigHeader]()},
	{Code: ReqGetSubscriptionGroupConfig, Name: "GET_SUBSCRIPTIONGROUP_CONFIG", Request: reflect.TypeFor[GetSubscriptionGroupConfigHeader]()},
	{Code: ReqUpdateAndGetGroupForbidden, Name: "UPDATE_AND_GET_GROUP_FORBIDDEN", Request: reflect.TypeFor[UpdateAndGetGroupForbiddenHeader]()},
	{Code: ReqCheckRocksDBCQWriteProgress, Name: "CHECK_ROCKSDB_CQ_WRITE_PROGRESS", Request: reflect.TypeFor[CheckRocksDBCQWriteProgressHeader]()},
	{Code: ReqExportRocksDBConfigToJSON, Name: "EXPORT_ROCKSDB_CONFIG_TO_JSON", Request: reflect.TypeFor[ExportRocksDBConfigToJSONHeader]()},
	{Code: ReqLitePullMessage, Name: "LITE_PULL_MESSAGE", Request: reflect.TypeFor[PullMessageHeader](), Response: reflect.TypeFor[PullMessageResponseHeader]()},
	{Code: ReqRecallMessage, Name: "RECALL_MESSAGE", Request: reflect.TypeFor[RecallMessageHeader](), Response: reflect.TypeFor[RecallMessageResponseHeader]()},
	{Code: ReqQueryAssignment, Name: "QUERY_ASSIGNMENT"},
	{Code: ReqSetMessageRequestMode, Name: "SET_MESSAGE_REQUEST_MODE"},
	{Code: ReqGetAllMessageRequestMode, Name: "GET_ALL_MESSAGE_REQUEST_MODE"},
	{Code: ReqUpdateAndCreateStaticTopic, Name: "UPDATE_AND_CREATE_STATIC_TOPIC", Request: reflect.TypeFor[CreateTopicHeader]()},
	{Code: ReqGetBrokerMemberGroup, Name: "GET_BROKER_MEMBER_GROUP", Request: reflect.TypeFor[GetBrokerMemberGroupHeader]()},
	{Code: ReqAddBroker, Name: "ADD_BROKER", Request: reflect.TypeFor[AddBrokerHeader]()},
	{Code: ReqRemoveBroker, Name: "REMOVE_BROKER", Request: reflect.TypeFor[RemoveBrokerHeader]()},
	{Code: ReqBrokerHeartbeat, Name: "BROKER_HEARTBEAT", Request: reflect.TypeFor[BrokerHeartbeatHeader]()},
	{Code: ReqNotifyMinBrokerIDChange, Name: "NOTIFY_MIN_BROKER_ID_CHANGE", Request: reflect.TypeFor[NotifyMinBrokerIDChangeHeader]()},
	{Code: ReqExchangeBrokerHAInfo, Name: "EXCHANGE_BROKER_HA_INFO", Request: reflect.TypeFor[ExchangeBrokerHAInfoHeader](), Response: reflect.TypeFor[ExchangeBrokerHAInfoResponseHeader]()},
	{Code: ReqGetBrokerHAStatus, Name: "GET_BROKER_HA_STATUS"},
	{Code: ReqResetMasterFlushOffset, Name: "RESET_MASTER_FLUSH_OFFSET", Request: reflect.TypeFor[ResetMasterFlushOffsetHeader]()},
	{Code: ReqControllerAlterSyncStateSet, Name: "CONTROLLER_ALTER_SYNC_STATE_SET", Request: reflect.TypeFor[ControllerAlterSyncStateSetHeader](), Response: reflect.TypeFor[ControllerAlterSyncStateSetResponseHeader]()},
	{Code: ReqControllerElectMaster, Name: "CONTROLLER_ELECT_MASTER", Request: reflect.TypeFor[ControllerElectMasterHeader](), Response: reflect.TypeFor[ControllerElectMasterResponseHeader]()},
	{Code: ReqControllerRegisterBroker, Name: "CONTROLLER_REGISTER_BROKER", Request: reflect.TypeFor[ControllerRegisterBrokerHeader](), Response: reflect.TypeFor[ControllerRegisterBrokerResponseHeader]()},
	{Code: ReqControllerGetReplicaInfo, Name: "CONTROLLER_GET_REPLICA_INFO", Request: reflect.TypeFor[ControllerGetReplicaInfoHeader](), Response: reflect.TypeFor[ControllerGetReplicaInfoResponseHeader]()},
	{Code: ReqControllerGetMetadataInfo, Name: "CONTROLLER_GET_METADATA_INFO", Response: reflect.TypeFor[ControllerGetMetadataInfoResponseHeader]()},
	{Code: ReqControllerGetSyncStateData, Name: "CONTROLLER_GET_SYNC_STATE_DATA"},
	{Code: ReqGetBrokerEpochCache, Name: "GET_BROKER_EPOCH_CACHE"},
	{Code: ReqNotifyBrokerRoleChanged, Name: "NOTIFY_BROKER_ROLE_CHANGED", Request: reflect.TypeFor[NotifyBrokerRoleChangedHeader]()},
	{Code: ReqUpdateControllerConfig, Name: "UPDATE_CONTROLLER_CONFIG"},
	{Code: ReqGetControllerConfig, Name: "GET_CONTROLLER_CONFIG"},
	{Code: ReqCleanBrokerData, Name: "CLEAN_BROKER_DATA", Request: reflect.TypeFor[CleanBrokerDataHeader]()},
	{Code: ReqControllerGetNextBrokerID, Name: "CONTROLLER_GET_NEXT_BROKER_ID", Request: reflect.TypeFor[ControllerGetNextBrokerIDHeader](), Response: reflect.TypeFor[ControllerGetNextBrokerIDResponseHeader]()},
	{Code: ReqControllerApplyBrokerID, Name: "CONTROLLER_APPLY_BROKER_ID", Request: reflect.TypeFor[ControllerApplyBrokerIDHeader](), Response: reflect.TypeFor[ControllerApplyBrokerIDResponseHeader]()},
	{Code: ReqBrokerCloseChannelRequest, Name: "BROKER_CLOSE_CHANNEL_REQUEST", Request: reflect.TypeFor[BrokerCloseChannelRequestHeader]()},
	{Code: ReqCheckNotActiveBrokerRequest, Name: "CHECK_NOT_ACTIVE_BROKER_REQUEST", Request: reflect.TypeFor[CheckNotActiveBrokerRequestHeader]()},
	{Code: ReqGetBrokerLiveInfoRequest, Name: "GET_BROKER_LIVE_INFO_REQUEST", Request: reflect.TypeFor[GetBrokerLiveInfoRequestHeader]()},
	{Code: ReqGetSyncStateDataRequest, Name: "GET_SYNC_STATE_DATA_REQUEST", Request: reflect.TypeFor[GetSyncStateDataRequestHeader]()},
	{Code: ReqRaftBrokerHeartBeatEventRequest, Name: "RAFT_BROKER_HEART_BEAT_EVENT_REQUEST", Request: reflect.TypeFor[RaftBrokerHeartBeatEventRequestHeader]()},
	{Code: ReqUpdateColdDataFlowCtrConfig, Name: "UPDATE_COLD_DATA_FLOW_CTR_CONFIG"},
	{Code: ReqRemoveColdDataFlowCtrConfig, Name: "REMOVE_COLD_DATA_FLOW_CTR_CONFIG"},
	{Code: ReqGetColdDataFlowCtrInfo, Name: "GET_COLD_DATA_FLOW_CTR_INFO"},
	{Code: ReqSetCommitLogReadMode, Name: "SET_COMMITLOG_READ_MODE"},
	{Code: ReqAuthCreateUser, Name: "AUTH_CREATE_USER", Request: reflect.TypeFor[AuthCreateUserHeader]()},
	{Code: ReqAuthUpdateUser, Name: "AUTH_UPDATE_USER", Request: reflect.TypeFor[AuthUpdateUserHeader]()},
	{Code: ReqAuthDeleteUser, Name: "AUTH_DELETE_USER", Request: reflect.TypeFor[AuthDeleteUserHeader]()},
	{Code: ReqAuthGetUser, Name: "AUTH_GET_USER", Request: reflect.TypeFor[AuthGetUserHeader]()},
	{Code: ReqAuthListUser, Name: "AUTH_LIST_USER", Request: reflect.TypeFor[AuthListUserHeader]()},
	{Code: ReqAuthCreateACL, Name: "AUTH_CREATE_ACL", Request: reflect.TypeFor[AuthCreateACLHeader]()},
	{Code: ReqAuthUpdateACL, Name: "AUTH_UPDATE_ACL", Request: reflect.TypeFor[AuthUpdateACLHeader]()},
	{Code: ReqAuthDeleteACL, Name: "AUTH_DELETE_ACL", Request: reflect.TypeFor[AuthDeleteACLHeader]()},
	{Code: ReqAuthGetACL, Name: "AUTH_GET_ACL", Request: reflect.TypeFor[AuthGetACLHeader]()},
	{Code: ReqAuthListACL, Name: "AUTH_LIST_ACL", Request: reflect.TypeFor[AuthListACLHeader]()},
	{Code: ReqSwitchTimerEngine, Name: "SWITCH_TIMER_ENGINE"},
	{Code: ReqPopMessage, Name: "POP_MESSAGE", Request: reflect.TypeFor[PopMessageHeader](), Response: reflect.TypeFor[PopMessageResponseHeader]()},
	{Code: ReqAckMessage, Name: "ACK_MESSAGE", Request: reflect.TypeFor[AckMessageHeader]()},
	{Code: ReqPeekMessage, Name: "PEEK_MESSAGE", Request: reflect.TypeFor[PeekMessageHeader](), Response: reflect.TypeFor[PeekMessageResponseHeader]()},
	{Code: ReqChangeMessageInvisibleTime, Name: "CHANGE_MESSAGE_INVISIBLETIME", Request: reflect.TypeFor[ChangeMessageInvisibleTimeHeader](), Response: reflect.TypeFor[ChangeMessageInvisibleTimeResponseHeader]()},
	{Code: ReqNotification, Name: "NOTIFICATION", Request: reflect.TypeFor[NotificationHeader](), Response: reflect.TypeFor[NotificationResponseHeader]()},
	{Code: ReqPollingInfo, Name: "POLLING_INFO", Request: reflect.TypeFor[PollingInfoHeader](), Response: reflect.TypeFor[PollingInfoResponseHeader]()},
	{Code: ReqPopRollback, Name: "POP_ROLLBACK"},
	{Code: ReqPopLiteMessage, Name: "POP_LITE_MESSAGE", Request: reflect.TypeFor[PopLiteMessageHeader](), Response: reflect.TypeFor[PopLiteMessageResponseHeader]()},
	{Code: ReqLiteSubscriptionCtl, Name: "LITE_SUBSCRIPTION_CTL", Request: reflect.TypeFor[RPCHeader]()},
	{Code: ReqAckLiteMessage, Name: "ACK_LITE_MESSAGE"},
	{Code: ReqNotifyUnsubscribeLite, Name: "NOTIFY_UNSUBSCRIBE_LITE", Request: reflect.TypeFor[NotifyUnsubscribeLiteHeader]()},
	{Code: ReqGetBrokerLiteInfo, Name: "GET_BROKER_LITE_INFO"},
	{Code: ReqGetParentTopicInfo, Name: "GET_PARENT_TOPIC_INFO", Request: reflect.TypeFor[GetParentTopicInfoHeader]()},
	{Code: ReqGetLiteTopicInfo, Name: "GET_LITE_TOPIC_INFO", Request: reflect.TypeFor[GetLiteTopicInfoHeader]()},
	{Code: ReqGetLiteClientInfo, Name: "GET_LITE_CLIENT_INFO", Request: reflect.TypeFor[GetLiteClientInfoHeader]()},
	{Code: ReqGetLiteGroupInfo, Name: "GET_LITE_GROUP_INFO", Request: reflect.TypeFor[GetLiteGroupInfoHeader]()},
	{Code: ReqTriggerLiteDispatch, Name: "TRIGGER_LITE_DISPATCH", Request: reflect.TypeFor[TriggerLiteDispatchHeader]()},
	{Code: ReqBatchAckMessage, Name: "BATCH_ACK_MESSAGE"},
}
