//go:build failpoint

package failpoint

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// Enabled tells whether this build has the points.
const Enabled = true

// armed is the point to die at; the countdown says at which passing.
var armed, countdown = arm(os.Getenv(Env))

func arm(spec string) (Point, *atomic.Int64) {
	p, n, err := parse(spec)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	c := &atomic.Int64{}
	c.Store(n)
	return p, c
}

// parse reads "name" or "name:n"; the empty text names no point.
func parse(spec string) (Point, int64, error) {
	if spec == "" {
		return "", 0, nil
	}
	name, count, counted := strings.Cut(spec, ":")
	n := int64(1)
	if counted {
		var err error
		if n, err = strconv.ParseInt(count, 10, 64); err != nil || n < 1 {
			return "", 0, fmt.Errorf("cannot use %s=%q: %q is no number from 1", Env, spec, count)
		}
	}
	if !slices.Contains(all, Point(name)) {
		return "", 0, fmt.Errorf("cannot use %s=%q: no such point", Env, spec)
	}
	return Point(name), n, nil
}

// Pass ends the process at once if p is the armed point and its time has come. Then it does not return.
func Pass(p Point) {
	if p != armed || countdown.Add(-1) != 0 {
		return
	}
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {} // until the signal arrives
}
