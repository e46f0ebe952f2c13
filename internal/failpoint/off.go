//go:build !failpoint

package failpoint

// Enabled tells whether this build has the points.
const Enabled = false

// Pass does nothing in this build.
func Pass(Point) {}
