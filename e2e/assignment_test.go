package e2e

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"mqx/internal/fastjson"
	"mqx/remoting"
)

// Members that let the broker assign their queues (QUERY_ASSIGNMENT) share them in pull mode, each queue with one member; the
// queues of one that leaves go to the other, and when an operator changes the mode of the group to pop they go on by pop.
func TestServerSideAssignment(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	d := sharedDriver(t)
	topic, group := rawNames("assign")
	createTopic(t, c.namesrv, topic, 4)
	d.call(t, "createGroup", map[string]any{"namesrv": c.namesrv, "group": group}, nil)
	d.admin(t, "setConsumeMode", "-b", c.broker, "-t", topic, "-g", group, "-m", "PULL", "-q", "0")
	members := []string{group + "-a", group + "-b"}
	received := func() (all []incoming) {
		for _, id := range members {
			all = append(all, javaReceived(t, id)...)
		}
		return all
	}
	for _, id := range members {
		d.call(t, "push", map[string]any{"id": id, "namesrv": c.namesrv, "group": group, "topic": topic, "serverRebalance": true}, nil)
	}
	stopped := false
	defer func() {
		d.call(t, "stop", map[string]any{"id": members[0]}, nil)
		if !stopped {
			d.call(t, "stop", map[string]any{"id": members[1]}, nil)
		}
	}()
	assigned := func(id, how string) (queues []string) {
		d.call(t, how, map[string]any{"id": id}, &queues)
		return queues
	}
	all := []string{brokerName + ":0", brokerName + ":1", brokerName + ":2", brokerName + ":3"}
	waitFor(t, arrival, "two queues for each member", func() (bool, string) {
		a, b := assigned(members[0], "assigned"), assigned(members[1], "assigned")
		both := slices.Sorted(slices.Values(slices.Concat(a, b)))
		return len(a) == 2 && len(b) == 2 && slices.Equal(both, all), fmt.Sprint(a, " and ", b)
	})
	for _, id := range members {
		if got := assigned(id, "popAssigned"); len(got) > 0 {
			t.Errorf("%s pops %v", id, got)
		}
	}
	checkAssignment(t, c, topic, group)
	want := numbered("assigned", 40)
	d.send(t, c.namesrv, topic, "sync", want, nil)
	waitFor(t, arrival, "the messages", func() (bool, string) { why := missing(want, received()); return why == "", why })

	rest := javaReceived(t, members[1])
	d.call(t, "stop", map[string]any{"id": members[1]}, nil)
	stopped = true
	received = func() []incoming { return append(slices.Clone(rest), javaReceived(t, members[0])...) }
	waitFor(t, arrival, "all queues at the member that is left", func() (bool, string) {
		got := assigned(members[0], "assigned")
		return slices.Equal(got, all), fmt.Sprint(got)
	})
	more := numbered("left", 20)
	d.send(t, c.namesrv, topic, "sync", more, nil)
	want = append(want, more...)
	waitFor(t, arrival, "the messages", func() (bool, string) { why := missing(want, received()); return why == "", why })
	if !reference() && os.Getenv("MQX_E2E_ALL") == "" {
		return // clients ask for their queues every 20 s
	}
	d.admin(t, "setConsumeMode", "-b", c.broker, "-t", topic, "-g", group, "-m", "POP", "-q", "8")
	waitFor(t, arrival, "the member to pop", func() (bool, string) {
		got := assigned(members[0], "popAssigned")
		return slices.Equal(got, []string{brokerName + ":-1"}), fmt.Sprint(got)
	})
	last := numbered("popped", 20)
	d.send(t, c.namesrv, topic, "sync", last, nil)
	want = append(want, last...)
	waitFor(t, arrival+popArrival, "the messages by pop", func() (bool, string) { why := lost(want, received()); return why == "", why })
}

// checkAssignment asks for the queues of the two members as a client does.
func checkAssignment(t *testing.T, c cluster, topic, group string) {
	t.Helper()
	p := newRawPeer(t, c.broker)
	var list remoting.ConsumerIDList
	p.body(p.ok(remoting.ReqGetConsumerListByGroup, &remoting.GetConsumerListByGroupHeader{ConsumerGroup: group}, nil), &list)
	if len(list.ConsumerIDList) != 2 {
		t.Fatalf("members %v", list.ConsumerIDList)
	}
	var queues []int32
	for _, id := range list.ConsumerIDList {
		body, err := fastjson.Marshal(remoting.QueryAssignmentBody{
			Topic: topic, ConsumerGroup: group, ClientID: id, StrategyName: "AVG", MessageModel: remoting.Clustering,
		})
		if err != nil {
			t.Fatal(err)
		}
		var got remoting.QueryAssignmentResponseBody
		p.body(p.ok(remoting.ReqQueryAssignment, nil, body), &got)
		for _, a := range got.Assignments {
			if a.Mode != "PULL" || a.MessageQueue.BrokerName != brokerName {
				t.Errorf("%s: %+v", id, a)
				continue
			}
			queues = append(queues, a.MessageQueue.QueueID)
		}
	}
	slices.Sort(queues)
	if !slices.Equal(queues, []int32{0, 1, 2, 3}) {
		t.Errorf("assigned are %v", queues)
	}
}
