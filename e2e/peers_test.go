package e2e

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	clusterName = "E2ECluster"
	brokerName  = "broker-e2e"
)

// stopLimit is how long a server may take to stop in order. Apache's broker
// takes up to 18 s on two cores.
const stopLimit = 60 * time.Second

// testDir is a directory under workDir, which lasts as long as the run: what the
// first test starts in it may serve the others too.
func testDir(t *testing.T, name string) string {
	t.Helper()
	dir, err := os.MkdirTemp(workDir, name+"-") //nolint:usetesting // outlives the test
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// reference puts Apache's servers in the place of mqx's (MQX_E2E_REFERENCE=apache):
// what they do not pass is a mistake of the test.
func reference() bool { return os.Getenv("MQX_E2E_REFERENCE") == "apache" }

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// mqxNameserver starts a name server of mqx on port.
func mqxNameserver(t *testing.T, port int) *process {
	t.Helper()
	return mqxNameserverWith(t, port)
}

// mqxNameserverWith is mqxNameserver with more lines of its configuration.
func mqxNameserverWith(t *testing.T, port int, extra ...string) *process {
	t.Helper()
	if reference() {
		return apacheNameserver(t, port)
	}
	dir := testDir(t, "mqx-namesrv")
	lines := append([]string{"kvConfigPath=" + filepath.Join(dir, "kvConfig.json")}, extra...)
	conf := writeFile(t, dir, "namesrv.conf", strings.Join(lines, "\n")+"\n")
	p := start(t, "mqx-namesrv", dir, nil, mqxBinary, "nameserver", "start", "-c", conf, "--listen", loopback(port))
	waitPort(t, p, loopback(port))
	return p
}

// brokerSpec is a broker of either make.
type brokerSpec struct {
	name    string // default brokerName
	port    int
	namesrv string
	store   string   // directory
	extra   []string // lines of broker.conf
}

// conf writes the broker.conf that both makes read.
func (b brokerSpec) conf(t *testing.T, dir string) string {
	t.Helper()
	lines := append([]string{
		"brokerClusterName=" + clusterName,
		"brokerName=" + cmp.Or(b.name, brokerName),
		"brokerId=0",
		"brokerIP1=127.0.0.1",
		"brokerIP2=127.0.0.1",
		fmt.Sprintf("listenPort=%d", b.port),
		"namesrvAddr=" + b.namesrv,
		"storePathRootDir=" + b.store,
		"storePathCommitLog=" + filepath.Join(b.store, "commitlog"),
		"mappedFileSizeCommitLog=1048576",
		"mappedFileSizeConsumeQueue=6000",
		"maxHashSlotNum=1000",
		"maxIndexNum=4000",
		"maxMessageSize=524288",
		"flushConsumerOffsetInterval=1000",
		"registerNameServerPeriod=10000",
		"diskMaxUsedSpaceRatio=95",
		"waitTimeMillsInSendQueue=10000", // a busy test machine is no overload
	}, b.extra...)
	return writeFile(t, dir, "broker.conf", strings.Join(lines, "\n")+"\n")
}

func mqxBroker(t *testing.T, b brokerSpec) *process {
	t.Helper()
	if reference() {
		return apacheBroker(t, b)
	}
	dir := testDir(t, "mqx-broker")
	p := start(t, "mqx-broker", dir, nil, mqxBinary, "broker", "start", "-c", b.conf(t, dir))
	waitPort(t, p, loopback(b.port))
	return p
}

// javaFlags are what a JVM of the tests runs with: little memory, one thread for
// the collector, quick to compile.
func javaFlags(dir, heap string) []string {
	return []string{
		"-Xms64m", "-Xmx" + heap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:MaxDirectMemorySize=512m",
		"--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
		"--add-opens=java.base/java.nio=ALL-UNNAMED",
		"--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
		"-Duser.home=" + dir, "-Drocketmq.home.dir=" + dir, "-Drocketmq.client.logRoot=" + dir, "-Drocketmq.log.root=" + dir,
		"-cp", classPath,
	}
}

func apacheNameserver(t *testing.T, port int) *process {
	t.Helper()
	dir := testDir(t, "apache-namesrv")
	conf := writeFile(t, dir, "namesrv.conf", fmt.Sprintf("listenPort=%d\nbindAddress=127.0.0.1\n", port))
	p := start(t, "apache-namesrv", dir, nil, "java", append(javaFlags(dir, "256m"), "org.apache.rocketmq.namesrv.NamesrvStartup", "-c", conf)...)
	waitPort(t, p, loopback(port))
	return p
}

func apacheBroker(t *testing.T, b brokerSpec) *process {
	t.Helper()
	dir := testDir(t, "apache-broker")
	p := start(t, "apache-broker", dir, nil, "java", append(javaFlags(dir, "512m"), "org.apache.rocketmq.broker.BrokerStartup", "-c", b.conf(t, dir))...)
	waitPort(t, p, loopback(b.port))
	return p
}

func writeFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// cluster is a name server and a broker.
type cluster struct {
	namesrv string
	broker  string
}

// shared is the mqx cluster that the tests of the clients use together, each
// with topics and groups of its own.
var shared struct {
	sync.Once
	cluster
}

func sharedCluster(t *testing.T) cluster {
	t.Helper()
	shared.Do(func() {
		ns, br := freePort(t), freePort(t)
		mqxNameserver(t, ns)
		shared.namesrv, shared.broker = loopback(ns), loopback(br)
		mqxBroker(t, brokerSpec{port: br, namesrv: shared.namesrv, store: filepath.Join(testDir(t, "shared"), "store")})
	})
	if shared.broker == "" {
		t.Fatal("the shared cluster did not start")
	}
	waitRegistered(t, shared.namesrv)
	return shared.cluster
}

// mqx runs a command of mqx and returns what it prints; it must succeed.
func mqx(t *testing.T, args ...string) string {
	t.Helper()
	text, err := output(mqxBinary, args...)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// waitRegistered waits until the name server knows a broker.
func waitRegistered(t *testing.T, namesrv string) {
	t.Helper()
	waitFor(t, 60*time.Second, "a broker at name server "+namesrv, func() (bool, string) {
		names, err := sharedDriver(t).brokers(namesrv)
		return err == nil && slices.Contains(names, brokerName), fmt.Sprint(names, err)
	})
}

// createTopic creates a topic on all brokers with Apache's admin client and waits
// for its route.
func createTopic(t *testing.T, namesrv, topic string, queues int) {
	t.Helper()
	sharedDriver(t).call(t, "createTopic", map[string]any{"namesrv": namesrv, "topic": topic, "queues": queues}, nil)
	waitTopic(t, namesrv, topic)
}

func waitTopic(t *testing.T, namesrv, topic string) {
	t.Helper()
	waitFor(t, 60*time.Second, "the route of "+topic, func() (bool, string) {
		names, err := sharedDriver(t).route(namesrv, topic)
		return err == nil && slices.Contains(names, brokerName), fmt.Sprint(names, err)
	})
}

// takeOver ends a broker in order and lets another make go on with its store; it returns when the topic is routed again.
func takeOver(t *testing.T, first *process, next func(*testing.T, brokerSpec) *process, spec brokerSpec, namesrv, topic string) *process {
	t.Helper()
	if err := first.stop(t, stopLimit); err != nil && strings.HasPrefix(first.name, "mqx") { // a JVM ends with 143
		t.Fatalf("the first broker ended with %v", err)
	}
	waitGone(t, namesrv)
	second := next(t, spec)
	second.cleanup(t)
	waitRegistered(t, namesrv)
	waitTopic(t, namesrv, topic)
	return second
}

func waitGone(t *testing.T, namesrv string) {
	t.Helper()
	waitFor(t, 30*time.Second, "the broker to leave the route", func() (bool, string) {
		names, err := sharedDriver(t).brokers(namesrv)
		return err == nil && !slices.Contains(names, brokerName), fmt.Sprint(names, err)
	})
}
