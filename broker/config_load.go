package broker

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"mqx/internal/props"
)

// loadedKeys is what the configuration file said beyond the bound fields.
type loadedKeys struct {
	props.Loaded
	// namesrv is the list of name servers as the file said.
	namesrv string
}

// fileRules say what becomes of the keys that Config does not bind.
var fileRules = props.Rules{
	Refusals: refusals,
	Inert: func(key string) (props.Inert, bool) {
		k, ok := apacheKeys()[key]
		return props.Inert{Kind: k.Type, Default: k.Default, Why: noEffectReasons[k.Reason]}, ok
	},
	Hint: nearest,
	Mark: "warning: ",
}

// LoadConfig reads a broker.conf over the defaults, as it is. Errors name file
// and line: a malformed value is a *props.SyntaxError; a key that promises what
// is not served, unless allowUnsupported holds its name, is an
// *props.UnsupportedError (exit code 2). Keys without effect and unknown keys do not
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
	var err error
	if c.loaded.Loaded, err = fileRules.Bind(f, allowUnsupported, &c); err != nil {
		return Config{}, err
	}
	c.loaded.Remarks = append(endingInBlanks(f), c.loaded.Remarks...)
	if c.TLS.ConfigFile != "" {
		if err := c.loadTLSFile(c.TLS.ConfigFile, false); err != nil {
			return Config{}, err
		}
	}
	c.loaded.namesrv = c.NamesrvAddr
	c.settle()
	return c, nil
}

// endingInBlanks are remarks on values that Java would not trim either.
func endingInBlanks(f *props.File) []string {
	var out []string
	for _, e := range f.Entries() {
		if strings.TrimRight(e.Value, " \t") != e.Value {
			out = append(out, fmt.Sprintf("warning: %s:%d: the value of %q ends in blanks, which count", f.Name, e.Line, e.Key))
		}
	}
	return out
}

// LoadDefaultTLS reads Apache's default tls.properties when the machine has one
// and the configuration names none.
func (c *Config) LoadDefaultTLS() error {
	if c.TLS.ConfigFile != "" {
		return nil
	}
	return c.loadTLSFile(props.DefaultTLSFile, true)
}

func (c *Config) loadTLSFile(path string, optional bool) error {
	bound, err := c.loaded.BindFile(path, optional, "", &c.TLS)
	if bound {
		c.TLS.ConfigFile = path
	}
	return err
}

// settle applies what Apache does after loading.
func (c *Config) settle() {
	if !c.isSlave() {
		c.BrokerID = 0 // as Apache
	}
	if c.HAListenPort <= 0 && c.ListenPort > 0 {
		c.HAListenPort = c.ListenPort + 1
	}
}

// Locate puts file and line in front of the errors of Validate whose value came
// from the configuration file.
func (c *Config) Locate(err error) error { return c.loaded.Locate(err) }

// UnsupportedKeys are the keys that can stop the start, and that AllowUnsupported
// may hold.
func UnsupportedKeys() []string { return append(refusals.Keys(), addressServerKey) }

// Warnings are the lines the start prints about the configuration: unknown keys
// with their line, keys without effect and why, unsupported keys let through.
func (c *Config) Warnings() []string {
	out := slices.Clone(c.loaded.Warnings)
	out = append(out, c.replicationWarnings()...)
	return append(out, c.loaded.Remarks...)
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
	for k, v := range c.loaded.Values {
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
func (c *Config) ValuesText() []byte { return props.Text(c.Values()) }

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
