package broker

import (
	"testing"
	"time"

	"mqx/remoting"
)

// A demotion that is refused leaves the fence that somebody has asked for, and takes its own away.
func TestRefusedDemotionLeavesTheFence(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.createTopic("T", 1)
	r.send("T", 0, "", "x")
	demote := func() {
		t.Helper()
		if code, text := r.askHA(remoting.HAActDemote, &remoting.HADemote{ID: 1, Cut: remoting.HACut{To: 1}}, nil); code == remoting.RespSuccess {
			t.Fatalf("a cut within a record was taken: %s", text)
		}
	}
	demote()
	if why := r.fence.why(); why != "" {
		t.Errorf("fenced by a demotion that was refused: %s", why)
	}
	if code, text := r.askHA(remoting.HAActFence, &remoting.HAFence{Seconds: 300}, nil); code != remoting.RespSuccess {
		t.Fatal(code, text)
	}
	demote()
	if r.fence.why() == "" {
		t.Error("a demotion that was refused has lifted a fence that was asked for")
	}
	if code, text := r.askHA(remoting.HAActFence, &remoting.HAFence{}, nil); code != remoting.RespSuccess || r.fence.why() != "" {
		t.Errorf("it cannot be lifted: %d %s", code, text)
	}
}

// While a master becomes a slave nobody takes its messages in again: not who lifts a fence, not a fence that is shorter.
func TestFenceOfADemotion(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	undo, ok := r.fenceToGo()
	if !ok {
		t.Fatal("nobody else demotes it")
	}
	// Another demotion is refused, also one that would fail, and leaves the fence and what goes with it alone.
	for _, cut := range []int64{-1, 1} {
		if code, _ := r.askHA(remoting.HAActDemote, &remoting.HADemote{ID: 1, Cut: remoting.HACut{To: cut}}, nil); code != remoting.RespInvalidParameter || r.fence.why() == "" {
			t.Errorf("two demotions at once: %d, fenced: %q", code, r.fence.why())
		}
	}
	for _, seconds := range []int{0, 1} {
		if code, text := r.askHA(remoting.HAActFence, &remoting.HAFence{Seconds: seconds}, nil); code != remoting.RespSuccess {
			t.Fatal(code, text)
		}
		r.fence.mu.Lock()
		asked := r.fence.mu.asked
		r.fence.mu.Unlock()
		r.liftFence(asked) // as its timer would
		if r.fence.why() == "" {
			t.Errorf("a fence of %d s has lifted that of a demotion", seconds)
		}
	}
	undo()
	if why := r.fence.why(); why != "" {
		t.Errorf("fenced after a demotion that was given up: %s", why)
	}
	if code, _ := r.askHA(remoting.HAActFence, &remoting.HAFence{Seconds: 300}, nil); code != remoting.RespSuccess || r.fence.why() == "" {
		t.Errorf("no fence can be had any more: %d", code)
	}
}

// A timer that went off while a new fence was asked for does not lift that one.
func TestOldTimerLeavesANewFence(t *testing.T) {
	r := start(t, testConfig(t.TempDir()))
	r.fenceFor(time.Hour)
	r.fence.mu.Lock()
	was := r.fence.mu.asked
	r.fence.mu.Unlock()
	undo := r.fenceFor(time.Hour)
	r.liftFence(was)
	if r.fence.why() == "" {
		t.Fatal("a new fence was lifted by the timer of an old one")
	}
	undo()
	if r.fence.why() == "" {
		t.Error("the fence before is gone")
	}
	r.fenceFor(0)
	undo()
	if why := r.fence.why(); why != "" {
		t.Errorf("what somebody lifted is back: %s", why)
	}
	r.fenceFor(time.Millisecond)
	r.until("a fence for a while is not lifted", func() bool { return r.fence.why() == "" })
	r.createTopic("T", 1)
	r.send("T", 0, "", "x")
	r.giveUp(roleRival{Epoch: 9, Addr: "127.0.0.1:1"})
	undo = r.fenceFor(0)
	undo()
	if !r.fence.given() || r.fence.why() == "" {
		t.Error("the fence of a rival is gone")
	}
}
