package commitlog

import (
	"fmt"
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

// Config describes a log. Zero values take the defaults given here.
type Config struct {
	FS       vfs.FS // default vfs.OS
	Dir      string // directory of the files; created when missing, unless ReadOnly
	FileSize int64  // size of new files in bytes, 1 GiB; the size of files found in Dir takes precedence
	ReadOnly bool   // change nothing on disk: tools beside a running broker

	FlushMode             FlushMode
	FlushInterval         time.Duration // how long appended bytes may wait for a sync when nobody asks, 500 ms
	FlushLeastPages       int           // pages of 4 KiB that make a sync after FlushInterval worth it, 4
	FlushThoroughInterval time.Duration // a sync of whatever there is at least so often, 10 s
	SyncFlushTimeout      time.Duration // WaitFlushed gives up after, 5 s

	ReserveStep  int64 // bytes reserved at once ahead of the writer, 64 MiB
	PropCRC      bool  // records carry a checksum property that AppendBatch must seal
	MaxOpenFiles int   // files kept open at once beside those not flushed yet, 256

	// Together, if set, calls the function it is given once: that calls back all who one sync has served.
	Together func(func())

	Clock  clock.Clock  // default clock.System
	Logger *slog.Logger // default slog.Default
}

const (
	defaultFileSize     = 1 << 30
	defaultReserveStep  = 64 << 20
	defaultMaxOpenFiles = 256
	flushPage           = 4096

	// minFileSize is the least size of a file: a record and a blank must fit.
	minFileSize = 4096
	// maxRecordSize is the longest record that is taken for one. Nothing longer can come in over the wire, where a
	// frame has at most 16 MiB.
	maxRecordSize = 32 << 20
)

func (c Config) withDefaults() (Config, error) {
	if c.FS == nil {
		c.FS = vfs.OS
	}
	if c.Clock == nil {
		c.Clock = clock.System
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	setDefault(&c.FileSize, defaultFileSize)
	setDefault(&c.ReserveStep, defaultReserveStep)
	setDefault(&c.MaxOpenFiles, defaultMaxOpenFiles)
	setDefault(&c.FlushInterval, 500*time.Millisecond)
	setDefault(&c.FlushLeastPages, 4)
	setDefault(&c.FlushThoroughInterval, 10*time.Second)
	setDefault(&c.SyncFlushTimeout, 5*time.Second)
	if c.Dir == "" {
		return c, fmt.Errorf("cannot open commit log: no directory given")
	}
	if c.FileSize < minFileSize {
		return c, fmt.Errorf("cannot open commit log %q: file size %d is below %d", c.Dir, c.FileSize, minFileSize)
	}
	return c, nil
}

func setDefault[T ~int | ~int64](v *T, def T) {
	if *v <= 0 {
		*v = def
	}
}
