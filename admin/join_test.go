package admin

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mqx/broker"
	"mqx/internal/fastjson"
	"mqx/remoting"
)

// joinConfig is a broker of cluster "c" that joins empty.
func joinConfig(dir, ns, name string) broker.Config {
	cfg := broker.DefaultConfig()
	cfg.NamesrvAddr, cfg.BrokerClusterName, cfg.BrokerName = ns, "c", name
	cfg.BindAddress, cfg.BrokerIP1, cfg.ListenPort = "127.0.0.1", "127.0.0.1", 0
	cfg.Loops, cfg.Logger, cfg.Join = 1, quiet, broker.JoinEmpty
	cfg.Store.RootDir, cfg.Store.CommitLogFileBytes = dir, 1<<20
	return cfg
}

// startJoining runs a broker that joins until stop is called, or the test ends.
func startJoining(t *testing.T, cfg broker.Config) (addr string, stop func()) {
	t.Helper()
	b, err := broker.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	select {
	case <-b.Ready():
	case err := <-ended:
		cancel()
		t.Fatal(err)
	}
	done := false
	stop = func() {
		if done {
			return
		}
		done = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return b.Addr().String(), stop
}

func refusedStart(t *testing.T, cfg broker.Config, text string) {
	t.Helper()
	b, err := broker.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Run(t.Context()); err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("the start ended with %v, want %q", err, text)
	}
}

func createGroup(t *testing.T, c *Client, addr, name string, retries int32) {
	t.Helper()
	g := remoting.NewSubscriptionGroupConfig(name)
	g.RetryMaxTimes = retries
	req := remoting.NewRequest(remoting.ReqUpdateAndCreateSubscriptionGroup, nil)
	var err error
	if req.Body, err = fastjson.Marshal(&g); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ask(t.Context(), addr, req); err != nil {
		t.Fatal(err)
	}
}

// A broker that joins empty has the groups of its peer, creates no topic, and at the
// next start keeps what it has.
func TestJoinEmpty(t *testing.T) {
	ns := startNameServer(t)
	peer := startBroker(t, ns, "a")
	c := newClient(t, ns)
	createGroup(t, c, peer, "billing", 3)
	create(t, c, Target{}, TopicSpec{Name: "ORDERS"})

	dir := t.TempDir()
	addr, stop := startJoining(t, joinConfig(dir, ns, "new"))
	groups, err := c.groupTable(t.Context(), addr)
	if err != nil || groups["billing"].RetryMaxTimes != 3 {
		t.Fatalf("groups of the new broker: %v %v", groups, err)
	}
	topics, err := c.topicTable(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	for name := range topics {
		if kind := topicKind(name, map[string]bool{"c": true, "new": true}); kind != KindSystem || name == "TBW102" {
			t.Errorf("the new broker has topic %s, %s", name, kind)
		}
	}
	createGroup(t, c, peer, "later", 3)
	stop()

	addr, _ = startJoining(t, joinConfig(dir, ns, "new"))
	if groups, err = c.groupTable(t.Context(), addr); err != nil || groups["billing"].RetryMaxTimes != 3 {
		t.Errorf("groups after a restart: %v %v", groups, err)
	}
	if _, ok := groups["later"]; ok {
		t.Error("groups were copied at the second start")
	}
}

// Who is alone has nothing to copy; who cannot ask does not start, nor does who has topics already.
func TestJoinEmptyAlone(t *testing.T) {
	ns := startNameServer(t)
	_, stop := startJoining(t, joinConfig(t.TempDir(), ns, "first"))
	stop()
	refusedStart(t, joinConfig(t.TempDir(), closedPort(t), "lost"), "cannot join cluster")
	refusedStart(t, joinConfig(t.TempDir(), "", "lost"), "no name server is configured")

	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "config"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config", "topics.json"), []byte(`{"topicConfigTable":{}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	refusedStart(t, joinConfig(dir, ns, "full"), "the store has topics")

	c := newClient(t, ns)
	register(t, c, ns, "c", "dead", closedPort(t), 0)
	refusedStart(t, joinConfig(t.TempDir(), ns, "new"), "no broker of it gives its groups")
}
