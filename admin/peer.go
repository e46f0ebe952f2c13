package admin

import (
	"slices"

	"mqx/remoting"
)

// RoleContainer is a container of brokers: see RoleBroker.
const RoleContainer = "container"

// PeerError says which kind of server a request failed at that was not answered, or not in
// words: one that cannot be reached, hangs, or ends the connection. Its text is that of Err.
type PeerError struct {
	Role string // RoleBroker, RoleNameServer, RoleController, RoleContainer
	Addr string
	Err  error
}

// Error is the text of the cause.
func (e *PeerError) Error() string { return e.Err.Error() }

// Unwrap is the cause.
func (e *PeerError) Unwrap() error { return e.Err }

// roleAt is the kind of server that a request is for.
func (c *Client) roleAt(addr string, code int32) string {
	switch code {
	case remoting.ReqControllerGetMetadataInfo, remoting.ReqControllerGetSyncStateData, remoting.ReqControllerElectMaster, remoting.ReqCleanBrokerData,
		remoting.ReqGetControllerConfig, remoting.ReqUpdateControllerConfig:
		return RoleController
	case remoting.ReqAddBroker, remoting.ReqRemoveBroker:
		return RoleContainer
	}
	if slices.Contains(c.ns.All(), addr) {
		return RoleNameServer
	}
	return RoleBroker
}
