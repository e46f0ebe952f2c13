package hostinfo

import (
	"testing"
	"time"
)

func TestBetween(t *testing.T) {
	a := &Sample{
		At: time.Unix(0, 0), CPU: &CPU{User: 10, Idle: 90}, Devices: []Device{{Name: "sda", Writes: 5, Busy: time.Second}, {Name: "sdb", Busy: time.Hour}},
		Interfaces: []Interface{{Name: "eth0", SentDrops: 1}},
	}
	b := &Sample{
		At: time.Unix(10, 0), CPU: &CPU{User: 15, System: 2.5, Idle: 92.5}, Devices: []Device{{Name: "sda", Writes: 25, WriteBytes: 1000, Busy: 6 * time.Second}, {Name: "sdb"}, {Name: "sdc"}},
		Interfaces: []Interface{{Name: "eth0", SentDrops: 3, ReceivedErrors: 1, ReceivedBytes: 50}},
	}
	r := Between(a, b)
	if r.CPU.User != 0.5 || r.CPU.System != 0.25 || r.CPU.Idle != 0.25 {
		t.Errorf("processors: %+v", r.CPU)
	}
	if len(r.Devices) != 1 || r.Devices[0] != (DeviceRate{Name: "sda", Writes: 2, WriteBytes: 100, Busy: 0.5}) {
		t.Errorf("devices: %+v", r.Devices)
	}
	if len(r.Interfaces) != 1 || r.Interfaces[0] != (InterfaceRate{Name: "eth0", ReceivedBytes: 5, Drops: 2, Errors: 1}) {
		t.Errorf("interfaces: %+v", r.Interfaces)
	}
	if r := Between(b, b); r.CPU != nil || r.Devices != nil {
		t.Errorf("no time between: %+v", r)
	}
}
