package broker

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"strings"

	"mqx/internal/props"
)

// loadedKeys is what the configuration file said beyond the bound fields.
type loadedKeys struct {
	// noEffect are keys of Apache that are accepted without effect, with a
	// value other than Apache's default.
	noEffect []props.Entry
	// allowed are unsupported keys that --allow-unsupported let through.
	allowed []props.Entry
	// unknown are keys nobody knows.
	unknown []props.Entry
	// odd are remarks on values taken as they stand.
	odd []string
	// values of keys that bind to nothing, for GET_BROKER_CONFIG.
	values map[string]string
	// set are all keys the file names.
	set map[string]bool
	// namesrv is the list of name servers as the file said.
	namesrv string
}

// LoadConfig reads a broker.conf over the defaults, as it is. Errors name file
// and line: a malformed value is a *props.SyntaxError; a key that promises what
// is not served, unless allowUnsupported holds its name, is an
// *UnsupportedError (exit code 2). Keys without effect and unknown keys do not
// stop the start; Warnings reports them.
func LoadConfig(path string, allowUnsupported []string) (Config, error) {
	f, err := props.Load(path)
	if err != nil {
		return Config{}, err
	}
	return configFrom(f, allowUnsupported)
}

func configFrom(f *props.File, allowUnsupported []string) (Config, error) {
	c := DefaultConfig()
	c.Source = f.Name
	c.AllowUnsupported = allowUnsupported
	unknown, err := props.Bind(f, &c)
	if err != nil {
		return Config{}, err
	}
	if err := c.loaded.sort(f, unknown, allowUnsupported); err != nil {
		return Config{}, err
	}
	if c.TLS.ConfigFile != "" {
		if err := c.loadTLSFile(c.TLS.ConfigFile, true); err != nil {
			return Config{}, err
		}
	}
	c.loaded.namesrv = c.NamesrvAddr
	c.settle()
	return c, nil
}

// defaultTLSFile is where Apache looks when tls.config.file is not given.
const defaultTLSFile = "/etc/rocketmq/tls.properties"

// LoadDefaultTLS reads Apache's default tls.properties when the machine has one
// and the configuration names none.
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
	unknown, err := props.Bind(f, &c.TLS)
	if err != nil {
		return err
	}
	c.TLS.ConfigFile = path
	for _, e := range unknown {
		c.loaded.odd = append(c.loaded.odd, props.UnknownText(f, e))
	}
	return nil
}

// settle applies what Apache does after loading.
func (c *Config) settle() {
	c.BrokerID = 0
	if c.BrokerRole == "SLAVE" { // let through by --allow-unsupported
		c.BrokerRole = "ASYNC_MASTER"
	}
	if c.HAListenPort <= 0 && c.ListenPort > 0 {
		c.HAListenPort = c.ListenPort + 1
	}
}

// sort puts the entries of the file into their drawers and refuses what must
// not be ignored.
func (l *loadedKeys) sort(f *props.File, unbound []props.Entry, allow []string) error {
	l.values = map[string]string{}
	l.set = map[string]bool{}
	for _, e := range f.Entries() {
		l.set[e.Key] = true
		if strings.TrimRight(e.Value, " \t") != e.Value {
			l.odd = append(l.odd, fmt.Sprintf("warning: %s:%d: the value of %q ends in blanks, which count", f.Name, e.Line, e.Key))
		}
		for _, r := range refusals {
			if r.Key != e.Key || !r.Promises(e.Value) {
				continue
			}
			if !slices.Contains(allow, e.Key) {
				return &UnsupportedError{File: f.Name, Line: e.Line, Key: e.Key, Val: e.Value, Why: r.Why}
			}
			l.allowed = append(l.allowed, e)
		}
	}
	for _, e := range f.Overridden() {
		l.odd = append(l.odd, fmt.Sprintf("warning: %s:%d: key %q is given again further down, the last one counts", f.Name, e.Line, e.Key))
	}
	for _, e := range unbound {
		k, known := apacheKeys()[e.Key]
		if !known {
			l.unknown = append(l.unknown, e)
			l.values[e.Key] = e.Value
			continue
		}
		if err := checkType(f.Name, e, k.Type); err != nil {
			return err
		}
		l.values[e.Key] = e.Value
		if e.Value != k.Default && !slices.ContainsFunc(l.allowed, func(a props.Entry) bool { return a.Key == e.Key }) {
			l.noEffect = append(l.noEffect, e)
		}
	}
	return nil
}

// checkType refuses a malformed value of a key without effect, as of any other.
func checkType(file string, e props.Entry, typ string) error {
	v := strings.TrimSpace(e.Value)
	var err error
	switch typ {
	case "int":
		_, err = strconv.ParseInt(v, 10, 32)
	case "long":
		_, err = strconv.ParseInt(v, 10, 64)
	case "double", "float":
		_, err = strconv.ParseFloat(v, 64)
	case "boolean":
		if !strings.EqualFold(v, "true") && !strings.EqualFold(v, "false") {
			err = errors.New("neither true nor false")
		}
	}
	if err != nil {
		return &props.SyntaxError{File: file, Line: e.Line, Key: e.Key, Text: fmt.Sprintf("%q is no %s", e.Value, typ)}
	}
	return nil
}

// Warnings are the lines the start prints about the configuration: unknown keys
// with their line, keys without effect and why, unsupported keys let through.
func (c *Config) Warnings() []string {
	l := &c.loaded
	var out []string
	for _, e := range l.unknown {
		out = append(out, fmt.Sprintf("warning: %s:%d: unknown key %q is ignored%s", c.Source, e.Line, e.Key, nearest(e.Key)))
	}
	for _, e := range l.noEffect {
		out = append(out, fmt.Sprintf("%s:%d: %s=%s has no effect: %s", c.Source, e.Line, e.Key, e.Value, noEffectReasons[apacheKeys()[e.Key].Reason]))
	}
	for _, e := range l.allowed {
		out = append(out, fmt.Sprintf("warning: %s:%d: %s=%s is not supported and was let through by --allow-unsupported", c.Source, e.Line, e.Key, e.Value))
	}
	if c.BrokerRole == "SYNC_MASTER" {
		out = append(out, "warning: brokerRole=SYNC_MASTER waits for no replica: replication is not served yet")
	}
	return append(out, l.odd...)
}

// nearest hints at the known key that was probably meant.
func nearest(key string) string {
	if k := props.Nearest(key, maps.Keys(apacheKeys())); k != "" {
		return fmt.Sprintf(" (did you mean %q?)", k)
	}
	return ""
}

// Values are all keys with their values as GET_BROKER_CONFIG shows them: what
// is in force for the effective ones, what the file says or Apache's default
// for the others.
func (c *Config) Values() map[string]string {
	out := map[string]string{}
	for _, k := range apacheKeys() {
		out[k.Key] = defaultValue(k)
	}
	for k, v := range c.loaded.values {
		out[k] = v
	}
	for _, f := range props.Fields(c) {
		if strings.HasPrefix(f.Key, "tls.") {
			continue // Apache has them in another file; key passwords stay here
		}
		out[f.Key] = f.String()
	}
	if c.Source != "" {
		out["brokerConfigPath"] = c.Source
	}
	return out
}

// ValuesText is Values as sorted key=value lines.
func (c *Config) ValuesText() []byte {
	vals := c.Values()
	keys := make([]string, 0, len(vals))
	for k := range vals {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	var b strings.Builder
	for _, k := range keys {
		b.WriteString(k + "=" + vals[k] + "\n")
	}
	return []byte(b.String())
}

// defaultValue is Apache's default of a key without effect on this machine.
func defaultValue(k apacheKey) string {
	cpu := runtime.NumCPU()
	switch k.Default {
	case "$ROCKETMQ_HOME":
		return os.Getenv("ROCKETMQ_HOME")
	case "min(CPU,4)":
		return strconv.Itoa(min(cpu, 4))
	case "16+2*CPU":
		return strconv.Itoa(16 + 2*cpu)
	case "max(8+2*CPU, 4*send)":
		return strconv.Itoa(max(8+2*cpu, 4*min(cpu, 4)))
	case "CPU":
		return strconv.Itoa(cpu)
	}
	return k.Default
}
