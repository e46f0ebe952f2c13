package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// AT09: servers start with some tens of MiB, where Apache's scripts ask for gigabytes.
func TestServersStartSmall(t *testing.T) {
	t.Parallel()
	ns, br := freePort(t), freePort(t)
	nameServer := mqxNameserver(t, ns)
	nameServer.cleanup(t)
	broker := mqxBroker(t, brokerSpec{port: br, namesrv: loopback(ns), store: filepath.Join(testDir(t, "small"), "store")})
	broker.cleanup(t)
	waitRegistered(t, loopback(ns))
	for _, p := range []*process{nameServer, broker} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
		if err != nil {
			t.Skipf("no /proc here: %v", err)
		}
		m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
		if m == nil {
			t.Fatalf("no VmHWM in the status of %s", p.name)
		}
		if kib, err := strconv.Atoi(string(m[1])); err != nil || kib > 80<<10 {
			t.Errorf("%s takes %d KiB after its start: %v", p.name, kib, err)
		}
	}
}
