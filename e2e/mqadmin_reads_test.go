package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// sideBySide is a read that both tools do on the same cluster.
type sideBySide struct {
	args []string
	// facts makes the text of either tool comparable: without what depends on the moment
	// it was asked at, or on the order of a hash table.
	facts func(text string) []string
}

// TestMqadminReads asks mqx and Apache's mqadmin 5.5.0 the same questions about the same
// cluster and compares the facts: a cluster of mqx, or with MQX_E2E_REFERENCE=apache
// one of Apache's servers.
func TestMqadminReads(t *testing.T) {
	t.Parallel()
	c := startCluster(t) // one of its own: other tests would change it between two questions
	d := sharedDriver(t)
	const topic, group = "E2E_READS", "e2e_reads_group"
	createTopic(t, c.namesrv, topic, 4)
	messages := numbered("reads", 10)
	for i := range messages {
		messages[i].Tag, messages[i].Keys = "rd", fmt.Sprint("readskey", i)
	}
	d.send(t, c.namesrv, topic, "sync", messages, nil)
	d.call(t, "push", map[string]any{"id": "reads", "namesrv": c.namesrv, "group": group, "topic": topic}, nil)
	defer d.call(t, "stop", map[string]any{"id": "reads"}, nil)
	waitFor(t, arrival, "the group to consume", func() (bool, string) {
		why := lost(messages, javaReceived(t, "reads"))
		return why == "", why
	})
	exports := t.TempDir()
	t.Cleanup(func() { // Apache's consumerStatus writes into the directory that the JVM runs in
		reports, _ := filepath.Glob("1[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]")
		for _, dir := range reports {
			_ = os.RemoveAll(dir)
		}
	})
	for _, s := range []sideBySide{
		{[]string{"clusterList"}, fields(topLine, 0, 1, 2, 3, 4, -1)},
		{[]string{"clusterList", "-m"}, fields(topLine, 0, 1)},
		{[]string{"clusterList", "-c", clusterName}, fields(topLine, 0, 1, 2, 3, 4)},
		{[]string{"topicList"}, with(topic, group)},
		{[]string{"topicList", "-c"}, with(topic)},
		{[]string{"topicRoute", "-t", topic}, everything},
		{[]string{"topicRoute", "-t", topic, "-l"}, everything},
		{[]string{"topicStatus", "-t", topic}, with(brokerName)},
		{[]string{"topicClusterList", "-t", topic}, everything},
		{[]string{"brokerStatus", "-b", c.broker}, fields(topLine, 0)},
		{[]string{"brokerStatus", "-c", clusterName}, fields(topLine, 0, 1)},
		{[]string{"brokerConsumeStats", "-b", c.broker}, with(topic + " ")},
		{[]string{"producer", "-b", c.broker}, producerLines},
		{[]string{"producerConnection", "-g", "CLIENT_INNER_PRODUCER", "-t", topic}, fields(0, 1, 3, 4)},
		{[]string{"consumerConnection", "-g", group}, everything},
		{[]string{"consumerProgress", "-g", group}, with(topic+" ", "Diff Total")},
		{[]string{"consumerStatus", "-g", group}, reports},
		{[]string{"getConsumerConfig", "-g", group}, everything},
		{[]string{"statsAll", "-t", topic}, fields(topLine, 0, 1, 2)},
		{[]string{"queryCq", "-t", topic, "-q", "0", "-i", "0", "-c", "3"}, everything},
		{[]string{"queryCq", "-t", topic, "-q", "1", "-i", "0", "-c", "3", "-b", c.broker, "-g", group}, lists},
		{[]string{"allocateMQ", "-t", topic, "-i", "10.0.0.1,10.0.0.2,10.0.0.3"}, shares},
		{[]string{"getNamesrvConfig"}, everything},
		{[]string{"getBrokerConfig", "-b", c.broker}, everything},
		{[]string{"getBrokerConfig", "-c", clusterName}, everything},
		{[]string{"haStatus", "-b", c.broker}, without("MaxOffset")},
		{[]string{"haStatus", "-c", clusterName}, without("MaxOffset")},
		{[]string{"exportConfigs", "-c", clusterName, "-f", exports}, exported(filepath.Join(exports, "configs.json"))},
		{[]string{"exportMetrics", "-c", clusterName, "-f", exports}, membersOf(filepath.Join(exports, "metrics.json"))},
	} {
		t.Run(strings.Join(s.args, "_"), func(t *testing.T) { compare(t, c, s) })
	}
	for _, s := range messageReads(topic) {
		t.Run(strings.Join(s.args, "_"), func(t *testing.T) { compare(t, c, s) })
	}
	createTopic(t, c.namesrv, "E2E_PROBED", 2)
	for _, s := range probes("E2E_PROBED", brokerName) {
		t.Run(strings.Join(s.args, "_"), func(t *testing.T) { compare(t, c, s) })
	}
	if reference() {
		t.Run("cold data", func(t *testing.T) {
			compare(t, c, sideBySide{[]string{"getColdDataFlowCtrInfo", "-b", c.broker}, without("globalAcc", "Time")})
		})
		t.Run("lite", func(t *testing.T) {
			compare(t, c, sideBySide{[]string{"getBrokerLiteInfo", "-b", c.broker}, fields(topLine, 0, 1, 2)})
		})
	}
}

// compare asks both tools, again where they differ: what they are asked about goes on.
func compare(t *testing.T, c cluster, s sideBySide) {
	t.Helper()
	args := append(slices.Clone(s.args), "-n", c.namesrv)
	waitFor(t, 20*time.Second, "the tools to say the same", func() (bool, string) {
		apache := s.facts(sharedDriver(t).admin(t, args...))
		cmd := exec.Command(mqxBinary, append([]string{"mqadmin"}, args...)...)
		cmd.Dir = workDir
		text, err := cmd.Output()
		if err != nil {
			return false, fmt.Sprintf("mqx: %v: %s", err, text)
		}
		ours := s.facts(string(text))
		return slices.Equal(apache, ours), fmt.Sprintf("\nmqadmin: %s\nmqx:     %s", strings.Join(apache, "\n         "), strings.Join(ours, "\n         "))
	})
}

// everything are all lines, sorted, each without blanks at its end.
func everything(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, " \r\n"); line != "" {
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return out
}

// with are the lines that hold one of the parts.
func with(parts ...string) func(string) []string {
	return func(text string) []string {
		return slices.DeleteFunc(everything(text), func(line string) bool {
			return !slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(line, p) })
		})
	}
}

// without are the lines that hold none of the parts.
func without(parts ...string) func(string) []string {
	return func(text string) []string {
		return slices.DeleteFunc(everything(text), func(line string) bool {
			return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(line, p) })
		})
	}
}

// topLine, among the columns of fields, keeps the line of headings whole.
const topLine = 1000

// fields are some columns of each line; -1 is the last one.
func fields(columns ...int) func(string) []string {
	return func(text string) []string {
		var out []string
		for _, line := range everything(text) {
			all := strings.Fields(line)
			var kept []string
			for _, i := range columns {
				switch {
				case i == topLine && strings.HasPrefix(line, "#"):
					kept = []string{strings.Join(all, " ")}
				case i == -1:
					kept = append(kept, all[len(all)-1])
				case i < len(all):
					kept = append(kept, all[i])
				}
			}
			out = append(out, strings.Join(kept, " "))
		}
		return out
	}
}

// producerLines are the groups, clients and addresses, without the times of heartbeats and
// without the clients of the tools themselves, which come and go.
func producerLines(text string) []string {
	var out []string
	for _, line := range everything(text) {
		if strings.Contains(line, "E2E") || strings.Contains(line, "@") && !regexp.MustCompile(`@\d{13}`).MatchString(line) {
			out = append(out, regexp.MustCompile(`lastUpdateTimestamp=\d+`).ReplaceAllString(line, ""))
		}
	}
	return out
}

// reports take the time out of the name of a file.
func reports(text string) []string {
	return everything(regexp.MustCompile(`\d{13}/`).ReplaceAllString(text, ""))
}

// lists puts each list on one line.
func lists(text string) []string {
	return everything(regexp.MustCompile(`(?s)\[[^\[\]]*\]`).ReplaceAllStringFunc(text, func(m string) string { return strings.Join(strings.Fields(m), "") }))
}

// shares count the queues of each client: Apache's tool shares them out in the order of
// a hash table, which no client has.
func shares(text string) []string {
	var v struct{ Result map[string][]any }
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return []string{err.Error() + " " + text}
	}
	var out []string
	for _, id := range slices.Sorted(maps.Keys(v.Result)) {
		out = append(out, fmt.Sprint(id, len(v.Result[id])))
	}
	return out
}

// exported is the file that a command wrote, as data.
func exported(path string) func(string) []string {
	return func(text string) []string { return flat(path, text, true) }
}

// membersOf are the names of the members of the file that a command wrote.
func membersOf(path string) func(string) []string {
	return func(text string) []string { return flat(path, text, false) }
}

func flat(path, said string, values bool) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		return []string{err.Error(), said}
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return []string{err.Error()}
	}
	out := []string{strings.TrimSpace(said)}
	var walk func(name string, v any)
	walk = func(name string, v any) {
		m, ok := v.(map[string]any)
		if !ok {
			if !values {
				v = nil
			}
			out = append(out, fmt.Sprint(name, "=", v))
			return
		}
		for k, member := range m {
			walk(name+"."+k, member)
		}
	}
	walk("", v)
	slices.Sort(out)
	return out
}
