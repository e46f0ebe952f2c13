package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// Three name servers: one is paused, then another comes back empty. Sends and
// pulls go on, with clients that were there before and with new ones.
func TestNameServersFail(t *testing.T) {
	t.Parallel()
	nsPorts := []int{freePort(t), freePort(t), freePort(t)}
	var addrs []string
	var servers []*process
	for _, port := range nsPorts {
		p := mqxNameserver(t, port)
		p.cleanup(t)
		servers = append(servers, p)
		addrs = append(addrs, loopback(port))
	}
	all := strings.Join(addrs, ";")
	brPort := freePort(t)
	br := mqxBroker(t, brokerSpec{port: brPort, namesrv: all, store: filepath.Join(testDir(t, "three"), "store")})
	br.cleanup(t)
	for _, a := range addrs {
		waitRegistered(t, a)
	}
	const topic = "E2E_THREE"
	createTopic(t, all, topic, 4)

	g := goProducer(t, all)
	consumer := goPushConsumer(t, goSpec{Namesrv: all, Group: "e2e_three", Instance: "three", Topic: topic})
	var want []outgoing
	send := func(stage string) {
		t.Helper()
		ms := numbered(stage+"-go", 20)
		for _, m := range ms {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			r, err := g.SendSync(ctx, goMessage(topic, m))
			cancel()
			if err != nil || r.Status != primitive.SendOK {
				t.Fatalf("%s: send: %v, %v", stage, r, err)
			}
		}
		java := numbered(stage+"-java", 20)
		sharedDriver(t).send(t, all, topic, "sync", java, nil)
		mqxLines := numbered(stage+"-mqx", 5)
		for _, m := range mqxLines {
			file := writeFile(t, testDir(t, "line"), "line", m.Body+"\n")
			mqx(t, "produce", topic, file, "-n", all, "-o", "name")
		}
		want = append(append(append(want, ms...), java...), mqxLines...)
		waitFor(t, arrival, stage+": everything at the push consumer", func() (bool, string) {
			why := lost(want, consumer.received())
			return why == "", why
		})
		// Readers that start now have to find the route as well. Apache's client
		// gives up its first call when it meets the paused server, and finds
		// another one in the next.
		if why := lost(want, mqxConsume(t, all, topic)); why != "" {
			t.Fatalf("%s: mqx reader: %s", stage, why)
		}
		// Each new reader begins with one name server of the three, which may be the one that hangs.
		waitFor(t, 3*arrival, stage+": everything at a new Java reader", func() (bool, string) {
			var got []incoming
			if err := sharedDriver(t).try("pull", map[string]any{"namesrv": all, "topic": topic, "fresh": true}, &got); err != nil {
				return false, err.Error()
			}
			why := lost(want, got)
			return why == "", why
		})
	}

	send("three up")
	if err := servers[0].signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	send("first paused")

	servers[1].kill()
	send("second gone as well")
	again := mqxNameserver(t, nsPorts[1]) // knows nothing
	again.cleanup(t)
	send("second restarted empty")
	waitRegistered(t, addrs[1])

	if err := servers[0].signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	servers[2].kill()
	send("only the two that had failed")
	for i := range 2 {
		waitFor(t, 60*time.Second, fmt.Sprintf("name server %d to know the topic", i), func() (bool, string) {
			names, err := sharedDriver(t).route(addrs[i], topic)
			return err == nil && len(names) == 1, fmt.Sprint(names, err)
		})
	}
}
