package broker

import (
	"fmt"
	"path/filepath"

	"mqx/remoting"
	"mqx/remoting/server"
)

// Reasons why requests that an Apache 5.5.0 broker serves are refused here.
const (
	noRocksDB  = "stores and metadata in RocksDB are not served"
	noReplicas = "this part of replication is not served yet"
	noColdData = "control of cold reads is not served: they are read apart from writes and need no limit"
	noAuth     = "authentication and authorization are not served"
	noLite     = "lite topics are not served"
)

// refusedReasons say by request code why it is answered REQUEST_CODE_NOT_SUPPORTED.
var refusedReasons = map[int32]string{
	remoting.ReqCheckRocksDBCQWriteProgress: noRocksDB,
	remoting.ReqExportRocksDBConfigToJSON:   noRocksDB,
	remoting.ReqResetMasterFlushOffset:      noReplicas,
	remoting.ReqNotifyBrokerRoleChanged:     "controller mode is not served",
	remoting.ReqUpdateColdDataFlowCtrConfig: noColdData,
	remoting.ReqRemoveColdDataFlowCtrConfig: noColdData,
	remoting.ReqGetColdDataFlowCtrInfo:      noColdData,
	remoting.ReqSetCommitLogReadMode:        "the commit log is not read ahead by advice to the kernel",
	remoting.ReqAuthCreateUser:              noAuth,
	remoting.ReqAuthUpdateUser:              noAuth,
	remoting.ReqAuthDeleteUser:              noAuth,
	remoting.ReqAuthGetUser:                 noAuth,
	remoting.ReqAuthListUser:                noAuth,
	remoting.ReqAuthCreateACL:               noAuth,
	remoting.ReqAuthUpdateACL:               noAuth,
	remoting.ReqAuthDeleteACL:               noAuth,
	remoting.ReqAuthGetACL:                  noAuth,
	remoting.ReqAuthListACL:                 noAuth,
	remoting.ReqSwitchTimerEngine:           "timer messages are kept on the timer wheel only",
	remoting.ReqPopLiteMessage:              noLite,
	remoting.ReqLiteSubscriptionCtl:         noLite,
	remoting.ReqGetBrokerLiteInfo:           noLite,
	remoting.ReqGetParentTopicInfo:          noLite,
	remoting.ReqGetLiteTopicInfo:            noLite,
	remoting.ReqGetLiteClientInfo:           noLite,
	remoting.ReqGetLiteGroupInfo:            noLite,
	remoting.ReqTriggerLiteDispatch:         noLite,
}

// refuseWith answers every request of a code with why it is not served.
func refuseWith(why string) func(*server.Request) {
	return func(r *server.Request) {
		r.Reply(remoting.RespRequestCodeNotSupported, fmt.Sprintf(" request type %d not supported: %s", r.Code, why))
	}
}

// handlePopRollback serves POP_ROLLBACK, which brings pop records from RocksDB into the log. Here they are nowhere else; a
// RocksDB that another broker left in the store cannot be read.
func (b *Broker) handlePopRollback(r *server.Request) {
	dir := filepath.Join(b.cfg().Store.RootDir, "kvStore")
	if names, err := b.fsys.ReadDir(dir); err == nil && len(names) > 0 {
		r.Reply(remoting.RespSystemError, fmt.Sprintf("%s holds pop records in RocksDB, which cannot be read here; let the broker that wrote them roll back", dir))
		return
	}
	r.Reply(remoting.RespSuccess, "")
}
