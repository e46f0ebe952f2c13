package vfs

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Values of the kernel's interface that package unix does not have.
const (
	schedIdle       = 5       // SCHED_IDLE
	ioprioWhoThread = 1       // IOPRIO_WHO_PROCESS
	ioprioIdle      = 3 << 13 // IOPRIO_CLASS_IDLE
)

// StepBack makes the goroutine, for the rest of its life, one that the system runs when nobody else wants the processor or
// the disk. It is for the reading of a directory that a broker works on. A goroutine that was stepped back must end: its
// thread ends with it. Where the system refuses, nothing happens.
func StepBack() {
	runtime.LockOSThread()
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: uint32(unsafe.Sizeof(unix.SchedAttr{})), Policy: schedIdle}, 0)
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, ioprioWhoThread, 0, ioprioIdle)
}
