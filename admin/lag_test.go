package admin

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"mqx/client"
	"mqx/internal/fastjson"
	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/server"
)

func some(n int64) remoting.Opt[int64] { return remoting.Some(n) }

var none remoting.Opt[int64]

func TestBehind(t *testing.T) { // N034, N035, N036, N124
	both := func(lo, hi int64) queueRange { return queueRange{min: some(lo), max: some(hi)} }
	for name, c := range map[string]struct {
		committed remoting.Opt[int64]
		r         queueRange
		gone      bool
		lag       remoting.Opt[int64]
		lost      int64
		marks     []string
	}{
		"in the middle":        {some(5), both(0, 12), false, some(7), 0, nil},
		"at the end":           {some(12), both(0, 12), false, some(0), 0, nil},
		"at 0":                 {some(0), both(0, 12), false, some(12), 0, []string{MarkAtZero}},
		"at 0, below start":    {some(0), both(4, 12), false, some(8), 4, []string{MarkBelowStart}},
		"below start":          {some(2), both(4, 12), false, some(8), 2, []string{MarkBelowStart}},
		"beyond the end":       {some(100), both(0, 10), false, none, 0, []string{MarkBeyondEnd}},
		"beyond an empty one":  {some(100), both(0, 0), false, none, 0, []string{MarkEmpty, MarkBeyondEnd}},
		"empty":                {some(0), both(0, 0), false, some(0), 0, []string{MarkEmpty}},
		"empty, not at 0":      {some(9), both(9, 9), false, some(0), 0, []string{MarkEmpty}},
		"never, empty":         {none, both(3, 3), false, some(0), 0, []string{MarkEmpty, MarkNeverCommitted}},
		"never":                {none, both(0, 3), false, none, 0, []string{MarkNeverCommitted}},
		"the end not known":    {some(3), queueRange{}, false, none, 0, nil},
		"the start not known":  {some(3), queueRange{max: some(5)}, false, some(2), 0, nil},
		"no such queue":        {some(3), queueRange{}, true, none, 0, []string{MarkNoQueue}},
		"beyond, no start yet": {some(6), queueRange{max: some(5)}, false, none, 0, []string{MarkBeyondEnd}},
	} {
		lag, lost, marks := behind(c.committed, c.r, !c.gone)
		if lag != c.lag || lost != c.lost || !slices.Equal(marks, c.marks) {
			t.Errorf("%s: lag %v, lost %d, %v", name, lag, lost, marks)
		}
	}
}

func TestExpires(t *testing.T) {
	hours := func(n int) remoting.Opt[time.Duration] { return remoting.Some(time.Duration(n) * time.Hour) }
	rate := remoting.Some[float64]
	var noTime remoting.Opt[time.Duration]
	var noRate remoting.Opt[float64]
	for name, c := range map[string]struct {
		lag            remoting.Opt[int64]
		age, retention remoting.Opt[time.Duration]
		rate           remoting.Opt[float64]
		want           Will
	}{
		"nothing to read":     {some(0), noTime, noTime, noRate, WillNo},
		"lag unknown":         {none, hours(1), hours(48), rate(1), WillUnknown},
		"age unknown":         {some(5), noTime, hours(48), rate(1), WillUnknown},
		"retention unknown":   {some(5), hours(1), noTime, rate(1), WillUnknown},
		"rate unknown":        {some(5), hours(1), hours(48), noRate, WillUnknown},
		"too old already":     {some(5), hours(48), hours(48), noRate, WillYes},
		"nobody reads":        {some(5), hours(1), hours(48), rate(0), WillYes},
		"read in time":        {some(7200), hours(40), hours(48), rate(1), WillNo},
		"read too slowly":     {some(48*3600 + 1), hours(1), hours(48), rate(1), WillYes},
		"just fast enough":    {some(48 * 3600), hours(1), hours(48), rate(1), WillNo},
		"a lag of one, young": {some(1), hours(0), hours(48), rate(0.1), WillNo},
	} {
		if got := expires(c.lag, c.age, c.retention, c.rate); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestLagSum(t *testing.T) {
	var s LagSum
	for _, q := range []QueueLag{
		{Lag: some(3), Expires: WillNo, Age: remoting.Some(time.Minute), InFlight: some(1)},
		{Lag: some(4), Expires: WillNo, Age: remoting.Some(time.Hour), Lost: 2, Marks: []string{MarkBelowStart}},
	} {
		s.Add(&q)
	}
	if s.Lag != some(7) || s.Lost != 2 || s.Age.Value != time.Hour || s.Expires != WillNo || s.InFlight != some(1) || !slices.Equal(s.Marks, []string{MarkBelowStart}) {
		t.Errorf("%+v", s)
	}
	s.Add(&QueueLag{Marks: []string{MarkNeverCommitted}})
	if s.Lag.OK || s.Known != 7 || s.Unknown != 1 || s.Expires != WillUnknown {
		t.Errorf("with an unknown one: %+v", s)
	}
	s.Add(&QueueLag{Lag: some(1), Expires: WillYes})
	if s.Expires != WillYes {
		t.Errorf("with one that goes: %+v", s)
	}
	s = LagSum{}
	s.Add(&QueueLag{Lag: some(3), Expires: WillNo, InFlight: some(1)})
	s.Miss(nil)
	if s.Lag != some(3) || s.Expires != WillNo {
		t.Errorf("nothing is missing: %+v", s)
	}
	s.Miss([]string{"b"})
	s.Add(&QueueLag{Lag: some(4), Expires: WillNo})
	if s.Lag.OK || s.InFlight.OK || s.Expires != WillUnknown || s.Known != 7 || !slices.Equal(s.Missing, []string{"b"}) {
		t.Errorf("with a broker that does not tell: %+v", s)
	}
}

func TestIsRetryOf(t *testing.T) {
	for topic, want := range map[string][2]bool{
		"%RETRY%g": {true, false}, "%RETRY%g_T": {true, true}, "%RETRY%g+T": {true, true}, "%RETRY%gg": {false, false}, "T": {false, false}, "%DLQ%g": {false, false},
	} {
		if isRetryOf(topic, "g") != want[0] || isPopRetry(topic, "g") != want[1] {
			t.Errorf("%s", topic)
		}
	}
}

func lagOf(t *testing.T, c *Client, o LagOptions, group string) *GroupLag {
	t.Helper()
	l, err := c.GetLag(t.Context(), o)
	if err != nil || len(l.Errors) > 0 {
		t.Fatalf("%+v %v", l, err)
	}
	i := slices.IndexFunc(l.Groups, func(g GroupLag) bool { return g.Group == group })
	if i < 0 {
		t.Fatalf("no group %s in %+v", group, l.Groups)
	}
	return &l.Groups[i]
}

func (g *GroupLag) queue(t *testing.T, topic, broker string, id int32) *QueueLag {
	t.Helper()
	i := slices.IndexFunc(g.Queues, func(q QueueLag) bool { return q.QueueID == QueueID{topic, broker, id} })
	if i < 0 {
		t.Fatalf("no queue %s %s %d in %+v", topic, broker, id, g.Queues)
	}
	return &g.Queues[i]
}

func commit(t *testing.T, c *Client, addr, group, topic string, queue int32, offset int64) {
	t.Helper()
	if _, err := c.ask(t.Context(), addr, remoting.NewRequest(remoting.ReqUpdateConsumerOffset,
		&remoting.UpdateConsumerOffsetHeader{ConsumerGroup: group, Topic: topic, QueueID: queue, CommitOffset: offset})); err != nil {
		t.Fatal(err)
	}
}

func makeGroup(t *testing.T, c *Client, addr, group string) {
	t.Helper()
	req := remoting.NewRequest(remoting.ReqUpdateAndCreateSubscriptionGroup, nil)
	cfg := remoting.NewSubscriptionGroupConfig(group)
	var err error
	if req.Body, err = fastjson.Marshal(&cfg); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ask(t.Context(), addr, req); err != nil {
		t.Fatal(err)
	}
}

func sendTo(t *testing.T, ns, topic, broker string, queue int32, n int) {
	t.Helper()
	p, err := client.NewProducer(client.ProducerConfig{Config: client.Config{NameServers: []string{ns}}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for range n {
		if _, err := p.Send(t.Context(), &message.Message{Topic: topic, Body: []byte("x")}, client.SendOptions{Broker: broker, QueueID: queue, HasQueue: true}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLagOfGroups(t *testing.T) { // N044, N122
	ns := startNameServer(t)
	a, b := startBroker(t, ns, "a"), startBroker(t, ns, "b")
	c := newClient(t, ns)
	create(t, c, Target{Broker: "a"}, TopicSpec{Name: "T", ReadQueues: 3, WriteQueues: 3})
	create(t, c, Target{Broker: "b"}, TopicSpec{Name: "T", ReadQueues: 1, WriteQueues: 1})
	sendTo(t, ns, "T", "a", 0, 5)
	sendTo(t, ns, "T", "a", 1, 3)
	sendTo(t, ns, "T", "b", 0, 2)
	for _, addr := range []string{a, b} {
		makeGroup(t, c, addr, "g")
	}
	makeGroup(t, c, a, "fresh")
	commit(t, c, a, "g", "T", 0, 1)
	commit(t, c, a, "g", "T", 1, 0)
	commit(t, c, b, "g", "T", 0, 9)

	for _, o := range []LagOptions{{Groups: []string{"g"}}, {}, {Topics: []string{"T"}}, {Groups: []string{"g"}, Ages: true, Members: true}} {
		g := lagOf(t, c, o, "g")
		if q := g.queue(t, "T", "a", 0); q.Lag != some(4) || q.Min != some(0) || q.Max != some(5) || q.Committed != some(1) || o.Ages && (!q.Age.OK || q.Age.Value > time.Minute || q.Expires != WillYes) {
			t.Errorf("%+v: %+v", o, q)
		}
		if q := g.queue(t, "T", "a", 1); q.Lag != some(3) || q.Committed != some(0) || !slices.Equal(q.Marks, []string{MarkAtZero}) {
			t.Errorf("at 0: %+v", q)
		}
		if q := g.queue(t, "T", "a", 2); q.Lag != some(0) || q.Committed.OK || !slices.Equal(q.Marks, []string{MarkEmpty, MarkNeverCommitted}) {
			t.Errorf("empty: %+v", q)
		}
		if q := g.queue(t, "T", "b", 0); q.Lag.OK || !slices.Equal(q.Marks, []string{MarkBeyondEnd}) {
			t.Errorf("beyond: %+v", q)
		}
		if topics, retries := g.Total(); topics.Lag.OK || topics.Known != 7 || topics.Unknown != 1 || topics.Queues != 4 || retries.Queues != 0 {
			t.Errorf("total: %+v %+v", topics, retries)
		}
		if g.Online || !slices.Equal(g.Marks, []string{MarkOffline}) {
			t.Errorf("%+v", g)
		}
	}
	if g := lagOf(t, c, LagOptions{}, "fresh"); len(g.Queues) != 0 {
		t.Errorf("fresh: %+v", g)
	}
	if l, err := c.GetLag(t.Context(), LagOptions{Target: Target{Broker: "b"}, Groups: []string{"g"}}); err != nil || len(l.Groups) != 1 || len(l.Groups[0].Queues) != 1 {
		t.Errorf("one broker: %+v %v", l, err)
	}
	var missing *NotFoundError
	if _, err := c.GetLag(t.Context(), LagOptions{Groups: []string{"nobody"}}); !errors.As(err, &missing) {
		t.Errorf("unknown: %v", err)
	}
	if _, err := c.GetLag(t.Context(), LagOptions{Groups: []string{"a b"}}); err == nil {
		t.Error("a name that is none")
	}
}

func TestLagOfMembers(t *testing.T) { // N043, N044
	ns := startNameServer(t)
	addr := startBroker(t, ns, "a")
	c := newClient(t, ns)
	makeGroup(t, c, addr, "g")
	create(t, c, Target{Cluster: "c"}, TopicSpec{Name: "T", ReadQueues: 1, WriteQueues: 1})
	create(t, c, Target{Cluster: "c"}, TopicSpec{Name: "U", ReadQueues: 1, WriteQueues: 1})
	sendTo(t, ns, "T", "a", 0, 2)
	ctx, cancel := context.WithCancel(t.Context())
	var ended []chan error
	for _, topic := range []string{"T", "T", "U"} {
		m := newConsumer(t, ns, topic, "g")
		done := make(chan error, 1)
		ended = append(ended, done)
		go func() { done <- m.Run(ctx, func(context.Context, []*client.Received) error { return nil }) }()
	}
	eventually(t, "members and their queues", func() bool {
		g := lagOf(t, c, LagOptions{Groups: []string{"g"}, Members: true, Ages: true}, "g")
		if len(g.Members) != 3 || !slices.Contains(g.Marks, MarkSubscriptions) || slices.Contains(g.Marks, MarkSilent) {
			return false
		}
		odd := 0
		for _, m := range g.Members {
			if slices.Contains(m.Marks, MarkSubscriptions) {
				odd++
			}
		}
		return odd == 1 && slices.Contains(g.Marks, MarkIdle)
	})
	g := lagOf(t, c, LagOptions{Groups: []string{"g"}, Members: true}, "g")
	if !g.Online || g.Type != remoting.ConsumePassively || g.Model != remoting.Clustering {
		t.Errorf("%+v", g)
	}
	cancel()
	for _, done := range ended {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// replyJSON answers with a body.
func replyJSON(t *testing.T, v any) func(*server.Request) {
	return func(r *server.Request) {
		body, err := fastjson.Marshal(v)
		if err != nil {
			t.Error(err)
		}
		r.ReplyWith(&remoting.Command{Code: remoting.RespSuccess, Body: body})
	}
}

// Two connections of a broker have one client id, and another broker never answers: what
// the first one tells is there when the time of the other is over.
func TestLagOfFakes(t *testing.T) { // N045, N121
	ns := startNameServer(t)
	c := newClient(t, ns)
	cfg := remoting.NewSubscriptionGroupConfig("g")
	hang := make(chan struct{})
	double := startFake(t, map[int32]func(*server.Request){
		remoting.ReqGetAllConsumerOffset: replyJSON(t, &remoting.ConsumerOffsets{
			OffsetTable: map[string]map[int32]int64{"T@g": {0: 3, 1: 4}, "%RETRY%g@g": {0: 1}}, PullOffsetTable: map[string]map[int32]int64{"T@g": {0: 8}},
		}),
		remoting.ReqGetAllSubscriptionGroupConfig: replyJSON(t, &remoting.SubscriptionGroupTable{SubscriptionGroupTable: map[string]remoting.SubscriptionGroupConfig{"g": cfg}}),
		remoting.ReqGetTopicStatsInfo: replyJSON(t, &remoting.TopicStatsTable{OffsetTable: map[remoting.MessageQueue]remoting.TopicOffset{
			{Topic: "T", BrokerName: "a"}: {MinOffset: 2, MaxOffset: 10},
		}}),
		remoting.ReqGetConsumerConnectionList: replyJSON(t, &remoting.ConsumerConnection{
			ConsumeType: remoting.ConsumePassively, MessageModel: remoting.Clustering,
			ConnectionSet: []remoting.Connection{{ClientID: "x", ClientAddr: "1:1"}, {ClientID: "x", ClientAddr: "1:2"}, {ClientID: "y", ClientAddr: "1:3"}},
		}),
		remoting.ReqGetConsumerRunningInfo: func(r *server.Request) {
			if r.Fields.String("clientId") == "y" {
				r.Reply(remoting.RespSystemError, "gone")
				return
			}
			replyJSON(t, &remoting.ConsumerRunningInfo{
				MQTable:    map[remoting.MessageQueue]remoting.ProcessQueueInfo{{Topic: "T", BrokerName: "a"}: {}},
				MQPopTable: map[remoting.MessageQueue]remoting.PopProcessQueueInfo{{Topic: "P", BrokerName: "a", QueueID: -1}: {WaitAckCount: 5}},
			})(r)
		},
	})
	frozen := startFake(t, map[int32]func(*server.Request){remoting.ReqGetAllConsumerOffset: func(*server.Request) { <-hang }})
	t.Cleanup(func() { close(hang) })
	register(t, c, ns, "c", "a", double.addr, 0, "T")
	register(t, c, ns, "c", "b", frozen.addr, 0, "T")
	start := time.Now()
	l, err := c.GetLag(t.Context(), LagOptions{Groups: []string{"g"}, Members: true})
	if err != nil || len(l.Errors) != 1 || l.Errors[0].Broker != "b" || len(l.Groups) != 1 {
		t.Fatalf("%+v %v", l, err)
	}
	if took := time.Since(start); took > 2*time.Second { // the client of the test waits 1 s
		t.Errorf("took %s", took)
	}
	g := &l.Groups[0]
	if q := g.queue(t, "T", "a", 0); q.Lag != some(7) || q.InFlight != some(5) || q.Owner != "x" {
		t.Errorf("%+v", q)
	}
	if q := g.queue(t, "T", "a", 1); q.Lag.OK || !slices.Equal(q.Marks, []string{MarkNoQueue}) {
		t.Errorf("a queue that is gone: %+v", q)
	}
	if topics, retries := g.Total(); topics.Queues != 2 || retries.Queues != 1 || topics.Lag.OK || retries.Lag.OK || !slices.Equal(topics.Missing, []string{"b"}) {
		t.Errorf("retry topic: %+v %+v", topics, retries)
	}
	if !slices.Contains(g.Marks, MarkDuplicateID) || !slices.Contains(g.Marks, MarkSilent) || g.PopInFlight.OK || g.Members[0].WaitAck != 5 {
		t.Errorf("%+v", g)
	}
	if x := g.Members[0]; !slices.Equal(x.Addrs, []string{"1:1", "1:2"}) || !slices.Contains(x.Marks, MarkDuplicateID) {
		t.Errorf("%+v", x)
	}
}
