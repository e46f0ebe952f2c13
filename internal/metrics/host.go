package metrics

import (
	"strconv"
	"time"

	"mqx/internal/hostinfo"
)

// Host gives what the machine does: load, processor time, devices, networks, memory and
// TCP sockets, as Linux tells it. What it does not tell has no series. It reads some small
// files at each scrape.
func Host() Source { return host{hostinfo.New("/")} }

type host struct{ r *hostinfo.Reader }

// Metrics reads the machine.
func (h host) Metrics(s *Scrape) { writeHost(s, h.r.Read(time.Now())) }

func writeHost(s *Scrape, m *hostinfo.Sample) {
	if m.Processors > 0 {
		s.Gauge("mqx_host_processors", "Processors of the machine.", float64(m.Processors), s.Labels())
	}
	if l := m.Load; l != nil {
		for minutes, v := range map[string]float64{"1": l.One, "5": l.Five, "15": l.Fifteen} {
			s.Gauge("mqx_host_load", "Tasks that ran or waited, over so many minutes.", v, s.Labels("minutes", minutes))
		}
	}
	if c := m.CPU; c != nil {
		for mode, v := range map[string]float64{
			"user": c.User, "nice": c.Nice, "system": c.System, "idle": c.Idle, "iowait": c.IOWait, "irq": c.IRQ, "softirq": c.SoftIRQ, "steal": c.Steal,
		} {
			s.Counter("mqx_host_cpu_seconds_total", "Time of all processors, by mode.", v, s.Labels("mode", mode))
		}
	}
	writeMemory(s, m.Memory)
	writeDevices(s, m.Devices)
	for i := range m.Interfaces {
		n := &m.Interfaces[i]
		for _, d := range []struct {
			way                  string
			bytes, drops, errors int64
		}{{"in", n.ReceivedBytes, n.ReceivedDrops, n.ReceivedErrors}, {"out", n.SentBytes, n.SentDrops, n.SentErrors}} {
			l := s.Labels("interface", n.Name, "direction", d.way)
			s.Counter("mqx_host_network_bytes_total", "Bytes that went through an interface.", float64(d.bytes), l)
			s.Counter("mqx_host_network_drops_total", "Packets that an interface dropped.", float64(d.drops), l)
			s.Counter("mqx_host_network_errors_total", "Packets that an interface found broken.", float64(d.errors), l)
		}
	}
	for state, n := range m.TCP {
		s.Gauge("mqx_host_tcp_sockets", "TCP sockets of the machine, by state.", float64(n), s.Labels("state", state))
	}
	if c := m.Container; c != nil && c.Limit > 0 {
		l := s.Labels("version", strconv.Itoa(c.Version))
		s.Gauge("mqx_host_container_memory_limit_bytes", "Memory that the control group of the process may use.", float64(c.Limit), l)
		if c.Used != nil {
			s.Gauge("mqx_host_container_memory_used_bytes", "Memory that it uses, page cache included.", float64(*c.Used), l)
		}
	}
}

func writeMemory(s *Scrape, m *hostinfo.Memory) {
	if m == nil {
		return
	}
	for kind, v := range map[string]*int64{
		"total": m.Total, "available": m.Available, "dirty": m.Dirty, "writeback": m.Writeback, "swap_total": m.SwapTotal, "swap_free": m.SwapFree,
	} {
		if v != nil {
			s.Gauge("mqx_host_memory_bytes", "Memory of the machine: in all, that programs can get, waiting to be written (dirty), being written (writeback), swap.", float64(*v), s.Labels("kind", kind))
		}
	}
}

func writeDevices(s *Scrape, devices []hostinfo.Device) {
	for i := range devices {
		d := &devices[i]
		for _, op := range []struct {
			name       string
			ops, bytes int64
		}{{"read", d.Reads, d.ReadBytes}, {"write", d.Writes, d.WriteBytes}} {
			l := s.Labels("device", d.Name, "operation", op.name)
			s.Counter("mqx_host_device_operations_total", "Operations of a block device that were completed.", float64(op.ops), l)
			s.Counter("mqx_host_device_bytes_total", "Bytes that a block device read or wrote.", float64(op.bytes), l)
		}
		s.Counter("mqx_host_device_busy_seconds_total", "Time in which an operation of a block device was under way.", d.Busy.Seconds(), s.Labels("device", d.Name))
	}
}
