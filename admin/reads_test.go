package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"mqx/client"
	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/server"
)

// reading is a cluster of two real brokers with a topic, an offline group and one that
// is online, and a third broker that never answers.
func reading(t *testing.T) (c *Client, ns string) {
	t.Helper()
	ns = startNameServer(t)
	startBroker(t, ns, "a")
	startBroker(t, ns, "b")
	c = newClient(t, ns)
	create(t, c, Target{Cluster: "c"}, TopicSpec{Name: "T", ReadQueues: 2, WriteQueues: 2})
	send(t, ns, "T", 6, "a")
	consumeOne(t, ns, "T", "offline")
	ctx, cancel := context.WithCancel(t.Context())
	taken := make(chan struct{}, 10)
	ended := make(chan error, 1)
	online := newConsumer(t, ns, "T", "online")
	go func() {
		ended <- online.Run(ctx, func(context.Context, []*client.Received) error { taken <- struct{}{}; return nil })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	for range 6 {
		<-taken
	}
	return c, ns
}

func TestReadsOfALiveCluster(t *testing.T) {
	c, ns := reading(t)
	ctx := t.Context()

	t.Run("clients", func(t *testing.T) {
		eventually(t, "both brokers to know the client and it to have all queues", func() bool {
			list, err := c.ListInstances(ctx, InstancesOptions{Group: "online", Queues: true})
			if err != nil || len(list.Errors) > 0 {
				t.Fatalf("%v %v", list, err)
			}
			return len(list.Items) == 1 && len(list.Items[0].Brokers) == 2 && len(list.Items[0].Queues) >= 4 && list.Items[0].Err == nil
		})
		// A process with clients of two clusters may only speak to one: each says to which (N046).
		list, err := c.ListInstances(ctx, InstancesOptions{Queues: true})
		if err != nil || len(list.Items) != 1 || !slices.Equal(list.Items[0].NameServers, []string{ns}) {
			t.Errorf("%+v %v", list, err)
		}
		if got := nameServersOf(&remoting.ConsumerRunningInfo{Properties: map[string]string{remoting.PropNameServerAddr: "10.0.0.1:9876;10.0.0.2:9876;"}}); !slices.Equal(got, []string{"10.0.0.1:9876", "10.0.0.2:9876"}) {
			t.Errorf("name servers as a Java client writes them: %q", got)
		}
		list, err = c.ListInstances(ctx, InstancesOptions{})
		if err == nil && list.Items[0].NameServers != nil {
			t.Errorf("nobody was asked: %q", list.Items[0].NameServers)
		}
		if err != nil || len(list.Items) != 1 || !slices.Equal(list.Items[0].Consumes, []string{"online"}) || list.Items[0].Language != "GO" {
			t.Errorf("%+v %v", list, err)
		}
	})
	t.Run("group status", func(t *testing.T) {
		s, err := c.GroupStatus(ctx, "online", StatusOptions{Now: time.Now()})
		if err != nil || len(s.Members) != 1 || s.Members[0].Info == nil || len(s.Findings) != 0 || s.Type != remoting.ConsumePassively {
			t.Fatalf("%+v %v", s, err)
		}
		s, err = c.GroupStatus(ctx, "offline", StatusOptions{Now: time.Now()})
		if err != nil || len(s.Members) != 0 {
			t.Errorf("%+v %v", s, err)
		}
		var notFound *NotFoundError
		if _, err := c.GroupStatus(ctx, "nosuch", StatusOptions{}); !errors.As(err, &notFound) || notFound.Kind != "group" {
			t.Errorf("unknown group: %v", err)
		}
		if _, err := c.GroupStatus(ctx, "online", StatusOptions{Client: "nosuch"}); !errors.As(err, &notFound) || notFound.Kind != "client" {
			t.Errorf("unknown client: %v", err)
		}
	})
	t.Run("monitor", func(t *testing.T) {
		health, errs, err := c.MonitorGroups(ctx, StatusOptions{Now: time.Now()})
		if err != nil || len(errs) > 0 || len(health) != 2 || health[0].Group != "offline" || health[0].Members != 0 || *health[0].Lag == 0 || *health[0].Behind < 0 || health[1].Members != 1 {
			t.Errorf("%+v %v %v", health, errs, err)
		}
	})
	t.Run("statistics", func(t *testing.T) {
		rates, errs, err := c.TopicRates(ctx, StatsOptions{Topic: "T"})
		if err != nil || len(errs) > 0 || len(rates) != 2 || rates[0].Group != "offline" || *rates[0].Lag == 0 || !rates[0].In.Known {
			t.Errorf("%+v %v %v", rates, errs, err)
		}
		all, _, err := c.TopicRates(ctx, StatsOptions{Active: true})
		if err != nil || slices.ContainsFunc(all, func(r TopicRate) bool { return r.Topic == "TBW102" }) {
			t.Errorf("%+v %v", all, err)
		}
		found, _, err := c.Statistics(ctx, Target{Broker: "b"}, StatTopicPut, "T")
		if err != nil || len(found) != 1 || found[0].Data != nil { // nothing was put there: unknown, not 0
			t.Errorf("%+v %v", found, err)
		}
	})
	t.Run("queue", func(t *testing.T) {
		h := remoting.QueryConsumeQueueHeader{Topic: "T", Count: 2}
		u, err := c.QueryQueue(ctx, "a", h, client.Position{Kind: client.AtEnd})
		if err != nil || len(u.QueueData) != 2 || u.First != u.MaxQueueIndex-2 {
			t.Errorf("%+v %v", u, err)
		}
		u, err = c.QueryQueue(ctx, "", h, client.Position{})
		if err != nil || u.Broker.Name != "a" || u.First != 0 {
			t.Errorf("%+v %v", u, err)
		}
	})
	t.Run("producers", func(t *testing.T) {
		p, err := client.NewProducer(client.ProducerConfig{Config: client.Config{NameServers: []string{ns}}, Group: "PG"})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = p.Close() }()
		if _, err := p.Send(ctx, &message.Message{Topic: "T", Body: []byte("x")}, client.SendOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := p.Start(); err != nil { // it beats to the brokers whose routes it knows
			t.Fatal(err)
		}
		eventually(t, "the producer to be known", func() bool {
			rows, errs, err := c.ListProducers(ctx, Target{}, "PG")
			if err != nil || len(errs) > 0 {
				t.Fatal(errs, err)
			}
			conns, _, _ := c.ProducerConnections(ctx, "PG", "T")
			return len(rows) > 0 && len(conns) > 0 && rows[0].ClientID == conns[0].ClientID
		})
	})
	t.Run("checks", func(t *testing.T) {
		found, err := c.CheckSend(ctx, Target{}, CheckOptions{Count: 2, Size: 10})
		if err != nil || len(found) != 2 || found[1].Sent != 2 || found[1].Err != nil || found[1].Read == 0 || !found[1].First {
			t.Errorf("%+v %v", found, err)
		}
		var turns []string
		err = c.CheckTurns(ctx, "T", CheckOptions{Count: 5, Size: 10, Each: func(s SendCheck, r SendTry) {
			turns = append(turns, fmt.Sprintf("%s%d%t", s.Name, *s.QueueID, r.Err == nil))
		}})
		if err != nil || strings.Join(turns, " ") != "a0true a1true b0true b1true a0true" {
			t.Errorf("%v %v", turns, err)
		}
	})
	t.Run("exports", func(t *testing.T) {
		configs, errs, err := c.ExportConfigs(ctx, "c")
		if err != nil || len(errs) > 0 || configs.ClusterScale.Masters != 2 || configs.BrokerConfigs["a"]["brokerName"] != "a" {
			t.Errorf("%+v %v %v", configs, errs, err)
		}
		metrics, errs, err := c.ExportMetrics(ctx, "c")
		if err != nil || len(errs) > 0 || metrics.EvaluateReport["a"].Quota.Topics != 1 || metrics.EvaluateReport["b"].Version.Broker != "V5_5_0" {
			t.Errorf("%+v %v %v", metrics, errs, err)
		}
	})
	t.Run("replication", func(t *testing.T) {
		found, errs, err := c.HAStatuses(ctx, Target{}, true)
		if err != nil || len(errs) > 0 || len(found) != 2 || !found[0].Info.Master {
			t.Errorf("%+v %v %v", found, errs, err)
		}
		// Neither was promoted: they answer as Apache's without a controller do.
		epochs, errs, err := c.BrokerEpochs(ctx, Target{})
		if err != nil || len(epochs) != 0 || len(errs) != 2 || !hasCode(errs[0].Err, remoting.RespSystemError) {
			t.Errorf("%+v %v %v", epochs, errs, err)
		}
	})
}

// A broker that never answers is named, and holds up neither the others nor the reader
// beyond its time-out.
func TestReadsNameTheSilentBroker(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a")
	c := newClient(t, ns) // one second a broker
	hang := func(*server.Request) {}
	handlers := map[int32]func(*server.Request){}
	for _, code := range []int32{
		remoting.ReqGetBrokerRuntimeInfo, remoting.ReqGetAllSubscriptionGroupConfig, remoting.ReqGetConsumerConnectionList, remoting.ReqGetAllProducerInfo,
		remoting.ReqGetBrokerConsumeStats, remoting.ReqGetAllTopicConfig, remoting.ReqGetBrokerHAStatus, remoting.ReqGetBrokerConfig,
	} {
		handlers[code] = hang
	}
	register(t, c, ns, "c", "silent", startFake(t, handlers).addr, 0)
	ctx := t.Context()
	for name, read := range map[string]func() (int, []TargetError, error){
		"statuses": func() (int, []TargetError, error) {
			l, e, err := c.BrokerStatuses(ctx, Target{}, true)
			return len(l) - 1, e, err
		},
		"clients": func() (int, []TargetError, error) {
			l, err := c.ListInstances(ctx, InstancesOptions{})
			return 1, l.Errors, err
		},
		"producers": func() (int, []TargetError, error) { _, e, err := c.ListProducers(ctx, Target{}, ""); return 1, e, err },
		"consume": func() (int, []TargetError, error) {
			l, e, err := c.BrokerConsumeStats(ctx, Target{}, false)
			return len(l), e, err
		},
		"rates": func() (int, []TargetError, error) {
			l, e, err := c.TopicRates(ctx, StatsOptions{})
			return min(1, len(l)), e, err
		},
		"monitor": func() (int, []TargetError, error) {
			_, e, err := c.MonitorGroups(ctx, StatusOptions{})
			return 1, e, err
		},
		"ha": func() (int, []TargetError, error) {
			l, e, err := c.HAStatuses(ctx, Target{}, true)
			return len(l), e, err
		},
		"metrics": func() (int, []TargetError, error) {
			l, e, err := c.ExportMetrics(ctx, "c")
			return len(l.EvaluateReport), e, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			n, errs, err := read()
			if err != nil || n != 1 || len(errs) != 1 || errs[0].Broker != "silent" {
				t.Errorf("%d %v %v", n, errs, err)
			}
			if took := time.Since(began); took > 2500*time.Millisecond {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// What brokers say and do not say.
func TestBrokerStatusValues(t *testing.T) {
	s := &BrokerStatus{Values: map[string]string{
		"n": "12 ", "f": "0.5 1.5 2.5", "t": "0", "at": "1795994105598", "yes": "true", "odd": "many", "later": "20", "earlier": "5",
	}}
	if n, ok := s.Int("n"); n != 12 || !ok {
		t.Error(n, ok)
	}
	if f, ok := s.Float("f"); f != 0.5 || !ok {
		t.Error(f, ok)
	}
	if at, ok := s.Time("at"); at.UnixMilli() != 1795994105598 || !ok {
		t.Error(at, ok)
	}
	if b, ok := s.Bool("yes"); !b || !ok {
		t.Error(b, ok)
	}
	if d, ok := s.Difference("later", "earlier"); d != 15 || !ok {
		t.Error(d, ok)
	}
	_, a := s.Int("odd")
	_, b := s.Float("none")
	_, d := s.Time("t")
	_, e := s.Bool("odd")
	_, f := s.Difference("later", "none")
	if a || b || d || e || f {
		t.Error("what is not there is taken for known")
	}
}

func TestAllocate(t *testing.T) {
	queues := make([]remoting.MessageQueue, 7)
	for i := range queues {
		queues[i] = remoting.MessageQueue{Topic: "T", BrokerName: "a", QueueID: int32(i)}
	}
	got := Allocate(queues, []string{"x", "y", "z"})
	if len(got["x"]) != 3 || len(got["y"]) != 2 || len(got["z"]) != 2 || got["y"][0].QueueID != 3 || got["z"][1].QueueID != 6 {
		t.Errorf("%v", got)
	}
	got = Allocate(queues[:1], []string{"x", "y"})
	if len(got["x"]) != 1 || len(got["y"]) != 0 || len(slices.Collect(maps.Keys(got))) != 2 {
		t.Errorf("%v", got)
	}
}
