package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mqx/remoting"
)

// Apache's proxy in cluster mode in front of mqx, and the gRPC client for Java:
// sends, pops, acks, changed invisible times, messages that come back, and dead
// letters.
func TestProxyWithJavaClient(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	d := sharedDriver(t)
	peers := proxyPeers(t)
	const topic, group, deadGroup = "E2EProxy", "GID_e2e_proxy", "GID_e2e_proxy_dead"
	createTopic(t, c.namesrv, topic, 4)
	d.admin(t, "updateSubGroup", "-b", c.broker, "-g", group)
	d.admin(t, "updateSubGroup", "-b", c.broker, "-g", deadGroup, "-r", "1")
	endpoint := sharedProxy(t).grpc

	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-Duser.home="+testDir(t, "proxy-client"),
		"-cp", filepath.Join(peers.java, "*"), "proxy/ProxyClient.java", endpoint, topic, group, "20", deadGroup)
	out, err := cmd.CombinedOutput()
	text := string(out)
	if err != nil || !strings.Contains(text, "DONE") {
		t.Fatalf("the client: %v\n%s", err, text)
	}
	simple := lineOf(text, "SIMPLE ")
	for i := range 20 {
		want := fmt.Sprintf("m%d=1", i)
		if i < 2 {
			want = fmt.Sprintf("m%d=2", i)
		}
		if !strings.Contains(simple, want+",") && !strings.Contains(simple, want+"}") {
			t.Errorf("%s is missing in %s", want, simple)
		}
	}
	if !strings.HasSuffix(simple, "twice []") {
		t.Errorf("delivered again after an ack: %s", simple)
	}
	if push := lineOf(text, "PUSH "); push != "PUSH [1]" && push != "PUSH [1, 2]" {
		t.Errorf("attempts of a failing message: %s", push)
	}
	waitFor(t, 30*time.Second, "the dead letter", func() (bool, string) {
		got := d.pull(t, c.namesrv, "%DLQ%"+deadGroup, "*")
		return len(got) == 1 && string(got[0].Body) == "dead0", fmt.Sprint(got)
	})
}

func lineOf(text, prefix string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// The same with the gRPC client for Node.
func TestProxyWithNodeClient(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	peers := proxyPeers(t)
	const topic, group = "E2EProxyNode", "GID_e2e_proxy_node"
	createTopic(t, c.namesrv, topic, 4)
	sharedDriver(t).admin(t, "updateSubGroup", "-b", c.broker, "-g", group)
	endpoint := sharedProxy(t).grpc
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "node", "proxy/client.js", peers.node, endpoint, topic, group, "12").CombinedOutput()
	if err != nil {
		t.Fatalf("the client: %v\n%s", err, out)
	}
	if got := lineOf(string(out), "NODE "); got != `NODE {"n":12,"m0":2,"twice":[]}` {
		t.Errorf("%s", got)
	}
}

// Message groups of a FIFO topic through the proxy: a push consumer gets each in its order, the one that failed again before
// what follows it; a simple consumer as well.
func TestProxyFIFO(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	d := sharedDriver(t)
	peers := proxyPeers(t)
	topic, group := rawNames("proxyfifo")
	d.call(t, "createTopic", map[string]any{"namesrv": c.namesrv, "topic": topic, "queues": 2, "attributes": map[string]string{"message.type": "FIFO"}}, nil)
	waitTopic(t, c.namesrv, topic)
	for _, g := range []string{group, group + "_simple"} {
		d.admin(t, "updateSubGroup", "-b", c.broker, "-g", g, "-o", "true")
	}
	endpoint := sharedProxy(t).grpc
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-Duser.home="+testDir(t, "fifo-client"),
		"-cp", filepath.Join(peers.java, "*"), "proxy/FifoClient.java", endpoint, topic, group, group+"_simple", "8").CombinedOutput()
	text := string(out)
	if err != nil || !strings.Contains(text, "DONE") {
		t.Fatalf("the client: %v\n%s", err, text)
	}
	const all = "00, 01, 02, 03, 04, 05, 06, 07"
	twice := strings.Replace(all, "01, ", "01, 01, ", 1)
	if want, got := fmt.Sprintf("PUSH {a=[%s], b=[%s], c=[%s]}", all, twice, all), lineOf(text, "PUSH "); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if want, got := fmt.Sprintf("SIMPLE {a=[%s], b=[%s], c=[%s]}", all, all, all), lineOf(text, "SIMPLE "); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// A broadcast group behind the proxy, whose clients speak to it as to a broker (gRPC clients cannot broadcast): each member gets
// everything, what was there and what comes.
func TestProxyBroadcast(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	d := sharedDriver(t)
	topic, group := rawNames("proxybroadcast")
	createTopic(t, c.namesrv, topic, 4)
	d.call(t, "createGroup", map[string]any{"namesrv": c.namesrv, "group": group}, nil)
	at := sharedProxy(t).remoting
	want := numbered("before", 20)
	d.send(t, c.namesrv, topic, "sync", want, nil)
	var members []func() []incoming
	for i := range 2 {
		members = append(members, javaPush(t, map[string]any{"id": fmt.Sprintf("%s-%d", group, i), "namesrv": at, "group": group, "topic": topic, "broadcast": true}))
	}
	all := func() {
		t.Helper()
		for i, got := range members {
			waitFor(t, arrival, fmt.Sprintf("everything at member %d", i), func() (bool, string) { why := missing(want, got()); return why == "", why })
		}
	}
	all()
	fresh := numbered("after", 20)
	d.send(t, at, topic, "sync", fresh, nil) // through the proxy too
	want = append(want, fresh...)
	all()
}

// The places of broadcast clients for which a proxy pulls (requestSource 1): one that has none begins where the group's slowest
// is, or at the first message.
func TestBroadcastPlaces(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	p := newRawPeer(t, c.broker)
	topic, group := rawNames("places")
	p.createTopic(topic, 1)
	p.createGroup(group)
	p.send(topic, 0, "0", "1", "2", "3", "4", "5")
	p.beat(remoting.HeartbeatData{ClientID: group + "@raw", ProducerDataSet: []remoting.ProducerData{}, ConsumerDataSet: []remoting.ConsumerData{{
		GroupName: group, ConsumeType: remoting.ConsumePassively, MessageModel: remoting.Broadcasting, ConsumeFromWhere: remoting.ConsumeFromLastOffset,
		SubscriptionDataSet: []remoting.SubscriptionData{{Topic: topic, SubString: "*", SubVersion: 1, ExpressionType: "TAG"}},
	}}})
	pull := func(client string, offset int64) *remoting.Command {
		h := pullOf(group, topic, 0, offset)
		h.MaxMsgNums = 2
		req := remoting.NewRequest(remoting.ReqPullMessage, h)
		req.Fields.Set("requestSource", "1")
		req.Fields.Set("proxyFrowardClientId", client)
		resp, err := p.Call(t.Context(), p.addr, req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	next := func(client string, offset int64, code int32, want int64) {
		t.Helper()
		resp := pull(client, offset)
		if got := p.int(resp, "nextBeginOffset"); resp.Code != code || got != want {
			t.Errorf("%s at %d: %s, go on at %d, want %s at %d", client, offset, remoting.ResponseName(resp.Code), got, remoting.ResponseName(code), want)
		}
	}
	for _, client := range []string{"one", "two"} {
		next(client, -1, remoting.RespPullOffsetMoved, 0)
	}
	for _, client := range []string{"one", "two"} {
		next(client, 0, remoting.RespSuccess, 2)
		next(client, 2, remoting.RespSuccess, 4)
	}
	next("one", -1, remoting.RespPullOffsetMoved, 2)                        // it has lost its place, and what it read last may not have arrived
	waitFor(t, arrival, "the place of the slowest", func() (bool, string) { // kept every five seconds
		resp := p.call(remoting.ReqQueryConsumerOffset, &remoting.QueryConsumerOffsetHeader{ConsumerGroup: group + "@broadcast", Topic: topic, QueueID: 0}, nil)
		return resp.Code == remoting.RespSuccess && p.int(resp, "offset") == 2, fmt.Sprint(remoting.ResponseName(resp.Code), resp.Fields)
	})
	next("three", -1, remoting.RespPullOffsetMoved, 2)
}

// peersOfProxy are the directories of the proxy and of its clients.
type peersOfProxy struct{ proxy, java, node string }

// proxyPeers fetches the proxy and its clients.
func proxyPeers(t *testing.T) peersOfProxy {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "proxy/fetch").Output()
	dirs := strings.Fields(string(out))
	if err != nil || len(dirs) != 3 {
		t.Fatalf("cannot fetch the proxy: %v %q", err, out)
	}
	return peersOfProxy{proxy: dirs[0], java: dirs[1], node: dirs[2]}
}

// proxyAddrs are the ports of a proxy: for gRPC clients, and for those that would speak to brokers.
type proxyAddrs struct{ grpc, remoting string }

// oneProxy is Apache's proxy before the shared cluster, for all tests together.
var oneProxy struct {
	sync.Once
	proxyAddrs
}

func sharedProxy(t *testing.T) proxyAddrs {
	t.Helper()
	c, jars := sharedCluster(t), proxyPeers(t).proxy
	oneProxy.Do(func() { oneProxy.proxyAddrs = startProxy(t, jars, c.namesrv) })
	if oneProxy.grpc == "" {
		t.Fatal("the proxy did not start")
	}
	return oneProxy.proxyAddrs
}

// startProxy starts Apache's proxy.
func startProxy(t *testing.T, jars, namesrv string) proxyAddrs {
	t.Helper()
	dir := testDir(t, "proxy")
	grpc, other := freePort(t), freePort(t)
	conf := writeFile(t, dir, "rmq-proxy.json", fmt.Sprintf(
		`{"rocketMQClusterName":%q,"proxyMode":"CLUSTER","namesrvAddr":%q,"grpcServerPort":%d,"remotingListenPort":%d,"localServeAddr":"127.0.0.1"}`,
		clusterName, namesrv, grpc, other))
	if err := os.MkdirAll(filepath.Join(dir, "conf"), 0o755); err != nil {
		t.Fatal(err)
	}
	flags := javaFlags(dir, "384m")
	flags[len(flags)-1] = filepath.Join(jars, "*")
	p := start(t, "apache-proxy", dir, []string{"RMQ_PROXY_HOME=" + dir}, "java",
		append(flags, "org.apache.rocketmq.proxy.ProxyStartup", "-pc", conf, "-n", namesrv, "-pm", "CLUSTER")...)
	waitPort(t, p, loopback(grpc))
	waitPort(t, p, loopback(other))
	return proxyAddrs{grpc: loopback(grpc), remoting: loopback(other)}
}
