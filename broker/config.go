package broker

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"mqx/internal/clock"
	"mqx/internal/props"
	"mqx/store"
)

// Config is everything a broker can be told. The `conf` tags are the keys of
// Apache's broker.conf (docs/compatibility.md lists all of them, with those
// that have no effect here); DefaultConfig holds Apache's defaults. Keys whose
// comment says "ours" do not exist in Apache.
type Config struct {
	// Clock, Logger: nil means clock.System and slog.Default().
	Clock  clock.Clock
	Logger *slog.Logger
	// LogLevel is what the key logLevel sets; nil: that key has no effect.
	LogLevel *slog.LevelVar
	// Source is the file the configuration was read from; UPDATE_BROKER_CONFIG
	// writes changes back to it. "" when there was none.
	Source string
	// Join is "" or JoinEmpty: how the broker comes into its cluster.
	Join string
	// AllowUnsupported are the keys for which --allow-unsupported was given.
	AllowUnsupported []string

	Identity
	Network
	Pools
	Topics
	Transactions
	Clients
	Filters
	Pop
	Timers
	Metrics
	Logging
	Replication
	Naming
	Outgoing
	TLS TLS
	// Store is the store's part.
	Store store.Config

	// loaded remembers what the file said that binds to nothing: shown by
	// GET_BROKER_CONFIG and in the start lines.
	loaded loadedKeys
}

// Identity says who the broker is and where it is found.
type Identity struct {
	// BrokerClusterName and BrokerName: the name defaults to the host name.
	BrokerClusterName string `conf:"brokerClusterName"`
	BrokerName        string `conf:"brokerName"`
	// BrokerID is 0 for a master, whatever is given, and above that for a slave.
	BrokerID int64 `conf:"brokerId"`
	// BrokerRole is ASYNC_MASTER or SYNC_MASTER (which waits for no replica).
	BrokerRole string `conf:"brokerRole"`
	// BrokerIP1 is the address advertised to clients and name servers; "" takes
	// the one of the route to the name server.
	BrokerIP1 string `conf:"brokerIP1"`
	// BrokerIP1From says where BrokerIP1 came from when it was not the
	// configuration file, as "--advertise"; the start line names it.
	BrokerIP1From string
	// BrokerIP2 is the address advertised for the HA port; "" means BrokerIP1.
	BrokerIP2 string `conf:"brokerIP2"`
	// HAListenPort is registered, not listened on; 0 or less means ListenPort+1.
	HAListenPort int `conf:"haListenPort"`
	// BrokerPermission masks the permissions of all topics at registration: 4 read, 2 write.
	BrokerPermission int `conf:"brokerPermission"`
	// RegionID is the property MSG_REGION of messages and of answers to sends.
	RegionID string `conf:"regionId"`
	// TraceOn is the property TRACE_ON of the same.
	TraceOn bool `conf:"traceOn"`
	// ConfigBlackList are keys, ';' between them, that UPDATE_BROKER_CONFIG refuses.
	ConfigBlackList string `conf:"configBlackList"`
}

// Network is what the two servers are told.
type Network struct {
	// BindAddress and ListenPort are the main port; the second (VIP) port is
	// ListenPort-2 on the same address. Port 0 takes two free ports.
	BindAddress string `conf:"bindAddress"`
	ListenPort  int    `conf:"listenPort"`
	// Loops is the number of event loops of each server; 0 means one for two cores.
	Loops int `conf:"serverSelectorThreads"`
	// IdleTimeout closes a connection that was silent in both directions.
	IdleTimeout time.Duration `conf:"serverChannelMaxIdleTimeSeconds,s"`
	// MaxConnections and MaxConnectionsPerIP bound both ports together (ours);
	// 0 takes the server's default.
	MaxConnections      int `conf:"maxConnections"`
	MaxConnectionsPerIP int `conf:"maxConnectionsPerIp"`
	// SendBuffer and ReceiveBuffer are SO_SNDBUF and SO_RCVBUF, 0 for the system's.
	SendBuffer    int `conf:"serverSocketSndBufSize"`
	ReceiveBuffer int `conf:"serverSocketRcvBufSize"`
	// WriteHigh is the number of unsent bytes of a connection from which on its
	// pulls wait; 0 takes the server's default.
	WriteHigh int `conf:"writeBufferHighWaterMark"`
	// SerializeType of headers that the broker writes: JSON or ROCKETMQ (ours;
	// Apache has the system property rocketmq.serialize.type).
	SerializeType string `conf:"rocketmq.serialize.type"`
	// ShutdownWait bounds the time that requests in flight get at a stop.
	ShutdownWait time.Duration `conf:"shutdownWaitTimeSeconds,s"`
}

// Pools are the workers of the request classes, the bounds of their queues and
// the longest time a request may wait there before it is answered SYSTEM_BUSY.
type Pools struct {
	FastFailure bool `conf:"brokerFastFailureEnable"`

	SendThreads      int           `conf:"sendMessageThreadPoolNums"`
	SendQueue        int           `conf:"sendThreadPoolQueueCapacity"`
	SendWait         time.Duration `conf:"waitTimeMillsInSendQueue,ms"`
	PullThreads      int           `conf:"pullMessageThreadPoolNums"`
	PullQueue        int           `conf:"pullThreadPoolQueueCapacity"`
	PullWait         time.Duration `conf:"waitTimeMillsInPullQueue,ms"`
	LitePullThreads  int           `conf:"litePullMessageThreadPoolNums"`
	LitePullQueue    int           `conf:"litePullThreadPoolQueueCapacity"`
	LitePullWait     time.Duration `conf:"waitTimeMillsInLitePullQueue,ms"`
	QueryThreads     int           `conf:"queryMessageThreadPoolNums"`
	QueryQueue       int           `conf:"queryThreadPoolQueueCapacity"`
	AdminThreads     int           `conf:"adminBrokerThreadPoolNums"`
	AdminQueue       int           `conf:"adminBrokerThreadPoolQueueCapacity"`
	AdminWait        time.Duration `conf:"waitTimeMillsInAdminBrokerQueue,ms"`
	ClientThreads    int           `conf:"clientManageThreadPoolNums"`
	ClientQueue      int           `conf:"clientManagerThreadPoolQueueCapacity"`
	HeartbeatThreads int           `conf:"heartbeatThreadPoolNums"`
	HeartbeatQueue   int           `conf:"heartbeatThreadPoolQueueCapacity"`
	HeartbeatWait    time.Duration `conf:"waitTimeMillsInHeartbeatQueue,ms"`

	EndTransactionThreads int           `conf:"endTransactionThreadPoolNums"`
	EndTransactionQueue   int           `conf:"endTransactionPoolQueueCapacity"`
	EndTransactionWait    time.Duration `conf:"waitTimeMillsInTransactionQueue,ms"`
	ReplyThreads          int           `conf:"processReplyMessageThreadPoolNums"`
	ReplyQueue            int           `conf:"replyThreadPoolQueueCapacity"`

	// StartAcceptSendAt refuses sends before this time (epoch ms).
	StartAcceptSendAt int64 `conf:"startAcceptSendRequestTimeStamp"`
}

// Topics are the rules for topics and messages.
type Topics struct {
	DefaultTopicQueueNums  int    `conf:"defaultTopicQueueNums"`
	AutoCreateTopic        bool   `conf:"autoCreateTopicEnable"`
	ClusterTopicEnable     bool   `conf:"clusterTopicEnable"`
	BrokerTopicEnable      bool   `conf:"brokerTopicEnable"`
	TraceTopicEnable       bool   `conf:"traceTopicEnable"`
	TraceTopicName         string `conf:"msgTraceTopicName"`
	ValidateSystemTopic    bool   `conf:"validateSystemTopicWhenUpdateTopic"`
	EnableMixedMessageType bool   `conf:"enableMixedMessageType"`
	SplitMetadata          bool   `conf:"enableSplitMetadata"`
	SplitMetadataSize      int    `conf:"splitMetadataSize"`
	RejectTransaction      bool   `conf:"rejectTransactionMessage"`
	ReviveQueueNum         int    `conf:"reviveQueueNum"`
	ClearPopRetryTopics    bool   `conf:"clearRetryTopicWhenDeleteTopic"`
}

// Transactions are the rules for half messages and their checks.
type Transactions struct {
	// TransactionTimeOut is the age from which on a producer is asked about a half message that does not say its own
	// (CHECK_IMMUNITY_TIME_IN_SECONDS).
	TransactionTimeOut time.Duration `conf:"transactionTimeOut,ms"`
	// TransactionCheckMax is how often a producer is asked before the half message is given up.
	TransactionCheckMax int `conf:"transactionCheckMax"`
	// TransactionCheckInterval is the time from one round of checks to the next.
	TransactionCheckInterval time.Duration `conf:"transactionCheckInterval,ms"`
	// TransactionOpMsgMaxSize (bytes of its body) and TransactionOpBatchInterval say when the ends that wait become an op message.
	TransactionOpMsgMaxSize    int           `conf:"transactionOpMsgMaxSize"`
	TransactionOpBatchInterval time.Duration `conf:"transactionOpBatchInterval,ms"`
	// TransactionMetricFlush is how long the file of open transactions may be behind.
	TransactionMetricFlush time.Duration `conf:"transactionMetricFlushInterval,ms"`
	// StoreReplyMessage stores replies of request-reply besides pushing them.
	StoreReplyMessage bool `conf:"storeReplyMessageEnable"`
}

// Clients are the rules for groups, sessions, pulls and offsets.
type Clients struct {
	AutoCreateGroup          bool          `conf:"autoCreateSubscriptionGroup"`
	CreateSystemGroup        bool          `conf:"enableCreateSysGroup"`
	RegisterProducer         bool          `conf:"enableRegisterProducer"`
	NotifyConsumerIDsChanged bool          `conf:"notifyConsumerIdsChangedEnable"`
	RejectPullConsumer       bool          `conf:"rejectPullConsumerEnable"`
	ChannelExpired           time.Duration `conf:"channelExpiredTimeout,ms"`
	LongPolling              bool          `conf:"longPollingEnable"`
	ShortPolling             time.Duration `conf:"shortPollingTimeMills,ms"`
	LitePull                 bool          `conf:"litePullMessageEnable"`
	SlaveRead                bool          `conf:"slaveReadEnable"`
	ServerSideReset          bool          `conf:"useServerSideResetOffset"`
	// BroadcastOffsets keeps the places of the clients of broadcast groups; BroadcastGone is how long those of a client that is
	// not connected count, BroadcastPatience those of one that is and does not pull.
	BroadcastOffsets    bool          `conf:"enableBroadcastOffsetStore"`
	BroadcastGone       time.Duration `conf:"broadcastOffsetExpireSecond,s"`
	BroadcastPatience   time.Duration `conf:"broadcastOffsetExpireMaxSecond,s"`
	FlushConsumerOffset time.Duration `conf:"flushConsumerOffsetInterval,ms"`
	OffsetVersionStep   int64         `conf:"consumerOffsetUpdateVersionStep"`
	FlushDelayOffset    time.Duration `conf:"flushDelayOffsetInterval,ms"`
	DelayVersionStep    int64         `conf:"delayOffsetUpdateVersionStep"`
	// ForwardTimeout bounds what is asked of other brokers for static topics.
	ForwardTimeout time.Duration `conf:"forwardTimeout,ms"`
	// MaxParkedPulls bounds the long polls held at one time (ours).
	MaxParkedPulls int `conf:"maxParkedPulls"`
}

// Timers is how messages wait for a time of their own, and what may cancel them.
type Timers struct {
	// TimerWheel serves timer messages; without it they are refused.
	TimerWheel bool `conf:"timerWheelEnable"`
	// TimerLogFileBytes is the size of a file of the timer log.
	TimerLogFileBytes int `conf:"mappedFileSizeTimerLog"`
	// TimerPrecisionMs is the width of a slot: 100, 200, 500 or 1000; other values become the next smaller one.
	TimerPrecisionMs int `conf:"timerPrecisionMs"`
	// TimerRollWindow is the number of slots ahead up to which a message waits in its own slot.
	TimerRollWindow int `conf:"timerRollWindowSlot"`
	// TimerMaxDelay is the longest delay.
	TimerMaxDelay time.Duration `conf:"timerMaxDelaySec,s"`
	// TimerCongest is the number of messages of a slot from which on some are refused, and all from twice that on.
	TimerCongest int `conf:"timerCongestNumEachSlot"`
	// TimerFlushEvery is the time between two rounds that make progress durable, while there is any.
	TimerFlushEvery time.Duration `conf:"timerFlushIntervalMs,ms"`
	// TimerSnapshots writes the wheel as snapshots, TimerSnapshotEvery apart.
	TimerSnapshots     bool          `conf:"timerWheelSnapshotFlush"`
	TimerSnapshotEvery time.Duration `conf:"timerWheelSnapshotIntervalMs,ms"`
	// TimerStopEnqueue and TimerStopDequeue pause taking messages up and delivering them.
	TimerStopEnqueue bool `conf:"timerStopEnqueue"`
	TimerStopDequeue bool `conf:"timerStopDequeue"`
	// AppendTopicForDeleteKey makes a message be cancelled by topic and key instead of the key alone.
	AppendTopicForDeleteKey bool `conf:"appendTopicForTimerDeleteKey"`
	// RecallMessage serves RECALL_MESSAGE, RecallUnwritable also while the broker takes no messages (brokerPermission).
	RecallMessage    bool `conf:"recallMessageEnable"`
	RecallUnwritable bool `conf:"allowRecallWhenBrokerNotWriteable"`
}

// Filters is what expressions over properties (SQL92) may do.
type Filters struct {
	// EnablePropertyFilter lets subscriptions be of type SQL92.
	EnablePropertyFilter bool `conf:"enablePropertyFilter"`
	// FilterSupportRetry judges an SQL92 subscription's retry topic by the expression of each message's own topic.
	FilterSupportRetry bool `conf:"filterSupportRetry"`
	// CalcFilterBitMap stores with every message which groups want it (with enableConsumeQueueExt).
	CalcFilterBitMap bool `conf:"enableCalcFilterBitMap"`
	// ExpectFilterGroups and BloomErrorPercent give the bit map its length.
	ExpectFilterGroups int `conf:"expectConsumerNumUseFilter"`
	BloomErrorPercent  int `conf:"maxErrorRateOfBloomFilter"`
	// FilterDataKept is how long the expressions of a group that is gone are remembered.
	FilterDataKept time.Duration `conf:"filterDataCleanTimeSpan,ms"`
}

// Outgoing is how the broker speaks to name servers.
type Outgoing struct {
	ConnectTimeout time.Duration `conf:"connectTimeoutMillis,ms"`
	UseTLS         bool          `conf:"useTLS"`
	// InnerCredentials sign outgoing requests: {"accessKey":…,"secretKey":…}.
	InnerCredentials string `conf:"innerClientAuthenticationCredentials"`
}

// Naming is how the broker meets its name servers.
type Naming struct {
	// NamesrvAddr lists name servers, ';' or ',' between them.
	NamesrvAddr string `conf:"namesrvAddr"`
	// DNSLookup resolves each name to all its addresses.
	DNSLookup bool `conf:"fetchNameSrvAddrByDnsLookup"`
	// ForceRegister registers every period; false asks QUERY_DATA_VERSION first.
	ForceRegister bool `conf:"forceRegister"`
	// RegisterPeriod is clamped to 10 s .. 60 s.
	RegisterPeriod    time.Duration `conf:"registerNameServerPeriod,ms"`
	RegisterTimeout   time.Duration `conf:"registerBrokerTimeoutMills,ms"`
	RefreshAddrPeriod time.Duration `conf:"updateNameServerAddrPeriod,ms"`
}

// TLS are the keys of Apache's tls.properties; they are taken from broker.conf
// or from the file that tls.config.file names.
type TLS struct {
	ConfigFile     string `conf:"tls.config.file"`
	Mode           string `conf:"tls.server.mode"`
	TestMode       bool   `conf:"tls.test.mode.enable"`
	NeedClientAuth string `conf:"tls.server.need.client.auth"`
	KeyPath        string `conf:"tls.server.keyPath"`
	KeyPassword    string `conf:"tls.server.keyPassword"`
	CertPath       string `conf:"tls.server.certPath"`
	AuthClient     bool   `conf:"tls.server.authClient"`
	TrustCertPath  string `conf:"tls.server.trustCertPath"`
	Ciphers        string `conf:"tls.ciphers"`
	Protocols      string `conf:"tls.protocols"`

	ClientEnable        bool   `conf:"tls.enable"`
	ClientKeyPath       string `conf:"tls.client.keyPath"`
	ClientKeyPassword   string `conf:"tls.client.keyPassword"`
	ClientCertPath      string `conf:"tls.client.certPath"`
	ClientAuthServer    bool   `conf:"tls.client.authServer"`
	ClientTrustCertPath string `conf:"tls.client.trustCertPath"`
}

// DefaultConfig returns Apache's defaults for this machine.
func DefaultConfig() Config {
	cpu := runtime.NumCPU()
	host, err := os.Hostname()
	if err != nil {
		host = "DEFAULT_BROKER"
	}
	sc := store.DefaultConfig()
	if home, err := os.UserHomeDir(); err == nil {
		sc.RootDir = filepath.Join(home, "store")
	}
	return Config{
		Identity: Identity{
			BrokerClusterName: "DefaultCluster", BrokerName: host, BrokerRole: "ASYNC_MASTER",
			BrokerPermission: permRead | permWrite, RegionID: "DefaultRegion", TraceOn: true,
			ConfigBlackList: "configBlackList;brokerConfigPath",
		},
		Network: Network{BindAddress: "0.0.0.0", ListenPort: 10911, IdleTimeout: 120 * time.Second, SerializeType: "JSON", ShutdownWait: 30 * time.Second},
		Pools: Pools{
			FastFailure: true,
			SendThreads: min(cpu, 4), SendQueue: 10_000, SendWait: 200 * time.Millisecond,
			PullThreads: 16 + 2*cpu, PullQueue: 100_000, PullWait: 5 * time.Second,
			LitePullThreads: 16 + 2*cpu, LitePullQueue: 100_000, LitePullWait: 5 * time.Second,
			QueryThreads: 8 + cpu, QueryQueue: 20_000,
			AdminThreads: 16, AdminQueue: 10_000, AdminWait: 5 * time.Second,
			ClientThreads: 32, ClientQueue: 1_000_000,
			HeartbeatThreads: min(32, cpu), HeartbeatQueue: 50_000, HeartbeatWait: 31 * time.Second,
			EndTransactionThreads: max(8+2*cpu, 4*min(cpu, 4)), EndTransactionQueue: 100_000, EndTransactionWait: 3 * time.Second,
			ReplyThreads: 16 + 2*cpu, ReplyQueue: 10_000,
		},
		Topics: Topics{
			DefaultTopicQueueNums: 8, AutoCreateTopic: true, ClusterTopicEnable: true, BrokerTopicEnable: true,
			TraceTopicName: "RMQ_SYS_TRACE_TOPIC", ValidateSystemTopic: true, SplitMetadata: true, SplitMetadataSize: 2000,
			ReviveQueueNum: 8, ClearPopRetryTopics: true,
		},
		Transactions: Transactions{
			TransactionTimeOut: 6 * time.Second, TransactionCheckMax: 15, TransactionCheckInterval: 30 * time.Second,
			TransactionOpMsgMaxSize: 4096, TransactionOpBatchInterval: 3 * time.Second, TransactionMetricFlush: 10 * time.Second, StoreReplyMessage: true,
		},
		Clients: Clients{
			AutoCreateGroup: true, CreateSystemGroup: true, RegisterProducer: true, NotifyConsumerIDsChanged: true,
			ChannelExpired: 120 * time.Second,
			LongPolling:    true, ShortPolling: time.Second, LitePull: true, ServerSideReset: true,
			BroadcastOffsets: true, BroadcastGone: 120 * time.Second, BroadcastPatience: 300 * time.Second,
			FlushConsumerOffset: 5 * time.Second, OffsetVersionStep: 500, FlushDelayOffset: 10 * time.Second, DelayVersionStep: 200, ForwardTimeout: 3 * time.Second, MaxParkedPulls: 100_000,
		},
		Filters: Filters{ExpectFilterGroups: 32, BloomErrorPercent: 20, FilterDataKept: 24 * time.Hour},
		Pop:     defaultPop(),
		Metrics: defaultMetrics(), Logging: defaultLogging(), Replication: defaultReplication(),
		Timers: Timers{
			TimerWheel: true, TimerLogFileBytes: 100 << 20, TimerPrecisionMs: 1000, TimerRollWindow: 172_800,
			TimerMaxDelay: 259_200 * time.Second, TimerCongest: math.MaxInt32, TimerFlushEvery: time.Second,
			TimerSnapshotEvery: 10 * time.Second, RecallUnwritable: true,
		},
		Naming: Naming{
			ForceRegister: true, RegisterPeriod: 30 * time.Second, RegisterTimeout: 24 * time.Second,
			RefreshAddrPeriod: 120 * time.Second,
		},
		Outgoing: Outgoing{ConnectTimeout: 3 * time.Second},
		TLS:      TLS{Mode: "permissive", TestMode: true, NeedClientAuth: "none"},
		Store:    sc,
	}
}

// Validate reports every value the broker cannot work with, joined. It does not
// look at the disk or the network.
func (c *Config) Validate() error {
	var errs []error
	bad := func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", key, fmt.Sprintf(format, args...)))
	}
	if c.BrokerName == "" || strings.ContainsAny(c.BrokerName, "/\\ \t") {
		bad("brokerName", "must be a name without blanks and slashes, got %q", c.BrokerName)
	}
	if c.BrokerClusterName == "" {
		bad("brokerClusterName", "must not be empty")
	}
	if c.ListenPort < 0 || c.ListenPort > 65535 || (c.ListenPort > 0 && c.ListenPort < 3) {
		bad("listenPort", "must be 0 or 3 to 65535 (the second port is two below), got %d", c.ListenPort)
	}
	if c.BrokerPermission < 0 || c.BrokerPermission > 7 {
		bad("brokerPermission", "must be a mask of 4 (read) and 2 (write), got %d", c.BrokerPermission)
	}
	if r := c.BrokerRole; r != "ASYNC_MASTER" && r != "SYNC_MASTER" && r != "SLAVE" {
		bad("brokerRole", "must be ASYNC_MASTER, SYNC_MASTER or SLAVE, got %q", r)
	}
	if c.isSlave() && c.BrokerID <= 0 {
		bad("brokerId", "must be above 0 for a SLAVE, got %d", c.BrokerID)
	}
	if _, err := parseServers(c.NamesrvAddr); err != nil {
		bad("namesrvAddr", "%v", err)
	}
	if c.NamesrvAddr == "" && props.IsTrue(c.loaded.Values[addressServerKey]) && !slices.Contains(c.AllowUnsupported, addressServerKey) {
		bad(addressServerKey, "name servers are not fetched from an address server: no client would find this broker; give namesrvAddr (--allow-unsupported %s starts without it)", addressServerKey)
	}
	if c.SerializeType != "JSON" && c.SerializeType != "ROCKETMQ" {
		bad("rocketmq.serialize.type", "must be JSON or ROCKETMQ, got %q", c.SerializeType)
	}
	c.validateReplication(bad)
	if err := c.Pop.validate(); err != nil {
		errs = append(errs, err)
	}
	if !validLevel(c.Logging.Level) {
		bad("logLevel", "must be DEBUG, INFO, WARN or ERROR, got %q", c.Logging.Level)
	}
	for _, p := range append(append(append(c.positives(), c.Pop.positives()...), c.Replication.positives()...), bound{"metricsOtelCardinalityLimit", int64(c.MetricsMaxSeries), 1}, bound{"slowRequestMillis", c.SlowMillis, 0}) {
		if p.value < p.least {
			bad(p.key, "must be at least %d, got %d", p.least, p.value)
		}
	}
	if _, err := c.bloom(); err != nil {
		bad("expectConsumerNumUseFilter, maxErrorRateOfBloomFilter", "%v", err)
	}
	if err := c.Store.Validate(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

type bound struct {
	key          string
	value, least int64
}

func (c *Config) positives() []bound {
	p := &c.Pools
	return []bound{
		{"sendMessageThreadPoolNums", int64(p.SendThreads), 1},
		{"sendThreadPoolQueueCapacity", int64(p.SendQueue), 1},
		{"pullMessageThreadPoolNums", int64(p.PullThreads), 1},
		{"pullThreadPoolQueueCapacity", int64(p.PullQueue), 1},
		{"litePullMessageThreadPoolNums", int64(p.LitePullThreads), 1},
		{"litePullThreadPoolQueueCapacity", int64(p.LitePullQueue), 1},
		{"queryMessageThreadPoolNums", int64(p.QueryThreads), 1},
		{"queryThreadPoolQueueCapacity", int64(p.QueryQueue), 1},
		{"adminBrokerThreadPoolNums", int64(p.AdminThreads), 1},
		{"adminBrokerThreadPoolQueueCapacity", int64(p.AdminQueue), 1},
		{"clientManageThreadPoolNums", int64(p.ClientThreads), 1},
		{"clientManagerThreadPoolQueueCapacity", int64(p.ClientQueue), 1},
		{"heartbeatThreadPoolNums", int64(p.HeartbeatThreads), 1},
		{"heartbeatThreadPoolQueueCapacity", int64(p.HeartbeatQueue), 1},
		{"endTransactionThreadPoolNums", int64(p.EndTransactionThreads), 1},
		{"endTransactionPoolQueueCapacity", int64(p.EndTransactionQueue), 1},
		{"processReplyMessageThreadPoolNums", int64(p.ReplyThreads), 1},
		{"replyThreadPoolQueueCapacity", int64(p.ReplyQueue), 1},
		{"transactionCheckInterval", int64(c.TransactionCheckInterval), 1},
		{"transactionOpMsgMaxSize", int64(c.TransactionOpMsgMaxSize), 1},
		{"transactionOpBatchInterval", int64(c.TransactionOpBatchInterval), 0},
		{"transactionMetricFlushInterval", int64(c.TransactionMetricFlush), 1},
		{"defaultTopicQueueNums", int64(c.DefaultTopicQueueNums), 1},
		{"splitMetadataSize", int64(c.SplitMetadataSize), 1},
		{"channelExpiredTimeout", int64(c.ChannelExpired), 1},
		{"flushConsumerOffsetInterval", int64(c.FlushConsumerOffset), 1},
		{"flushDelayOffsetInterval", int64(c.FlushDelayOffset), 1},
		{"maxParkedPulls", int64(c.MaxParkedPulls), 1},
		{"forwardTimeout", int64(c.ForwardTimeout), 1},
		{"registerBrokerTimeoutMills", int64(c.RegisterTimeout), 1},
		{"reviveQueueNum", int64(c.ReviveQueueNum), 1},
	}
}
