package metrics

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"mqx/internal/hostinfo"
)

func TestHost(t *testing.T) {
	dirty, used := int64(4096), int64(10)
	sample := &hostinfo.Sample{
		Processors: 2, Load: &hostinfo.Load{One: 0.5, Five: 1, Fifteen: 2}, CPU: &hostinfo.CPU{User: 7, IOWait: 0.25}, Memory: &hostinfo.Memory{Dirty: &dirty},
		Devices:    []hostinfo.Device{{Name: "sda", Reads: 3, WriteBytes: 512, Busy: 1500 * time.Millisecond}},
		Interfaces: []hostinfo.Interface{{Name: "eth0", ReceivedBytes: 9, SentDrops: 4}},
		TCP:        map[string]int64{"time_wait": 12}, Container: &hostinfo.Container{Limit: 100, Used: &used, Version: 2},
	}
	text := scrape(t, Handler(slog.New(slog.DiscardHandler), 0, SourceFunc(func(s *Scrape) { writeHost(s, sample) })), "/metrics")
	for _, line := range []string{
		`mqx_host_load{minutes="15"} 2`, `mqx_host_processors 2`, `mqx_host_cpu_seconds_total{mode="iowait"} 0.25`, `mqx_host_memory_bytes{kind="dirty"} 4096`,
		`mqx_host_device_operations_total{device="sda",operation="read"} 3`, `mqx_host_device_bytes_total{device="sda",operation="write"} 512`,
		`mqx_host_device_busy_seconds_total{device="sda"} 1.5`, `mqx_host_network_bytes_total{direction="in",interface="eth0"} 9`,
		`mqx_host_network_drops_total{direction="out",interface="eth0"} 4`, `mqx_host_tcp_sockets{state="time_wait"} 12`, `mqx_host_container_memory_used_bytes{version="2"} 10`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("%s is not in\n%s", line, text)
		}
	}
	if strings.Contains(text, `kind="total"`) {
		t.Error("what is not known is there")
	}
	// Where nothing is known there is nothing.
	text = scrape(t, Handler(slog.New(slog.DiscardHandler), 0, SourceFunc(func(s *Scrape) { writeHost(s, &hostinfo.Sample{}) }), Host()), "/metrics")
	if strings.Contains(text, "\n_") {
		t.Error(text)
	}
}
