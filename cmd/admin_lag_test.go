package cmd

import (
	"errors"
	"testing"

	"mqx/admin"
	"mqx/remoting"
)

// A member that reads a queue of a broker that does not answer has a lag that is not known, and not that of its other
// queues.
func TestLagOfAClientAtASilentBroker(t *testing.T) {
	a, b := admin.QueueID{Topic: "T", Broker: "a"}, admin.QueueID{Topic: "T", Broker: "b"}
	g := &admin.GroupLag{
		Group: "g", Queues: []admin.QueueLag{{QueueID: a, Lag: remoting.Some(int64(3))}},
		Members: []admin.LagMember{{Told: true, Queues: []admin.QueueID{a, b, {Topic: "%RETRY%g", Broker: "b"}}}},
	}
	silent := []admin.TargetError{{Broker: "b", Err: errors.New("no answer")}}
	if row := lagRows("client", g, silent)[0]; row[3] != 2 || row[4] != nil {
		t.Errorf("queues %v, lag %v", row[3], row[4])
	}
	if row := lagRows("client", g, nil)[0]; row[3] != 1 || row[4] != int64(3) { // of what was asked for
		t.Errorf("queues %v, lag %v", row[3], row[4])
	}
}
