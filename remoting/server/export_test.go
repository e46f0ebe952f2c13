package server

// Streams returns cfg with every connection served by goroutines.
func Streams(cfg Config) Config {
	cfg.streams = true
	return cfg
}
