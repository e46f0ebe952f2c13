package vfs

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// What runs aside has a thread of its own, which others do not get.
func TestAside(t *testing.T) {
	policy := func() (tid int, policy uint32) {
		a, err := unix.SchedGetAttr(0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return unix.Gettid(), a.Policy
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, before := policy()
	var tid int
	var during uint32
	Aside(func() { tid, during = policy() })
	if tid == own || during != schedIdle {
		t.Errorf("thread %d has policy %d, want another than %d with %d", tid, during, own, schedIdle)
	}
	if _, after := policy(); after != before {
		t.Errorf("the policy is %d afterwards, was %d", after, before)
	}
}
