// Package hostinfo reads what Linux tells of the machine and of a process on it: load,
// processors, memory, devices, networks, sockets, limits, kernel settings. It is the one
// door to procfs.
//
// Each part that cannot be read stays nil and has its reason in Errors, so that unknown
// is never zero. On other systems everything is unknown.
package hostinfo

import (
	"errors"
	"time"
)

// Reader reads a machine. It holds nothing open and is safe to share.
type Reader struct{ proc, sys string }

// New reads the machine whose proc and sys lie below root: "/" is this one.
func New(root string) *Reader { return newReader(root) }

// ErrUnsupported says that this system does not tell.
var ErrUnsupported = errors.ErrUnsupported

// Sample is the machine at one time. Counters count since it was started.
type Sample struct {
	At         time.Time
	Processors int // 0: unknown
	Load       *Load
	CPU        *CPU
	Memory     *Memory
	Devices    []Device         // nil: unknown; sorted by name
	Interfaces []Interface      // nil: unknown; sorted by name
	TCP        map[string]int64 // sockets by state, of IPv4 and IPv6; nil: unknown
	// Sysctl are settings of the kernel by their names (vm.swappiness); one that the
	// kernel does not have is not there.
	Sysctl map[string]int64
	// Container is the limit of the control group of the process that was asked for,
	// nil where there is none or it is not known.
	Container *Container
	Errors    []error
}

// Load is the number of tasks that ran or waited, over 1, 5 and 15 minutes.
type Load struct{ One, Five, Fifteen float64 }

// CPU is the time of all processors together, in seconds by mode.
type CPU struct{ User, Nice, System, Idle, IOWait, IRQ, SoftIRQ, Steal float64 }

// Total is the time of all modes.
func (c *CPU) Total() float64 {
	return c.User + c.Nice + c.System + c.Idle + c.IOWait + c.IRQ + c.SoftIRQ + c.Steal
}

// Memory is in bytes; nil is unknown.
type Memory struct{ Total, Available, Dirty, Writeback, SwapTotal, SwapFree *int64 }

// Device is a block device.
type Device struct {
	Name                  string
	Reads, Writes         int64         // operations that were completed
	ReadBytes, WriteBytes int64         //
	Busy                  time.Duration // at least one operation was under way
	Rotational            *bool         // nil: unknown
}

// Interface is a network interface.
type Interface struct {
	Name                       string
	ReceivedBytes, SentBytes   int64
	ReceivedDrops, SentDrops   int64
	ReceivedErrors, SentErrors int64
}

// Container is the memory control group of a process.
type Container struct {
	Path    string // the group, as its file system names it
	Limit   int64  // bytes
	Used    *int64 // bytes; nil: unknown
	Version int    // 1 or 2
}

// The names of the TCP states, by the number that the kernel writes.
var tcpStates = map[string]string{
	"01": "established", "02": "syn-sent", "03": "syn-received", "04": "fin-wait-1", "05": "fin-wait-2", "06": "time-wait",
	"07": "close", "08": "close-wait", "09": "last-ack", "0A": "listen", "0B": "closing", "0C": "new-syn-received",
}

// sysctls are the settings that a sample has.
var sysctls = []string{
	"vm.max_map_count", "vm.min_free_kbytes", "vm.dirty_background_ratio", "vm.dirty_ratio", "vm.dirty_background_bytes", "vm.dirty_bytes",
	"vm.swappiness", "vm.extra_free_kbytes", "vm.overcommit_memory", "fs.file-max", "net.core.somaxconn",
}

// OpenFile is a regular file that a process has open.
type OpenFile struct {
	FD   int
	Path string // as the process has it; a name that is gone ends with " (deleted)"
}

// Process is one process at one time; nil is unknown.
type Process struct {
	PID          int
	Command      []string
	User, System float64 // seconds of processor time in user mode and in the kernel
	Resident     int64   // bytes
	Threads      int
	Started      time.Time
	Open         *int64 // descriptors
	MaxOpen      *int64 // descriptors that it may have
	Maps         *int64 // mappings
	Container    *Container
}

// Disk is the volume that a directory lies on.
type Disk struct {
	Path        string
	Total, Free int64  // bytes, as df counts them
	Device      string // of the block device, as in Sample.Devices; empty: unknown
	Rotational  *bool  // nil: unknown
}
