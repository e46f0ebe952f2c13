package nameserver

import (
	"slices"
	"strings"

	"mqx/internal/props"
)

// refusals are the keys that stop the start: what they ask for changes replication,
// security or what clients get and is not served. Each row has a test.
var refusals = props.Refusals{
	{Key: "enableControllerInNamesrv", Promises: props.IsTrue, Why: "controllers are not served yet: no replica would take over"},
	{Key: "authenticationEnabled", Promises: props.IsTrue, Why: "authentication is not served yet: everybody could change routes"},
	{Key: "authorizationEnabled", Promises: props.IsTrue, Why: "authorization is not served yet: everybody could change routes"},
	{Key: "clusterTest", Promises: props.IsTrue, Why: "unknown topics are not asked from another environment: clients would not find them"},
}

// fileRules say what becomes of the keys that Config does not bind.
var fileRules = props.Rules{
	Refusals: refusals,
	Inert: func(key string) (props.Inert, bool) {
		k, ok := keysWithoutEffect[key]
		return props.Inert{Kind: k.kind, Default: k.value, Why: k.why}, ok
	},
}

// LoadConfig reads a namesrv.conf over the defaults, as it is. Errors name file and
// line: a malformed value is a *props.SyntaxError; a key that promises what is not
// served, unless allowUnsupported holds its name, is an *props.UnsupportedError (exit code
// 2). Keys without effect and unknown keys do not stop the start; Warnings reports them.
func LoadConfig(path string, allowUnsupported []string) (Config, error) {
	f, err := props.Load(path)
	if err != nil {
		return Config{}, err
	}
	return configFrom(f, allowUnsupported)
}

func configFrom(f *props.File, allowUnsupported []string) (Config, error) {
	c := DefaultConfig()
	c.Source, c.AllowUnsupported = f.Name, allowUnsupported
	var err error
	if c.loaded, err = fileRules.Bind(f, allowUnsupported, &c); err != nil {
		return Config{}, err
	}
	if c.TLS.ConfigFile != "" {
		if err := c.loadTLSFile(c.TLS.ConfigFile, false); err != nil {
			return Config{}, err
		}
	}
	c.EnableControllerInNamesrv = false
	c.ConfigStorePath = f.Name
	return c, nil
}

// LoadDefaultTLS reads Apache's default tls.properties when the machine has one and
// the configuration names none.
func (c *Config) LoadDefaultTLS() error {
	if c.TLS.ConfigFile != "" {
		return nil
	}
	return c.loadTLSFile(props.DefaultTLSFile, true)
}

func (c *Config) loadTLSFile(path string, optional bool) error {
	bound, err := c.loaded.BindFile(path, optional, "tls.client.", &c.TLS)
	if bound {
		c.TLS.ConfigFile = path
	}
	return err
}

// Locate puts file and line in front of the errors of Validate whose value came from the
// configuration file.
func (c *Config) Locate(err error) error { return c.loaded.Locate(err) }

// UnsupportedKeys are the keys that can stop the start, and that AllowUnsupported may hold.
func UnsupportedKeys() []string { return refusals.Keys() }

// Warnings are the lines the start prints about the configuration: unknown keys with
// their line, keys without effect and why, unsupported keys let through.
func (c *Config) Warnings() []string { return slices.Concat(c.loaded.Warnings, c.loaded.Remarks) }

// Values are all keys as GET_NAMESRV_CONFIG shows them: what is in force for the
// effective ones, what the file says or Apache's default for the others.
func (c *Config) Values() map[string]string {
	out := map[string]string{}
	for key, k := range keysWithoutEffect {
		if k.shown {
			out[key] = k.value
		}
	}
	for key, v := range c.loaded.Values {
		if keysWithoutEffect[key].shown {
			out[key] = v
		}
	}
	for _, f := range props.Fields(c) {
		if !strings.HasPrefix(f.Key, "tls.") { // Apache has them in another file; key passwords stay here
			out[f.Key] = f.String()
		}
	}
	for _, key := range [...]string{"kvConfigPath", "configStorePath"} {
		if p, err := expandHome(out[key]); err == nil {
			out[key] = p
		}
	}
	return out
}

// ValuesText is Values as sorted key=value lines.
func (c *Config) ValuesText() []byte { return props.Text(c.Values()) }

// keyWithoutEffect is a key that Apache's name server reads and that has no effect here.
type keyWithoutEffect struct {
	kind, value string // Java type and Apache's default
	why         string
	shown       bool // by GET_NAMESRV_CONFIG
}

var keysWithoutEffect = func() map[string]keyWithoutEffect {
	const (
		threads  = "does not apply: requests run on event loops (serverSelectorThreads) and the pools of their class"
		netty    = "concerns Netty"
		env      = "unknown topics are not asked from another environment"
		outgoing = "a name server opens no connections of its own but for notices to brokers"
		drain    = "requests in flight are always answered at a stop"
	)
	m := map[string]keyWithoutEffect{
		"productEnvName":                     {"String", "center", env, true},
		"clusterTest":                        {"boolean", "false", env, true},
		"serverWorkerThreads":                {"int", "8", threads, true},
		"serverCallbackExecutorThreads":      {"int", "0", threads, true},
		"serverOnewaySemaphoreValue":         {"int", "256", outgoing, true},
		"serverAsyncSemaphoreValue":          {"int", "64", outgoing, true},
		"writeBufferLowWaterMark":            {"int", "0", netty, true},
		"serverSocketBacklog":                {"int", "1024", netty, true},
		"serverNettyWorkerGroupEnable":       {"boolean", "true", netty, true},
		"serverPooledByteBufAllocatorEnable": {"boolean", "true", netty, true},
		"enableShutdownGracefully":           {"boolean", "false", drain, true},
		"useEpollNativeSelector":             {"boolean", "false", netty, true},
	}
	for key, kv := range map[string][2]string{
		"clientWorkerThreads": {"int", "4"}, "clientCallbackExecutorThreads": {"int", ""},
		"clientOnewaySemaphoreValue": {"int", "65535"}, "clientAsyncSemaphoreValue": {"int", "65535"},
		"connectTimeoutMillis": {"int", "3000"}, "channelNotActiveInterval": {"long", "60000"},
		"isScanAvailableNameSrv": {"boolean", "true"}, "clientChannelMaxIdleTimeSeconds": {"int", "120"},
		"clientSocketSndBufSize": {"int", "0"}, "clientSocketRcvBufSize": {"int", "0"},
		"clientPooledByteBufAllocatorEnable": {"boolean", "false"}, "clientCloseSocketIfTimeout": {"boolean", "true"},
		"useTLS": {"boolean", "false"}, "socksProxyConfig": {"String", "{}"},
		"disableCallbackExecutor": {"boolean", "false"}, "disableNettyWorkerGroup": {"boolean", "false"},
		"maxReconnectIntervalTimeSeconds": {"long", "60"}, "enableReconnectForGoAway": {"boolean", "true"},
	} {
		m[key] = keyWithoutEffect{kind: kv[0], value: kv[1], why: outgoing}
	}
	return m
}()
