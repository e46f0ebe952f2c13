package remoting

// HARuntimeInfo is the answer to GET_BROKER_HA_STATUS.
type HARuntimeInfo struct {
	ClientRuntimeInfo        *HAClientRuntimeInfo      `json:"haClientRuntimeInfo"`
	ConnectionInfo           []HAConnectionRuntimeInfo `json:"haConnectionInfo"`
	InSyncSlaveNums          int32                     `json:"inSyncSlaveNums"`
	Master                   bool                      `json:"master"`
	MasterCommitLogMaxOffset int64                     `json:"masterCommitLogMaxOffset"`
	Mqx                      *HAInfo                   `json:"mqx,omitempty"` // of brokers of mqx only
}

// HAConnectionRuntimeInfo is one replica as its master sees it.
type HAConnectionRuntimeInfo struct {
	Addr                    string `json:"addr"`
	Diff                    int64  `json:"diff"`
	InSync                  bool   `json:"inSync"`
	SlaveAckOffset          int64  `json:"slaveAckOffset"`
	TransferFromWhere       int64  `json:"transferFromWhere"`
	TransferredByteInSecond int64  `json:"transferredByteInSecond"`
}

// Behind is what the replica lacks of its master's log, in bytes. It is not known of one that has not reported yet, which
// masters of Apache list with the position -1.
func (r *HAConnectionRuntimeInfo) Behind() (n int64, known bool) {
	if r.SlaveAckOffset < 0 || r.Diff < 0 {
		return 0, false
	}
	return r.Diff, true
}

// HAClientRuntimeInfo is a replica's view of its master. Times are ms.
type HAClientRuntimeInfo struct {
	LastReadTimestamp       int64  `json:"lastReadTimestamp"`
	LastWriteTimestamp      int64  `json:"lastWriteTimestamp"`
	MasterAddr              string `json:"masterAddr,omitempty"`
	MasterFlushOffset       int64  `json:"masterFlushOffset"`
	MaxOffset               int64  `json:"maxOffset"`
	TransferredByteInSecond int64  `json:"transferredByteInSecond"`
}

// EpochEntryCache is the answer to GET_BROKER_EPOCH_CACHE.
type EpochEntryCache struct {
	BrokerID    int64        `json:"brokerId"`
	BrokerName  string       `json:"brokerName"`
	ClusterName string       `json:"clusterName"`
	EpochList   []EpochEntry `json:"epochList"`
	MaxOffset   int64        `json:"maxOffset"`
}

// EpochEntry is the range of the log that one master wrote.
type EpochEntry struct {
	EndOffset   int64 `json:"endOffset"`
	Epoch       int32 `json:"epoch"`
	StartOffset int64 `json:"startOffset"`
}

// SyncStateSet holds the ids of the replicas that are in sync.
type SyncStateSet struct {
	SyncStateSet      []int64 `json:"syncStateSet"`
	SyncStateSetEpoch int32   `json:"syncStateSetEpoch"`
}

// ElectMasterBody is the answer to CONTROLLER_ELECT_MASTER.
type ElectMasterBody struct {
	BrokerMemberGroup *BrokerMemberGroup `json:"brokerMemberGroup"`
	SyncStateSet      []int64            `json:"syncStateSet"`
}

// BrokerReplicasInfo is the answer to CONTROLLER_GET_SYNC_STATE_DATA.
type BrokerReplicasInfo struct {
	ReplicasInfoTable map[string]ReplicasInfo `json:"replicasInfoTable"`
}

// ReplicasInfo is what the controller knows of one broker name.
type ReplicasInfo struct {
	InSyncReplicas    []ReplicaIdentity `json:"inSyncReplicas"`
	MasterAddress     string            `json:"masterAddress"`
	MasterBrokerID    int64             `json:"masterBrokerId"`
	MasterEpoch       int32             `json:"masterEpoch"`
	NotInSyncReplicas []ReplicaIdentity `json:"notInSyncReplicas"`
	SyncStateSetEpoch int32             `json:"syncStateSetEpoch"`
}

// ReplicaIdentity is one replica as the controller knows it.
type ReplicaIdentity struct {
	Alive         bool   `json:"alive"`
	BrokerAddress string `json:"brokerAddress"`
	BrokerID      int64  `json:"brokerId"`
	BrokerName    string `json:"brokerName"`
}
