package admin

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"mqx/remoting"
	"mqx/remoting/server"
)

// member is a push consumer that has run for an hour.
func member(id string, now time.Time, orderly bool, queues map[remoting.MessageQueue]remoting.ProcessQueueInfo, subs ...remoting.SubscriptionData) MemberStatus {
	return MemberStatus{GroupMember: GroupMember{ClientID: id}, Addrs: []string{"10.0.0.1:1"}, Info: &remoting.ConsumerRunningInfo{
		MQTable: queues, SubscriptionSet: subs,
		Properties: map[string]string{
			remoting.PropConsumeType: remoting.ConsumePassively, remoting.PropConsumeOrderly: strconv.FormatBool(orderly),
			remoting.PropConsumerStartTimestamp: strconv.FormatInt(now.Add(-time.Hour).UnixMilli(), 10),
		},
	}}
}

func TestFindings(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	q := func(id int32) remoting.MessageQueue {
		return remoting.MessageQueue{Topic: "T", BrokerName: "a", QueueID: id}
	}
	sub := func(topic, text string) remoting.SubscriptionData {
		return remoting.SubscriptionData{Topic: topic, SubString: text, ExpressionType: remoting.ExpressionTag}
	}
	has := func(ids ...int32) map[remoting.MessageQueue]remoting.ProcessQueueInfo {
		m := map[remoting.MessageQueue]remoting.ProcessQueueInfo{}
		for _, id := range ids {
			m[q(id)] = remoting.ProcessQueueInfo{LastConsumeTimestamp: now.UnixMilli(), LastLockTimestamp: now.UnixMilli()}
		}
		return m
	}
	late := func(p remoting.ProcessQueueInfo) map[remoting.MessageQueue]remoting.ProcessQueueInfo {
		return map[remoting.MessageQueue]remoting.ProcessQueueInfo{q(0): p}
	}
	queues := []remoting.MessageQueue{q(0), q(1)}
	silent := MemberStatus{GroupMember: GroupMember{ClientID: "y"}, Err: errors.New("no answer")}
	twice := member("x", now, false, has(0, 1), sub("T", "*"))
	twice.Addrs = []string{"10.0.0.1:1", "10.0.0.1:2", "10.0.0.2:1"}
	young := member("x", now, false, has(0), sub("T", "*"))
	young.Info.Properties[remoting.PropConsumerStartTimestamp] = strconv.FormatInt(now.Add(-time.Second).UnixMilli(), 10)
	for _, tc := range []struct {
		name    string
		members []MemberStatus
		queues  []remoting.MessageQueue
		want    []string
	}{
		{"all is well", []MemberStatus{member("x", now, false, has(0), sub("T", "*")), member("y", now, false, has(1), sub("T", "*"))}, queues, nil},
		{"a queue of nobody", []MemberStatus{member("x", now, false, has(0), sub("T", "*"))}, queues, []string{FindingNoOwner}},
		{"not settled yet", []MemberStatus{young}, queues, nil},
		{"a queue of two, a client of none", []MemberStatus{
			member("x", now, false, has(0, 1), sub("T", "*")), member("y", now, false, has(1), sub("T", "*")), member("z", now, false, nil, sub("T", "*")),
		}, queues, []string{FindingNoQueue, FindingTwoOwners}},
		{"another filter", []MemberStatus{member("x", now, false, has(0), sub("T", "A")), member("y", now, false, has(1), sub("T", "B"))}, queues, []string{FindingSubscription}},
		{"another topic", []MemberStatus{member("x", now, false, has(0), sub("T", "*")), member("y", now, false, has(1), sub("U", "*"))}, nil, []string{FindingSubscription}},
		{"retry topics do not count", []MemberStatus{member("x", now, false, has(0), sub("%RETRY%g", "*")), member("y", now, false, has(1))}, nil, nil},
		{"messages lie there", []MemberStatus{member("x", now, false, late(remoting.ProcessQueueInfo{CachedMsgCount: 3, LastConsumeTimestamp: now.Add(-2 * time.Minute).UnixMilli()}))}, nil, []string{FindingBlocked}},
		{"none lie there", []MemberStatus{member("x", now, false, late(remoting.ProcessQueueInfo{LastConsumeTimestamp: now.Add(-2 * time.Minute).UnixMilli()}))}, nil, nil},
		{"no lock", []MemberStatus{member("x", now, true, late(remoting.ProcessQueueInfo{LastLockTimestamp: now.Add(-time.Minute).UnixMilli()}))}, nil, []string{FindingNotLocked}},
		{"locked for ever", []MemberStatus{member("x", now, true, late(remoting.ProcessQueueInfo{Locked: true, Dropped: true, TryUnlockTimes: 3}))}, nil, []string{FindingUnlock}},
		{"no answer", []MemberStatus{member("x", now, false, has(0), sub("T", "*")), silent}, nil, []string{FindingNoAnswer}},
		{"one id, two hosts", []MemberStatus{twice}, queues, []string{FindingSameID}},
	} {
		var got []string
		for _, f := range findings(&GroupStatus{Members: tc.members}, tc.queues, now) {
			got = append(got, f.Kind)
			if f.Text == "" {
				t.Errorf("%s: %s says nothing", tc.name, f.Kind)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

// A member that cannot say what it does, as the Go client in its first seconds, is a
// finding: the others and what the brokers know of it stand.
func TestGroupStatusOfAClientThatFails(t *testing.T) {
	ns := startNameServer(t)
	c := newClient(t, ns)
	handlers := map[int32]func(*server.Request){
		remoting.ReqGetConsumerConnectionList: func(r *server.Request) {
			resp := remoting.NewResponse(&r.Command, remoting.RespSuccess, "")
			resp.Body = []byte(`{"connectionSet":[{"clientAddr":"10.0.0.1:1","clientId":"go","language":"GO","version":317}],"consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING","subscriptionTable":{}}`)
			r.ReplyWith(resp)
		},
		remoting.ReqGetConsumerRunningInfo: func(r *server.Request) { r.Reply(remoting.RespSystemError, "json: unsupported value: NaN") },
	}
	register(t, c, ns, "c", "a", startFake(t, handlers).addr, 0)
	s, err := c.GroupStatus(t.Context(), "g", StatusOptions{Now: time.Now()})
	if err != nil || len(s.Errors) > 0 || len(s.Members) != 1 || s.Members[0].Err == nil || s.Members[0].Language != "GO" {
		t.Fatalf("%+v %v", s, err)
	}
	if len(s.Findings) != 1 || s.Findings[0].Kind != FindingNoAnswer {
		t.Errorf("findings: %+v", s.Findings)
	}
}
