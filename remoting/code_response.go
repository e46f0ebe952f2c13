package remoting

import "strconv"

// Response codes (docs/wire/codes.md).
const (
	RespRPCTimeOut                           int32 = -1006
	RespRPCSendToChannelFailed               int32 = -1004
	RespRPCAddrIsNull                        int32 = -1002
	RespRPCUnknown                           int32 = -1000
	RespSuccess                              int32 = 0
	RespSystemError                          int32 = 1
	RespSystemBusy                           int32 = 2
	RespRequestCodeNotSupported              int32 = 3
	RespTransactionFailed                    int32 = 4
	RespFlushDiskTimeout                     int32 = 10
	RespSlaveNotAvailable                    int32 = 11
	RespFlushSlaveTimeout                    int32 = 12
	RespMessageIllegal                       int32 = 13
	RespServiceNotAvailable                  int32 = 14
	RespVersionNotSupported                  int32 = 15
	RespNoPermission                         int32 = 16
	RespTopicNotExist                        int32 = 17
	RespTopicExistAlready                    int32 = 18
	RespPullNotFound                         int32 = 19
	RespPullRetryImmediately                 int32 = 20
	RespPullOffsetMoved                      int32 = 21
	RespQueryNotFound                        int32 = 22
	RespSubscriptionParseFailed              int32 = 23
	RespSubscriptionNotExist                 int32 = 24
	RespSubscriptionNotLatest                int32 = 25
	RespSubscriptionGroupNotExist            int32 = 26
	RespFilterDataNotExist                   int32 = 27
	RespFilterDataNotLatest                  int32 = 28
	RespInvalidParameter                     int32 = 29
	RespTransactionShouldCommit              int32 = 200
	RespTransactionShouldRollback            int32 = 201
	RespTransactionStateUnknown              int32 = 202
	RespTransactionStateGroupWrong           int32 = 203
	RespNoBuyerID                            int32 = 204
	RespNotInCurrentUnit                     int32 = 205
	RespConsumerNotOnline                    int32 = 206
	RespConsumeMsgTimeout                    int32 = 207
	RespNoMessage                            int32 = 208
	RespPollingFull                          int32 = 209
	RespPollingTimeout                       int32 = 210
	RespBrokerNotExist                       int32 = 211
	RespBrokerDispatchNotComplete            int32 = 212
	RespBroadcastConsumption                 int32 = 213
	RespFlowControl                          int32 = 215
	RespNotLeaderForQueue                    int32 = 501
	RespIllegalOperation                     int32 = 604
	RespGoAway                               int32 = 1500
	RespControllerFencedMasterEpoch          int32 = 2000
	RespControllerFencedSyncStateSetEpoch    int32 = 2001
	RespControllerInvalidMaster              int32 = 2002
	RespControllerInvalidReplicas            int32 = 2003
	RespControllerMasterNotAvailable         int32 = 2004
	RespControllerInvalidRequest             int32 = 2005
	RespControllerBrokerNotAlive             int32 = 2006
	RespControllerNotLeader                  int32 = 2007
	RespControllerBrokerMetadataNotExist     int32 = 2008
	RespControllerInvalidCleanBrokerMetadata int32 = 2009
	RespControllerBrokerNeedToBeRegistered   int32 = 2010
	RespControllerMasterStillExist           int32 = 2011
	RespControllerElectMasterFailed          int32 = 2012
	RespControllerAlterSyncStateSetFailed    int32 = 2013
	RespControllerBrokerIDInvalid            int32 = 2014
	RespControllerJRaftInternalError         int32 = 2015
	RespControllerBrokerLiveInfoNotExists    int32 = 2016
	RespLMQQuotaExceeded                     int32 = 2017
	RespLiteSubscriptionQuotaExceeded        int32 = 2018
	RespUserNotExist                         int32 = 3001
	RespPolicyNotExist                       int32 = 3002
)

var responseNames = map[int32]string{
	RespRPCTimeOut:                           "RPC_TIME_OUT",
	RespRPCSendToChannelFailed:               "RPC_SEND_TO_CHANNEL_FAILED",
	RespRPCAddrIsNull:                        "RPC_ADDR_IS_NULL",
	RespRPCUnknown:                           "RPC_UNKNOWN",
	RespSuccess:                              "SUCCESS",
	RespSystemError:                          "SYSTEM_ERROR",
	RespSystemBusy:                           "SYSTEM_BUSY",
	RespRequestCodeNotSupported:              "REQUEST_CODE_NOT_SUPPORTED",
	RespTransactionFailed:                    "TRANSACTION_FAILED",
	RespFlushDiskTimeout:                     "FLUSH_DISK_TIMEOUT",
	RespSlaveNotAvailable:                    "SLAVE_NOT_AVAILABLE",
	RespFlushSlaveTimeout:                    "FLUSH_SLAVE_TIMEOUT",
	RespMessageIllegal:                       "MESSAGE_ILLEGAL",
	RespServiceNotAvailable:                  "SERVICE_NOT_AVAILABLE",
	RespVersionNotSupported:                  "VERSION_NOT_SUPPORTED",
	RespNoPermission:                         "NO_PERMISSION",
	RespTopicNotExist:                        "TOPIC_NOT_EXIST",
	RespTopicExistAlready:                    "TOPIC_EXIST_ALREADY",
	RespPullNotFound:                         "PULL_NOT_FOUND",
	RespPullRetryImmediately:                 "PULL_RETRY_IMMEDIATELY",
	RespPullOffsetMoved:                      "PULL_OFFSET_MOVED",
	RespQueryNotFound:                        "QUERY_NOT_FOUND",
	RespSubscriptionParseFailed:              "SUBSCRIPTION_PARSE_FAILED",
	RespSubscriptionNotExist:                 "SUBSCRIPTION_NOT_EXIST",
	RespSubscriptionNotLatest:                "SUBSCRIPTION_NOT_LATEST",
	RespSubscriptionGroupNotExist:            "SUBSCRIPTION_GROUP_NOT_EXIST",
	RespFilterDataNotExist:                   "FILTER_DATA_NOT_EXIST",
	RespFilterDataNotLatest:                  "FILTER_DATA_NOT_LATEST",
	RespInvalidParameter:                     "INVALID_PARAMETER",
	RespTransactionShouldCommit:              "TRANSACTION_SHOULD_COMMIT",
	RespTransactionShouldRollback:            "TRANSACTION_SHOULD_ROLLBACK",
	RespTransactionStateUnknown:              "TRANSACTION_STATE_UNKNOW",
	RespTransactionStateGroupWrong:           "TRANSACTION_STATE_GROUP_WRONG",
	RespNoBuyerID:                            "NO_BUYER_ID",
	RespNotInCurrentUnit:                     "NOT_IN_CURRENT_UNIT",
	RespConsumerNotOnline:                    "CONSUMER_NOT_ONLINE",
	RespConsumeMsgTimeout:                    "CONSUME_MSG_TIMEOUT",
	RespNoMessage:                            "NO_MESSAGE",
	RespPollingFull:                          "POLLING_FULL",
	RespPollingTimeout:                       "POLLING_TIMEOUT",
	RespBrokerNotExist:                       "BROKER_NOT_EXIST",
	RespBrokerDispatchNotComplete:            "BROKER_DISPATCH_NOT_COMPLETE",
	RespBroadcastConsumption:                 "BROADCAST_CONSUMPTION",
	RespFlowControl:                          "FLOW_CONTROL",
	RespNotLeaderForQueue:                    "NOT_LEADER_FOR_QUEUE",
	RespIllegalOperation:                     "ILLEGAL_OPERATION",
	RespGoAway:                               "GO_AWAY",
	RespControllerFencedMasterEpoch:          "CONTROLLER_FENCED_MASTER_EPOCH",
	RespControllerFencedSyncStateSetEpoch:    "CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH",
	RespControllerInvalidMaster:              "CONTROLLER_INVALID_MASTER",
	RespControllerInvalidReplicas:            "CONTROLLER_INVALID_REPLICAS",
	RespControllerMasterNotAvailable:         "CONTROLLER_MASTER_NOT_AVAILABLE",
	RespControllerInvalidRequest:             "CONTROLLER_INVALID_REQUEST",
	RespControllerBrokerNotAlive:             "CONTROLLER_BROKER_NOT_ALIVE",
	RespControllerNotLeader:                  "CONTROLLER_NOT_LEADER",
	RespControllerBrokerMetadataNotExist:     "CONTROLLER_BROKER_METADATA_NOT_EXIST",
	RespControllerInvalidCleanBrokerMetadata: "CONTROLLER_INVALID_CLEAN_BROKER_METADATA",
	RespControllerBrokerNeedToBeRegistered:   "CONTROLLER_BROKER_NEED_TO_BE_REGISTERED",
	RespControllerMasterStillExist:           "CONTROLLER_MASTER_STILL_EXIST",
	RespControllerElectMasterFailed:          "CONTROLLER_ELECT_MASTER_FAILED",
	RespControllerAlterSyncStateSetFailed:    "CONTROLLER_ALTER_SYNC_STATE_SET_FAILED",
	RespControllerBrokerIDInvalid:            "CONTROLLER_BROKER_ID_INVALID",
	RespControllerJRaftInternalError:         "CONTROLLER_JRAFT_INTERNAL_ERROR",
	RespControllerBrokerLiveInfoNotExists:    "CONTROLLER_BROKER_LIVE_INFO_NOT_EXISTS",
	RespLMQQuotaExceeded:                     "LMQ_QUOTA_EXCEEDED",
	RespLiteSubscriptionQuotaExceeded:        "LITE_SUBSCRIPTION_QUOTA_EXCEEDED",
	RespUserNotExist:                         "USER_NOT_EXIST",
	RespPolicyNotExist:                       "POLICY_NOT_EXIST",
}

// ResponseName returns the name of a response code, for example
// "TOPIC_NOT_EXIST", or the number of an unknown one.
func ResponseName(code int32) string {
	if n, ok := responseNames[code]; ok {
		return n
	}
	return strconv.Itoa(int(code))
}
