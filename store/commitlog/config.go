package commitlog

import (
	"log/slog"
	"time"

	"mqx/internal/clock"
	"mqx/internal/vfs"
)

// FlushMode says when a record counts as stored.
type FlushMode int

const (
	// AsyncFlush syncs every FlushInterval, on its own.
	AsyncFlush FlushMode = iota
	// SyncFlush syncs as soon as somebody waits, many waiters at once.
	SyncFlush
)

// AppendMode says how bytes get into the file.
type AppendMode int

const (
	// AppendDefault is the faster one of the other two by measurement (docs/performance.md, "append").
	AppendDefault AppendMode = iota
	// AppendPwrite writes a batch by one pwrite.
	AppendPwrite
	// AppendMap copies a batch into the mapped file.
	AppendMap
)

// Config describes a log. Zero values take the defaults given here.
type Config struct {
	FS       vfs.FS // default vfs.OS
	Dir      string // directory of the files; created when missing, unless ReadOnly
	FileSize int64  // size of new files in bytes, 1 GiB; the size of files found in Dir takes precedence
	ReadOnly bool   // change nothing on disk: tools beside a running broker

	FlushMode             FlushMode
	FlushInterval         time.Duration // AsyncFlush: 500 ms
	FlushLeastPages       int           // AsyncFlush: pages of 4 KiB that make a sync worth it, 4
	FlushThoroughInterval time.Duration // AsyncFlush: sync whatever there is, 10 s
	SyncFlushTimeout      time.Duration // WaitFlushed gives up after, 5 s

	Append       AppendMode
	ReserveStep  int64 // bytes kept reserved ahead of the writer, 64 MiB
	PropCRC      bool  // records carry a checksum property that Append must seal
	MaxOpenFiles int   // files kept open at once beside the newest, 256

	Clock  clock.Clock  // default clock.System
	Logger *slog.Logger // default slog.Default
}
