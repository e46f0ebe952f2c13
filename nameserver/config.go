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

	"mqx/internal/clock"
	"mqx/internal/props"
	"mqx/internal/vfs"
	"mqx/remoting"
	"mqx/remoting/server"
)

// Config is the configuration of a name server. The `conf` tags are the keys of
// Apache's namesrv.conf; names and defaults are Apache's where the comment does not
// say "ours". Start from DefaultConfig: the zero value is not valid.
type Config struct {
	// Clock, FS, Logger: nil means clock.System, vfs.OS and slog.Default().
	Clock  clock.Clock
	FS     vfs.FS
	Logger *slog.Logger
	// LogLevel is what the key logLevel sets; nil: that key has no effect.
	LogLevel *slog.LevelVar
	// Source is the file the configuration was read from, "" without one.
	// UPDATE_NAMESRV_CONFIG writes changed keys there.
	Source string
	// AllowUnsupported are the keys for which --allow-unsupported was given.
	AllowUnsupported []string

	Service
	Network
	Logging
	TLS TLS

	loaded props.Loaded
}

// Service is what the name server does.
type Service struct {
	// RocketmqHome is required by Apache; nothing is read from there.
	RocketmqHome string `conf:"rocketmqHome"`
	// KVConfigPath is the file of the key-value table. A leading "~/" is the home directory.
	KVConfigPath string `conf:"kvConfigPath"`
	// ConfigStorePath takes the keys that UPDATE_NAMESRV_CONFIG changes when there is
	// no Source.
	ConfigStorePath string `conf:"configStorePath"`
	// OrderMessageEnable puts the ORDER_TOPIC_CONFIG entry of a topic into its route.
	OrderMessageEnable bool `conf:"orderMessageEnable"`
	// ReturnOrderTopicConfigToBroker puts the namespace ORDER_TOPIC_CONFIG into the
	// answer to a registration.
	ReturnOrderTopicConfigToBroker bool `conf:"returnOrderTopicConfigToBroker"`
	// ClientRequestThreadPoolNums is the number of workers for route queries that the
	// event loop cannot answer from the cache, ClientRequestThreadPoolQueueCapacity
	// the number of such queries that may wait.
	ClientRequestThreadPoolNums          int `conf:"clientRequestThreadPoolNums"`
	ClientRequestThreadPoolQueueCapacity int `conf:"clientRequestThreadPoolQueueCapacity"`
	// DefaultThreadPoolNums and DefaultThreadPoolQueueCapacity are the same for all
	// other requests.
	DefaultThreadPoolNums          int `conf:"defaultThreadPoolNums"`
	DefaultThreadPoolQueueCapacity int `conf:"defaultThreadPoolQueueCapacity"`
	// ScanNotActiveBrokerInterval is the time between liveness scans; the first comes
	// after one interval.
	ScanNotActiveBrokerInterval time.Duration `conf:"scanNotActiveBrokerInterval,ms"`
	// UnRegisterBrokerQueueCapacity bounds waiting UNREGISTER_BROKER requests.
	UnRegisterBrokerQueueCapacity int `conf:"unRegisterBrokerQueueCapacity"`
	// SupportActingMaster presents the smallest live id of a broker without a master as id 0.
	SupportActingMaster bool `conf:"supportActingMaster"`
	// EnableAllTopicList allows GET_ALL_TOPIC_LIST_FROM_NAMESERVER (206).
	EnableAllTopicList bool `conf:"enableAllTopicList"`
	// EnableTopicList allows the topic lists 224 and 311 to 313.
	EnableTopicList bool `conf:"enableTopicList"`
	// NotifyMinBrokerIDChanged sends NOTIFY_MIN_BROKER_ID_CHANGE (905) to brokers.
	NotifyMinBrokerIDChanged bool `conf:"notifyMinBrokerIdChanged"`
	// EnableControllerInNamesrv is not served: a file that sets it stops the start.
	EnableControllerInNamesrv bool `conf:"enableControllerInNamesrv"`
	// NeedWaitForService refuses route queries for WaitForService after the start.
	NeedWaitForService bool          `conf:"needWaitForService"`
	WaitForService     time.Duration `conf:"waitSecondsForService,s"`
	// DeleteTopicWithBrokerRegistration removes topics that a registration no longer has.
	DeleteTopicWithBrokerRegistration bool `conf:"deleteTopicWithBrokerRegistration"`
	// ConfigBlackList are keys, ';' between them, that UPDATE_NAMESRV_CONFIG refuses.
	ConfigBlackList string `conf:"configBlackList"`
}

// Network is what the server is told.
type Network struct {
	// BindAddress and ListenPort are listened on; port 0 takes a free one.
	BindAddress string `conf:"bindAddress"`
	ListenPort  int    `conf:"listenPort"`
	// Loops is the number of event loops; 0 means the number of cores.
	Loops int `conf:"serverSelectorThreads"`
	// IdleTimeout closes a connection that was silent in both directions.
	IdleTimeout time.Duration `conf:"serverChannelMaxIdleTimeSeconds,s"`
	// MaxConnections and MaxConnectionsPerIP bound open connections (ours); 0 derives
	// them from the descriptor limit.
	MaxConnections      int `conf:"maxConnections"`
	MaxConnectionsPerIP int `conf:"maxConnectionsPerIp"`
	// SendBuffer and ReceiveBuffer are socket buffers in bytes; 0 leaves them to the system.
	SendBuffer    int `conf:"serverSocketSndBufSize"`
	ReceiveBuffer int `conf:"serverSocketRcvBufSize"`
	// OutboundSoft is the number of unsent bytes at which a connection counts as slow;
	// 0 means the default of remoting/server.
	OutboundSoft int64 `conf:"writeBufferHighWaterMark"`
	// SerializeType of headers that the server writes: JSON or ROCKETMQ (ours; Apache
	// has the system property rocketmq.serialize.type).
	SerializeType string `conf:"rocketmq.serialize.type"`
	// ShutdownWait bounds the time that requests in flight get at a stop.
	ShutdownWait time.Duration `conf:"shutdownWaitTimeSeconds,s"`
}

// Logging is what the name server says of itself, and when; both keys are of mqx.
type Logging struct {
	// SlowMillis is from how many ms on a request is logged with its stages; 0: none is.
	SlowMillis int64 `conf:"slowRequestMillis"`
	// Level is DEBUG, INFO, WARN or ERROR where it was set; "": as whoever starts the server decides.
	Level string `conf:"logLevel"`
}

// TLS are the keys of Apache's tls.properties; they are taken from namesrv.conf or
// from the file that tls.config.file names.
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
	Protocols      string `conf:"tls.protocols"`
	Ciphers        string `conf:"tls.ciphers"`
}

// DefaultConfig is what Apache's name server uses without a configuration file.
func DefaultConfig() Config {
	return Config{
		Service: Service{
			RocketmqHome:                   os.Getenv("ROCKETMQ_HOME"),
			KVConfigPath:                   "~/namesrv/kvConfig.json",
			ConfigStorePath:                "~/namesrv/namesrv.properties",
			ReturnOrderTopicConfigToBroker: true,
			ClientRequestThreadPoolNums:    8, ClientRequestThreadPoolQueueCapacity: 50_000,
			DefaultThreadPoolNums: 16, DefaultThreadPoolQueueCapacity: 10_000,
			ScanNotActiveBrokerInterval:   5 * time.Second,
			UnRegisterBrokerQueueCapacity: 3_000,
			EnableAllTopicList:            true,
			EnableTopicList:               true,
			WaitForService:                45 * time.Second,
			ConfigBlackList:               "configBlackList;configStorePath;kvConfigPath",
		},
		Network: Network{
			BindAddress: "0.0.0.0", ListenPort: 9876, IdleTimeout: 120 * time.Second,
			SerializeType: "JSON", ShutdownWait: 30 * time.Second,
		},
		Logging: Logging{SlowMillis: 1000},
		TLS:     TLS{Mode: "permissive", TestMode: true, NeedClientAuth: "none"},
	}
}

// Validate reports every value that the server cannot work with, joined. It does not
// look at the disk or the network.
func (c *Config) Validate() error {
	var errs []error
	bad := func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", key, fmt.Sprintf(format, args...)))
	}
	for _, f := range [...]struct {
		key      string
		v, least int64
	}{
		{"clientRequestThreadPoolNums", int64(c.ClientRequestThreadPoolNums), 1},
		{"clientRequestThreadPoolQueueCapacity", int64(c.ClientRequestThreadPoolQueueCapacity), 1},
		{"defaultThreadPoolNums", int64(c.DefaultThreadPoolNums), 1},
		{"defaultThreadPoolQueueCapacity", int64(c.DefaultThreadPoolQueueCapacity), 1},
		{"scanNotActiveBrokerInterval", c.ScanNotActiveBrokerInterval.Milliseconds(), 100},
		{"unRegisterBrokerQueueCapacity", int64(c.UnRegisterBrokerQueueCapacity), 1},
		{"waitSecondsForService", int64(c.WaitForService.Seconds()), 0},
		{"serverSelectorThreads", int64(c.Loops), 0},
		{"serverChannelMaxIdleTimeSeconds", int64(c.IdleTimeout.Seconds()), 1},
		{"serverSocketSndBufSize", int64(c.SendBuffer), 0},
		{"serverSocketRcvBufSize", int64(c.ReceiveBuffer), 0},
		{"writeBufferHighWaterMark", c.OutboundSoft, 0},
		{"shutdownWaitTimeSeconds", int64(c.ShutdownWait.Seconds()), 0},
		{"slowRequestMillis", c.SlowMillis, 0},
	} {
		if f.v < f.least {
			bad(f.key, "must be at least %d, got %d", f.least, f.v)
		}
	}
	if c.ListenPort < 0 || c.ListenPort > 65535 {
		bad("listenPort", "must be 0 to 65535, got %d", c.ListenPort)
	}
	if c.KVConfigPath == "" {
		bad("kvConfigPath", "must not be empty")
	}
	if c.Level != "" && new(slog.LevelVar).UnmarshalText([]byte(c.Level)) != nil {
		bad("logLevel", "must be DEBUG, INFO, WARN or ERROR, got %q", c.Level)
	}
	if _, err := c.serialize(); err != nil {
		errs = append(errs, err)
	}
	sc, err := c.serverConfig()
	if err == nil {
		err = sc.Validate()
	}
	if err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// ListenAddr is the address that Run listens on, as host:port.
func (c *Config) ListenAddr() string {
	return net.JoinHostPort(strings.Trim(c.BindAddress, "[]"), strconv.Itoa(c.ListenPort))
}

// SetListen takes an address of the --listen flag: host:port, :port or a bare port.
func (c *Config) SetListen(addr string) error {
	hostPort := addr
	if _, err := strconv.Atoi(addr); err == nil {
		hostPort = ":" + addr
	}
	host, port, err := net.SplitHostPort(hostPort)
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

func (c *Config) serialize() (remoting.Serialize, error) {
	switch strings.ToUpper(c.SerializeType) {
	case "", "JSON":
		return remoting.SerializeJSON, nil
	case "ROCKETMQ":
		return remoting.SerializeROCKETMQ, nil
	}
	return 0, fmt.Errorf("rocketmq.serialize.type: must be JSON or ROCKETMQ, got %q", c.SerializeType)
}

// serverConfig is the part of the configuration that remoting/server takes.
func (c *Config) serverConfig() (server.Config, error) {
	ser, err := c.serialize()
	if err != nil {
		return server.Config{}, err
	}
	return server.Config{
		Addr: c.ListenAddr(), Loops: c.Loops, IdleTimeout: c.IdleTimeout,
		MaxConnections: c.MaxConnections, MaxConnectionsPerIP: c.MaxConnectionsPerIP,
		SendBuffer: c.SendBuffer, ReceiveBuffer: c.ReceiveBuffer, OutboundSoft: c.OutboundSoft,
		Serialize: ser, Logger: c.Logger,
		TLS: c.serverTLS(),
	}, nil
}

func (c *Config) serverTLS() server.TLSConfig {
	return server.TLSConfig{
		Mode: server.TLSMode(c.TLS.Mode), TestMode: c.TLS.TestMode,
		CertPath: c.TLS.CertPath, KeyPath: c.TLS.KeyPath, KeyPassword: c.TLS.KeyPassword,
		TrustCertPath: c.TLS.TrustCertPath, AuthClient: c.TLS.AuthClient,
		ClientAuth: server.TLSClientAuth(c.TLS.NeedClientAuth),
		Protocols:  list(c.TLS.Protocols), Ciphers: list(c.TLS.Ciphers),
	}
}

func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ':' || r == ' ' })
}

func (c *Config) rules() rules {
	return rules{
		supportActingMaster: c.SupportActingMaster,
		replaceTopics:       c.DeleteTopicWithBrokerRegistration,
		notifyMinID:         c.NotifyMinBrokerIDChanged,
	}
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
