package remoting

// AddBrokerHeader is the request header of ADD_BROKER (902).
type AddBrokerHeader struct {
	ConfigPath string `rmq:"configPath,omitempty"`
}

// RemoveBrokerHeader is the request header of REMOVE_BROKER (903).
type RemoveBrokerHeader struct {
	BrokerName        string `rmq:"brokerName,required"`
	BrokerClusterName string `rmq:"brokerClusterName,required"`
	BrokerID          int64  `rmq:"brokerId,required"`
}

// ExchangeBrokerHAInfoHeader is the request header of EXCHANGE_BROKER_HA_INFO (906).
type ExchangeBrokerHAInfoHeader struct {
	MasterHAAddress   string     `rmq:"masterHaAddress,omitempty"`
	MasterFlushOffset Opt[int64] `rmq:"masterFlushOffset"`
	MasterAddress     string     `rmq:"masterAddress,omitempty"`
}

// ExchangeBrokerHAInfoResponseHeader is the response header of EXCHANGE_BROKER_HA_INFO (906).
type ExchangeBrokerHAInfoResponseHeader struct {
	MasterHAAddress   string     `rmq:"masterHaAddress,omitempty"`
	MasterFlushOffset Opt[int64] `rmq:"masterFlushOffset"`
	MasterAddress     string     `rmq:"masterAddress,omitempty"`
}

// ResetMasterFlushOffsetHeader is the request header of RESET_MASTER_FLUSH_OFFSET (908).
type ResetMasterFlushOffsetHeader struct {
	MasterFlushOffset int64 `rmq:"masterFlushOffset,required"`
}

// ControllerAlterSyncStateSetHeader is the request header of
// CONTROLLER_ALTER_SYNC_STATE_SET (1001).
type ControllerAlterSyncStateSetHeader struct {
	BrokerName     string     `rmq:"brokerName,omitempty"`
	MasterBrokerID Opt[int64] `rmq:"masterBrokerId"`
	MasterEpoch    Opt[int32] `rmq:"masterEpoch"`
	InvokeTime     int64      `rmq:"invokeTime"`
}

// ControllerAlterSyncStateSetResponseHeader is the response header of
// CONTROLLER_ALTER_SYNC_STATE_SET (1001).
type ControllerAlterSyncStateSetResponseHeader struct {
	NewSyncStateSetEpoch int32 `rmq:"newSyncStateSetEpoch"`
}

// ControllerElectMasterHeader is the request header of CONTROLLER_ELECT_MASTER (1002).
type ControllerElectMasterHeader struct {
	ClusterName    string     `rmq:"clusterName,required"`
	BrokerName     string     `rmq:"brokerName,required"`
	BrokerID       int64      `rmq:"brokerId,required"`
	DesignateElect bool       `rmq:"designateElect,required"`
	InvokeTime     Opt[int64] `rmq:"invokeTime"`
}

// ControllerElectMasterResponseHeader is the response header of CONTROLLER_ELECT_MASTER (1002).
type ControllerElectMasterResponseHeader struct {
	MasterBrokerID    Opt[int64] `rmq:"masterBrokerId"`
	MasterAddress     string     `rmq:"masterAddress,omitempty"`
	MasterEpoch       Opt[int32] `rmq:"masterEpoch"`
	SyncStateSetEpoch Opt[int32] `rmq:"syncStateSetEpoch"`
}

// ControllerRegisterBrokerHeader is the request header of CONTROLLER_REGISTER_BROKER (1003).
type ControllerRegisterBrokerHeader struct {
	ClusterName   string     `rmq:"clusterName,omitempty"`
	BrokerName    string     `rmq:"brokerName,omitempty"`
	BrokerID      Opt[int64] `rmq:"brokerId"`
	BrokerAddress string     `rmq:"brokerAddress,omitempty"`
	InvokeTime    int64      `rmq:"invokeTime"`
}

// ControllerRegisterBrokerResponseHeader is the response header of
// CONTROLLER_REGISTER_BROKER (1003).
type ControllerRegisterBrokerResponseHeader struct {
	ClusterName       string     `rmq:"clusterName,omitempty"`
	BrokerName        string     `rmq:"brokerName,omitempty"`
	MasterBrokerID    Opt[int64] `rmq:"masterBrokerId"`
	MasterAddress     string     `rmq:"masterAddress,omitempty"`
	MasterEpoch       Opt[int32] `rmq:"masterEpoch"`
	SyncStateSetEpoch Opt[int32] `rmq:"syncStateSetEpoch"`
}

// ControllerGetReplicaInfoHeader is the request header of CONTROLLER_GET_REPLICA_INFO (1004).
type ControllerGetReplicaInfoHeader struct {
	BrokerName string `rmq:"brokerName,omitempty"`
}

// ControllerGetReplicaInfoResponseHeader is the response header of
// CONTROLLER_GET_REPLICA_INFO (1004).
type ControllerGetReplicaInfoResponseHeader struct {
	MasterBrokerID Opt[int64] `rmq:"masterBrokerId"`
	MasterAddress  string     `rmq:"masterAddress,omitempty"`
	MasterEpoch    Opt[int32] `rmq:"masterEpoch"`
}

// ControllerGetMetadataInfoResponseHeader is the response header of
// CONTROLLER_GET_METADATA_INFO (1005).
type ControllerGetMetadataInfoResponseHeader struct {
	Group                   string `rmq:"group,omitempty"`
	ControllerLeaderID      string `rmq:"controllerLeaderId,omitempty"`
	ControllerLeaderAddress string `rmq:"controllerLeaderAddress,omitempty"`
	IsLeader                bool   `rmq:"isLeader"`
	Peers                   string `rmq:"peers,omitempty"`
}

// NotifyBrokerRoleChangedHeader is the request header of NOTIFY_BROKER_ROLE_CHANGED (1008).
type NotifyBrokerRoleChangedHeader struct {
	MasterAddress     string     `rmq:"masterAddress,omitempty"`
	MasterEpoch       Opt[int32] `rmq:"masterEpoch"`
	SyncStateSetEpoch Opt[int32] `rmq:"syncStateSetEpoch"`
	MasterBrokerID    Opt[int64] `rmq:"masterBrokerId"`
}

// CleanBrokerDataHeader is the request header of CLEAN_BROKER_DATA (1011).
type CleanBrokerDataHeader struct {
	ClusterName                string `rmq:"clusterName,omitempty"`
	BrokerName                 string `rmq:"brokerName,required"`
	BrokerControllerIDsToClean string `rmq:"brokerControllerIdsToClean,omitempty"`
	IsCleanLivingBroker        bool   `rmq:"isCleanLivingBroker"`
	InvokeTime                 int64  `rmq:"invokeTime"`
}

// ControllerGetNextBrokerIDHeader is the request header of CONTROLLER_GET_NEXT_BROKER_ID (1012).
type ControllerGetNextBrokerIDHeader struct {
	ClusterName string `rmq:"clusterName,omitempty"`
	BrokerName  string `rmq:"brokerName,omitempty"`
}

// ControllerGetNextBrokerIDResponseHeader is the response header of
// CONTROLLER_GET_NEXT_BROKER_ID (1012).
type ControllerGetNextBrokerIDResponseHeader struct {
	ClusterName  string     `rmq:"clusterName,omitempty"`
	BrokerName   string     `rmq:"brokerName,omitempty"`
	NextBrokerID Opt[int64] `rmq:"nextBrokerId"`
}

// ControllerApplyBrokerIDHeader is the request header of CONTROLLER_APPLY_BROKER_ID (1013).
type ControllerApplyBrokerIDHeader struct {
	ClusterName       string     `rmq:"clusterName,omitempty"`
	BrokerName        string     `rmq:"brokerName,omitempty"`
	AppliedBrokerID   Opt[int64] `rmq:"appliedBrokerId"`
	RegisterCheckCode string     `rmq:"registerCheckCode,omitempty"`
}

// ControllerApplyBrokerIDResponseHeader is the response header of
// CONTROLLER_APPLY_BROKER_ID (1013).
type ControllerApplyBrokerIDResponseHeader struct {
	ClusterName string `rmq:"clusterName,omitempty"`
	BrokerName  string `rmq:"brokerName,omitempty"`
}

// BrokerCloseChannelRequestHeader is the request header of BROKER_CLOSE_CHANNEL_REQUEST (1014).
type BrokerCloseChannelRequestHeader struct {
	ClusterName string     `rmq:"clusterName,omitempty"`
	BrokerName  string     `rmq:"brokerName,omitempty"`
	BrokerID    Opt[int64] `rmq:"brokerId"`
}

// CheckNotActiveBrokerRequestHeader is the request header of
// CHECK_NOT_ACTIVE_BROKER_REQUEST (1015).
type CheckNotActiveBrokerRequestHeader struct {
	CheckTimeMillis Opt[int64] `rmq:"checkTimeMillis"`
}

// GetBrokerLiveInfoRequestHeader is the request header of GET_BROKER_LIVE_INFO_REQUEST (1016).
type GetBrokerLiveInfoRequestHeader struct {
	ClusterName string     `rmq:"clusterName,omitempty"`
	BrokerName  string     `rmq:"brokerName,omitempty"`
	BrokerID    Opt[int64] `rmq:"brokerId"`
}

// GetSyncStateDataRequestHeader is the request header of GET_SYNC_STATE_DATA_REQUEST (1017).
type GetSyncStateDataRequestHeader struct {
	InvokeTime Opt[int64] `rmq:"invokeTime"`
}

// RaftBrokerHeartBeatEventRequestHeader is the request header of
// RAFT_BROKER_HEART_BEAT_EVENT_REQUEST (1018).
type RaftBrokerHeartBeatEventRequestHeader struct {
	ClusterNameIdentityInfo string     `rmq:"clusterNameIdentityInfo,omitempty"`
	BrokerNameIdentityInfo  string     `rmq:"brokerNameIdentityInfo,omitempty"`
	BrokerIDIdentityInfo    Opt[int64] `rmq:"brokerIdIdentityInfo"`
	BrokerName              string     `rmq:"brokerName,omitempty"`
	BrokerAddr              string     `rmq:"brokerAddr,omitempty"`
	HeartbeatTimeoutMillis  Opt[int64] `rmq:"heartbeatTimeoutMillis"`
	BrokerID                Opt[int64] `rmq:"brokerId"`
	LastUpdateTimestamp     Opt[int64] `rmq:"lastUpdateTimestamp"`
	Epoch                   Opt[int32] `rmq:"epoch"`
	MaxOffset               Opt[int64] `rmq:"maxOffset"`
	ConfirmOffset           Opt[int64] `rmq:"confirmOffset"`
	ElectionPriority        Opt[int32] `rmq:"electionPriority"`
}
