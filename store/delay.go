package store

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// maxDelay bounds a delay level: 100 years, so that no sum of a time and a delay overflows.
const maxDelay = 100 * 365 * 24 * time.Hour

var delayUnits = map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}

// ParseDelayLevels reads messageDelayLevel: numbers with a unit s, m, h or d, separated by any number of blanks. The
// first is level 1. A text without a level is an error.
func ParseDelayLevels(text string) ([]time.Duration, error) {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return nil, fmt.Errorf("%q holds no level, wanted numbers followed by s, m, h or d, separated by blanks", text)
	}
	out := make([]time.Duration, 0, len(fields))
	for i, f := range fields {
		unit, ok := delayUnits[f[len(f)-1]]
		n, err := strconv.ParseInt(f[:len(f)-1], 10, 32)
		if !ok || err != nil || n < 0 || n > int64(maxDelay/unit) {
			return nil, fmt.Errorf("level %d is %q, wanted a number followed by s, m, h or d, up to %d days", i+1, f, maxDelay/(24*time.Hour))
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
