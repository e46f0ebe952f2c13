package admin

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/server"
)

func (s *Survey) broker(t *testing.T, name string) *BrokerSurvey {
	t.Helper()
	i := slices.IndexFunc(s.Brokers, func(b BrokerSurvey) bool { return b.Name == name })
	if i < 0 {
		t.Fatalf("no broker %s in %+v", name, s.Brokers)
	}
	return &s.Brokers[i]
}

// A survey of a cluster of two brokers of which one does not answer: the rest is whole, and what is missing is named.
func TestSurvey(t *testing.T) {
	ns, alone := startNameServer(t), startNameServer(t)
	addr := startBroker(t, ns, "a")
	c := newClient(t, ns, alone)
	create(t, c, Target{Broker: "a"}, TopicSpec{Name: "T", ReadQueues: 2, WriteQueues: 2})
	makeGroup(t, c, addr, "g")
	sendTo(t, ns, "T", "a", 0, 3)
	commit(t, c, addr, "g", "T", 0, 1)
	dead := message.DLQTopicPrefix + "g"
	create(t, c, Target{Broker: "a"}, TopicSpec{Name: dead, ReadQueues: 1, WriteQueues: 1})
	sendTo(t, ns, dead, "a", 0, 2)
	gone := closedPort(t)
	register(t, c, ns, "c", "gone", gone, 0, "T")

	s, err := c.Survey(t.Context(), SurveyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b := s.broker(t, "a")
	switch {
	case len(s.Brokers) != 2 || !b.IsMaster() || b.Err != nil:
		t.Errorf("brokers: %+v", s.Brokers)
	case b.Config["brokerName"] != "a" || b.ClockErr != nil || b.ClockLeast > 0 || b.ClockMost < 0:
		t.Errorf("configuration and clock: %q, %v to %v, %v", b.Config["brokerName"], b.ClockLeast, b.ClockMost, b.ClockErr)
	case b.Ports["main"] != nil || b.PortAddrs["main"] != addr:
		t.Errorf("ports: %v %v", b.Ports, b.PortAddrs)
	case !maps.Equal(b.DeadLetters, map[string]int64{"g": 2}) || *b.OpenTransactions != 0 || *b.Abandoned != 0 || b.Levels == nil || len(b.Levels) != 0:
		t.Errorf("what waits: %v, %d half messages, %d given up, levels %v", b.DeadLetters, *b.OpenTransactions, *b.Abandoned, b.Levels)
	}
	if i := slices.IndexFunc(b.Topics, func(x SurveyTopic) bool { return x.Name == "T" }); i < 0 || b.Topics[i] != (SurveyTopic{Name: "T", Kind: KindNormal, Read: 2, Write: 2, Perm: 6, Plain: true}) {
		t.Errorf("topics: %+v", b.Topics)
	}
	if reached, told := b.Reached[ns]; !told || reached != nil || len(b.Reached) != 1 {
		t.Errorf("reached: %v", b.Reached)
	}
	if g := s.broker(t, "gone"); g.Reached[ns] == nil {
		t.Errorf("a broker that is not there is reached: %v", g.Reached)
	}
	if g := s.broker(t, "gone"); g.Err == nil || g.Topics != nil || g.Config != nil || g.OpenTransactions != nil || g.Ports["main"] == nil {
		t.Errorf("a broker that is not there: %+v", g)
	}
	if len(s.Errors) != 1 || s.Errors[0].Addr != gone {
		t.Errorf("errors: %v", s.Errors)
	}
	if want := []string{ns, alone}; len(s.NameServers) != 2 || len(s.Known) != 2 || !slices.Contains(want, s.Known[0]) || !slices.Contains(want, s.Known[1]) {
		t.Errorf("name servers: %+v, known %v", s.NameServers, s.Known)
	}
	if v := s.NameServers[slices.IndexFunc(s.NameServers, func(v NameServerView) bool { return v.Addr == alone })]; !slices.ContainsFunc(v.Missing, func(x string) bool { return strings.Contains(x, addr) }) {
		t.Errorf("what the name server without brokers lacks: %v", v.Missing)
	}
	if s.Lag == nil || len(s.Lag.Groups) == 0 {
		t.Errorf("lag %+v", s.Lag)
	}

	// One of counts has what counts up, and nothing else.
	s, err = c.Survey(t.Context(), SurveyOptions{Counts: true, Target: Target{Broker: "a"}})
	if err != nil || len(s.Brokers) != 1 || s.NameServers != nil || s.Clients != nil {
		t.Fatalf("%+v, %v", s, err)
	}
	if b := s.broker(t, "a"); b.Ports != nil || b.DeadLetters["g"] != 2 || len(s.Lag.Groups) == 0 {
		t.Errorf("counts: %+v", b)
	}
}

// What a broker refuses to tell is unknown, and not zero.
func TestSurveyOfWhatIsNotTold(t *testing.T) {
	ns := startNameServer(t)
	c := newClient(t, ns)
	begun := time.Now().Add(-time.Hour).UnixMilli()
	refuse := func(r *server.Request) { r.ReplyWith(&remoting.Command{Code: remoting.RespSystemError, Remark: "no"}) }
	f := startFake(t, map[int32]func(*server.Request){
		remoting.ReqGetBrokerRuntimeInfo: replyJSON(t, remoting.KVTable{Table: map[string]string{
			"bootTimestamp": time.UnixMilli(begun).Format("20060102"), "scheduleMessageOffset_1": "1,5", "brokerVersionDesc": "V5_5_0",
		}}),
		remoting.ReqGetBrokerConfig: refuse, remoting.ReqGetAllTopicConfig: refuse, remoting.ReqViewBrokerStatsData: refuse,
	})
	register(t, c, ns, "c", "mute", f.addr, 0)
	s, err := c.Survey(t.Context(), SurveyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if b := s.broker(t, "mute"); b.Err != nil || b.ClockErr == nil || b.Config != nil || b.Topics != nil || b.Levels != nil || b.OpenTransactions != nil || b.Abandoned != nil || b.DeadLetters != nil || b.IdleClosed != nil || b.HA != nil {
		t.Errorf("%+v", b)
	}
}

func TestSurveyFindsNobody(t *testing.T) {
	c := newClient(t, closedPort(t))
	if _, err := c.Survey(context.Background(), SurveyOptions{}); err == nil {
		t.Error("no name server answers, and there is a survey")
	}
}

func TestDelayLevels(t *testing.T) {
	for text, want := range map[string]map[int]time.Duration{
		"1s 5m 2h 1d": {1: time.Second, 2: 5 * time.Minute, 3: 2 * time.Hour, 4: 24 * time.Hour}, "10s": {1: 10 * time.Second}, "": nil, "1x": nil, "s": nil, "1s -": nil,
	} {
		got, ok := delayLevels(text)
		if ok != (want != nil) || ok && !maps.Equal(got, want) {
			t.Errorf("%q: %v %v", text, got, ok)
		}
	}
}
