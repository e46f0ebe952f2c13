package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// doctorHost: what is wrong on a machine. A server of mqx may open too few files, has more connections than it should,
// grows by them, and does not close what its peers have closed.
func doctorHost(t *testing.T, p *provoked) {
	p.machine(t)
	ns, port, pprof := freePort(t), freePort(t), loopback(freePort(t))
	mqxNameserver(t, ns).cleanup(t)
	dir := testDir(t, "host")
	conf := brokerSpec{name: "doctor-host", port: port, namesrv: loopback(ns), store: filepath.Join(dir, "store")}.conf(t, dir)
	b := start(t, "doctor-host", dir, nil, "sh", "-c", fmt.Sprintf("ulimit -n 15000; exec %s broker start -c %s --pprof %s", mqxBinary, conf, pprof))
	b.cleanup(t)
	waitPort(t, b, pprof)
	var open []net.Conn
	closeAll := func() {
		for _, c := range open {
			_ = c.Close()
		}
		open = nil
	}
	defer closeAll()
	p.find(t, []string{mqxBinary, "doctor", "host", "--for", "4s", "--pprof", pprof}, func() {
		closeAll()               // those that send nothing are closed after some seconds
		for len(open) < 10_050 { // each has a goroutine
			c, err := net.Dial("tcp", pprof)
			if err != nil {
				t.Fatalf("connection %d: %v", len(open), err)
			}
			open = append(open, c)
		}
	}, fault{"file-limit", fmt.Sprintf("pid %d", b.cmd.Process.Pid), "15000 files"}, fault{"extra-free", "", "no vm.extra_free_kbytes"},
		fault{"goroutines-many", pprof, "10050 goroutines in"}, fault{"memory-growing", pprof, "its heap grew"})
	if err := b.signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	closeAll()
	p.find(t, []string{mqxBinary, "doctor", "host", "--for", "0s", "--rule", "tcp-piling"}, nil, fault{"tcp-piling", "close-wait", "sockets"})
	b.kill()
}

// machine are the loads and settings of a whole machine, which no test may change: a directory says them.
func (p *provoked) machine(t *testing.T) {
	t.Helper()
	root := testDir(t, "machine")
	write := func(files map[string]string) {
		for name, text := range files {
			path := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Dir(path), filepath.Base(path), text)
		}
	}
	load := func(user, busyMs, drops int) map[string]string {
		return map[string]string{
			"proc/stat": fmt.Sprintf("cpu  %[1]d 0 0 100 0 0 0 0 0 0\ncpu0 %[1]d 0 0 100 0 0 0 0 0 0\nintr 1\nctxt 1\nbtime 1700000000\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n"+
				"softirq 1 1 1 1 1 1 1 1 1 1 1\n", user),
			"proc/diskstats": fmt.Sprintf(" 8 0 sda 10 0 100 5 20 0 200 7 0 %d 1600 0 0 0 0 0 0\n", busyMs),
			"proc/net/dev":   fmt.Sprintf("Inter-|   Receive\n face |bytes\n  eth0: 1000 10 0 %d 0 0 0 0 2000 20 0 0 0 0 0 0\n", drops),
		}
	}
	write(load(100, 1000, 0))
	write(map[string]string{
		"proc/loadavg": "1 1 1 1/1 1\n",
		"proc/meminfo": "MemTotal:  100000000 kB\nMemAvailable:  4000000 kB\nDirty:  12000000 kB\nWriteback:  2000000 kB\nSwapTotal:  1000 kB\nSwapFree:  1000 kB\n",
		"proc/net/tcp": "  sl  local_address rem_address   st tx_queue rx_queue\n", "proc/sys/vm/swappiness": "60\n", "proc/sys/vm/max_map_count": "1000\n",
		"proc/sys/vm/min_free_kbytes": "1000\n", "proc/sys/vm/dirty_ratio": "40\n", "proc/sys/vm/dirty_background_ratio": "40\n",
		"sys/block/sda/queue/rotational": "1\n", "proc/self/cgroup": "0::/\n",
		"proc/77/stat":    "77 (mqx) S 1 77 77 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 9 0 1000 100000000 60000 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
		"proc/77/cmdline": "mqx\x00broker\x00start\x00", "proc/77/cgroup": "0::/pod\n", "proc/77/maps": "00-01 r--p\n",
		"sys/fs/cgroup/pod/memory.max": "251658240\n", "sys/fs/cgroup/pod/memory.current": "250000000\n",
	})
	user := 100
	p.find(t, []string{mqxBinary, "doctor", "host", "--root", root, "--for", "1s"}, func() {
		user += 1000
		write(load(user, 1000+user*10, user))
	}, fault{"cpu-hot", "", "user 100 %"}, fault{"device-saturated", "sda", "busy for"}, fault{"network-errors", "eth0", "drops"}, fault{"dirty-high", "", "Dirty 11"},
		fault{"map-count", "", "1000"}, fault{"min-free", "", "vm.min_free_kbytes is 1000"}, fault{"dirty-ratio", "", "a disk that turns"}, fault{"swappiness", "", "60"},
		fault{"container-memory", "pid 77", "its container has 240.0 MiB"})
}
