package inspect

import "testing"

// SetPartBytes makes Scan divide the log into smaller parts for one test.
func SetPartBytes(t *testing.T, n int64) {
	t.Helper()
	old := partBytes
	partBytes = n
	t.Cleanup(func() { partBytes = old })
}

// InParts are options of Verify that divide log files into smaller parts.
func InParts(n int64) VerifyOptions { return VerifyOptions{partBytes: n} }
