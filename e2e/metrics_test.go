package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"mqx/remoting"
)

// startMetered starts a cluster whose broker serves its metrics at the address that is returned.
func startMetered(t *testing.T, store string) (c cluster, metrics string) {
	t.Helper()
	ns, br, port := freePort(t), freePort(t), freePort(t)
	mqxNameserver(t, ns).cleanup(t)
	mqxBroker(t, brokerSpec{port: br, namesrv: loopback(ns), store: store, extra: []string{
		"metricsExporterType=PROM", "metricsPromExporterHost=127.0.0.1", fmt.Sprintf("metricsPromExporterPort=%d", port),
	}}).cleanup(t)
	waitRegistered(t, loopback(ns))
	return cluster{loopback(ns), loopback(br)}, loopback(port)
}

// A load of known rate is seen within 2 % in the broker's own metrics, as messages in and by topic.
func TestMetricsSeeTheLoad(t *testing.T) {
	t.Parallel()
	if reference() {
		t.Skip("mqx's own series are read too")
	}
	c, addr := startMetered(t, filepath.Join(testDir(t, "metered"), "store"))
	const topic, rate = "E2E_METERED", 300
	createTopic(t, c.namesrv, topic, 4)
	defer load(t, rate, "produce", topic, "-n", c.namesrv, "-o", "name")()
	count := func() (in, put float64, at time.Time) {
		s := scrape(t, addr)
		in, _ = s.value("rocketmq_messages_in_total", `topic="`+topic+`"`, `message_type="normal"`)
		put, _ = s.value("mqx_store_put_messages_total")
		return in, put, s.at
	}
	waitFor(t, 60*time.Second, "the load", func() (bool, string) { n, _, _ := count(); return n > rate/2, fmt.Sprint(n) })
	// A machine that is busy with other things may lose a part of a second: several windows are looked at.
	waitFor(t, 90*time.Second, "the rate of the load", func() (bool, string) {
		in, put, from := count()
		time.Sleep(4 * time.Second) // what the rate is taken over
		in2, put2, to := count()
		s := to.Sub(from).Seconds()
		byTopic, all := (in2-in)/s, (put2-put)/s
		return math.Abs(byTopic-rate) <= rate*0.02 && math.Abs(all-rate) <= rate*0.02, fmt.Sprintf("%.1f and %.1f messages a second, the load is %d", byTopic, all, rate)
	})
}

// A scrape of 5,000 topics takes less than 200 ms, and sends are answered while it is made.
func TestMetricsOfManyTopics(t *testing.T) {
	t.Parallel()
	if reference() {
		t.Skip("mqx's own cost is measured")
	}
	const topics = 5000
	store := filepath.Join(testDir(t, "many"), "store")
	table := map[string]any{}
	for i := range topics {
		one := remoting.NewTopicConfig(fmt.Sprintf("MANY_%04d", i))
		one.ReadQueueNums, one.WriteQueueNums = 1, 1
		table[one.TopicName] = one
	}
	text, err := json.Marshal(map[string]any{"topicConfigTable": table, "dataVersion": map[string]any{"counter": 1, "stateVersion": 0, "timestamp": 1}})
	if err == nil {
		err = os.MkdirAll(filepath.Join(store, "config"), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(store, "config"), "topics.json", string(text))
	c, addr := startMetered(t, store)
	p := newRawPeer(t, c.broker)
	for i := range topics { // so that each has its series
		p.put(fmt.Sprintf("MANY_%04d", i), []byte("x"))
	}
	var took []time.Duration
	most := 0 // sends during one scrape: of three, one lies wholly in it
	waitFor(t, 90*time.Second, "sends during a scrape, and scrapes in time", func() (bool, string) {
		done, sent := make(chan time.Duration, 1), 0
		go func() {
			began := time.Now()
			s := scrape(t, addr)
			if _, ok := s.value("rocketmq_messages_in_total", `topic="MANY_4999"`); !ok {
				t.Error("a topic has no series")
			}
			done <- s.at.Sub(began)
		}()
		for {
			select {
			case d := <-done:
				took, most = append(took, d), max(most, sent)
				slices.Sort(took)
				return len(took) >= 5 && most >= 3 && took[0] < 200*time.Millisecond, fmt.Sprintf("%d sends, scrapes took %v", most, took)
			default:
				p.put("MANY_0000", []byte("x"))
				sent++
			}
		}
	})
	t.Logf("scrapes of %d topics took %v, %d sends meanwhile", topics, took, most)
}
