package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
	endpoint := startProxy(t, peers.proxy, c.namesrv)

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
	endpoint := startProxy(t, peers.proxy, c.namesrv)
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

// startProxy starts Apache's proxy and returns its gRPC endpoint.
func startProxy(t *testing.T, jars, namesrv string) string {
	t.Helper()
	dir := testDir(t, "proxy")
	grpc, remoting := freePort(t), freePort(t)
	conf := writeFile(t, dir, "rmq-proxy.json", fmt.Sprintf(
		`{"rocketMQClusterName":%q,"proxyMode":"CLUSTER","namesrvAddr":%q,"grpcServerPort":%d,"remotingListenPort":%d,"localServeAddr":"127.0.0.1"}`,
		clusterName, namesrv, grpc, remoting))
	if err := os.MkdirAll(filepath.Join(dir, "conf"), 0o755); err != nil {
		t.Fatal(err)
	}
	flags := javaFlags(dir, "384m")
	flags[len(flags)-1] = filepath.Join(jars, "*")
	p := start(t, "apache-proxy", dir, []string{"RMQ_PROXY_HOME=" + dir}, "java",
		append(flags, "org.apache.rocketmq.proxy.ProxyStartup", "-pc", conf, "-n", namesrv, "-pm", "CLUSTER")...)
	waitPort(t, p, loopback(grpc))
	return loopback(grpc)
}
