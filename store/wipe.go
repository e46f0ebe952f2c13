package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"mqx/internal/vfs"
)

// wiped are the parts of a store directory that hold the log or come of it.
var wiped = []string{"commitlog", "consumequeue", "batchconsumequeue", "consumequeue_ext", "index", "timerwheel", "timerlog", "checkpoint", filepath.Join(ownDir, stopName), filepath.Join(ownDir, durableName), filepath.Join(ownDir, deletedName), filepath.Join(ownDir, endsName), filepath.Join(ownDir, heldName)}

// Wipe takes the log of a closed store and everything that comes of it away, so that a slave gets it anew. It is moved to
// mqx/salvage/name, a commit log that lies elsewhere to a directory beside it, or removed with discard. Each step is durable;
// one that was interrupted is finished by the next Wipe of that name.
func Wipe(cfg Config, name string, discard bool) error {
	cfg.setDefaults()
	lock, err := lockDir(cfg.FS, cfg.RootDir)
	if err != nil {
		return err
	}
	err = wipe(&cfg, name, discard)
	return errors.Join(err, lock.Close())
}

func wipe(cfg *Config, name string, discard bool) error {
	keep := filepath.Join(cfg.RootDir, ownDir, salvageDir, name)
	if err := vfs.MkdirAllDurable(cfg.FS, keep); err != nil {
		return fmt.Errorf("cannot make the log anew: %w", err)
	}
	log := cfg.commitLogDir()
	for _, part := range wiped {
		from, to := filepath.Join(cfg.RootDir, part), filepath.Join(keep, filepath.Base(part))
		if part == "commitlog" && filepath.Clean(from) != filepath.Clean(log) {
			from, to = log, filepath.Clean(log)+"."+name
		}
		if err := takeAway(cfg.FS, from, to, discard); err != nil {
			return fmt.Errorf("cannot make the log anew: %w", err)
		}
	}
	return nil
}

func takeAway(fsys vfs.FS, from, to string, discard bool) error {
	switch _, err := fsys.Stat(from); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	if discard {
		if err := fsys.RemoveAll(from); err != nil {
			return err
		}
		return fsys.SyncDir(filepath.Dir(from))
	}
	if err := fsys.Rename(from, to); err != nil {
		return err
	}
	return errors.Join(fsys.SyncDir(filepath.Dir(to)), fsys.SyncDir(filepath.Dir(from)))
}
