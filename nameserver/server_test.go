package nameserver

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mqx/internal/clock"
	"mqx/internal/fastjson"
	"mqx/remoting"
	remoteclient "mqx/remoting/client"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"),
	)
}

// registerRequest is a REGISTER_BROKER of broker "b" in cluster "c".
func registerRequest(t *testing.T, id int64, addr string, counter int64, topics ...string) *remoting.Command {
	t.Helper()
	body, err := remoting.EncodeRegisterBroker(reg(id, addr, counter, topics...).body, false, remoting.Version)
	if err != nil {
		t.Fatal(err)
	}
	req := remoting.NewRequest(remoting.ReqRegisterBroker, &remoting.RegisterBrokerHeader{
		BrokerName: "b", BrokerAddr: addr, ClusterName: "c", HAServerAddr: "ha-" + addr, BrokerID: id,
		BodyCRC32: remoting.Some(int32(crc32.ChecksumIEEE(body) & 0x7FFFFFFF)),
	})
	req.Body = body
	return req
}

func (p *peer) ok(req *remoting.Command) *remoting.Command {
	p.t.Helper()
	resp := p.call(req)
	if resp.Code != remoting.RespSuccess {
		p.t.Fatalf("%s: %s: %s", remoting.RequestName(req.Code), remoting.ResponseName(resp.Code), resp.Remark)
	}
	return resp
}

func (p *peer) refused(req *remoting.Command, code int32, remark string) {
	p.t.Helper()
	resp := p.call(req)
	if resp.Code != code || !strings.Contains(resp.Remark, remark) {
		p.t.Errorf("%s: %s %q, want %s %q", remoting.RequestName(req.Code), remoting.ResponseName(resp.Code), resp.Remark, remoting.ResponseName(code), remark)
	}
}

func route(topic string) *remoting.Command {
	return remoting.NewRequest(remoting.ReqGetRouteInfoByTopic, &remoting.GetRouteInfoHeader{Topic: topic})
}

func decode[T any](t *testing.T, body []byte) T {
	t.Helper()
	var v T
	if err := fastjson.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return v
}

func TestRouteDialectsAndCache(t *testing.T) {
	s := startServer(t, nil)
	p := dial(t, s)
	p.ok(registerRequest(t, 0, "m:1", 1, "x", "y"))
	ask := func(version int32, standardOnly bool) string {
		req := route("x")
		req.Version = version
		if standardOnly {
			req.Fields.Set("acceptStandardJsonOnly", "true")
		}
		return string(p.ok(req).Body)
	}
	for range 3 { // from the table, then from the cache
		if got := ask(remoting.V4_9_4, false); !strings.Contains(got, `"brokerAddrs":{"0":"m:1"}`) {
			t.Errorf("V4_9_4: %s", got)
		}
		if got := ask(remoting.V4_9_3, false); !strings.Contains(got, `"brokerAddrs":{0:"m:1"}`) {
			t.Errorf("V4_9_3: %s", got)
		}
		if got := ask(0, true); !strings.Contains(got, `"brokerAddrs":{"0":"m:1"}`) {
			t.Errorf("acceptStandardJsonOnly: %s", got)
		}
	}
	if s.cache.tryGet([]byte("x"), loose) == nil || s.cache.tryGet([]byte("x"), standard) == nil {
		t.Error("answers are not cached")
	}
	p.ok(registerRequest(t, 0, "m:2", 1, "x", "y"))
	if got := ask(0, false); !strings.Contains(got, `"m:2"`) {
		t.Errorf("after a change of address: %s", got)
	}
	p.refused(route("nothing"), remoting.RespTopicNotExist, "No topic route info in name server for the topic: nothing")
	p.refused(remoting.NewRequest(remoting.ReqGetRouteInfoByTopic, nil), remoting.RespSystemError, "topic")
}

func TestRegistrationRefusals(t *testing.T) {
	p := dial(t, startServer(t, nil))
	bad := registerRequest(t, 0, "m:1", 1, "x", "y")
	bad.Fields.Set("bodyCrc32", "7")
	p.refused(bad, remoting.RespSystemError, "crc32 not match")
	p.refused(registerRequest(t, 0, "m:1", 1, "x"), remoting.RespSystemError, "register broker failed")
	missing := registerRequest(t, 0, "m:1", 1, "x", "y")
	missing.Fields.Del("brokerAddr")
	p.refused(missing, remoting.RespSystemError, "brokerAddr")
	p.refused(remoting.NewRequest(9999, nil), remoting.RespRequestCodeNotSupported, "request type 9999 not supported")
}

func TestRegistrationForms(t *testing.T) {
	for _, compressed := range []bool{false, true} {
		for _, version := range []int32{remoting.V4_9_4, remoting.Version} { // N099
			p := dial(t, startServer(t, nil))
			req := registerRequest(t, 0, "m:1", 1, "x", "y:4")
			body, err := remoting.EncodeRegisterBroker(reg(0, "m:1", 1, "x", "y:4").body, compressed, version)
			if err != nil {
				t.Fatal(err)
			}
			req.Body, req.Version = body, version
			req.Fields.Set("compressed", fmt.Sprint(compressed))
			req.Fields.Set("bodyCrc32", fmt.Sprint(crc32.ChecksumIEEE(body)&0x7FFFFFFF))
			p.ok(req)
			r := decode[remoting.TopicRouteData](t, p.ok(route("y")).Body)
			if q := r.QueueDatas[0]; q.Perm != 4 || q.ReadQueueNums != 16 {
				t.Errorf("compressed %v version %d: %+v", compressed, version, q)
			}
		}
	}
	t.Run("before V3_0_11", func(t *testing.T) {
		p := dial(t, startServer(t, nil))
		req := registerRequest(t, 0, "m:1", 1, "x", "y")
		body, err := fastjson.Marshal(reg(0, "m:1", 1, "x", "y").body.Topics)
		if err != nil {
			t.Fatal(err)
		}
		req.Body, req.Version = body, remoting.V3_0_7_SNAPSHOT
		req.Fields.Set("bodyCrc32", "0")
		p.ok(req)
		p.ok(route("x"))
	})
}

func TestClosedConnectionEndsItsBrokers(t *testing.T) {
	s := startServer(t, nil)
	broker, client := dial(t, s), dial(t, s)
	broker.ok(registerRequest(t, 0, "m:1", 1, "x", "y"))
	client.ok(route("x"))
	broker.conn.Close()
	eventually(t, "the route to vanish", func() bool { return client.call(route("x")).Code == remoting.RespTopicNotExist })
}

// eventually waits for a condition that other goroutines bring about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestExpiryClosesTheConnection(t *testing.T) {
	now := clock.NewManual(t0)
	s := startServer(t, func(c *Config) { c.Clock = now })
	broker, client := dial(t, s), dial(t, s)
	req := registerRequest(t, 0, "m:1", 1, "x", "y")
	req.Fields.Set("heartbeatTimeoutMillis", "10000")
	broker.ok(req)

	beat := remoting.NewRequest(remoting.ReqBrokerHeartbeat, &remoting.BrokerHeartbeatHeader{ClusterName: "c", BrokerAddr: "m:1", BrokerName: "b"})
	now.Advance(9 * time.Second)
	client.ok(beat)
	s.expire(now.Advance(9 * time.Second))
	client.ok(route("x"))
	version := remoting.NewRequest(remoting.ReqQueryDataVersion, &remoting.QueryDataVersionHeader{BrokerName: "b", BrokerAddr: "m:1", ClusterName: "c"})
	client.ok(version) // counts as a sign of life, too
	s.expire(now.Advance(10 * time.Second))
	client.ok(route("x"))
	s.expire(now.Advance(time.Millisecond))
	client.refused(route("x"), remoting.RespTopicNotExist, "")
	if err := broker.conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := broker.conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the expired broker's connection: %v, want EOF", err)
	}
}

func TestDataVersion(t *testing.T) {
	p := dial(t, startServer(t, nil))
	ask := func(v remoting.DataVersion) (changed string, body []byte) {
		req := remoting.NewRequest(remoting.ReqQueryDataVersion, &remoting.QueryDataVersionHeader{BrokerName: "b", BrokerAddr: "m:1", ClusterName: "c"})
		var err error
		if req.Body, err = fastjson.Marshal(v); err != nil {
			t.Fatal(err)
		}
		resp := p.ok(req)
		return resp.Fields.String("changed"), resp.Body
	}
	if changed, body := ask(remoting.DataVersion{}); changed != "true" || len(body) != 0 {
		t.Errorf("unknown broker: changed %s, body %s", changed, body)
	}
	p.ok(registerRequest(t, 0, "m:1", 5, "x", "y"))
	known := remoting.DataVersion{Counter: 5, Timestamp: 1}
	if changed, body := ask(known); changed != "false" || decode[remoting.DataVersion](t, body) != known {
		t.Errorf("same version: changed %s, body %s", changed, body)
	}
	if changed, _ := ask(remoting.DataVersion{Counter: 4, Timestamp: 1}); changed != "true" {
		t.Errorf("other version: changed %s", changed)
	}
}

func TestUnregisterTakesEffectBeforeTheAnswer(t *testing.T) {
	p := dial(t, startServer(t, nil))
	p.ok(registerRequest(t, 0, "m:1", 1, "x", "y"))
	p.ok(remoting.NewRequest(remoting.ReqUnregisterBroker, &remoting.UnregisterBrokerHeader{BrokerName: "b", BrokerAddr: "m:1", ClusterName: "c"}))
	p.refused(route("x"), remoting.RespTopicNotExist, "")
	p.refused(remoting.NewRequest(remoting.ReqUnregisterBroker, nil), remoting.RespSystemError, "is null")
}

func TestListRequests(t *testing.T) {
	p := dial(t, startServer(t, nil))
	list := func(code int32, h any) []string {
		return decode[remoting.TopicList](t, p.ok(remoting.NewRequest(code, h)).Body).TopicList
	}
	if body := p.ok(remoting.NewRequest(remoting.ReqGetAllTopicListFromNameServer, nil)).Body; string(body) != `{"topicList":[]}` {
		t.Errorf("no topics: %s", body)
	}
	p.ok(registerRequest(t, 0, "m:1", 1, "x", "y"))
	if got := list(remoting.ReqGetAllTopicListFromNameServer, nil); !slices.Equal(got, []string{"x", "y"}) {
		t.Errorf("all topics: %v", got)
	}
	if got := list(remoting.ReqGetTopicsByCluster, &remoting.GetTopicsByClusterHeader{Cluster: "c"}); !slices.Equal(got, []string{"x", "y"}) {
		t.Errorf("topics by cluster: %v", got)
	}
	if got := list(remoting.ReqGetSystemTopicListFromNS, nil); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("system topics: %v", got)
	}
	for _, code := range []int32{remoting.ReqGetUnitTopicList, remoting.ReqGetHasUnitSubTopicList, remoting.ReqGetHasUnitSubUnUnitTopicList} {
		if got := list(code, nil); len(got) != 0 {
			t.Errorf("%s: %v", remoting.RequestName(code), got)
		}
	}
	g := decode[remoting.GetBrokerMemberGroupBody](t, p.ok(remoting.NewRequest(remoting.ReqGetBrokerMemberGroup,
		&remoting.GetBrokerMemberGroupHeader{ClusterName: "c", BrokerName: "b"})).Body)
	if g.BrokerMemberGroup == nil || g.BrokerMemberGroup.BrokerAddrs[0] != "m:1" {
		t.Errorf("member group: %+v", g.BrokerMemberGroup)
	}
	req := remoting.NewRequest(remoting.ReqRegisterTopicInNamesrv, &remoting.RegisterTopicHeader{Topic: "z"})
	req.Body = []byte(`{"queueDatas":[{"brokerName":"b","perm":6,"readQueueNums":3,"writeQueueNums":2,"topicSynFlag":0}]}`)
	p.ok(req)
	if r := decode[remoting.TopicRouteData](t, p.ok(route("z")).Body); r.QueueDatas[0].WriteQueueNums != 2 {
		t.Errorf("registered topic: %+v", r)
	}
	req.Fields.Set("topic", strings.Repeat("z", maxNameLen+1))
	p.refused(req, remoting.RespSystemError, "must have 1 to 255 bytes")
}

func TestDisabledLists(t *testing.T) {
	p := dial(t, startServer(t, func(c *Config) { c.EnableAllTopicList, c.EnableTopicList = false, false }))
	for _, code := range []int32{
		remoting.ReqGetAllTopicListFromNameServer, remoting.ReqGetTopicsByCluster, remoting.ReqGetUnitTopicList,
		remoting.ReqGetHasUnitSubTopicList, remoting.ReqGetHasUnitSubUnUnitTopicList,
	} {
		p.refused(remoting.NewRequest(code, nil), remoting.RespNoPermission, "disable")
	}
	p.ok(remoting.NewRequest(remoting.ReqGetSystemTopicListFromNS, nil))
}

func TestNeedWaitForService(t *testing.T) {
	now := clock.NewManual(t0)
	p := dial(t, startServer(t, func(c *Config) { c.Clock, c.NeedWaitForService = now, true }))
	p.ok(registerRequest(t, 0, "m:1", 1, "x", "y"))
	now.Advance(45*time.Second - time.Millisecond)
	p.refused(route("x"), remoting.RespSystemError, "name server not ready")
	now.Advance(time.Millisecond)
	p.ok(route("x"))
}

func TestZoneRequest(t *testing.T) {
	p := dial(t, startServer(t, nil))
	req := registerRequest(t, 0, "m:1", 1, "x", "y")
	req.Fields.Set("__ZONE_NAME", "east")
	p.ok(req)
	ask := func(zone string) int {
		req := route("x")
		req.Fields.Set("__ZONE_MODE", "true")
		req.Fields.Set("__ZONE_NAME", zone)
		return len(decode[remoting.TopicRouteData](t, p.ok(req).Body).BrokerDatas)
	}
	p.ok(route("x")) // cached now
	for zone, want := range map[string]int{"east": 1, "EAST": 1, "west": 0, "": 1} {
		if got := ask(zone); got != want {
			t.Errorf("zone %q: %d brokers, want %d", zone, got, want)
		}
	}
	if r := decode[remoting.TopicRouteData](t, p.ok(route("x")).Body); r.BrokerDatas[0].ZoneName != "east" {
		t.Errorf("route without a zone: %+v", r)
	}
}

func TestOrderConfig(t *testing.T) {
	p := dial(t, startServer(t, func(c *Config) { c.OrderMessageEnable = true }))
	p.ok(registerRequest(t, 0, "m:1", 1, "x", "y"))
	order := func() *string { return decode[remoting.TopicRouteData](t, p.ok(route("x")).Body).OrderTopicConf }
	if o := order(); o != nil {
		t.Errorf("before: %s", *o)
	}
	p.ok(remoting.NewRequest(remoting.ReqPutKVConfig, &remoting.PutKVConfigHeader{Namespace: orderNamespace, Key: "x", Value: "b:3"}))
	if o := order(); o == nil || *o != "b:3" {
		t.Errorf("after: %v", o)
	}
	resp := p.ok(registerRequest(t, 0, "m:1", 1, "x", "y"))
	if kvs := decode[remoting.KVTable](t, resp.Body).Table; kvs["x"] != "b:3" {
		t.Errorf("in the answer to a registration: %v", kvs)
	}
	p.ok(remoting.NewRequest(remoting.ReqDeleteKVConfig, &remoting.DeleteKVConfigHeader{Namespace: orderNamespace, Key: "x"}))
	if o := order(); o != nil {
		t.Errorf("deleted: %s", *o)
	}
}

func TestKeyValueTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "kvConfig.json")
	s := startServer(t, func(c *Config) { c.KVConfigPath = path })
	p := dial(t, s)
	get := func(key string) *remoting.Command {
		return remoting.NewRequest(remoting.ReqGetKVConfig, &remoting.GetKVConfigHeader{Namespace: "n", Key: key})
	}
	list := remoting.NewRequest(remoting.ReqGetKVListByNamespace, &remoting.GetKVListByNamespaceHeader{Namespace: "n"})
	p.refused(get("k"), remoting.RespQueryNotFound, "No config item, Namespace: n Key: k")
	p.refused(list, remoting.RespQueryNotFound, "No config item, Namespace: n")
	p.ok(remoting.NewRequest(remoting.ReqPutKVConfig, &remoting.PutKVConfigHeader{Namespace: "n", Key: "k", Value: "ü 1"}))
	if v := p.ok(get("k")).Fields.String("value"); v != "ü 1" {
		t.Errorf("value %q", v)
	}
	if kvs := decode[remoting.KVTable](t, p.ok(list).Body).Table; kvs["k"] != "ü 1" {
		t.Errorf("list %v", kvs)
	}
	file, err := os.ReadFile(path)
	if err != nil || string(file) != `{"configTable":{"n":{"k":"ü 1"}}}` {
		t.Errorf("file: %s %v", file, err)
	}
	again := dial(t, startServer(t, func(c *Config) { c.KVConfigPath = path }))
	if v := again.ok(get("k")).Fields.String("value"); v != "ü 1" {
		t.Errorf("value after a restart %q", v)
	}
	p.ok(remoting.NewRequest(remoting.ReqDeleteKVConfig, &remoting.DeleteKVConfigHeader{Namespace: "n", Key: "k"}))
	p.refused(get("k"), remoting.RespQueryNotFound, "")
	p.refused(remoting.NewRequest(remoting.ReqPutKVConfig, &remoting.PutKVConfigHeader{Namespace: "", Key: "k", Value: "v"}), remoting.RespSystemError, "namespace or key is null")
	p.refused(remoting.NewRequest(remoting.ReqPutKVConfig, &remoting.PutKVConfigHeader{Namespace: "n", Key: "k", Value: strings.Repeat("v", maxKVValueLen+1)}), remoting.RespSystemError, "the limit is 65536")
}

func TestMinIDNotice(t *testing.T) {
	heard := make(chan *remoting.Command, 4)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		p := &peer{t, c}
		heard <- p.read()
	}()
	p := dial(t, startServer(t, func(c *Config) { c.NotifyMinBrokerIDChanged = true }))
	p.ok(registerRequest(t, 1, l.Addr().String(), 1, "x", "y"))
	p.ok(registerRequest(t, 0, "m:1", 1, "x", "y"))
	select {
	case c := <-heard:
		f := fieldMap(c)
		if c.Code != remoting.ReqNotifyMinBrokerIDChange || !c.IsOneway() || f["minBrokerId"] != "0" || f["minBrokerAddr"] != "m:1" || f["haBrokerAddr"] != "ha-m:1" {
			t.Errorf("notice: code %d flag %d %v", c.Code, c.Flag, f)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("no notice came")
	}
}

func TestTLS(t *testing.T) {
	s := startServer(t, func(c *Config) { c.TLS.Mode = "enforcing" }) // test mode makes a certificate
	conf, err := remoteclient.TLSOptions{TestMode: true}.Config()
	if err != nil {
		t.Fatal(err)
	}
	c := remoteclient.New(remoteclient.Config{TLS: conf, Logger: slog.New(slog.DiscardHandler)})
	defer c.Close()
	resp, err := c.Call(t.Context(), s.Addr().String(), remoting.NewRequest(remoting.ReqGetBrokerClusterInfo, nil))
	if err != nil || resp.Code != remoting.RespSuccess {
		t.Fatalf("%v %+v", err, resp)
	}
	plain := remoteclient.New(remoteclient.Config{Logger: slog.New(slog.DiscardHandler)})
	defer plain.Close()
	if _, err := plain.Call(t.Context(), s.Addr().String(), remoting.NewRequest(remoting.ReqGetBrokerClusterInfo, nil)); err == nil {
		t.Error("a plain client was served")
	}
}

func TestRunErrors(t *testing.T) {
	s := startServer(t, nil)
	if err := s.Run(t.Context()); err == nil {
		t.Error("ran twice")
	}
	cfg := s.Config()
	if err := cfg.SetListen(s.Addr().String()); err != nil {
		t.Fatal(err)
	}
	taken, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := taken.Run(t.Context()); err == nil || !strings.Contains(err.Error(), s.Addr().String()) {
		t.Errorf("a port that is taken: %v", err)
	}
}

func TestStopAnswersWhatIsInFlight(t *testing.T) {
	cfg := DefaultConfig()
	cfg.BindAddress, cfg.ListenPort, cfg.Logger = "127.0.0.1", 0, slog.New(slog.DiscardHandler)
	cfg.KVConfigPath = filepath.Join(t.TempDir(), "kv.json")
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	<-s.Ready()
	p := dial(t, s)
	p.ok(registerRequest(t, 0, "m:1", 1, "x", "y"))
	began := time.Now()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the stop took %v with nothing in flight", took)
	}
}

// TestRoutesFollowChanges asks for a route from several connections while it changes:
// whoever has seen a registration answered must see its address from then on.
func TestRoutesFollowChanges(t *testing.T) {
	s := startServer(t, nil)
	broker := dial(t, s)
	broker.ok(registerRequest(t, 0, "m:0", 1, "x", "y"))
	var newest atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 3 {
		p := dial(t, s)
		wg.Go(func() {
			for ctx.Err() == nil {
				seen := newest.Load()
				r := decode[remoting.TopicRouteData](t, p.ok(route("x")).Body)
				var got int64
				if _, err := fmt.Sscanf(r.BrokerDatas[0].BrokerAddrs[0], "m:%d", &got); err != nil || got < seen {
					t.Errorf("route shows %v after %d was answered", r.BrokerDatas[0].BrokerAddrs, seen)
					return
				}
			}
		})
	}
	for i := range int64(200) {
		broker.ok(registerRequest(t, 0, fmt.Sprintf("m:%d", i+1), 1, "x", "y"))
		newest.Store(i + 1)
	}
	stop()
	wg.Wait()
}
