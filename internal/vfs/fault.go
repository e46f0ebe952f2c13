package vfs

import "fmt"

// OpKind names an operation that Mem can make fail.
type OpKind int

// The operations.
const (
	OpOpen OpKind = iota + 1
	OpCreate
	OpRead
	OpWrite
	OpSync
	OpSyncDir
	OpTruncate
	OpAllocate
	OpRename
	OpRemove
	OpMkdir
	OpReadDir
	OpStat
	OpLock
	OpMap
)

var opNames = map[OpKind]string{
	OpOpen: "open", OpCreate: "create", OpRead: "read", OpWrite: "write", OpSync: "sync", OpSyncDir: "syncdir",
	OpTruncate: "truncate", OpAllocate: "allocate", OpRename: "rename", OpRemove: "remove", OpMkdir: "mkdir",
	OpReadDir: "readdir", OpStat: "stat", OpLock: "lock", OpMap: "map",
}

func (k OpKind) String() string { return opNames[k] }

// Op is one operation on its way to the file system.
type Op struct {
	Kind OpKind
	Path string // cleaned
	Off  int64  // OpRead, OpWrite, OpAllocate; the new size of OpTruncate
	Len  int64
}

// ShortWrite is returned by a hook for OpWrite and lets the first N bytes reach the file before the write fails with Err.
type ShortWrite struct {
	N   int
	Err error
}

func (e *ShortWrite) Error() string { return fmt.Sprintf("short write of %d bytes: %v", e.N, e.Err) }

// Unwrap returns the cause.
func (e *ShortWrite) Unwrap() error { return e.Err }

// Inject installs a hook that sees every operation before it happens; the operation fails with what the hook returns.
// The hook may block, and may use the file system. nil takes it away.
func (m *Mem) Inject(hook func(Op) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.inject = hook
}
