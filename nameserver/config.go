package nameserver

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Config is the configuration of a name server. Fields with a `conf` tag are bound
// from a namesrv.conf by internal/props under that key; names and defaults are Apache's.
// Start from DefaultConfig: the zero value is not valid.
type Config struct {
	// RocketmqHome is accepted because Apache requires it; nothing is read from there.
	RocketmqHome string `conf:"rocketmqHome"`
	// KVConfigPath is the file of the key-value table. A leading "~/" is the home directory.
	KVConfigPath string `conf:"kvConfigPath"`
	// ConfigStorePath is written by UPDATE_NAMESRV_CONFIG when the server was started
	// without a configuration file.
	ConfigStorePath string `conf:"configStorePath"`
	// ProductEnvName belongs to ClusterTest.
	ProductEnvName string `conf:"productEnvName"`
	// ClusterTest would ask another environment for unknown topics; it has no effect here.
	ClusterTest bool `conf:"clusterTest"`
	// OrderMessageEnable puts the ORDER_TOPIC_CONFIG entry of a topic into its route.
	OrderMessageEnable bool `conf:"orderMessageEnable"`
	// ReturnOrderTopicConfigToBroker puts the whole ORDER_TOPIC_CONFIG namespace into
	// the answer to a registration.
	ReturnOrderTopicConfigToBroker bool `conf:"returnOrderTopicConfigToBroker"`
	// ClientRequestThreadPoolNums is the number of workers for route queries that cannot
	// be answered from the route cache on the event loop.
	ClientRequestThreadPoolNums int `conf:"clientRequestThreadPoolNums"`
	// DefaultThreadPoolNums is the number of workers for all other requests.
	DefaultThreadPoolNums int `conf:"defaultThreadPoolNums"`
	// ClientRequestThreadPoolQueueCapacity bounds waiting route queries.
	ClientRequestThreadPoolQueueCapacity int `conf:"clientRequestThreadPoolQueueCapacity"`
	// DefaultThreadPoolQueueCapacity bounds waiting requests of the default class.
	DefaultThreadPoolQueueCapacity int `conf:"defaultThreadPoolQueueCapacity"`
	// ScanNotActiveBrokerInterval is the time between liveness scans in ms; the first
	// scan comes after one interval.
	ScanNotActiveBrokerInterval int64 `conf:"scanNotActiveBrokerInterval"`
	// UnRegisterBrokerQueueCapacity bounds pending unregistrations.
	UnRegisterBrokerQueueCapacity int `conf:"unRegisterBrokerQueueCapacity"`
	// SupportActingMaster presents the smallest live id of a broker without a master as id 0.
	SupportActingMaster bool `conf:"supportActingMaster"`
	// EnableAllTopicList allows GET_ALL_TOPIC_LIST_FROM_NAMESERVER (206).
	EnableAllTopicList bool `conf:"enableAllTopicList"`
	// EnableTopicList allows the topic lists 224 and 311 to 313.
	EnableTopicList bool `conf:"enableTopicList"`
	// NotifyMinBrokerIDChanged sends NOTIFY_MIN_BROKER_ID_CHANGE (905) to brokers.
	NotifyMinBrokerIDChanged bool `conf:"notifyMinBrokerIdChanged"`
	// EnableControllerInNamesrv is not served: a configuration that sets it is refused.
	EnableControllerInNamesrv bool `conf:"enableControllerInNamesrv"`
	// NeedWaitForService refuses route queries for WaitSecondsForService after the start.
	NeedWaitForService bool `conf:"needWaitForService"`
	// WaitSecondsForService is that time in seconds.
	WaitSecondsForService int `conf:"waitSecondsForService"`
	// DeleteTopicWithBrokerRegistration removes topics that a full registration no longer has.
	DeleteTopicWithBrokerRegistration bool `conf:"deleteTopicWithBrokerRegistration"`
	// ConfigBlackList holds the ';'-separated keys that UPDATE_NAMESRV_CONFIG refuses.
	ConfigBlackList string `conf:"configBlackList"`

	// BindAddress is the address to listen on.
	BindAddress string `conf:"bindAddress"`
	// ListenPort is the port to listen on; 0 lets the system choose.
	ListenPort int `conf:"listenPort"`
	// ServerSelectorThreads is the number of event loops; 0 means one a core.
	ServerSelectorThreads int `conf:"serverSelectorThreads"`
	// ServerWorkerThreads does not apply: the event loops decode.
	ServerWorkerThreads int `conf:"serverWorkerThreads"`
	// ServerCallbackExecutorThreads does not apply.
	ServerCallbackExecutorThreads int `conf:"serverCallbackExecutorThreads"`
	// ServerChannelMaxIdleTimeSeconds closes a connection idle in both directions.
	ServerChannelMaxIdleTimeSeconds int `conf:"serverChannelMaxIdleTimeSeconds"`
	// WriteBufferHighWaterMark is the outbound budget of a connection in bytes; 0 keeps
	// the default of the network layer.
	WriteBufferHighWaterMark int `conf:"writeBufferHighWaterMark"`
	// EnableShutdownGracefully answers GO_AWAY to newer clients while draining.
	EnableShutdownGracefully bool `conf:"enableShutdownGracefully"`
	// ShutdownWaitTimeSeconds bounds draining.
	ShutdownWaitTimeSeconds int `conf:"shutdownWaitTimeSeconds"`
	// MaxConnections bounds open connections; 0 derives it from the descriptor limit.
	MaxConnections int `conf:"maxConnections"`
	// MaxConnectionsPerIP bounds connections of one address; 0 means no such limit.
	MaxConnectionsPerIP int `conf:"maxConnectionsPerIp"`

	// ConfigFile is the file this configuration was read from, empty without one.
	// UPDATE_NAMESRV_CONFIG writes changed keys there.
	ConfigFile string

	Logger *slog.Logger
}

// DefaultConfig is what Apache's name server uses without a configuration file.
func DefaultConfig() Config {
	return Config{
		RocketmqHome:                         os.Getenv("ROCKETMQ_HOME"),
		KVConfigPath:                         "~/namesrv/kvConfig.json",
		ConfigStorePath:                      "~/namesrv/namesrv.properties",
		ProductEnvName:                       "center",
		ReturnOrderTopicConfigToBroker:       true,
		ClientRequestThreadPoolNums:          8,
		DefaultThreadPoolNums:                16,
		ClientRequestThreadPoolQueueCapacity: 50000,
		DefaultThreadPoolQueueCapacity:       10000,
		ScanNotActiveBrokerInterval:          5000,
		UnRegisterBrokerQueueCapacity:        3000,
		EnableAllTopicList:                   true,
		EnableTopicList:                      true,
		WaitSecondsForService:                45,
		ConfigBlackList:                      "configBlackList;configStorePath;kvConfigPath",
		BindAddress:                          "0.0.0.0",
		ListenPort:                           9876,
		ServerWorkerThreads:                  8,
		ServerChannelMaxIdleTimeSeconds:      120,
		ShutdownWaitTimeSeconds:              30,
	}
}

// Validate reports every setting that is out of its range, one error a setting.
func (c *Config) Validate() error {
	var errs []error
	atLeast := func(key string, v, least int64) {
		if v < least {
			errs = append(errs, fmt.Errorf("cannot use %s=%d: must be at least %d", key, v, least))
		}
	}
	atLeast("clientRequestThreadPoolNums", int64(c.ClientRequestThreadPoolNums), 1)
	atLeast("defaultThreadPoolNums", int64(c.DefaultThreadPoolNums), 1)
	atLeast("clientRequestThreadPoolQueueCapacity", int64(c.ClientRequestThreadPoolQueueCapacity), 1)
	atLeast("defaultThreadPoolQueueCapacity", int64(c.DefaultThreadPoolQueueCapacity), 1)
	atLeast("scanNotActiveBrokerInterval", c.ScanNotActiveBrokerInterval, 100)
	atLeast("unRegisterBrokerQueueCapacity", int64(c.UnRegisterBrokerQueueCapacity), 1)
	atLeast("waitSecondsForService", int64(c.WaitSecondsForService), 0)
	atLeast("serverSelectorThreads", int64(c.ServerSelectorThreads), 0)
	atLeast("serverChannelMaxIdleTimeSeconds", int64(c.ServerChannelMaxIdleTimeSeconds), 1)
	atLeast("maxConnections", int64(c.MaxConnections), 0)
	atLeast("maxConnectionsPerIp", int64(c.MaxConnectionsPerIP), 0)
	if c.ListenPort < 0 || c.ListenPort > 65535 {
		errs = append(errs, fmt.Errorf("cannot use listenPort=%d: must be 0 to 65535", c.ListenPort))
	}
	if c.KVConfigPath == "" {
		errs = append(errs, errors.New("cannot use kvConfigPath: must not be empty"))
	}
	return errors.Join(errs...)
}

// ListenAddr is the address that Run listens on, as host:port.
func (c *Config) ListenAddr() string {
	return net.JoinHostPort(strings.Trim(c.BindAddress, "[]"), strconv.Itoa(c.ListenPort))
}

// SetListen takes an address of the --listen flag: host:port, :port or a bare port.
func (c *Config) SetListen(addr string) error {
	if _, err := strconv.Atoi(addr); err == nil {
		addr = ":" + addr
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("cannot use listen address %q: %w", addr, err)
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("cannot use listen address %q: port must be 0 to 65535", addr)
	}
	if host == "" {
		host = "0.0.0.0"
	}
	c.BindAddress, c.ListenPort = host, n
	return nil
}

// Explain says for the start line what the configuration asked for and has no effect,
// one sentence each.
func (c *Config) Explain() []string {
	var out []string
	def := DefaultConfig()
	if c.ClusterTest {
		out = append(out, "clusterTest=true has no effect: unknown topics are not asked from another environment")
	}
	if c.ServerWorkerThreads != def.ServerWorkerThreads {
		out = append(out, "serverWorkerThreads has no effect: event loops decode requests")
	}
	if c.ServerCallbackExecutorThreads != def.ServerCallbackExecutorThreads {
		out = append(out, "serverCallbackExecutorThreads has no effect: there is no callback pool")
	}
	return out
}

func (c *Config) scanInterval() time.Duration {
	return time.Duration(c.ScanNotActiveBrokerInterval) * time.Millisecond
}

// expandHome replaces a leading "~/" by the home directory.
func expandHome(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok {
		return path, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("cannot resolve path %q: %w", path, err)
	}
	return filepath.Join(home, rest), nil
}
