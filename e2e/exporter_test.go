package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// sample is a scrape and when it was taken.
type sample struct {
	text string
	at   time.Time
}

func scrape(t *testing.T, addr string) sample {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", resp.Status, err)
	}
	return sample{string(text), time.Now()}
}

// value is the one series of a name that has all these labels.
func (s sample) value(name string, labels ...string) (v float64, ok bool) {
	for _, m := range regexp.MustCompile(`(?m)^`+name+`\{(.*)\} (\S+)$`).FindAllStringSubmatch(s.text, -1) {
		all := true
		for _, l := range labels {
			all = all && strings.Contains(","+m[1]+",", ","+l+",")
		}
		if v, err := strconv.ParseFloat(m[2], 64); all && err == nil {
			return v, true
		}
	}
	return 0, false
}

// TestExporter reads a cluster with mqx exporter (Apache's with MQX_E2E_REFERENCE=apache):
// lag is exact at rest, and a load of known rate is seen within 2 %.
func TestExporter(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	const topic, group = "E2E_EXPORTER", "e2e_exporter_group"
	createTopic(t, c.namesrv, topic, 4)
	addr := loopback(freePort(t))
	p := start(t, "exporter", testDir(t, "exporter"), nil, mqxBinary, "exporter", "-n", c.namesrv, "--listen", addr, "--interval", "1s", "--rocketmq-exporter-names")
	p.cleanup(t)
	waitPort(t, p, addr)

	produce := func(n int) {
		t.Helper()
		cmd := exec.Command(mqxBinary, "produce", "-n", c.namesrv, topic, "-")
		cmd.Stdin = strings.NewReader(strings.Repeat("x\n", n))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	lagIs := func(want float64) sample {
		t.Helper()
		var s sample
		waitFor(t, 90*time.Second, fmt.Sprintf("a lag of %v", want), func() (bool, string) {
			s = scrape(t, addr)
			lag, ok := s.value("rocketmq_consumer_lag_messages", `topic="`+topic+`"`, `consumer_group="`+group+`"`)
			return ok && lag == want, fmt.Sprint(lag, ok)
		})
		return s
	}
	produce(200)
	mqx(t, "consume", "-n", c.namesrv, topic, "-g", group, "--commit", "--count", "200", "-o", "name")
	lagIs(0)
	produce(50)
	s := lagIs(50)
	for name, want := range map[string]float64{"mqx_broker_up": 1, "rocketmq_broker_tps": -1, "rocketmq_brokeruntime_commitlog_maxoffset": -1, "mqx_disk_used_ratio": -1, "mqx_store_retention_seconds": -1} {
		if v, ok := s.value(name); !ok || want >= 0 && v != want {
			t.Errorf("%s: %v %v", name, v, ok)
		}
	}
	if diff, ok := s.value("rocketmq_group_diff", `topic="`+topic+`"`, `group="`+group+`"`); !ok || diff != 50 {
		t.Errorf("rocketmq_group_diff: %v %v", diff, ok)
	}
	if os.Getenv("MQX_E2E_ALL") == "" {
		return // the rest takes half a minute
	}
	seenRate(t, c, addr, topic)
}

// seenRate produces 200 messages a second for half a minute and compares.
func seenRate(t *testing.T, c cluster, addr, topic string) {
	t.Helper()
	cmd := exec.Command(mqxBinary, "produce", "-n", c.namesrv, topic, "-")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	sent := 0
	var first, last sample
	for time.Since(begun) < 30*time.Second {
		if due := int(time.Since(begun).Seconds() * 200); due > sent {
			if _, err := io.WriteString(in, strings.Repeat("x\n", due-sent)); err != nil {
				t.Fatal(err)
			}
			sent = due
		}
		switch at := time.Since(begun); {
		case first.text == "" && at > 4*time.Second:
			first = scrape(t, addr)
		case last.text == "" && at > 28*time.Second:
			last = scrape(t, addr)
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	read := func(s sample) (count float64, at time.Time) {
		count, ok := s.value("rocketmq_messages_in_total", `topic="`+topic+`"`)
		age, known := s.value("mqx_exporter_figures_age_seconds")
		if !ok || !known {
			t.Fatalf("no count or no age in\n%s", s.text)
		}
		return count, s.at.Add(-time.Duration(age * float64(time.Second)))
	}
	a, from := read(first)
	b, to := read(last)
	if rate := (b - a) / to.Sub(from).Seconds(); rate < 196 || rate > 204 {
		t.Errorf("200 messages a second were seen as %.1f", rate)
	} else {
		t.Logf("200 messages a second were seen as %.1f", rate)
	}
}
