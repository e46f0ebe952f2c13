package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// controllerBench is a controller of Apache's and a name server, for brokers of one name.
type controllerBench struct {
	cluster        // broker is the first one's
	addr    string // of the controller
	dir     string
}

func newControllerBench(t *testing.T) *controllerBench {
	t.Helper()
	dir := testDir(t, "apache-controller")
	b := &controllerBench{addr: loopback(freePort(t)), dir: dir}
	conf := writeFile(t, dir, "controller.conf", strings.Join([]string{
		"controllerDLegerGroup=g", "controllerDLegerPeers=n0-" + b.addr, "controllerDLegerSelfId=n0",
		"controllerStorePath=" + filepath.Join(dir, "controller"), "mappedFileSize=1048576",
	}, "\n")+"\n")
	p := start(t, "apache-controller", dir, nil, "java", append(javaFlags(dir, "256m"), "org.apache.rocketmq.controller.ControllerStartup", "-c", conf)...)
	p.cleanup(t)
	waitPort(t, p, b.addr)
	ns := freePort(t)
	apacheNameserver(t, ns).cleanup(t)
	b.namesrv = loopback(ns)
	return b
}

// broker starts a broker with an empty store, to which the controller gives the next id.
func (b *controllerBench) broker(t *testing.T) (p *process, addr string) {
	t.Helper()
	port := freePort(t)
	p = apacheBroker(t, brokerSpec{port: port, namesrv: b.namesrv, store: filepath.Join(testDir(t, "controlled"), "store"), extra: []string{
		"enableControllerMode=true", "controllerAddr=" + b.addr, "allAckInSyncStateSet=true",
	}})
	p.cleanup(t)
	if b.cluster.broker == "" {
		b.cluster.broker = loopback(port)
	}
	return p, loopback(port)
}

// replicaSet is what getSyncStateSet tells of a name, by either tool.
type replicaSet struct {
	master int
	inSync []int
	alive  map[int]bool // of all replicas
}

var (
	masterLine  = regexp.MustCompile(`#MasterBrokerId\t(\d+)`)
	replicaLine = regexp.MustCompile(`(InSyncReplica|NotInSyncReplica):\tReplicaIdentity\{brokerName='[^']*', brokerId=(\d+), brokerAddress='[^']*', alive=(true|false)\}`)
)

func readReplicas(text string) replicaSet {
	out := replicaSet{alive: map[int]bool{}}
	if m := masterLine.FindStringSubmatch(text); m != nil {
		out.master, _ = strconv.Atoi(m[1])
	}
	for _, m := range replicaLine.FindAllStringSubmatch(text, -1) {
		id, _ := strconv.Atoi(m[2])
		out.alive[id] = m[3] == "true"
		if m[1] == "InSyncReplica" {
			out.inSync = append(out.inSync, id)
		}
	}
	slices.Sort(out.inSync)
	return out
}

// await waits until a tool reads what ok wants of the replicas.
func (b *controllerBench) await(t *testing.T, bench *changeBench, tool, what string, ok func(r replicaSet) bool) {
	t.Helper()
	waitFor(t, 90*time.Second, what+", as "+tool+" reads it", func() (bool, string) {
		text, err := bench.run(t, tool, []string{"getSyncStateSet", "-a", b.addr, "-b", brokerName})
		return err == nil && ok(readReplicas(text)), fmt.Sprint(text, err)
	})
}

// TestControllerChanges lets each tool in turn elect another master and forget a replica that is gone, and reads it back with the other
// tool; a client's sends go to whoever is master.
func TestControllerChanges(t *testing.T) {
	if !reference() && os.Getenv("MQX_E2E_ALL") == "" {
		t.Skip("controllers are Apache's: MQX_E2E_ALL=1")
	}
	t.Parallel()
	b := newControllerBench(t)
	bench := newChangeBench(t, b.cluster)
	bench.driver = startDriver(t, "-Ddriver.poll=500")
	bench.driver.cleanup(t)
	first, firstAddr := b.broker(t)
	b.await(t, bench, "mqadmin", "the first broker to be master", func(r replicaSet) bool { return r.master == 1 })
	_, secondAddr := b.broker(t)
	both := func(master int) func(r replicaSet) bool {
		return func(r replicaSet) bool { return r.master == master && slices.Equal(r.inSync, []int{1, 2}) }
	}
	b.await(t, bench, "mqx mqadmin", "both to be in sync", both(1))
	waitRegistered(t, b.namesrv)
	createTopic(t, b.namesrv, "E2E_ELECT", 2)

	said, sent := map[string][]string{}, []outgoing{}
	for i, by := range changers {
		id, addr := 2-i%2, []string{secondAddr, firstAddr}[i%2]
		args := []string{"electMaster", "-a", b.addr, "-b", fmt.Sprint(id), "-bn", brokerName, "-c", clusterName}
		if by.tool == "mqx admin" {
			args = []string{"broker", "promote", brokerName, "--id", fmt.Sprint(id), "-c", clusterName, "--controller", b.addr, "--yes"}
		}
		text, err := bench.run(t, by.tool, args)
		// mqadmin 5.5.0 cannot read the answer that its own controller gives, and has elected nevertheless.
		if err != nil || strings.Contains(text, "Exception") && by.tool != "mqadmin" {
			t.Fatalf("%s: %v %s", by.tool, err, text)
		}
		reader := "mqadmin"
		if by.tool == "mqadmin" {
			reader = "mqx mqadmin"
		}
		b.await(t, bench, reader, fmt.Sprintf("id %d to be master and both in sync", id), both(id))
		waitFor(t, 60*time.Second, "the name server to have the new master", func() (bool, string) {
			rows, err := tryRows(b.namesrv, "admin", "broker", "ls")
			return err == nil && slices.ContainsFunc(rows, func(r map[string]any) bool { return r["id"] == 0.0 && r["addr"] == addr }), fmt.Sprint(rows, err)
		})
		m := numbered("elected by "+by.letter, 1)[0]
		bench.sendSomehow(t, "E2E_ELECT", m)
		sent = append(sent, m)
		if by.tool == "mqx mqadmin" {
			has(t, text, "#ClusterName\t"+clusterName, "#BrokerName\t"+brokerName, "#BrokerMasterAddr\t"+addr, "#MasterEpoch\t", "\t#Broker\t1\t"+firstAddr, "\t#Broker\t2\t"+secondAddr)
		}
	}
	waitFor(t, arrival, "what was sent to each master", func() (bool, string) {
		var got []incoming
		err := bench.driver.try("pull", map[string]any{"namesrv": b.namesrv, "topic": "E2E_ELECT", "fresh": true}, &got)
		why := lost(sent, got)
		return err == nil && why == "", fmt.Sprint(why, err)
	})

	t.Run("elect the master", func(t *testing.T) {
		if text, err := bench.run(t, "mqx mqadmin", []string{"electMaster", "-a", b.addr, "-b", "2", "-bn", brokerName, "-c", clusterName}); err != nil || !strings.Contains(text, "already") {
			t.Errorf("%v %s", err, text)
		}
	})
	refused := func(name, apache, why string, code int, args ...string) {
		t.Run(name, func(t *testing.T) {
			if apache != "" {
				if text, err := bench.driver.tryAdmin(append(slices.Clone(args), "-n", b.namesrv)...); err != nil || !strings.Contains(text, apache) {
					t.Errorf("mqadmin: %v %s", err, text)
				}
			}
			_, err := bench.run(t, "mqx mqadmin", args)
			exit := &exec.ExitError{}
			if !errors.As(err, &exit) || exit.ExitCode() != code || !strings.Contains(err.Error(), why) {
				t.Errorf("mqx: %v", err)
			}
		})
	}
	clean := func(more ...string) []string {
		return append([]string{"cleanBrokerMetadata", "-a", b.addr, "-bn", brokerName, "-c", clusterName}, more...)
	}
	refused("elect nobody", "Exception", "replica", 7, "electMaster", "-a", b.addr, "-b", "9", "-bn", brokerName, "-c", clusterName)
	refused("forget one that is alive", "is still alive", "is alive", 6, clean("-b", "1")...)
	refused("forget a name in use", "is still alive", "as master", 6, clean()...)
	refused("forget an id and all", "", "look at no ids", 2, clean("-b", "9", "-l")...)

	gone := func(id int, p *process) {
		p.kill()
		b.await(t, bench, "mqadmin", fmt.Sprintf("id %d not to be alive", id), func(r replicaSet) bool {
			alive, known := r.alive[id]
			return known && !alive && !slices.Contains(r.inSync, id)
		})
	}
	p := first
	for i, by := range changers {
		id := i + 2
		if i == 0 {
			id = 1
		} else {
			p, _ = b.broker(t)
			b.await(t, bench, "mqadmin", "the new replica to be in sync", func(r replicaSet) bool { return slices.Contains(r.inSync, id) })
		}
		gone(id, p)
		args := clean("-b", fmt.Sprint(id))
		if by.tool == "mqx admin" {
			args = []string{"controller", "purge", brokerName, "-c", clusterName, "--id", fmt.Sprint(id), "--controller", b.addr, "--confirm", brokerName}
		}
		text, err := bench.run(t, by.tool, args)
		if err != nil || strings.Contains(text, "Exception") {
			t.Fatalf("%s: %v %s", by.tool, err, text)
		}
		said[by.tool] = everything(text)
		reader := "mqadmin"
		if by.tool == "mqadmin" {
			reader = "mqx mqadmin"
		}
		b.await(t, bench, reader, fmt.Sprintf("id %d to be forgotten", id), func(r replicaSet) bool {
			_, known := r.alive[id]
			return !known && r.master == 2 && r.alive[2]
		})
	}
	if !slices.Equal(said["mqadmin"], said["mqx mqadmin"]) {
		t.Errorf("mqx says %q, mqadmin %q", said["mqx mqadmin"], said["mqadmin"])
	}
	if _, err := bench.run(t, "mqx admin", []string{"controller", "purge", brokerName, "--living", "--controller", b.addr, "--confirm", brokerName}); err != nil {
		t.Error(err)
	}
}

// TestControllerReads compares what the two tools read of a controller of Apache's and of a
// broker that it rules. mqx has no controller of its own: with MQX_E2E_REFERENCE=apache only.
func TestControllerReads(t *testing.T) {
	if !reference() {
		t.Skip("controllers are Apache's: MQX_E2E_REFERENCE=apache")
	}
	t.Parallel()
	b := newControllerBench(t)
	b.broker(t)
	c, addr := b.cluster, b.addr
	waitRegistered(t, c.namesrv)
	for _, s := range []sideBySide{
		{[]string{"getControllerMetaData", "-a", addr}, everything},
		{[]string{"getControllerConfig", "-a", addr}, everything},
		{[]string{"getSyncStateSet", "-a", addr, "-c", clusterName}, everything},
		{[]string{"getSyncStateSet", "-a", addr, "-b", brokerName}, everything},
		{[]string{"getBrokerEpoch", "-b", brokerName}, everything},
		{[]string{"getBrokerEpoch", "-c", clusterName}, everything},
		{[]string{"haStatus", "-b", c.broker}, without("MaxOffset")},
	} {
		t.Run(strings.Join(s.args, "_"), func(t *testing.T) { compare(t, c, s) })
	}
	for _, args := range [][]string{
		{"controller", "get", "--controller", addr},
		{"controller", "ls", "--controller", addr},
		{"controller", "ls"},
		{"config", "get", "--controller", addr},
		{"ha", "get", "--controller", addr},
		{"ha", "status"},
		{"broker", "get", "--show", "epochs"},
		{"cluster", "ls"},
	} {
		text := mqx(t, append(append([]string{"admin"}, args...), "-n", c.namesrv, "-o", "json")...)
		if !strings.Contains(text, addr) && !strings.Contains(text, brokerName) || !strings.Contains(text, `"errors": []`) {
			t.Errorf("%v: %s", args, text)
		}
	}
	changed := mqx(t, "mqadmin", "updateControllerConfig", "-a", addr, "-k", "scanNotActiveBrokerInterval", "-v", "5500", "-n", c.namesrv)
	if text := sharedDriver(t).admin(t, "getControllerConfig", "-a", addr); !slices.Contains(strings.Fields(text), "5500") && !strings.Contains(text, "=5500") {
		t.Errorf("changed (%s), mqadmin then reads: %s", changed, with("scanNotActive")(text))
	}
}
