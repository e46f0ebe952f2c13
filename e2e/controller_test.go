package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestControllerReads compares what the two tools read of a controller of Apache's and of a
// broker that it rules. mqx has no controller of its own: with MQX_E2E_REFERENCE=apache only.
func TestControllerReads(t *testing.T) {
	if !reference() {
		t.Skip("controllers are Apache's: MQX_E2E_REFERENCE=apache")
	}
	t.Parallel()
	dir := testDir(t, "apache-controller")
	addr := loopback(freePort(t))
	conf := writeFile(t, dir, "controller.conf", strings.Join([]string{
		"controllerDLegerGroup=g", "controllerDLegerPeers=n0-" + addr, "controllerDLegerSelfId=n0",
		"controllerStorePath=" + filepath.Join(dir, "controller"), "mappedFileSize=1048576",
	}, "\n")+"\n")
	p := start(t, "apache-controller", dir, nil, "java", append(javaFlags(dir, "256m"), "org.apache.rocketmq.controller.ControllerStartup", "-c", conf)...)
	waitPort(t, p, addr)
	ns, br := freePort(t), freePort(t)
	apacheNameserver(t, ns)
	c := cluster{loopback(ns), loopback(br)}
	apacheBroker(t, brokerSpec{port: br, namesrv: c.namesrv, store: filepath.Join(dir, "store"), extra: []string{"enableControllerMode=true", "controllerAddr=" + addr}})
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
