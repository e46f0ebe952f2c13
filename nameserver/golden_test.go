package nameserver

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"mqx/internal/fastjson"
	"mqx/internal/props"
	"mqx/internal/testkit"
	"mqx/remoting"
)

// startServer runs a name server on a free port of loopback until the test ends.
func startServer(t *testing.T, change func(*Config)) *Server {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Logger = slog.New(slog.DiscardHandler)
	cfg.BindAddress, cfg.ListenPort = "127.0.0.1", 0
	cfg.KVConfigPath = filepath.Join(t.TempDir(), "kvConfig.json")
	cfg.ConfigStorePath = filepath.Join(t.TempDir(), "namesrv.properties")
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("name server ended: %v", err)
		}
	})
	select {
	case <-s.Ready():
	case err := <-ended:
		t.Fatalf("name server did not start: %v", err)
	}
	return s
}

// peer is a connection that speaks frames.
type peer struct {
	t    *testing.T
	conn net.Conn
}

func dial(t *testing.T, s *Server) *peer {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &peer{t, c}
}

func (p *peer) write(frame []byte) {
	p.t.Helper()
	if _, err := p.conn.Write(frame); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) read() *remoting.Command {
	p.t.Helper()
	if err := p.conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		p.t.Fatal(err)
	}
	var head [4]byte
	if _, err := io.ReadFull(p.conn, head[:]); err != nil {
		p.t.Fatal(err)
	}
	frame := make([]byte, 4+binary.BigEndian.Uint32(head[:]))
	copy(frame, head[:])
	if _, err := io.ReadFull(p.conn, frame[4:]); err != nil {
		p.t.Fatal(err)
	}
	c := &remoting.Command{}
	if err := c.Decode(frame); err != nil {
		p.t.Fatal(err)
	}
	return c
}

func (p *peer) call(req *remoting.Command) *remoting.Command {
	p.t.Helper()
	frame, err := req.AppendFrame(nil, remoting.SerializeJSON)
	if err != nil {
		p.t.Fatal(err)
	}
	p.write(frame)
	resp := p.read()
	if resp.Opaque != req.Opaque || !resp.IsResponse() {
		p.t.Fatalf("answer with opaque %d and flag %d to %d", resp.Opaque, resp.Flag, req.Opaque)
	}
	return resp
}

// rounds are the recordings that one name server of Apache's saw, in that order. Where
// they begin after the broker's start, seed is the recording of such a start.
var rounds = []struct {
	seed  string
	files []string
}{
	{"", []string{
		"broker_registration_JSON", "java_producer_JSON", "java_transaction_JSON", "java_request_reply_JSON", "java_push_broadcast_JSON",
		"java_push_orderly_JSON", "java_push_sql_JSON", "java_lite_pull_JSON", "java_pull_JSON", "java_pop_JSON", "go_producer_JSON",
		"go_trans_JSON", "go_push_JSON", "go_broadcast_JSON", "go_orderly_JSON", "go_sql_JSON", "go_pull_JSON", "go_request_JSON", "broker_shutdown_JSON",
	}},
	{"broker_registration_JSON", []string{"java_push_clustering_JSON", "mqadmin_JSON"}},
	{"", []string{
		"broker_registration_ROCKETMQ", "java_producer_ROCKETMQ", "java_transaction_ROCKETMQ", "java_request_reply_ROCKETMQ",
		"java_push_clustering_ROCKETMQ", "java_push_broadcast_ROCKETMQ", "java_push_orderly_ROCKETMQ", "java_push_sql_ROCKETMQ",
		"java_lite_pull_ROCKETMQ", "java_pull_ROCKETMQ", "java_pop_ROCKETMQ", "go_producer_ROCKETMQ", "go_push_ROCKETMQ",
		"ha_master_slave_ROCKETMQ", "broker_shutdown_ROCKETMQ",
	}},
	{"ha_master_slave_JSON", []string{"mqadmin_auth_JSON", "ha_master_slave_JSON"}},
}

// TestGoldenConversations replays what clients and brokers of Apache's said to its name
// server, and compares the answers in meaning.
//
// The name server of the third round was started with the key-value file that the
// second one left behind.
func TestGoldenConversations(t *testing.T) {
	shared := filepath.Join(t.TempDir(), "kvConfig.json")
	kv := map[string]string{"java_push_clustering_JSON": shared, "broker_registration_ROCKETMQ": shared}
	for _, round := range rounds {
		t.Run(round.files[0], func(t *testing.T) {
			r := &replay{t: t, server: startServer(t, func(c *Config) {
				if path := kv[round.files[0]]; path != "" {
					c.KVConfigPath = path
				}
			}), peers: map[int]*peer{}, answers: map[[2]int32]*remoting.Command{}, requests: map[[2]int32]*remoting.Command{}}
			if round.seed != "" {
				r.seed(round.seed)
			}
			for _, name := range round.files {
				r.file = name
				for _, f := range testkit.GoldenWire(t, name) {
					if strings.HasPrefix(f.Listener, "namesrv") {
						r.step(&f)
					}
				}
			}
			if r.compared < 20 {
				t.Errorf("only %d answers compared", r.compared)
			}
			t.Logf("%d answers compared", r.compared)
		})
	}
}

type replay struct {
	t        *testing.T
	server   *Server
	file     string
	peers    map[int]*peer
	answers  map[[2]int32]*remoting.Command
	requests map[[2]int32]*remoting.Command
	compared int
}

// seed registers the broker as another recording shows it.
func (r *replay) seed(name string) {
	for _, f := range testkit.GoldenWire(r.t, name) {
		if f.Kind == testkit.WireFrameKind && f.Dir == "c2s" && f.Code == remoting.ReqRegisterBroker && f.ExtFields["brokerId"] == "0" {
			req := &remoting.Command{}
			if err := req.Decode(f.Raw); err != nil {
				r.t.Fatal(err)
			}
			if resp := dial(r.t, r.server).call(withoutRetryTopics(r.t, req)); resp.Code != remoting.RespSuccess {
				r.t.Fatalf("seed: %s %s", remoting.ResponseName(resp.Code), resp.Remark)
			}
			return
		}
	}
	r.t.Fatalf("no registration in %s", name)
}

// withoutRetryTopics takes the topics of groups out of a registration: a fresh broker has none.
func withoutRetryTopics(t *testing.T, req *remoting.Command) *remoting.Command {
	t.Helper()
	b, err := remoting.DecodeRegisterBroker(req.Body, false, req.Version)
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(b.Topics.TopicConfigTable, func(name string, _ remoting.TopicConfig) bool { return strings.HasPrefix(name, "%RETRY%") })
	if req.Body, err = remoting.EncodeRegisterBroker(b, false, req.Version); err != nil {
		t.Fatal(err)
	}
	req.Fields.Set("bodyCrc32", "0")
	return req
}

func (r *replay) step(f *testkit.WireFrame) {
	switch {
	case f.Kind == testkit.WireEOF:
		if p := r.peers[f.Conn]; p != nil {
			p.conn.Close()
			delete(r.peers, f.Conn)
		}
	case f.Kind != testkit.WireFrameKind:
	case f.Dir == "c2s":
		p := r.peers[f.Conn]
		if p == nil {
			p = dial(r.t, r.server)
			r.peers[f.Conn] = p
		}
		req := &remoting.Command{}
		if err := req.Decode(f.Raw); err != nil {
			r.t.Fatal(err)
		}
		p.write(f.Raw)
		if !req.IsOneway() {
			key := [2]int32{int32(f.Conn), f.Opaque}
			r.requests[key], r.answers[key] = req, p.read()
		}
	default:
		key := [2]int32{int32(f.Conn), f.Opaque}
		req, got := r.requests[key], r.answers[key]
		if got == nil {
			return // the recording begins between a request and its answer
		}
		delete(r.answers, key)
		want := &remoting.Command{}
		if err := want.Decode(f.Raw); err != nil {
			r.t.Fatal(err)
		}
		r.compared++
		if d := gocmp.Diff(meaning(r.t, req, want), meaning(r.t, req, got)); d != "" {
			r.t.Errorf("%s seq %d: %s %v (-apache +mqx):\n%s", r.file, f.Seq, remoting.RequestName(req.Code), fieldMap(req), d)
		}
	}
}

func fieldMap(c *remoting.Command) map[string]string {
	m := map[string]string{}
	c.Fields.Each(func(k, v []byte) bool { m[string(k)] = string(v); return true })
	return m
}

// meaning is what an answer says, without the order of unordered things.
func meaning(t *testing.T, req, c *remoting.Command) map[string]any {
	t.Helper()
	fields := fieldMap(c)
	if _, ok := fields["haServerAddr"]; ok {
		fields["haServerAddr"] = "there" // the recording proxy put its own address in
	}
	m := map[string]any{"code": remoting.ResponseName(c.Code), "fields": fields}
	if c.Code != 0 {
		m["remark"] = c.Remark
	}
	if len(c.Body) == 0 {
		return m
	}
	if req.Code == remoting.ReqGetNamesrvConfig {
		m["keys"] = configKeys(t, c.Body)
		return m
	}
	tree, err := fastjson.Parse(c.Body)
	if err != nil {
		t.Fatalf("%v in %s", err, c.Body)
	}
	sortLists(tree)
	m["body"] = tree
	return m
}

// configKeys are the settings of a configuration text that do not depend on the machine.
func configKeys(t *testing.T, text []byte) map[string]string {
	t.Helper()
	f, err := props.Parse("answer", text)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]string{}
	for _, e := range f.Entries() {
		m[e.Key] = e.Value
	}
	for _, key := range []string{"rocketmqHome", "kvConfigPath", "configStorePath", "bindAddress", "listenPort", "serverSelectorThreads"} {
		if _, ok := m[key]; !ok {
			t.Errorf("%s is not shown", key)
		}
		delete(m, key)
	}
	for _, ours := range []string{"maxConnections", "maxConnectionsPerIp", "rocketmq.serialize.type", "slowRequestMillis", "logLevel"} {
		delete(m, ours)
	}
	return m
}

func sortLists(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			sortLists(e)
		}
		slices.SortFunc(v, func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	case map[string]any:
		for e := range maps.Values(v) {
			sortLists(e)
		}
	}
}
