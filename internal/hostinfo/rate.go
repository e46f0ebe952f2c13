package hostinfo

import (
	"slices"
	"time"
)

// Rates is what a machine did between two samples.
type Rates struct {
	Over       time.Duration
	CPU        *CPU // shares of all processor time, 0 to 1; nil: unknown
	Devices    []DeviceRate
	Interfaces []InterfaceRate
}

// DeviceRate is what a device did, a second.
type DeviceRate struct {
	Name                  string
	Reads, Writes         float64
	ReadBytes, WriteBytes float64
	Busy                  float64 // share of the time, 0 to 1
}

// InterfaceRate is what an interface did, a second; drops and errors are counted.
type InterfaceRate struct {
	Name                     string
	ReceivedBytes, SentBytes float64
	Drops, Errors            int64
}

// Between compares two samples of one machine, the earlier one first. What is not in
// both is left out, as is what was counted from the start again.
func Between(a, b *Sample) Rates {
	r := Rates{Over: b.At.Sub(a.At)}
	seconds := r.Over.Seconds()
	if seconds <= 0 {
		return r
	}
	if a.CPU != nil && b.CPU != nil {
		if all := b.CPU.Total() - a.CPU.Total(); all > 0 {
			share := func(x, y float64) float64 { return max(0, y-x) / all }
			r.CPU = &CPU{
				User: share(a.CPU.User, b.CPU.User), Nice: share(a.CPU.Nice, b.CPU.Nice), System: share(a.CPU.System, b.CPU.System),
				Idle: share(a.CPU.Idle, b.CPU.Idle), IOWait: share(a.CPU.IOWait, b.CPU.IOWait), IRQ: share(a.CPU.IRQ, b.CPU.IRQ),
				SoftIRQ: share(a.CPU.SoftIRQ, b.CPU.SoftIRQ), Steal: share(a.CPU.Steal, b.CPU.Steal),
			}
		}
	}
	for _, y := range b.Devices {
		i := slices.IndexFunc(a.Devices, func(d Device) bool { return d.Name == y.Name })
		if i < 0 || y.Busy < a.Devices[i].Busy {
			continue
		}
		x := a.Devices[i]
		per := func(n, m int64) float64 { return float64(m-n) / seconds }
		r.Devices = append(r.Devices, DeviceRate{
			Name: y.Name, Reads: per(x.Reads, y.Reads), Writes: per(x.Writes, y.Writes), ReadBytes: per(x.ReadBytes, y.ReadBytes),
			WriteBytes: per(x.WriteBytes, y.WriteBytes), Busy: min(1, (y.Busy-x.Busy).Seconds()/seconds),
		})
	}
	for _, y := range b.Interfaces {
		i := slices.IndexFunc(a.Interfaces, func(n Interface) bool { return n.Name == y.Name })
		if i < 0 || y.ReceivedBytes < a.Interfaces[i].ReceivedBytes {
			continue
		}
		x := a.Interfaces[i]
		r.Interfaces = append(r.Interfaces, InterfaceRate{
			Name: y.Name, ReceivedBytes: float64(y.ReceivedBytes-x.ReceivedBytes) / seconds, SentBytes: float64(y.SentBytes-x.SentBytes) / seconds,
			Drops:  y.ReceivedDrops + y.SentDrops - x.ReceivedDrops - x.SentDrops,
			Errors: y.ReceivedErrors + y.SentErrors - x.ReceivedErrors - x.SentErrors,
		})
	}
	return r
}
