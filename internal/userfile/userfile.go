// Package userfile writes the small files that mqx keeps for the person who runs
// it: contexts, the journal of changes, plans. They are that person's alone (mode
// 0600 in directories of mode 0700), and each is there whole or not at all: written
// beside, synced, renamed.
package userfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"mqx/internal/vfs"
)

// ErrTooLarge is returned by Read for a file above its limit.
var ErrTooLarge = errors.New("the file is too large")

// ConfigDir is the directory for configuration: $XDG_CONFIG_HOME/mqx, else that of
// the system. env is os.Getenv.
func ConfigDir(env func(string) string) (string, error) {
	if dir := env("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "mqx"), nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("cannot find the directory for configuration: %w", err)
	}
	return filepath.Join(dir, "mqx"), nil
}

// StateDir is the directory for what is to survive but is no configuration:
// $XDG_STATE_HOME/mqx, else ~/.local/state/mqx, on Windows and macOS beside the
// configuration.
func StateDir(env func(string) string) (string, error) {
	if dir := env("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "mqx"), nil
	}
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		dir, err := ConfigDir(env)
		return filepath.Join(dir, "state"), err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("cannot find the directory for state: %w", err)
	}
	return filepath.Join(home, ".local", "state", "mqx"), nil
}

// Write replaces the file at path by data, making its directory where it is missing.
func Write(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot make directory %q: %w", dir, err)
	}
	tmp, err := os.CreateTemp(dir, ".mqx-*") // mode 0600
	if err != nil {
		return fmt.Errorf("cannot write file %q: %w", path, err)
	}
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err == nil {
		err = vfs.OS.SyncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("cannot write file %q: %w", path, errors.Join(err, ignoreMissing(os.Remove(tmp.Name()))))
	}
	return nil
}

// lockTime bounds how long Locked waits for another process, and lockPause is how long it rests between two looks.
const (
	lockTime  = 5 * time.Second
	lockPause = 10 * time.Millisecond
)

// Hold takes the lock of the file at path for as long as the caller keeps it; vfs.ErrLocked where another process has it.
// The lock is a file beside it that stays, and goes with its holder.
func Hold(path string) (io.Closer, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make directory %q: %w", dir, err)
	}
	return vfs.OS.Lock(filepath.Join(dir, "."+filepath.Base(path)+".lock"))
}

// Locked runs f while no other process does the same for the file at path: what f reads of it is still so when f writes.
func Locked(path string, f func() error) (err error) {
	for deadline := time.Now().Add(lockTime); ; time.Sleep(lockPause) {
		held, lockErr := Hold(path)
		if lockErr == nil {
			defer func() { err = errors.Join(err, held.Close()) }()
			return f()
		}
		if !errors.Is(lockErr, vfs.ErrLocked) || time.Now().After(deadline) {
			return fmt.Errorf("cannot lock file %q: %w", path, lockErr)
		}
	}
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Read reads a file of at most limit bytes. The error of a missing one is os.ErrNotExist.
func Read(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("cannot read file %q: %w", path, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("cannot read file %q: %w: more than %d bytes", path, ErrTooLarge, limit)
	}
	return data, nil
}
