// Package exporter serves the figures of a cluster, Apache's or mqx's, as series for
// Prometheus: those that brokers serve themselves, as far as they can be had from
// outside, and with a switch those of rocketmq-exporter.
//
// Every broker is read on its own, at an interval; what is read is kept, and a scrape
// writes what is there and waits for nobody. A group or topic that a broker cannot tell
// of is left out, a broker that does not answer has no figures but that it is down.
package exporter
