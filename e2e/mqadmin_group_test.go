package e2e

import (
	"fmt"
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
