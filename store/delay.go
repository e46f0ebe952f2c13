package store

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// parseDelayLevels reads messageDelayLevel: blank-separated numbers with a unit s, m, h or d.
func parseDelayLevels(s string) ([]time.Duration, error) {
	var out []time.Duration
	for i, f := range strings.Fields(s) {
		unit, ok := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[f[len(f)-1]]
		n, err := strconv.ParseInt(f[:len(f)-1], 10, 32)
		if !ok || err != nil || n < 0 {
			return nil, fmt.Errorf("level %d is %q, wanted a number followed by s, m, h or d", i+1, f)
		}
		out = append(out, time.Duration(n)*unit)
	}
	return out, nil
}

// parseHours reads deleteWhen: hours of the day separated by `;`.
func parseHours(s string) ([]int, error) {
	var out []int
	for f := range strings.SplitSeq(s, ";") {
		if f = strings.TrimSpace(f); f == "" {
			continue
		}
		h, err := strconv.Atoi(f)
		if err != nil || h < 0 || h > 23 {
			return nil, fmt.Errorf("hour %q, wanted 00 to 23", f)
		}
		out = append(out, h)
	}
	return out, nil
}
