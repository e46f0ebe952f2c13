package vfs

import (
	"os"
	"runtime"
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
			_ = stepBack(tid)
			_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, ioprioWhoThread, uintptr(tid), ioprioIdle)
			done[tid], more = true, true
		}
	}
}

// stepBack makes a thread, 0 is the calling one, run when nobody else wants the processor.
func stepBack(tid int) error {
	return unix.SchedSetAttr(tid, &unix.SchedAttr{Size: uint32(unsafe.Sizeof(unix.SchedAttr{})), Policy: schedIdle}, 0)
}

// Aside calls f on a thread of its own, which the system runs when nobody else wants the processor, and returns when f has.
// Where the system refuses, f runs as everything else does. Whoever waits for a lock that f holds waits as long.
func Aside(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: a thread may not take that back, and this one ends with the goroutine
		_ = stepBack(0)
		f()
	}()
	<-done
}
