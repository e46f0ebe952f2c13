package cmd

import (
	"fmt"
	"syscall"
	"testing"
)

// What a disk says gets a reason and a way out too.
func TestStoreFailureOfDisk(t *testing.T) {
	for err, code := range map[error]Exit{syscall.ENOSPC: ExitFailed, syscall.EIO: ExitFailed, syscall.ENOTDIR: ExitFailed, syscall.EROFS: ExitDenied} {
		f, ok := storeFailure("d", fmt.Errorf("cannot read: %w", err)).(*Failure) //nolint:errorlint // this very one
		if !ok || f.Why == "" || f.Try == "" || f.Code != code {
			t.Errorf("%v: %+v", err, f)
		}
	}
}
