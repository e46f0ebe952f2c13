package broker

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"

	"mqx/internal/props"
)

// keysText is the table of all keys that an Apache 5.5.0 broker reads from
// broker.conf, one a line: origin, key, type, default, and why the key has no
// effect here ("-" when it has: it is bound by a `conf` tag).
//
//go:embed keys.txt
var keysText string

// apacheKey is one row of that table.
type apacheKey struct {
	Origin  string // broker, store, server, client, auth
	Key     string
	Type    string // int, long, boolean, double, String
	Default string
	Reason  string // key of noEffectReasons, "" when the key is effective
}

var apacheKeys = sync.OnceValue(func() map[string]apacheKey {
	m := map[string]apacheKey{}
	for line := range strings.Lines(keysText) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		k := apacheKey{Origin: f[0], Key: f[1], Type: f[2], Default: f[3], Reason: f[4]}
		if k.Reason == "-" {
			k.Reason = ""
		}
		m[k.Key] = k
	}
	return m
})

// noEffectReasons say why a key that Apache knows has no effect here.
var noEffectReasons = map[string]string{
	"acting":       "queues are locked at one broker, and what an acting master has is sent to no other group",
	"aclv1":        "access control is not served yet",
	"addrserver":   "name servers are not fetched from an address server; give namesrvAddr, without which this key stops the start",
	"auth":         "authentication and authorization are not served yet",
	"cold":         "control of cold reads is not served",
	"compaction":   "compaction topics are not served",
	"container":    "there is no broker container",
	"controller":   "controller mode is not served yet",
	"cqext":        "the length of bit maps follows from expectConsumerNumUseFilter and maxErrorRateOfBloomFilter",
	"delay":        "delayed messages are always delivered in batches here, and a failed one is tried again until it is stored",
	"dledger":      "the DLedger commit log is not served",
	"flow":         "requests take another path here and need no such setting",
	"graceful":     "a stop always answers what is in flight and GO_AWAY to what comes, for as long as that takes",
	"ha":           "a slave compares its last record with its master's, whatever its size, and needs no such bound",
	"inline":       "does not apply: these requests are answered on the event loops",
	"compensation": "subscriptions that only pull requests carry are not kept",
	"jvm":          "concerns the Java process",
	"lite":         "lite topics are not served",
	"log":          "the log is written, mapped and cleaned in another way here",
	"metrics":      "metrics are served in Prometheus' form only, counted from the start on",
	"netty":        "concerns Netty",
	"nettythreads": "does not apply: requests run on event loops (serverSelectorThreads) and the pools of their class",
	"notify":       "members are always told at once",
	"offsetclean":  "offsets of a deleted topic go with the topic",
	"plugin":       "store plug-ins are Java classes",
	"popway":       "pop consumption works in another way here and needs no such setting",
	"proxy":        "outgoing connections through a SOCKS proxy are not served",
	"readonly":     "further commit log directories are not served",
	"recovery":     "recovery always covers what this asks for",
	"register":     "every registration carries the whole table or the changed topics, uncompressed",
	"rocksdb":      "RocksDB stores are not served",
	"self":         "set by the start itself",
	"slow":         "slow groups are not switched off",
	"staticsub":    "subscriptions come from the clients",
	"stats":        "statistics are kept in another way here",
	"timer":        "the counts of timer messages need no nightly check, and their progress is in the runtime information",
	"timererrors":  "a timer message that is broken is always passed over, and one that cannot be stored is always tried again",
	"timerthreads": "does not apply: timer messages are worked on in batches by one worker",
	"trans":        "half messages are kept in topics, not in RocksDB",
	"unused":       "Apache does not use it either",
}

func notEmpty(v string) bool { return strings.TrimSpace(v) != "" }
func aboveZero(v string) bool {
	n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
	return err == nil && n > 0
}

func notNoMap(v string) bool   { v = strings.Join(strings.Fields(v), ""); return v != "" && v != "{}" }
func isSeveral(v string) bool  { return strings.Contains(v, ",") }
func notV1(v string) bool      { v = strings.TrimSpace(v); return v != "" && v != "v1" }
func notDefault(v string) bool { v = strings.TrimSpace(v); return v != "" && v != "default" }

// addressServerKey stops the start when name servers are given in no other way.
const addressServerKey = "fetchNamesrvAddrByAddressServer"

// refusals is the list: keys that change durability, replication, security, where data lies or what clients get. Each row has a test.
var refusals = props.Refusals{
	{Key: "duplicationEnable", Promises: props.IsTrue, Why: "duplication between masters is not served"},
	{Key: "enableControllerMode", Promises: props.IsTrue, Why: "controller mode is not served yet: no replica would take over"},
	{Key: "enableDLegerCommitLog", Promises: props.IsTrue, Why: "the DLedger commit log is not served: there would be one copy"},
	{Key: "syncMasterFlushOffsetWhenStartup", Promises: props.IsTrue, Why: "the flushed position of the master is not kept at a slave, which compares its log with the master's instead"},
	{Key: "enableRemoteEscape", Promises: props.IsTrue, Why: "acting masters serve reads here: what is delayed, transactions and pops are not sent to another group, they wait for the master"},
	{Key: "lockInStrictMode", Promises: props.IsTrue, Why: "queues are locked at one broker: a replica that takes over would know of no lock"},
	{Key: "disableConsumeIfConsumerReadSlowly", Promises: props.IsTrue, Why: "groups that fall behind are not switched off: they would go on"},
	{Key: "socksProxyConfig", Promises: notNoMap, Why: "connections are made directly: what is behind the SOCKS proxy would not be reached"},
	{Key: "disappearTimeAfterStart", Promises: aboveZero, Why: "a broker registers as soon as it serves: clients would find it at once"},
	{Key: "aclEnable", Promises: props.IsTrue, Why: "access control is not served yet: everybody could read and write"},
	{Key: "authenticationEnabled", Promises: props.IsTrue, Why: "authentication is not served yet: everybody could read and write"},
	{Key: "authorizationEnabled", Promises: props.IsTrue, Why: "authorization is not served yet: everybody could read and write"},
	{Key: "migrateAuthFromV1Enabled", Promises: props.IsTrue, Why: "access control is not served yet: everybody could read and write"},
	{Key: "metricsExporterType", Promises: isPushed, Why: "metrics are served to who scrapes them (PROM), not pushed or logged: nobody would get them"},
	{Key: "storeType", Promises: notDefault, Why: "this store type is not served: its messages would not be found"},
	{Key: "configManagerVersion", Promises: notV1, Why: "metadata in RocksDB are not served: topics, groups and offsets would not be found"},
	{Key: "useSingleRocksDBForAllConfigs", Promises: props.IsTrue, Why: "metadata in RocksDB are not served: topics, groups and offsets would not be found"},
	{Key: "messageStorePlugIn", Promises: notEmpty, Why: "store plug-ins are Java classes: messages would bypass them"},
	{Key: "storePathCommitLog", Promises: isSeveral, Why: "several commit log directories are not served: messages in the others would not be found"},
	{Key: "readOnlyCommitLogStorePaths", Promises: notEmpty, Why: "further commit log directories are not served: messages in them would not be found"},
	{Key: "rocksdbCQDoubleWriteEnable", Promises: props.IsTrue, Why: "RocksDB consume queues are not served: they would fall behind"},
	{Key: "transRocksDBEnable", Promises: props.IsTrue, Why: "RocksDB stores are not served: half messages would not be found"},
	{Key: "timerRocksDBEnable", Promises: props.IsTrue, Why: "RocksDB stores are not served: timer messages would not be found"},
	{Key: "indexRocksDBEnable", Promises: props.IsTrue, Why: "RocksDB stores are not served: the index would not be found"},
	{Key: "popConsumerKVServiceInit", Promises: props.IsTrue, Why: "RocksDB stores are not served: pop records would not be found"},
	{Key: "popConsumerKVServiceEnable", Promises: props.IsTrue, Why: "RocksDB stores are not served: pop records would not be found"},
}
