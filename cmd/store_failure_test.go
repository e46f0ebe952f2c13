package cmd

import (
	"fmt"
	"syscall"
	"testing"
)

// What a disk says gets a reason and a way out too.
func TestStoreFailureOfDisk(t *testing.T) {
	for _, err := range []error{syscall.ENOSPC, syscall.EIO, syscall.ENOTDIR} {
		f, ok := storeFailure("d", fmt.Errorf("cannot read: %w", err)).(*Failure) //nolint:errorlint // this very one
		if !ok || f.Why == "" || f.Try == "" || f.Code != ExitFailed {
			t.Errorf("%v: %+v", err, f)
		}
	}
}
