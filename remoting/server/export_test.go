package server

import "time"

// Crowded returns cfg with another crowdedHalfFrame.
func Crowded(cfg Config, d time.Duration) Config {
	cfg.crowded = d
	return cfg
}

// Streams returns cfg with every connection served by goroutines.
func Streams(cfg Config) Config {
	cfg.streams = true
	return cfg
}
