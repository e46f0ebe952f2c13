package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMqadminOnAGroup compares what the two tools read of a master with a slave, and on mqx's of their epochs after a promotion.
func TestMqadminOnAGroup(t *testing.T) {
	t.Parallel()
	p := newReplicaPair(t, "mqadmin")
	a, b := mqxBroker(t, p.a), mqxBroker(t, p.b)
	a.cleanup(t)
	b.cleanup(t)
	p.createTopic(t, p.a)
	c := cluster{p.ns, loopback(p.a.port)}
	p.put(t, 20)
	p.same(t, p.a, p.b)
	waitFor(t, 90*time.Second, "the slave at its master", func() (bool, string) {
		text, err := output(mqxBinary, "mqadmin", "haStatus", "-b", c.broker, "-n", p.ns)
		return err == nil && strings.Contains(text, "#InSyncSlaveNum\t1"), fmt.Sprint(text, err)
	})
	sides := func(list ...[]string) {
		for _, args := range list {
			t.Run(strings.Join(args, "_"), func(t *testing.T) { compare(t, c, sideBySide{args, everything}) })
		}
	}
	slave := loopback(p.b.port)
	sides([]string{"haStatus", "-b", c.broker}, []string{"haStatus", "-b", slave}, []string{"haStatus", "-c", clusterName}, []string{"clusterList", "-m"})
	compare(t, c, sideBySide{[]string{"clusterList"}, fields(topLine, 0, 1, 2, 3, 4, -1)})
	compare(t, c, sideBySide{[]string{"brokerStatus", "-b", slave}, fields(topLine, 0)})
	if reference() {
		return
	}
	p.ha(t, "promote", slave)
	p.standing(t, p.a, ",following,")
	p.put(t, 20)
	p.same(t, p.b, p.a)
	if text := sharedDriver(t).admin(t, "getBrokerEpoch", "-b", p.a.name, "-n", p.ns); strings.Count(text, "EpochEntry{epoch=1, startOffset=") != 2 {
		t.Errorf("the epochs of both: %s", text)
	}
	sides([]string{"getBrokerEpoch", "-b", p.a.name}, []string{"getBrokerEpoch", "-c", clusterName}, []string{"haStatus", "-b", slave}, []string{"haStatus", "-b", c.broker})
}

// TestControllerChanges makes the changes of controllers with both tools, each read back by the other one: another master is
// elected and again, and a broker that is gone is forgotten.
func TestControllerChanges(t *testing.T) {
	if !reference() {
		t.Skip("controllers are Apache's: MQX_E2E_REFERENCE=apache")
	}
	t.Parallel()
	dir := testDir(t, "apache-elect")
	addr := apacheController(t, dir)
	ns, one, two := freePort(t), freePort(t), freePort(t)
	apacheNameserver(t, ns)
	n := loopback(ns)
	spec := func(port int) brokerSpec {
		return brokerSpec{port: port, namesrv: n, store: filepath.Join(dir, fmt.Sprint("store", port)), extra: []string{"enableControllerMode=true", "controllerAddr=" + addr}}
	}
	apacheBroker(t, spec(one))
	b := apacheBroker(t, spec(two))
	d := sharedDriver(t)
	set := []string{"getSyncStateSet", "-a", addr, "-b", brokerName, "-n", n}
	sees := func(want string) {
		t.Helper()
		waitFor(t, 90*time.Second, want, func() (bool, string) {
			text, err := d.tryAdmin(set...)
			ours, ourErr := output(mqxBinary, append([]string{"mqadmin"}, set...)...)
			return err == nil && ourErr == nil && strings.Contains(text, want) && strings.Contains(ours, want), fmt.Sprint(text, err, ours, ourErr)
		})
	}
	sees("#SyncStateSetNums\t2")
	for i, elect := range []string{"2", "1", "2"} {
		args := []string{"electMaster", "-a", addr, "-b", elect, "-bn", brokerName, "-c", clusterName, "-n", n}
		switch i {
		case 0:
			if text := mqx(t, append([]string{"mqadmin"}, args...)...); !strings.Contains(text, elect) {
				t.Errorf("elected: %s", text)
			}
		case 1:
			d.admin(t, args...)
		default:
			mqx(t, "admin", "broker", "promote", brokerName, "--id", elect, "-c", clusterName, "--controller", addr, "-n", n, "--yes")
		}
		sees("#MasterBrokerId\t" + elect)
		sees("#SyncStateSetNums\t2")
	}
	b.kill()
	clean := []string{"cleanBrokerMetadata", "-a", addr, "-bn", brokerName, "-c", clusterName, "-b", "2", "-n", n}
	waitFor(t, 90*time.Second, "a broker that is forgotten", func() (bool, string) {
		text, err := output(mqxBinary, append([]string{"mqadmin"}, clean...)...) // refused as long as it counts as alive
		return err == nil, fmt.Sprint(text, err)
	})
	waitFor(t, 60*time.Second, "one replica", func() (bool, string) {
		text, err := d.tryAdmin(set...)
		return err == nil && !strings.Contains(text, "brokerId=2"), fmt.Sprint(text, err)
	})
}
