package nameserver

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"mqx/internal/props"
)

// loadedKeys is what the configuration file said beyond the bound fields.
type loadedKeys struct {
	noEffect []props.Entry // keys of Apache without effect here, at another value than Apache's default
	allowed  []props.Entry // unsupported keys that --allow-unsupported let through
	unknown  []props.Entry
	odd      []string
	values   map[string]string // of keys that bind to nothing but that Apache shows
}

// UnsupportedError is a configuration that promises what is not served. Its exit code
// is that of wrong usage.
type UnsupportedError struct {
	File string
	Line int // 0 when the value did not come from a file
	Key  string
	Val  string
	Why  string
}

// Error names file, line, key and reason.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s: %s (--allow-unsupported %s starts without it)", e.What(), e.Why, e.Key)
}

// What names the key, its value and where it stands.
func (e *UnsupportedError) What() string {
	at := ""
	switch {
	case e.Line > 0:
		at = fmt.Sprintf("%s:%d: ", e.File, e.Line)
	case e.File != "":
		at = e.File + ": "
	}
	return fmt.Sprintf("%s%s=%s is not supported", at, e.Key, e.Val)
}

// refusal is a key that stops the start: what it asks for changes replication or
// security and is not served. Each row has a test.
type refusal struct {
	key      string
	promises func(value string) bool
	why      string
}

func isTrue(v string) bool { return strings.EqualFold(strings.TrimSpace(v), "true") }

var refusals = []refusal{
	{"enableControllerInNamesrv", isTrue, "controllers are not served yet: no replica would take over"},
	{"authenticationEnabled", isTrue, "authentication is not served yet: everybody could change routes"},
	{"authorizationEnabled", isTrue, "authorization is not served yet: everybody could change routes"},
}

// LoadConfig reads a namesrv.conf over the defaults, as it is. Errors name file and
// line: a malformed value is a *props.SyntaxError; a key that promises what is not
// served, unless allowUnsupported holds its name, is an *UnsupportedError (exit code
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
	unbound, err := props.Bind(f, &c)
	if err != nil {
		return Config{}, err
	}
	if err := c.loaded.sort(f, unbound, allowUnsupported); err != nil {
		return Config{}, err
	}
	if c.TLS.ConfigFile != "" {
		if err := c.loadTLSFile(c.TLS.ConfigFile, true); err != nil {
			return Config{}, err
		}
	}
	c.EnableControllerInNamesrv = false
	c.ConfigStorePath = f.Name
	return c, nil
}

// defaultTLSFile is where Apache looks when tls.config.file is not given.
const defaultTLSFile = "/etc/rocketmq/tls.properties"

// LoadDefaultTLS reads Apache's default tls.properties when the machine has one and
// the configuration names none.
func (c *Config) LoadDefaultTLS() error {
	if c.TLS.ConfigFile != "" {
		return nil
	}
	return c.loadTLSFile(defaultTLSFile, false)
}

func (c *Config) loadTLSFile(path string, must bool) error {
	f, err := props.Load(path)
	if !must && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	unbound, err := props.Bind(f, &c.TLS)
	if err != nil {
		return err
	}
	c.TLS.ConfigFile = path
	for _, e := range unbound {
		if !strings.HasPrefix(e.Key, "tls.client.") {
			c.loaded.odd = append(c.loaded.odd, props.UnknownText(f, e))
		}
	}
	return nil
}

// sort puts the entries of the file into their drawers and refuses what must not be ignored.
func (l *loadedKeys) sort(f *props.File, unbound []props.Entry, allow []string) error {
	l.values = map[string]string{}
	for _, e := range f.Entries() {
		for _, r := range refusals {
			if r.key != e.Key || !r.promises(e.Value) {
				continue
			}
			if !slices.Contains(allow, e.Key) {
				return &UnsupportedError{File: f.Name, Line: e.Line, Key: e.Key, Val: e.Value, Why: r.why}
			}
			l.allowed = append(l.allowed, e)
		}
	}
	for _, e := range f.Overridden() {
		l.odd = append(l.odd, fmt.Sprintf("%s:%d: key %q is given again further down, the last one counts", f.Name, e.Line, e.Key))
	}
	for _, e := range unbound {
		k, known := keysWithoutEffect[e.Key]
		if !known {
			if !slices.ContainsFunc(l.allowed, func(a props.Entry) bool { return a.Key == e.Key }) {
				l.unknown = append(l.unknown, e)
			}
			continue
		}
		if err := checkType(f.Name, e, k.kind); err != nil {
			return err
		}
		l.values[e.Key] = e.Value
		if e.Value != k.value {
			l.noEffect = append(l.noEffect, e)
		}
	}
	return nil
}

// checkType refuses a malformed value of a key without effect, as of any other.
func checkType(file string, e props.Entry, kind string) error {
	v := strings.TrimSpace(e.Value)
	var err error
	switch kind {
	case "int":
		_, err = strconv.ParseInt(v, 10, 32)
	case "long":
		_, err = strconv.ParseInt(v, 10, 64)
	case "boolean":
		if !strings.EqualFold(v, "true") && !strings.EqualFold(v, "false") {
			err = errors.New("neither true nor false")
		}
	}
	if err != nil {
		return &props.SyntaxError{File: file, Line: e.Line, Key: e.Key, Text: fmt.Sprintf("%q is no %s", e.Value, kind)}
	}
	return nil
}

// Warnings are the lines the start prints about the configuration: unknown keys with
// their line, keys without effect and why, unsupported keys let through.
func (c *Config) Warnings() []string {
	l := &c.loaded
	var out []string
	for _, e := range l.unknown {
		out = append(out, fmt.Sprintf("warning: %s:%d: unknown key %q is ignored", c.Source, e.Line, e.Key))
	}
	for _, e := range l.noEffect {
		out = append(out, fmt.Sprintf("%s:%d: %s=%s has no effect: %s", c.Source, e.Line, e.Key, e.Value, keysWithoutEffect[e.Key].why))
	}
	for _, e := range l.allowed {
		out = append(out, fmt.Sprintf("%s:%d: %s=%s is not supported and was let through by --allow-unsupported", c.Source, e.Line, e.Key, e.Value))
	}
	return append(out, l.odd...)
}

// Values are all keys as GET_NAMESRV_CONFIG shows them: what is in force for the
// effective ones, what the file says or Apache's default for the others.
func (c *Config) Values() map[string]string {
	out := map[string]string{}
	for key, k := range keysWithoutEffect {
		if k.shown {
			out[key] = k.value
		}
	}
	for key, v := range c.loaded.values {
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
func (c *Config) ValuesText() []byte {
	var b strings.Builder
	vals := c.Values()
	for _, k := range slices.Sorted(maps.Keys(vals)) {
		b.WriteString(k + "=" + vals[k] + "\n")
	}
	return []byte(b.String())
}

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
