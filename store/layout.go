package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"mqx/internal/vfs"
)

// Names in a store directory, see docs/format/layout.md.
const (
	lockName       = "lock"
	lockText       = "lock"
	abortName      = "abort"
	abortBackup    = "abort.bak"
	ownDir         = "mqx" // what is not Apache's lies here
	salvageDir     = "salvage"
	maxPIDFileSize = 64
)

// lockDir takes the lock of a store directory, which excludes another broker, a Java one included.
func lockDir(fsys vfs.FS, root string) (io.Closer, error) {
	path := filepath.Join(root, lockName)
	if err := writeLockText(fsys, path); err != nil {
		return nil, fmt.Errorf("cannot lock store %q: %w", root, err)
	}
	l, err := fsys.Lock(path)
	if errors.Is(err, vfs.ErrLocked) {
		pid, _ := readPID(fsys, root)
		return nil, &LockedError{Dir: root, PID: vfs.Holder(fsys, path, pid)}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock store %q: %w", root, err)
	}
	return l, nil
}

// LockDir takes the lock of a store directory as a broker does: for tools that change it. Errors: *LockedError.
func LockDir(fsys vfs.FS, root string) (io.Closer, error) { return lockDir(fsys, root) }

// writeLockText gives a new lock file its content, before it is locked: closing a file would end a lock on some systems.
func writeLockText(fsys vfs.FS, path string) error {
	if st, err := fsys.Stat(path); err == nil && st.Size() > 0 {
		return nil
	}
	f, err := fsys.OpenFile(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(lockText), 0)
	return errors.Join(err, f.Close())
}

// readPID reads the process that left `abort` behind, or holds it; 0 when the file does not say. exists tells whether
// there is the file.
func readPID(fsys vfs.FS, root string) (pid int, exists bool) {
	path := filepath.Join(root, abortName)
	st, err := fsys.Stat(path)
	if err != nil {
		return 0, !errors.Is(err, fs.ErrNotExist)
	}
	if st.Size() > maxPIDFileSize {
		return 0, true
	}
	b, err := vfs.ReadFile(fsys, path)
	if err != nil {
		return 0, true
	}
	pid, err = strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid < 0 {
		return 0, true
	}
	return pid, true
}

// writeAbort leaves the mark of a store in use, durably, with the empty backup that Apache puts beside it.
func writeAbort(fsys vfs.FS, root string) error {
	bak := filepath.Join(root, abortBackup)
	if _, err := fsys.Stat(bak); errors.Is(err, fs.ErrNotExist) {
		f, err := fsys.OpenFile(bak, os.O_RDWR|os.O_CREATE)
		if err != nil {
			return fmt.Errorf("cannot mark store as in use: %w", err)
		}
		if err := f.Close(); err != nil {
			return fmt.Errorf("cannot mark store as in use: %w", err)
		}
	}
	if err := vfs.WriteFileDurable(fsys, filepath.Join(root, abortName), []byte(strconv.Itoa(os.Getpid()))); err != nil {
		return fmt.Errorf("cannot mark store as in use: %w", err)
	}
	return nil
}

// removeAbort takes the mark away, durably.
func removeAbort(fsys vfs.FS, root string) error {
	if err := fsys.Remove(filepath.Join(root, abortName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot mark store as closed: %w", err)
	}
	if err := fsys.SyncDir(root); err != nil {
		return fmt.Errorf("cannot mark store as closed: %w", err)
	}
	return nil
}

// foreign are the parts of a store directory that say it is of a kind that is not served. A row applies when the
// directory exists and holds something.
var foreign = []struct {
	path string
	kind string
	hint string
}{
	{
		"consumequeue_rocksdb", "consume queues in RocksDB (storeType=defaultRocksDB)",
		"let Apache's broker convert it, or move the directory away to have the queues built again from the log",
	},
	{"compaction/compactionLog", "compaction topics", "stores with compaction topics are not served"},
	{"compaction/compactionCq", "compaction topics", "stores with compaction topics are not served"},
	{
		"config/topics", "topics in RocksDB (configManagerVersion v2 or storeType=defaultRocksDB)",
		"export them with Apache's rocksDBConfigToJson first",
	},
	{
		"config/subscriptionGroups", "groups in RocksDB (configManagerVersion v2 or storeType=defaultRocksDB)",
		"export them with Apache's rocksDBConfigToJson first",
	},
	{
		"config/consumerOffsets", "offsets in RocksDB (configManagerVersion v2 or storeType=defaultRocksDB)",
		"export them with Apache's rocksDBConfigToJson first",
	},
	{
		"config/metadata", "configuration in RocksDB (configManagerVersion v2)",
		"export it with Apache's rocksDBConfigToJson first",
	},
}

// checkKind refuses store directories of a kind that is not served, by name.
func checkKind(fsys vfs.FS, root string) error {
	for _, f := range foreign {
		path := filepath.Join(root, filepath.FromSlash(f.path))
		entries, err := fsys.ReadDir(path)
		if err != nil || len(entries) == 0 {
			continue // missing, or a file, or empty
		}
		return &LayoutError{Dir: root, What: fmt.Sprintf("%q holds %s", path, f.kind), Hint: f.hint}
	}
	entries, err := fsys.ReadDir(root)
	if err != nil {
		return fmt.Errorf("cannot open store %q: %w", root, err)
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), "dledger-") {
			return &LayoutError{
				Dir: root, What: fmt.Sprintf("%q is a DLedger commit log (enableDLegerCommitLog)", filepath.Join(root, e.Name())),
				Hint: "DLedger stores are not served",
			}
		}
	}
	return nil
}
