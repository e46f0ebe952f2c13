package cmd

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/remoting"
)

func newMqadminHACmds(a *app) []*cobra.Command {
	return []*cobra.Command{newMqadminHAStatus(a), newMqadminGetSyncStateSet(a), newMqadminGetControllerMetaData(a)}
}

func newMqadminHAStatus(a *app) *cobra.Command {
	var cluster, broker string
	var interval intervalFlag
	return mqadminCmd(a, "haStatus", "Fetch ha runtime status data", "mqx admin ha status [BROKER]", false, []string{"clusterName|brokerAddr"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&cluster, "clusterName", "c", "", "which cluster")
			f.StringVarP(&broker, "brokerAddr", "b", "", "which broker")
			interval.add(f)
		},
		func(_ context.Context, c *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			return a.repeat(c, interval.every(), func(ctx context.Context) error {
				found, errs, err := client.HAStatuses(ctx, admin.Target{Cluster: cluster, Broker: broker}, false)
				if err != nil {
					return err
				}
				if err := allFailed(len(found), errs); err != nil {
					return err
				}
				for i := range found {
					write := a.mqadminSlave
					if found[i].Info.Master {
						write = a.mqadminMaster
					}
					if err := write(&found[i]); err != nil {
						return err
					}
				}
				return a.partial(targetProblems(errs))
			})
		})
}

func (a *app) mqadminMaster(s *admin.HAStatus) error {
	if err := a.printf("\n#MasterAddr\t%s\n#MasterCommitLogMaxOffset\t%d\n#SlaveNum\t%d\n#InSyncSlaveNum\t%d\n", s.Addr,
		s.Info.MasterCommitLogMaxOffset, len(s.Info.ConnectionInfo), s.Info.InSyncSlaveNums); err != nil {
		return err
	}
	if err := a.printf("%-32s  %-16s %16s %16s %16s %16s\n", "#SlaveAddr", "#SlaveAckOffset", "#Diff", "#TransferSpeed(KB/s)", "#Status", "#TransferFromWhere"); err != nil {
		return err
	}
	for _, r := range s.Info.ConnectionInfo {
		status := "Fall Behind"
		if r.InSync {
			status = "OK"
		}
		if err := a.printf("%-32s  %-16d %16d %16.2f %16s %16d\n", r.Addr, r.SlaveAckOffset, r.Diff, float64(r.TransferredByteInSecond)/1024, status, r.TransferFromWhere); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) mqadminSlave(s *admin.HAStatus) error {
	r := s.Info.ClientRuntimeInfo
	if r == nil {
		r = &remoting.HAClientRuntimeInfo{}
	}
	return a.printf("\n#MasterAddr\t%s\n#CommitLogMaxOffset\t%d\n#TransferSpeed(KB/s)\t%.2f\n#LastReadTime\t%s\n#LastWriteTime\t%s\n#MasterFlushOffset\t%d\n",
		r.MasterAddr, r.MaxOffset, float64(r.TransferredByteInSecond)/1024, commaTime(r.LastReadTimestamp, "-"), commaTime(r.LastWriteTimestamp, "-"), r.MasterFlushOffset)
}

func newMqadminGetSyncStateSet(a *app) *cobra.Command {
	var controllers, cluster, broker string
	var interval intervalFlag
	return mqadminCmd(a, "getSyncStateSet", "Fetch syncStateSet for target brokers", "mqx admin ha get [BROKER] --controller ADDRESS", false, []string{"controllerAddress", "brokerName|clusterName"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&controllers, "controllerAddress", "a", "", "address of controller")
			f.StringVarP(&broker, "brokerName", "b", "", "which broker to fetch")
			f.StringVarP(&cluster, "clusterName", "c", "", "which cluster")
			interval.add(f)
		},
		func(_ context.Context, c *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			return a.repeat(c, interval.every(), func(ctx context.Context) error {
				found, err := client.SyncStates(ctx, addressList(controllers), admin.Target{Cluster: cluster, Broker: broker})
				if err != nil {
					return err
				}
				for i := range found {
					if err := a.mqadminSyncState(&found[i]); err != nil {
						return err
					}
				}
				return nil
			})
		})
}

func (a *app) mqadminSyncState(s *admin.SyncState) error {
	if err := a.printf("\n#brokerName\t%s\n#MasterBrokerId\t%d\n#MasterAddr\t%s\n#MasterEpoch\t%d\n#SyncStateSetEpoch\t%d\n#SyncStateSetNums\t%d\n",
		s.BrokerName, s.MasterBrokerID, s.MasterAddress, s.MasterEpoch, s.SyncStateSetEpoch, len(s.InSyncReplicas)); err != nil {
		return err
	}
	for _, set := range []struct {
		word string
		list []remoting.ReplicaIdentity
	}{{"InSyncReplica", s.InSyncReplicas}, {"NotInSyncReplica", s.NotInSyncReplicas}} {
		for _, r := range set.list {
			if err := a.printf("\n%s:\tReplicaIdentity{brokerName='%s', brokerId=%d, brokerAddress='%s', alive=%t}\n", set.word, r.BrokerName, r.BrokerID, r.BrokerAddress, r.Alive); err != nil {
				return err
			}
		}
	}
	return nil
}

func newMqadminGetControllerMetaData(a *app) *cobra.Command {
	var controllers string
	return mqadminCmd(a, "getControllerMetaData", "Get controller cluster's metadata", "mqx admin controller get --controller ADDRESS", false, []string{"controllerAddress"},
		func(f *pflag.FlagSet) {
			f.StringVarP(&controllers, "controllerAddress", "a", "", "address of controller")
		},
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			found, errs := client.ControllerMetadata(ctx, addressList(controllers))
			if err := allFailed(len(found), errs); err != nil {
				return err
			}
			for i := range found {
				m := &found[i]
				if err := a.printf("\n#ControllerGroup\t%s\n#ControllerLeaderId\t%s\n#ControllerLeaderAddress\t%s", m.Group, m.ControllerLeaderID, m.ControllerLeaderAddress); err != nil {
					return err
				}
				for _, p := range m.PeerList() {
					if err := a.printf("\n#Peer:\t%s", p); err != nil {
						return err
					}
				}
				if err := a.printf("\n"); err != nil {
					return err
				}
			}
			return a.partial(targetProblems(errs))
		})
}
