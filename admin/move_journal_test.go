package admin

import (
	"errors"
	"path/filepath"
	"testing"

	"mqx/admin/move"
	"mqx/internal/vfs"
	"mqx/remoting"
)

// The journal is deleted under a plan: its owner writes it anew, and without an owner the copy of
// a machine is gone on from.
func TestMoveJournalLost(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a")
	startBroker(t, ns, "d")
	c := patientClient(t, ns)
	ctx := t.Context()
	create(t, c, Target{Broker: "a"}, TopicSpec{Name: "T", ReadQueues: 2, WriteQueues: 2})
	plan, err := c.PlanMove(ctx, moveAsk("T", "d"))
	if err != nil || len(plan.Problems) > 0 {
		t.Fatalf("%v %v", plan, err)
	}
	file := filepath.Join(t.TempDir(), "copy.json")
	id := plan.State.ID
	run, err := c.StartMove(ctx, plan, MoveOptions{Owner: "one", File: file})
	if err != nil {
		t.Fatal(err)
	}
	host := mustBrokers(t, c, TopicMoves)[0]
	lose := func() {
		t.Helper()
		if _, err := c.ask(ctx, host.Addr, remoting.NewRequest(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicHeader{Topic: TopicMoves})); err != nil {
			t.Fatal(err)
		}
	}
	runMove(t, run, move.Created)
	lose()
	runMove(t, run, move.Visible)
	if err := run.Close(ctx); err != nil {
		t.Error(err)
	}
	if st, err := c.GetMove(ctx, id); err != nil || st.Phase != move.Visible {
		t.Fatalf("the owner left %+v, %v", st, err)
	}
	lose()
	if _, err := c.OpenMove(ctx, id, MoveOptions{Owner: "two"}); !errors.Is(err, move.ErrNoPlan) {
		t.Fatalf("without a copy: %v", err)
	}
	if _, err := MoveCopy(vfs.OS, filepath.Join(t.TempDir(), "none")); !errors.Is(err, move.ErrNoPlan) {
		t.Fatalf("a copy that is not there: %v", err)
	}
	run, err = c.OpenMove(ctx, id, MoveOptions{Owner: "three", File: file})
	if err != nil {
		t.Fatal(err)
	}
	if end := runMove(t, run, ""); end != move.Done {
		t.Fatalf("ended at %s", end)
	}
	if err := run.Close(ctx); err != nil {
		t.Error(err)
	}
	checkOnlyOn(t, c, "T", "d")
}
