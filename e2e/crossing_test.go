package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// A broker of one make at a name server of the other.
func TestCrossing(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]struct {
		namesrv func(*testing.T, int) *process
		broker  func(*testing.T, brokerSpec) *process
	}{
		"mqx broker at Apache name server": {apacheNameserver, mqxBroker},
		"Apache broker at mqx name server": {mqxNameserver, apacheBroker},
	} {
		t.Run(name, func(t *testing.T) {
			nsPort, brPort := freePort(t), freePort(t)
			namesrv := loopback(nsPort)
			ns := start.namesrv(t, nsPort)
			ns.cleanup(t)
			br := start.broker(t, brokerSpec{port: brPort, namesrv: namesrv, store: filepath.Join(testDir(t, "crossing"), "store")})
			br.cleanup(t)
			waitRegistered(t, namesrv)
			const topic = "E2E_CROSSING"
			createTopic(t, namesrv, topic, 4)
			fromJava, fromGo := numbered("crossing-java", 20), numbered("crossing-go", 20)
			sendWithJava(t, namesrv, topic, map[string][]outgoing{"sync": fromJava})
			sendWithGo(t, namesrv, topic, map[string][]outgoing{"sync": fromGo})
			want := append(fromJava, fromGo...)
			java := sharedDriver(t).pull(t, namesrv, topic, "")
			for reader, got := range map[string][]incoming{
				"Java": java, "Go": goPull(t, namesrv, topic, queueEnds(java)), "mqx": mqxConsume(t, namesrv, topic),
			} {
				if why := missing(want, got); why != "" {
					t.Errorf("%s reader: %s", reader, why)
				}
			}
			text := sharedDriver(t).admin(t, "clusterList", "-n", namesrv)
			if line := lineWith(t, text, brokerName); !strings.Contains(line, loopback(brPort)) {
				t.Errorf("clusterList: %s", text)
			}
			// A broker that stops in order is gone from the route at once, not
			// after the two minutes of a silent one.
			if err := br.stop(t, stopLimit); err != nil && strings.HasPrefix(br.name, "mqx") { // a JVM ends with 143
				t.Errorf("the broker ended with %v", err)
			}
			waitGone(t, namesrv)
			if err := ns.stop(t, stopLimit); err != nil && strings.HasPrefix(ns.name, "mqx") {
				t.Errorf("the name server ended with %v", err)
			}
		})
	}
}
