package broker

import (
	"errors"
	"testing"
	"time"

	"mqx/remoting"
)

// A master with pops in memory, whose checkpoints its fence does not let in any more, becomes a slave all the same, and the
// messages are popped again where the group goes on.
func TestDemoteWithPopsInMemory(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.PopMerge = true
	p := popping{start(t, cfg)}
	p.createTopic("T", 1)
	p.send("T", 0, "", "a")
	if got := p.collect("G", "T", 1, 60_000); len(got) != 1 {
		t.Fatalf("popped %v", got)
	}
	if p.pops.left() == 0 {
		t.Fatal("nothing is in memory: the test shows nothing")
	}
	end := p.store.LogEnd()
	if code, text := p.askHA(remoting.HAActDemote, &remoting.HADemote{ID: 1, Epoch: 1, Cut: remoting.HACut{To: -1}}, nil); code != remoting.RespSuccess {
		t.Fatal(code, text)
	}
	_ = p.c.Close()
	defer p.cancel()
	p.cancel = nil
	select {
	case err := <-p.ended:
		anew := (*ReopenError)(nil)
		if !errors.As(err, &anew) {
			t.Fatalf("Run ended with %v", err)
		}
		if anew.Err != nil {
			t.Errorf("the stop has failed: %v", anew.Err)
		}
	case <-time.After(time.Minute):
		t.Fatal("Run does not end")
	}
	if got := p.store.LogEnd(); got != end {
		t.Errorf("the log of a fenced master has grown from %d to %d", end, got)
	}
	s := start(t, cfg)
	if s.slave == nil {
		t.Error("it is no slave")
	}
}
