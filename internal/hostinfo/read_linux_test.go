package hostinfo

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// machine writes a machine below a directory of the test.
func machine(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

const tcpHead = "  sl  local_address rem_address   st tx_queue rx_queue\n"

func wholeMachine() map[string]string {
	return map[string]string{
		"proc/loadavg": "1.50 0.75 0.25 2/300 4242\n",
		"proc/stat": "cpu  1000 100 500 8000 200 10 20 30 0 0\ncpu0 500 50 250 4000 100 5 10 15 0 0\ncpu1 500 50 250 4000 100 5 10 15 0 0\n" +
			"intr 1\nctxt 1\nbtime 1700000000\nprocesses 1\nprocs_running 1\nprocs_blocked 0\nsoftirq 1 1 1 1 1 1 1 1 1 1 1\n",
		"proc/meminfo": "MemTotal:  1000 kB\nMemAvailable:  400 kB\nDirty:  30 kB\nWriteback:  2 kB\nSwapTotal:  0 kB\nSwapFree:  0 kB\n",
		"proc/diskstats": " 8 0 sda 10 0 100 5 20 0 200 7 0 1500 1600 0 0 0 0 0 0\n 8 1 sda1 9 0 90 5 20 0 200 7 0 1500 1600 0 0 0 0 0 0\n" +
			" 7 0 loop0 1 0 1 1 1 0 1 1 0 1 1 0 0 0 0 0 0\n",
		"proc/net/dev": "Inter-|   Receive\n face |bytes\n  eth0: 1000 10 1 2 0 0 0 0 2000 20 3 4 0 0 0 0\n    lo: 5 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n",
		"proc/net/tcp": tcpHead + "   0: 0100007F:1F90 00000000:0000 0A 0:0\n   1: 0100007F:1F90 0100007F:9999 01 0:0\n   2: 0100007F:1F90 0100007F:9998 06 0:0\n",
		// One more of IPv6.
		"proc/net/tcp6":                  tcpHead + "   0: 00:1F90 00:0000 08 0:0\n",
		"proc/sys/vm/swappiness":         "60\n",
		"proc/sys/vm/max_map_count":      "65530\n",
		"sys/block/sda/queue/rotational": "1\n",
		"sys/devices/b/sda/sda1/dev":     "8:1\n",
		"proc/77/stat":                   "77 (mqx) S 1 77 77 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 9 0 1000 100000000 2000 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
		"proc/77/cmdline":                "mqx\x00broker\x00start\x00",
		"proc/77/limits":                 "Limit                     Soft Limit           Hard Limit           Units     \nMax open files            1024                 4096                 files     \n",
		"proc/77/fd/0":                   "",
		"proc/77/fd/1":                   "",
		"proc/77/maps":                   "00-01 r--p\n01-02 r--p\n02-03 r--p\n",
		"proc/77/cgroup":                 "4:memory:/docker/x\n0::/\n",
		"sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes": "1073741824\n",
		"sys/fs/cgroup/memory/docker/x/memory.usage_in_bytes": "1000\n",
		"sys/fs/cgroup/memory/memory.limit_in_bytes":          "9223372036854771712\n",
	}
}

func TestReadMachine(t *testing.T) {
	root := machine(t, wholeMachine())
	link(t, "77", filepath.Join(root, "proc/self"))
	at := time.Unix(100, 0)
	got := New(root).Read(at)
	turns, used := true, int64(1000)
	kb := func(n int64) *int64 { n *= 1024; return &n }
	want := &Sample{
		At: at, Processors: 2, Load: &Load{1.5, 0.75, 0.25},
		CPU:     &CPU{User: 10, Nice: 1, System: 5, Idle: 80, IOWait: 2, IRQ: 0.1, SoftIRQ: 0.2, Steal: 0.3},
		Memory:  &Memory{Total: kb(1000), Available: kb(400), Dirty: kb(30), Writeback: kb(2), SwapTotal: kb(0), SwapFree: kb(0)},
		Devices: []Device{{Name: "sda", Reads: 10, Writes: 20, ReadBytes: 51200, WriteBytes: 102400, Busy: 1500 * time.Millisecond, Rotational: &turns}},
		Interfaces: []Interface{
			{Name: "eth0", ReceivedBytes: 1000, SentBytes: 2000, ReceivedDrops: 2, SentDrops: 4, ReceivedErrors: 1, SentErrors: 3},
			{Name: "lo", ReceivedBytes: 5, SentBytes: 5},
		},
		TCP:       map[string]int64{"listen": 1, "established": 1, "time-wait": 1, "close-wait": 1},
		Sysctl:    map[string]int64{"vm.swappiness": 60, "vm.max_map_count": 65530},
		Container: &Container{Path: "/docker/x", Limit: 1 << 30, Used: &used, Version: 1},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// What cannot be read is unknown, with its reason, and not zero.
func TestReadWhatIsMissing(t *testing.T) {
	root := machine(t, map[string]string{"proc/loadavg": "1 2 3 1/1 1\n", "proc/sys/vm/swappiness": "many\n"})
	s := New(root).Read(time.Unix(1, 0))
	if s.Load == nil || s.CPU != nil || s.Memory != nil || s.Devices != nil || s.Interfaces != nil || s.TCP != nil || s.Container != nil || len(s.Sysctl) != 0 {
		t.Errorf("%+v", s)
	}
	if len(s.Errors) < 6 {
		t.Errorf("errors: %v", s.Errors)
	}
	if s := New(filepath.Join(root, "nowhere")).Read(time.Unix(1, 0)); s.Load != nil || len(s.Errors) != 1 {
		t.Errorf("%+v", s)
	}
}

func TestReadProcess(t *testing.T) {
	root := machine(t, wholeMachine())
	r := New(root)
	p, err := r.Process(77)
	if err != nil {
		t.Fatal(err)
	}
	used := int64(1000)
	want := &Process{
		PID: 77, Command: []string{"mqx", "broker", "start"}, User: 2.5, System: 0.5, Resident: 2000 * int64(os.Getpagesize()), Threads: 9,
		Started: time.Unix(1700000010, 0), Open: some[int64](2), MaxOpen: some[int64](1024), Maps: some[int64](3),
		Container: &Container{Path: "/docker/x", Limit: 1 << 30, Used: &used, Version: 1},
	}
	if d := cmp.Diff(want, p); d != "" {
		t.Error(d)
	}
	if _, err := r.Process(78); err == nil {
		t.Error("a process that is not there was read")
	}
}

func TestContainerOfVersion2(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		limit int64
	}{
		"none":            {map[string]string{"a/b/memory.max": "max\n"}, 0},
		"own":             {map[string]string{"a/b/memory.max": "4096\n", "a/memory.max": "max\n"}, 4096},
		"the one above":   {map[string]string{"a/b/memory.max": "4096\n", "a/memory.max": "1024\n"}, 1024},
		"mounted as root": {map[string]string{"memory.max": "2048\n"}, 2048},
	} {
		t.Run(name, func(t *testing.T) {
			files := wholeMachine()
			files["proc/77/cgroup"] = "0::/a/b\n"
			for f, text := range c.files {
				files["sys/fs/cgroup/"+f] = text
			}
			p, err := New(machine(t, files)).Process(77)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Container; (got == nil) != (c.limit == 0) || got != nil && (got.Limit != c.limit || got.Version != 2) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestDiskDevice(t *testing.T) {
	files := wholeMachine()
	files["sys/devices/b/sda/sda1/partition"] = "1\n"
	root := machine(t, files)
	link(t, "../../devices/b/sda/sda1", filepath.Join(root, "sys/dev/block/8:1"))
	r := New(root)
	if got := r.deviceOf(8, 1); got != "sda" {
		t.Errorf("device of the partition: %q", got)
	}
	if got := r.deviceOf(0, 42); got != "" {
		t.Errorf("device of a memory file system: %q", got)
	}
	d, err := New("/").Disk(t.TempDir())
	if err != nil || d.Total <= 0 || d.Free < 0 || d.Free > d.Total {
		t.Errorf("%+v %v", d, err)
	}
	if _, err := New("/").Disk(filepath.Join(root, "nowhere")); err == nil {
		t.Error("a directory that is not there has a disk")
	}
}

// This machine is read without a fault, whatever it has.
func TestReadThisMachine(t *testing.T) {
	r := New("/")
	a := r.Read(time.Now())
	b := r.Read(a.At.Add(time.Second))
	if b.CPU == nil || b.Load == nil || b.Sysctl["vm.max_map_count"] == 0 {
		t.Errorf("%+v", b)
	}
	if _, err := r.Process(os.Getpid()); err != nil {
		t.Error(err)
	}
	if r := Between(a, b); r.Over != time.Second {
		t.Errorf("%+v", r)
	}
}
