package doctor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"mqx/internal/hostinfo"
)

func ptr[T any](v T) *T { return &v }

// calm is a machine on which nothing is wrong, looked at twice.
func calm() *Host {
	sample := func(at time.Time, cpu float64, busy time.Duration) *hostinfo.Sample {
		return &hostinfo.Sample{
			At: at, Processors: 4, CPU: &hostinfo.CPU{User: cpu, Idle: 100},
			Memory:     &hostinfo.Memory{Total: ptr[int64](16 << 30), Dirty: ptr[int64](1 << 20), Writeback: ptr[int64](0), SwapTotal: ptr[int64](1 << 30)},
			Devices:    []hostinfo.Device{{Name: "sda", Busy: busy, Rotational: ptr(false)}},
			Interfaces: []hostinfo.Interface{{Name: "eth0"}}, TCP: map[string]int64{"established": 3},
			Sysctl: map[string]int64{
				"vm.max_map_count": 655360, "vm.min_free_kbytes": 1 << 20, "vm.dirty_ratio": 20, "vm.dirty_background_ratio": 10, "vm.swappiness": 1, "vm.extra_free_kbytes": 0,
			},
		}
	}
	h := &Host{Before: sample(time.Unix(0, 0), 0, 0), Now: sample(time.Unix(10, 0), 0, time.Second)}
	h.Now.CPU = &hostinfo.CPU{User: 4, System: 1, Idle: 135}
	process := func() *hostinfo.Process {
		return &hostinfo.Process{PID: 7, Resident: 100 << 20, Open: ptr[int64](50), MaxOpen: ptr[int64](655350), Maps: ptr[int64](300), Container: &hostinfo.Container{Limit: 1 << 30}}
	}
	h.Processes = []HostProcess{{What: "mqx broker", Now: process(), Before: process()}}
	h.Disks = []hostinfo.Disk{{Path: "/data", Total: 100 << 30, Free: 60 << 30, Rotational: ptr(false)}}
	h.Profiles = []Profiles{{Addr: "x:1", Goroutines: []Stack{{5, []string{"mqx/broker.wait"}}}, HeapBefore: &Heap{InUse: 1}, Heap: &Heap{InUse: 1}}}
	return h
}

func TestCalmMachine(t *testing.T) {
	for _, f := range Diagnose(Evidence{Host: calm()}, Choice{}) {
		if f.Verdict != OK || f.Evidence == "" {
			t.Errorf("%+v", f)
		}
	}
}

var hostCases = []struct {
	rule     string
	want     Verdict
	evidence string
	change   func(h *Host)
}{
	{"cpu-hot", Found, "user 90 %, system 5 %", func(h *Host) { h.Now.CPU = &hostinfo.CPU{User: 90, System: 5, Idle: 105} }},
	{"cpu-hot", Found, "x:1: 5 goroutines in mqx/broker.wait", func(h *Host) { h.Now.CPU = &hostinfo.CPU{User: 90, Idle: 105} }},
	{"cpu-hot", Found, "mqx broker (pid 7) user 0.90, system 0.30", func(h *Host) {
		h.Now.CPU, h.Processes[0].Now.User, h.Processes[0].Now.System = &hostinfo.CPU{User: 90, Idle: 105}, 9, 3
	}},
	{"cpu-hot", Unknown, "one look", func(h *Host) { h.Before = nil }},
	{"cpu-hot", Unknown, "does not tell", func(h *Host) { h.Now.CPU = nil }},
	{"memory-growing", Found, "from 100.0 MiB to 200.0 MiB", func(h *Host) { h.Processes[0].Now.Resident = 200 << 20 }},
	{"memory-growing", Found, "its heap grew from 1 B to 64.0 MiB; most of it: 64.0 MiB in mqx/x.f", func(h *Host) {
		h.Profiles[0].Heap = &Heap{InUse: 64 << 20, Sites: []Site{{64 << 20, []string{"runtime.mallocgc", "mqx/x.f"}}}}
	}},
	{"memory-growing", Unknown, "no server", func(h *Host) { h.Processes, h.Profiles = nil, nil }},
	{"device-saturated", Found, "busy for 95 %", func(h *Host) { h.Now.Devices[0].Busy = 9500 * time.Millisecond }},
	{"device-saturated", Unknown, "does not tell", func(h *Host) { h.Now.Devices = nil }},
	{"dirty-high", Found, "Dirty 4.0 GiB", func(h *Host) { h.Now.Memory.Dirty = ptr[int64](4 << 30) }},
	{"dirty-high", Unknown, "does not tell", func(h *Host) { h.Now.Memory = nil }},
	{"network-errors", Found, "3 drops and 1 error", func(h *Host) { h.Now.Interfaces[0].ReceivedDrops, h.Now.Interfaces[0].SentErrors = 3, 1 }},
	{"network-errors", Unknown, "does not tell", func(h *Host) { h.Now.Interfaces = nil }},
	{"tcp-piling", Found, "6000 sockets", func(h *Host) { h.Now.TCP["close-wait"] = 6000 }},
	{"tcp-piling", Unknown, "does not tell", func(h *Host) { h.Now.TCP = nil }},
	{"disk-room", Found, "at 90 % messages are refused", func(h *Host) { h.Disks[0].Free = 5 << 30 }},
	{"disk-room", Unknown, "no directory was named", func(h *Host) { h.Disks = nil }},
	{"disk-room", Unknown, "gone", func(h *Host) { h.DiskErrs = []error{errors.New("gone")} }},
	{"file-limit", Found, "it may open 1024 files, and has 50 open", func(h *Host) { h.Processes[0].Now.MaxOpen = ptr[int64](1024) }},
	{"file-limit", Unknown, "may not be read", func(h *Host) { h.Processes[0].Now.MaxOpen = nil }},
	{"file-limit", Unknown, "no server", func(h *Host) { h.Processes = nil }},
	// N103: what is needed is compared with the limit.
	{"map-count", Found, "it has 600000 mappings", func(h *Host) { h.Processes[0].Now.Maps = ptr[int64](600_000) }},
	{"map-count", Found, "vm.max_map_count is 1000", func(h *Host) { h.Now.Sysctl["vm.max_map_count"] = 1000 }},
	{"map-count", Unknown, "only while a server runs", func(h *Host) { h.Processes = nil }},
	{"min-free", Found, "vm.min_free_kbytes is 1024 (1.0 MiB of 16.0 GiB)", func(h *Host) { h.Now.Sysctl["vm.min_free_kbytes"] = 1024 }},
	{"min-free", Unknown, "does not tell", func(h *Host) { h.Now.Sysctl = nil }},
	{"dirty-ratio", Found, "about 81 s of writing on a disk that turns", func(h *Host) { h.Disks[0].Rotational = ptr(true); h.Now.Sysctl["vm.dirty_ratio"] = 60 }},
	{"dirty-ratio", Found, "begins only when writers stop", func(h *Host) { h.Now.Sysctl["vm.dirty_background_ratio"] = 20 }},
	{"dirty-ratio", Unknown, "what kind of disk", func(h *Host) { h.Disks[0].Rotational = nil }},
	{"swappiness", Found, "vm.swappiness is 60", func(h *Host) { h.Now.Sysctl["vm.swappiness"] = 60 }},
	{"swappiness", OK, "swap space 0 B", func(h *Host) { h.Now.Sysctl["vm.swappiness"] = 60; h.Now.Memory.SwapTotal = ptr[int64](0) }},
	{"swappiness", Unknown, "does not tell", func(h *Host) { h.Now.Memory.SwapTotal = nil }},
	{"extra-free", Found, "this kernel has no", func(h *Host) { delete(h.Now.Sysctl, "vm.extra_free_kbytes") }},
	{"extra-free", Unknown, "does not tell", func(h *Host) { h.Now.Sysctl = nil }},
	{"container-memory", Found, "its container has 1.0 GiB", func(h *Host) { h.Processes[0].Now.Resident = 1000 << 20 }},
	{"container-memory", Found, "its container has 128.0 MiB", func(h *Host) { h.Processes[0].Now.Container.Limit = 128 << 20 }},
	{"container-memory", Unknown, "no server", func(h *Host) { h.Processes = nil }},
	{"goroutines-many", Found, "20000 goroutines in mqx/broker.wait", func(h *Host) { h.Profiles[0].Goroutines[0].Count = 20_000 }},
	{"goroutines-many", Unknown, "--pprof", func(h *Host) { h.Profiles = nil }},
	{"goroutines-many", Unknown, "x:1: refused", func(h *Host) { h.Profiles[0].Err = errors.New("refused") }},
}

func TestHostRules(t *testing.T) {
	asked := map[string]map[Verdict]bool{}
	for _, tt := range hostCases {
		h := calm()
		tt.change(h)
		hit := false
		list := verdictOf(t, Evidence{Host: h}, tt.rule)
		for _, f := range list {
			hit = hit || f.Verdict == tt.want && strings.Contains(f.Evidence, tt.evidence)
			if f.Verdict == Found && (f.Mend == "" || strings.Contains(f.Mend, "<NAME>")) {
				t.Errorf("%s: %+v", tt.rule, f)
			}
		}
		if !hit {
			t.Errorf("%s: want %s with %q, got %+v", tt.rule, tt.want, tt.evidence, list)
		}
		if asked[tt.rule] == nil {
			asked[tt.rule] = map[Verdict]bool{}
		}
		asked[tt.rule][tt.want] = true
	}
	for _, r := range rules {
		if r.Scope == ScopeHost && (!asked[r.ID][Found] || !asked[r.ID][Unknown]) {
			t.Errorf("%s has no case that finds, or none that is unknown", r.ID)
		}
	}
	// vm.extra_free_kbytes is said, and never a warning.
	h := calm()
	delete(h.Now.Sysctl, "vm.extra_free_kbytes")
	if f := verdictOf(t, Evidence{Host: h}, "extra-free"); f[0].Severity != Note || f[0].Bad() {
		t.Errorf("%+v", f)
	}
}

func TestServersAreKnownByTheirCommand(t *testing.T) {
	for command, want := range map[string]string{
		"/usr/bin/mqx broker start -c x": "mqx broker", "mqx nameserver start": "mqx nameserver", "mqx dev": "mqx dev", "mqx top": "", "mqx doctor host": "",
		"/opt/mqbroker -n x": "mqbroker -n", "java -Xmx1g -cp x org.apache.rocketmq.broker.BrokerStartup -c f": "java BrokerStartup", "java -jar other.jar": "", "vi mqx": "", "": "",
	} {
		if got := Server(strings.Fields(command)); got != want {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
}

const goroutineText = `goroutine profile: total 9
2 @ 0x1 0x2
#	0x1	runtime.gopark+0x1	/go/proc.go:1
#	0x2	mqx/store.(*Log).flush+0x9	/x/flush.go:7

7 @ 0x3
#	0x3	mqx/broker.(*hold).wait+0x20	/x/hold.go:9

`

const heapText = `heap profile: 2: 3145728 [4: 4000000] @ heap/1048576
1: 2097152 [1: 2097152] @ 0x1 0x2
#	0x1	mqx/store.grow+0x1	/x/grow.go:1
#	0x2	main.main+0x2	/x/main.go:1

1: 1048576 [1: 1048576] @ 0x3
#	0x3	mqx/broker.table+0x1	/x/table.go:1

0: 0 [2: 800000] @ 0x4
#	0x4	mqx/x.gone+0x1	/x/x.go:1

# runtime.MemStats
# Alloc = 5
`

func TestProfilesAreRead(t *testing.T) {
	stacks, err := ParseGoroutines(goroutineText)
	if err != nil || len(stacks) != 2 || topStacks(stacks) != "7 goroutines in mqx/broker.(*hold).wait, 2 goroutines in mqx/store.(*Log).flush" {
		t.Errorf("%+v %v", stacks, err)
	}
	h, err := ParseHeap(heapText)
	if err != nil || len(h.Sites) != 2 || h.Sites[0].Frames[0] != "mqx/store.grow" || h.InUse < 3145728 || h.InUse > 4<<20 {
		t.Fatalf("%+v %v", h, err)
	}
	if got := topSites(nil, h); !strings.HasPrefix(got, "2.0 MiB in mqx/store.grow, 1.2 MiB in mqx/broker.table") {
		t.Errorf("%q", got)
	}
	for _, text := range []string{"", "<html>", "heap profile: x"} {
		if _, err := ParseHeap(text); err == nil {
			t.Errorf("heap %q was read", text)
		}
		if _, err := ParseGoroutines(text); err == nil {
			t.Errorf("goroutines %q were read", text)
		}
	}
}
