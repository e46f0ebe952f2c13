package admin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"mqx/internal/bundle"
	"mqx/internal/sorted"
	"mqx/remoting"
)

// Kinds of plans that change configurations.
const (
	kindBrokerConfig     = "broker-config"
	kindNameServerConfig = "nameserver-config"
	kindControllerConfig = "controller-config"
)

// When the value of a key is in force.
const (
	ActiveNow     = "now"
	ActiveRestart = "after restart"
)

// ConfigValue is the value of a key at a server.
type ConfigValue struct {
	Value string `json:"value" yaml:"value"`
	// Active is ActiveNow or ActiveRestart: what the server says of a change, else
	// what is known of the key on Apache's servers; "" where nobody knows.
	Active string `json:"active,omitempty" yaml:"active,omitempty"`
	// Saved is where the server says that it has written the value down.
	Saved string `json:"saved,omitempty" yaml:"saved,omitempty"`
}

// String is the value, and when it is in force.
func (v ConfigValue) String() string {
	var more []string
	switch v.Active {
	case ActiveNow:
		more = append(more, "active now")
	case ActiveRestart:
		more = append(more, "active after restart")
	}
	if v.Saved != "" {
		more = append(more, "saved in "+v.Saved)
	}
	text := v.Value
	if text == "" {
		text = `""`
	}
	if len(more) > 0 {
		text += " (" + strings.Join(more, ", ") + ")"
	}
	return text
}

var (
	brokerConfigCells     = configCells(kindBrokerConfig, remoting.ReqGetBrokerConfig, remoting.ReqUpdateBrokerConfig)
	nameServerConfigCells = configCells(kindNameServerConfig, remoting.ReqGetNamesrvConfig, remoting.ReqUpdateNamesrvConfig)
	controllerConfigCells = configCells(kindControllerConfig, remoting.ReqGetControllerConfig, remoting.ReqUpdateControllerConfig)
)

func configCells(kind string, get, update int32) *cellKind[ConfigValue] {
	return &cellKind[ConfigValue]{
		kind: kind, what: "key", lost: lostByRetention,
		hide: func(key string, v ConfigValue) (ConfigValue, bool) {
			secret := bundle.IsSecret(key, v.Value)
			if secret {
				v.Value = "(hidden)"
			}
			return v, secret
		},
		same:  func(a, b ConfigValue) bool { return a.Value == b.Value },
		carry: func(from, to *ConfigValue) { to.Active, to.Saved = from.Active, from.Saved },
		read: func(ctx context.Context, c *Client, at Broker, parts []string) (map[string]ConfigValue, error) {
			resp, err := c.ask(ctx, at.Addr, remoting.NewRequest(get, nil))
			if err != nil {
				return nil, err
			}
			values, out := propertyLines(resp.Body), map[string]ConfigValue{}
			for _, key := range parts {
				v, ok := values[key]
				if !ok {
					// A server leaves out what it does not know, and would take a value
					// for it without a word.
					return nil, &NotFoundError{Kind: "key", Name: key, Known: nearKeys(key, values)}
				}
				out[key] = ConfigValue{Value: v}
			}
			return out, nil
		},
		write: func(ctx context.Context, c *Client, w cellWrite[ConfigValue]) error {
			req := remoting.NewRequest(update, nil)
			req.Body = []byte(propertyLine(w.Part, w.Is.Value))
			resp, err := c.ask(ctx, w.At.Addr, req)
			if err != nil {
				return err
			}
			if active, saved, ok := readUpdateRemark(resp.Remark); ok {
				w.Is.Active, w.Is.Saved = active, saved
			}
			return nil
		},
		warn: func(key string, _, is *ConfigValue) string {
			switch {
			case is == nil || is.Active != "":
				return ""
			case kind == kindBrokerConfig && halfLive[strings.ToLower(key)] != "":
				return halfLive[strings.ToLower(key)]
			}
			return "the server does not say whether it is active now or after a restart"
		},
	}
}

// retentionKey is how long a broker keeps files, in hours.
const retentionKey = "fileReservedTime"

// lostByRetention tells what brokers would delete that groups have not read when they
// keep files for a shorter time.
func lostByRetention(ctx context.Context, c *Client, cells []cell[ConfigValue]) ([]Note, []TargetError) {
	hours := map[Broker]int{}
	var servers []Broker
	for _, x := range cells {
		if x.part != retentionKey || x.was == nil || x.is == nil {
			continue
		}
		was, err := strconv.Atoi(x.was.Value)
		is, err2 := strconv.Atoi(x.is.Value)
		if err == nil && err2 == nil && is < was {
			hours[x.at] = is
			servers = append(servers, x.at)
		}
	}
	var lost []string
	errs := c.each(servers, func(mu *sync.Mutex, b Broker) error {
		lines, err := c.unreadBefore(ctx, b, time.Now().Add(-time.Duration(hours[b])*time.Hour))
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		lost = append(lost, lines...)
		return nil
	})
	return noteLines(wordLost, lost), errs
}

// propertyLine is a line of a request that changes a configuration. Apache's servers
// read it as java.util.Properties does, mqx's as a configuration file: a backslash
// escapes.
func propertyLine(key, value string) string {
	return key + "=" + strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`).Replace(value) + "\n"
}

// readUpdateRemark reads what an mqx server says of a change: "active now: a; after
// restart: b; saved in FILE". Apache's servers say nothing.
func readUpdateRemark(remark string) (active, saved string, ok bool) {
	for part := range strings.SplitSeq(remark, "; ") {
		switch {
		case strings.HasPrefix(part, "active now: "):
			active, ok = ActiveNow, true
		case strings.HasPrefix(part, "after restart: "), strings.HasPrefix(part, "after a restart: "):
			active, ok = ActiveRestart, true
		case strings.HasPrefix(part, "saved in "):
			saved = strings.TrimPrefix(part, "saved in ")
		}
	}
	return active, saved, ok
}

// nearKeys are keys that look like one, for the error that it is not there.
func nearKeys(key string, values map[string]string) []string {
	low := strings.ToLower(key)
	var out []string
	for _, k := range slices.Sorted(maps.Keys(values)) {
		l := strings.ToLower(k)
		if l == low || len(low) > 3 && (strings.Contains(l, low) || strings.Contains(low, l) || strings.HasPrefix(l, low[:len(low)/2+1])) {
			out = append(out, k)
		}
	}
	sorted.Stably(out, func(a, b string) int { return cmp.Compare(distance(a, key), distance(b, key)) })
	return out[:min(len(out), maxKnown)]
}

// distance is how many letters differ, roughly: by length and common prefix.
func distance(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return max(len(a), len(b)) - n
}

// ConfigPlace says whose configuration is changed. One of its fields is set; of
// brokers, replicas too are changed when All is set.
type ConfigPlace struct {
	Brokers     *Target
	All         bool
	NameServers bool
	Controllers []string
}

// PlanConfig plans to set keys of the configuration of servers. Only these keys are
// changed. A key that a server does not have is a *NotFoundError in Missing.
func (c *Client) PlanConfig(ctx context.Context, at ConfigPlace, values map[string]string) (Plan, error) {
	keys := slices.Sorted(maps.Keys(values))
	kind, where, whose := brokerConfigCells, place{Masters: at.Brokers}, "brokers"
	switch {
	case at.NameServers:
		kind, where, whose = nameServerConfigCells, place{NameServers: true}, "name servers"
	case len(at.Controllers) > 0:
		kind, where, whose = controllerConfigCells, place{Addrs: at.Controllers}, "controllers"
	case at.Brokers == nil:
		return nil, fmt.Errorf("cannot plan a change of configuration: no server is named")
	case at.All:
		where = place{Brokers: at.Brokers}
	}
	object := strings.Join(keys, ",")
	return kind.plan(ctx, c, where, object, fmt.Sprintf("set %s of %s", strings.Join(keys, ", "), whose), wanted[ConfigValue]{
		parts: keys,
		make: func(_ Broker, key string, was *ConfigValue) (*ConfigValue, error) {
			return &ConfigValue{Value: values[key], Active: knownActive(kind.kind, key)}, nil
		},
	})
}

// knownActive is when a change of a key is in force on Apache's servers, "" where that
// is not known here. Servers of mqx say it themselves.
func knownActive(kind, key string) string {
	low := strings.ToLower(key)
	if kind == kindBrokerConfig && halfLive[low] != "" {
		return ""
	}
	for _, part := range restartParts {
		if strings.Contains(low, part) {
			return ActiveRestart
		}
	}
	if liveApacheKeys[key] {
		return ActiveNow
	}
	return ""
}

// halfLive are keys, in lower case, of which Apache's brokers read the new value at once in one place and when they
// start in another. (BrokerController.getBrokerAddr and registerBrokerAll, CommitLog.DefaultFlushManager, HookUtils.)
var halfLive = map[string]string{
	"brokername":        registersAtOnce,
	"brokerclustername": registersAtOnce,
	"brokerid":          registersAtOnce,
	"brokerip1":         registersAtOnce,
	"brokerip2":         registersAtOnce,
	"listenport":        "Apache's brokers register with it at once, and listen there after a restart: until then clients are led to where nobody answers",
	"halistenport":      "Apache's brokers register with it at once, and listen there after a restart: until then slaves are led to where nobody answers",
	"brokerrole":        "Apache's brokers take part of it at once (a slave takes no messages), and the rest after a restart",
	"flushdisktype":     "Apache's brokers that were started with ASYNC_FLUSH answer no send with SYNC_FLUSH until they are restarted",
}

const registersAtOnce = "Apache's brokers register under it at once, beside what they are registered as, and do the rest after a restart"

// restartParts are parts of the names, in lower case, of keys that Apache's servers
// read only when they start: sizes of pools and files, addresses, paths, names.
var restartParts = []string{
	"threadpoolnums", "threadnums", "queuecapacity", "storepath", "listenport", "mappedfilesize", "storetype", "enabledleger", "enablecontrollermode", "bindaddress", "selectorthread", "workerthread",
	"socketbacklog", "useepoll", "rocketmqhome", "configpath", "timerwheelenable", "transientstorepool", "metricsexporter",
	"aclenable", "authenticationenabled", "authorizationenabled", "enableconsumequeueext", "containerconfig", "peers", "controllertype",
	"timerprecision", "timerroll", "timerwheel", "maxhashslot", "maxindexnum", "kvconfig", "configstorepath",
	"scannotactivebrokerinterval", "clustertest", "usetls", "fetchnamesrvaddrbyaddressserver", "messageindexsafe",
}

// liveApacheNames are keys that Apache's brokers and name servers read each time.
const liveApacheNames = `
	accessMessageInMemoryMaxRatio autoCreateSubscriptionGroup autoCreateTopicEnable brokerFastFailureEnable brokerPermission cleanFileForciblyEnable
	commercialBaseCount compressedRegister deleteCommitLogFilesInterval deleteConsumeQueueFilesInterval deleteFileBatchMax
	deleteTopicWithBrokerRegistration deleteWhen destroyMapedFileIntervalForcibly disableConsumeIfConsumerReadSlowly diskFallRecorded diskMaxUsedSpaceRatio
	enableCreateSysGroup enableRetryTopicV2 enableSplitRegistration fileReservedTime filterDataCleanTimeSpan
	flushCommitLogLeastPages flushCommitLogThoroughInterval flushCommitLogTimed flushConsumeQueueLeastPages flushConsumeQueueThoroughInterval flushIntervalCommitLog
	flushIntervalConsumeQueue forceRegister litePullMessageEnable longPollingEnable maxMessageSize maxTransferBytesOnMessageInDisk
	maxTransferBytesOnMessageInMemory maxTransferCountOnMessageInDisk maxTransferCountOnMessageInMemory messageIndexEnable
	notifyConsumerIdsChangedEnable offsetCheckInSlave osPageCacheBusyTimeOutMills popPollingSize redeleteHangedFileInterval registerBrokerTimeoutMills
	rejectTransactionMessage shortPollingTimeMills slaveReadEnable startAcceptSendRequestTimeStamp storeReplyMessageEnable syncFlushTimeout traceOn
	transactionCheckInterval transactionCheckMax transactionTimeOut transferMsgByHeap validateSystemTopicWhenUpdateTopic waitTimeMillsInAckQueue
	waitTimeMillsInHeartbeatQueue waitTimeMillsInPullQueue waitTimeMillsInSendQueue waitTimeMillsInTransactionQueue warmMapedFileEnable
	enableAllTopicList enableTopicList orderMessageEnable returnOrderTopicConfigToBroker supportActingMaster
	notifyMinBrokerIdChanged enableElectUncleanMaster`

var liveApacheKeys = func() map[string]bool {
	out := map[string]bool{}
	for _, k := range strings.Fields(liveApacheNames) {
		out[k] = true
	}
	return out
}()
