package store

import (
	"os"
	"strconv"
	"strings"
)

// fallbackMemory is assumed where the system does not say how much there is.
const fallbackMemory = 4 << 30

// physicalMemory is the memory this process can use in bytes: that of the machine, or of its control group.
func physicalMemory() int64 {
	total := int64(fallbackMemory)
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) >= 2 && f[0] == "MemTotal:" {
				if kib, err := strconv.ParseInt(f[1], 10, 64); err == nil {
					total = kib << 10
				}
			}
		}
	}
	if b, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && n > 0 {
			total = min(total, n)
		}
	}
	return total
}
