package vfs

import (
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Values of the kernel's interface that package unix does not have.
const (
	schedIdle       = 5       // SCHED_IDLE
	ioprioWhoThread = 1       // IOPRIO_WHO_PROCESS
	ioprioIdle      = 3 << 13 // IOPRIO_CLASS_IDLE
)

// StepBack makes this process one that the system runs when nobody else wants the processor or the disk, for the rest of
// its life. It is for a program that reads a directory that a broker works on. Where the system refuses, nothing happens.
func StepBack() {
	done := map[int]bool{}
	for more := true; more; { // a thread that begins meanwhile is like the one that began it, or is seen the next time
		more = false
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return
		}
		for _, t := range tasks {
			tid, err := strconv.Atoi(t.Name())
			if err != nil || done[tid] {
				continue
			}
			_ = unix.SchedSetAttr(tid, &unix.SchedAttr{Size: uint32(unsafe.Sizeof(unix.SchedAttr{})), Policy: schedIdle}, 0)
			_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, ioprioWhoThread, uintptr(tid), ioprioIdle)
			done[tid], more = true, true
		}
	}
}
