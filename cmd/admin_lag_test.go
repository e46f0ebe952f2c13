package cmd

import (
	"errors"
	"testing"
	"time"

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

// What brokers have not told is in no sum, and a monitoring system is told so by name.
func TestLagReportOfAPart(t *testing.T) {
	whole := admin.GroupLag{Group: "g", Queues: []admin.QueueLag{{Lag: remoting.Some(int64(30)), Age: remoting.Some(time.Minute)}}}
	ageless := admin.GroupLag{Group: "g", Queues: []admin.QueueLag{{Lag: remoting.Some(int64(30))}}}
	unknown := admin.GroupLag{Group: "g", Queues: []admin.QueueLag{{Lag: remoting.Some(int64(30)), Age: remoting.Some(time.Minute)}, {}}}
	silent := []admin.TargetError{{Broker: "b"}, {Broker: "a"}, {Broker: "b"}}
	for _, tc := range []struct {
		name    string
		group   admin.GroupLag
		errs    []admin.TargetError
		o       lagGetOptions
		state   Exit
		text    string
		figures string
	}{
		{"all told", whole, nil, lagGetOptions{warn: 10}, nagiosWarning, "30 messages behind in 1 group, the oldest since 1m0s", "lag=30;10;;0 age=60.000s;;;0"},
		{
			"brokers are silent", whole, silent,
			lagGetOptions{warn: 10, crit: 100},
			nagiosUnknown,
			"at least 30 messages behind in 1 group, the oldest since 1m0s, no answer from broker a, b", "lag=U;10;100;0 age=U;;;0",
		},
		{
			"bad enough already", whole, silent,
			lagGetOptions{crit: 30},
			nagiosCritical,
			"at least 30 messages behind in 1 group, the oldest since 1m0s, no answer from broker a, b", "lag=U;;30;0 age=U;;;0",
		},
		{
			"an offset is not known", unknown, nil,
			lagGetOptions{warn: 10},
			nagiosUnknown,
			"at least 30 messages behind in 1 group, the oldest since 1m0s, the lag of 1 queue is not known", "lag=U;10;;0 age=U;;;0",
		},
		{"an age is not known", ageless, nil, lagGetOptions{warnAge: time.Hour}, nagiosUnknown, "30 messages behind in 1 group, the age in 1 queue is not known", "lag=30;;;0 age=U;3600;;0"},
		{"nobody asks for the age", ageless, nil, lagGetOptions{warn: 100}, nagiosOK, "30 messages behind in 1 group", "lag=30;100;;0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			state, text, figures := lagReport(&tc.o, &admin.Lag{Groups: []admin.GroupLag{tc.group}, Errors: tc.errs})
			if state != tc.state || text != tc.text || figures != tc.figures {
				t.Errorf("%v %q %q", state, text, figures)
			}
		})
	}
}
