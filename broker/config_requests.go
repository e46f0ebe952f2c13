package broker

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mqx/internal/fastjson"
	"mqx/internal/props"
	"mqx/internal/vfs"
	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store"
)

// liveKeys take effect at once when UPDATE_BROKER_CONFIG sets them, and so do
// those of store.IsLive; all others do so after a restart.
var liveKeys = map[string]bool{
	"slowRequestMillis": true, "logLevel": true,
	"replicationLevel": true, "inSyncReplicas": true, "minInSyncReplicas": true, "enableAutoInSyncReplicas": true, "allAckInSyncStateSet": true,
	"readUnCommitted": true, "totalReplicas": true, "slaveTimeout": true, "haMaxGapNotInSync": true, "haMaxTimeSlaveNotCatchup": true, "asyncReplicas": true,
	"semiSyncDegradeAfter": true, "semiSyncDegradeAlone": true, "semiSyncRearmAfter": true,
	"autoCreateTopicEnable": true, "autoCreateSubscriptionGroup": true, "enableCreateSysGroup": true,
	"brokerPermission": true, "traceOn": true, "regionId": true, "notifyConsumerIdsChangedEnable": true,
	"rejectPullConsumerEnable": true, "longPollingEnable": true, "shortPollingTimeMills": true,
	"litePullMessageEnable": true, "slaveReadEnable": true, "startAcceptSendRequestTimeStamp": true,
	"rejectTransactionMessage": true, "validateSystemTopicWhenUpdateTopic": true, "enableMixedMessageType": true,
	"enableSplitMetadata": true, "splitMetadataSize": true, "channelExpiredTimeout": true,
	"enableRegisterProducer": true, "namesrvAddr": true, "fetchNameSrvAddrByDnsLookup": true, "forceRegister": true,
	"registerNameServerPeriod": true, "registerBrokerTimeoutMills": true, "clearRetryTopicWhenDeleteTopic": true,
	"useServerSideResetOffset": true, "enableBroadcastOffsetStore": true, "broadcastOffsetExpireSecond": true, "broadcastOffsetExpireMaxSecond": true,
	"transactionTimeOut": true, "transactionCheckMax": true, "transactionCheckInterval": true, "transactionMetricFlushInterval": true,
	"transactionOpMsgMaxSize": true, "transactionOpBatchInterval": true, "storeReplyMessageEnable": true,
	"timerMaxDelaySec": true, "timerCongestNumEachSlot": true, "timerStopEnqueue": true,
	"timerStopDequeue": true, "timerFlushIntervalMs": true, "recallMessageEnable": true,
	"allowRecallWhenBrokerNotWriteable": true, "appendTopicForTimerDeleteKey": true,
	"enableNotifyBeforePopCalculateLag": true,
	"popPollingSize":                    true, "popPollingMapSize": true, "maxPopPollingSize": true, "popLongPollingForceNotifyInterval": true,
	"useMessageFilterForNotification": true, "maxMessageFilterNumForNotification": true,
	"enableNotifyAfterPopOrderLockRelease": true, "enablePopBatchAck": true, "enableRetryTopicV2": true,
	"retrieveMessageFromPopRetryTopicV1": true, "popFromRetryProbability": true, "popFromRetryProbabilityForPriority": true,
	"priorityOrderAsc": true, "useSeparateRetryQueue": true, "popResponseReturnActualRetryTopic": true,
	"initPopOffsetByCheckMsgInMem": true, "enablePopMessageThreshold": true, "popInflightMessageThreshold": true,
	"reviveInterval": true, "reviveScanTime": true, "skipWhenCKRePutReachMaxTimes": true, "serverLoadBalancerEnable": true,
	"loadBalancePollNameServerInterval": true, "defaultMessageRequestMode": true, "defaultPopShareQueueNum": true,
}

// blackListed reports whether a key must not be set from outside.
func (c *Config) blackListed(key string) bool {
	return key == "brokerConfigPath" || key == "configBlackList" || key == "rocketmqHome" || strings.HasPrefix(key, "tls.") ||
		slices.ContainsFunc(strings.Split(c.ConfigBlackList, ";"), func(k string) bool { return strings.TrimSpace(k) == key })
}

// handleGetConfig serves GET_BROKER_CONFIG.
func (b *Broker) handleGetConfig(r *server.Request) {
	b.configMu.Lock()
	version, saved := b.configMu.version, b.configMu.saved
	b.configMu.Unlock()
	v, err := fastjson.MarshalStandard(&version)
	if err != nil {
		r.Reply(remoting.RespSystemError, err.Error())
		return
	}
	p := newReply(remoting.RespSuccess, "")
	p.set(keyVersion, v)
	p.cmd.Body = saved.ValuesText()
	p.to(r)
}

// handleUpdateConfig serves UPDATE_BROKER_CONFIG: all keys are checked first,
// then put in force and written to the file the broker was started with, of
// which only they change.
func (b *Broker) handleUpdateConfig(r *server.Request) {
	f, err := props.Parse("request", r.Body)
	if err != nil {
		r.Reply(remoting.RespSystemError, err.Error())
		return
	}
	text, e := b.updateConfig(f.Entries(), r.Conn().Remote().String())
	if e != nil {
		r.Reply(e.Code, e.Text)
		return
	}
	r.Reply(remoting.RespSuccess, text)
}

// configFields are the keys of a configuration.
func configFields(c *Config) map[string]props.Field {
	fields := map[string]props.Field{}
	for _, fd := range props.Fields(c) {
		fields[fd.Key] = fd
	}
	return fields
}

// updateConfig applies entries and says what is active now and what after a
// restart: keys of the second kind are not in force before.
func (b *Broker) updateConfig(entries []props.Entry, peer string) (string, *refusedError) {
	b.configMu.Lock()
	defer b.configMu.Unlock()
	saved, force := *b.configMu.saved, *b.cfg()
	savedFields, forceFields := configFields(&saved), configFields(&force)
	var now, later []string
	for _, e := range entries {
		if saved.blackListed(e.Key) {
			return "", refuse(remoting.RespNoPermission, "Can not update config in black list.")
		}
		if ref := refusals.Find(e.Key, e.Value); ref != nil {
			return "", refuse(remoting.RespInvalidParameter, "%s=%s is not supported: %s", e.Key, e.Value, ref.Why)
		}
		fd, ok := savedFields[e.Key]
		if !ok {
			return "", refuseUnbound(e)
		}
		err := fd.Set(e.Value)
		if !liveKeys[e.Key] && !store.IsLive(e.Key) {
			later = append(later, e.Key)
		} else {
			now = append(now, e.Key)
			if err == nil {
				err = forceFields[e.Key].Set(e.Value)
			}
		}
		if err != nil {
			return "", refuse(remoting.RespInvalidParameter, "key %q: %v", e.Key, err)
		}
	}
	for _, c := range []*Config{&saved, &force} {
		if err := c.Validate(); err != nil {
			return "", refuse(remoting.RespInvalidParameter, "%v", err)
		}
	}
	where, err := b.saveConfig(&saved, entries)
	if err != nil {
		return "", refuse(remoting.RespSystemError, "nothing was changed: %v", err)
	}
	b.configMu.saved, force.loaded = &saved, saved.loaded
	if _, _, err := b.store.Reconfigure(force.Store); err != nil {
		return "", refuse(remoting.RespSystemError, "saved in %s, but not in force: %v", where, err)
	}
	b.putConfig(&force)
	b.ha.follow(&force)
	b.logAs(&force)
	b.configMu.version = b.configMu.version.NextVersion(b.now())
	b.log.Info("configuration changed", "active_now", now, "after_restart", later, "file", where, "peer", peer)
	if slices.Contains(now, "brokerPermission") {
		b.topics.Renew()
	}
	b.registrar.Everything()
	if slices.Contains(now, "namesrvAddr") || slices.Contains(now, "fetchNameSrvAddrByDnsLookup") {
		b.wakeNaming()
	}
	return updateText(now, later, where), nil
}

func refuseUnbound(e props.Entry) *refusedError {
	k, known := apacheKeys()[e.Key]
	if !known {
		return refuse(remoting.RespInvalidParameter, "unknown key %q%s", e.Key, nearest(e.Key))
	}
	return refuse(remoting.RespInvalidParameter, "%q has no effect on this broker: %s", e.Key, noEffectReasons[k.Reason])
}

func updateText(now, later []string, where string) string {
	var parts []string
	if len(now) > 0 {
		parts = append(parts, "active now: "+strings.Join(now, ", "))
	}
	if len(later) > 0 {
		parts = append(parts, "after restart: "+strings.Join(later, ", "))
	}
	if where == "" {
		where = "nowhere, since the broker was started without a configuration file"
	}
	return strings.Join(append(parts, "saved in "+where), "; ")
}

// saveConfig writes the entries into the configuration file, durably, leaving
// all other lines as they are.
func (b *Broker) saveConfig(c *Config, entries []props.Entry) (where string, err error) {
	if c.Source == "" {
		return "", nil
	}
	f, err := props.Load(c.Source)
	if err != nil {
		return "", err
	}
	set := map[string]bool{}
	for k := range c.loaded.Set {
		set[k] = true
	}
	for _, e := range entries {
		f.Set(e.Key, e.Value)
		set[e.Key] = true
		if e.Key == "namesrvAddr" {
			c.loaded.namesrv = e.Value
		}
	}
	c.loaded.Set = set
	path := c.Source
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // the link stays, the file it names changes
	}
	if err := vfs.WriteFileDurable(b.fsys, path, f.Bytes()); err != nil {
		return "", fmt.Errorf("cannot write configuration %q: %w", c.Source, err)
	}
	return c.Source, nil
}

// putConfig makes a configuration the one in force.
func (b *Broker) putConfig(c *Config) {
	b.config.Store(c)
	b.ownProps.Store(&brokerProps{region: c.RegionID, traceOn: fmt.Sprint(c.TraceOn), cluster: c.BrokerClusterName})
}

// cfg is the configuration in force. It must not be changed.
func (b *Broker) cfg() *Config { return b.config.Load() }

// own are the properties that the broker adds to messages.
func (b *Broker) own() *brokerProps { return b.ownProps.Load() }

func (b *Broker) registerSettings() registerSettings {
	c := b.cfg()
	return registerSettings{period: c.RegisterPeriod, timeout: c.RegisterTimeout, force: c.ForceRegister, permission: int32(c.BrokerPermission), epoch: b.role.Epoch(), acting: c.EnableSlaveActingMaster, notActive: c.NotActive}
}

func (b *Broker) groupRules() groupRules {
	c := b.cfg()
	return groupRules{AutoCreate: c.AutoCreateGroup, CreateSysGroup: c.CreateSystemGroup}
}

// now is the time of the broker's clock.
func (b *Broker) now() time.Time { return b.clock.Now() }
