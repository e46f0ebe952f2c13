package admin

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"mqx/broker"
	"mqx/nameserver"
	"mqx/remoting"
	"mqx/remoting/server"
)

var quiet = slog.New(slog.DiscardHandler)

// run runs a server until the test ends and returns when it is ready.
func run(t *testing.T, s interface {
	Run(context.Context) error
	Ready() <-chan struct{}
},
) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-s.Ready():
	case err := <-ended:
		ended <- nil
		t.Fatalf("not started: %v", err)
	}
}

func startNameServer(t *testing.T) string {
	t.Helper()
	cfg := nameserver.DefaultConfig()
	cfg.BindAddress, cfg.ListenPort, cfg.Logger = "127.0.0.1", 0, quiet
	cfg.KVConfigPath = filepath.Join(t.TempDir(), "kv.json")
	s, err := nameserver.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	run(t, s)
	return s.Addr().String()
}

// startBroker runs a real broker of cluster "c" with small files.
func startBroker(t *testing.T, ns, name string) (addr string) {
	t.Helper()
	cfg := broker.DefaultConfig()
	cfg.NamesrvAddr, cfg.BrokerClusterName, cfg.BrokerName = ns, "c", name
	cfg.BindAddress, cfg.BrokerIP1, cfg.ListenPort = "127.0.0.1", "127.0.0.1", 0
	cfg.Loops, cfg.Logger = 1, quiet
	cfg.Store.RootDir = t.TempDir()
	cfg.Store.CommitLogFileBytes = 1 << 20
	b, err := broker.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	run(t, b)
	return b.Addr().String()
}

func newClient(t *testing.T, ns ...string) *Client {
	t.Helper()
	return clientWithin(t, time.Second, ns...)
}

// patientClient is for tests in which every broker answers, on a busy machine late.
func patientClient(t *testing.T, ns ...string) *Client {
	t.Helper()
	return clientWithin(t, 20*time.Second, ns...)
}

func clientWithin(t *testing.T, limit time.Duration, ns ...string) *Client {
	t.Helper()
	c, err := New(Config{NameServers: ns, BrokerTimeout: limit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// fakeBroker answers what a test tells it to; everything else is not supported.
type fakeBroker struct {
	t    *testing.T
	addr string
}

func startFake(t *testing.T, handlers map[int32]func(*server.Request)) *fakeBroker {
	t.Helper()
	class := server.NewClass(server.ClassConfig{Name: "all", Workers: 4, Queue: 1000})
	m := server.NewMux()
	for code, h := range handlers {
		m.Handle(code, class, h)
	}
	s, err := server.New(server.Config{Addr: "127.0.0.1:0", Loops: 1, Logger: quiet}, m)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = class.Run(context.Background()); close(ended) }()
	if err := s.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
		class.Close()
		<-ended
	})
	return &fakeBroker{t: t, addr: s.Addr().String()}
}

// register tells a name server of a broker at addr.
func register(t *testing.T, c *Client, ns, cluster, name, addr string, id int64, topics ...string) {
	t.Helper()
	body := &remoting.RegisterBrokerBody{}
	body.Topics.TopicConfigTable = map[string]remoting.TopicConfig{"filler": remoting.NewTopicConfig("filler"), "filler2": remoting.NewTopicConfig("filler2")}
	for _, topic := range topics {
		body.Topics.TopicConfigTable[topic] = remoting.NewTopicConfig(topic)
	}
	req := remoting.NewRequest(remoting.ReqRegisterBroker, &remoting.RegisterBrokerHeader{
		BrokerName: name, BrokerAddr: addr, ClusterName: cluster, HAServerAddr: addr, BrokerID: id,
	})
	var err error
	if req.Body, err = remoting.EncodeRegisterBroker(body, false, remoting.Version); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ask(t.Context(), ns, req); err != nil {
		t.Fatal(err)
	}
}

func closedPort(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
