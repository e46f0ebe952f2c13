package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"testing"
)

// AT09: servers start with some tens of MiB, where Apache's scripts ask for gigabytes.
func TestServersStartSmall(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no /proc here")
	}
	t.Parallel()
	ns, br := freePort(t), freePort(t)
	nameServer := mqxNameserver(t, ns)
	nameServer.cleanup(t)
	broker := mqxBroker(t, brokerSpec{port: br, namesrv: loopback(ns), store: filepath.Join(testDir(t, "small"), "store")})
	broker.cleanup(t)
	waitRegistered(t, loopback(ns))
	const most = 160 << 10 // KiB: where the machine is busy, garbage waits longer to be collected
	for _, p := range []*process{nameServer, broker} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
		if err != nil {
			t.Fatalf("%s has ended: %v", p.name, err)
		}
		m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
		if m == nil {
			t.Fatalf("no VmHWM in the status of %s", p.name)
		}
		if kib, err := strconv.Atoi(string(m[1])); err != nil || kib > most {
			t.Errorf("%s takes %d KiB after its start: %v", p.name, kib, err)
		}
	}
}
