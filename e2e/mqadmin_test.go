package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Apache's mqadmin 5.5.0 against mqx, command by command.
func TestMqadmin(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	d := sharedDriver(t)
	n := []string{"-n", c.namesrv}
	const topic, group = "E2E_ADMIN", "e2e_admin_group"
	run := func(t *testing.T, command string, args ...string) string {
		t.Helper()
		text := d.admin(t, append(append([]string{command}, args...), n...)...)
		if strings.Contains(text, "Exception") {
			t.Fatalf("%s: %s", command, text)
		}
		return text
	}

	text := run(t, "updateTopic", "-b", c.broker, "-t", topic, "-r", "4", "-w", "4")
	if !strings.Contains(text, "create topic to "+c.broker+" success") {
		t.Fatalf("updateTopic: %s", text)
	}
	waitFor(t, 30*time.Second, "the route of "+topic, func() (bool, string) {
		text, err := d.tryAdmin(append([]string{"topicRoute", "-t", topic}, n...)...)
		return err == nil && strings.Contains(text, `"readQueueNums":4`), text
	})

	messages := numbered("admin", 12)
	for i := range messages {
		messages[i].Keys = fmt.Sprintf("adminkey%d", i)
		messages[i].Tag = "adm"
	}
	results := d.send(t, c.namesrv, topic, "sync", messages, nil)
	d.call(t, "push", map[string]any{"id": "admin", "namesrv": c.namesrv, "group": group, "topic": topic}, nil)
	defer d.call(t, "stop", map[string]any{"id": "admin"}, nil)
	waitFor(t, arrival, "the group to consume", func() (bool, string) {
		why := lost(messages, javaReceived(t, "admin"))
		return why == "", why
	})

	t.Run("clusterList", func(t *testing.T) {
		line := lineWith(t, run(t, "clusterList"), brokerName)
		fields := strings.Fields(line)
		if fields[0] != clusterName || fields[2] != "0" || fields[3] != c.broker || !strings.HasPrefix(fields[4], "V5_5_0") || fields[len(fields)-1] != "true" {
			t.Errorf("line is %q", line)
		}
	})
	t.Run("topicList", func(t *testing.T) {
		lines := strings.Split(run(t, "topicList"), "\n")
		for _, want := range []string{topic, "TBW102", clusterName, brokerName, "%RETRY%" + group} {
			if !contains(lines, want) {
				t.Errorf("%s is not in %v", want, lines)
			}
		}
		line := lineWith(t, run(t, "topicList", "-c"), topic)
		if fields := strings.Fields(line); len(fields) != 3 || fields[0] != clusterName || fields[2] != group {
			t.Errorf("topicList -c: line is %q", line)
		}
	})
	t.Run("topicRoute", func(t *testing.T) {
		text := run(t, "topicRoute", "-t", topic)
		var route struct {
			QueueDatas []struct {
				BrokerName                          string
				Perm, ReadQueueNums, WriteQueueNums int
			}
			BrokerDatas []struct{ BrokerName, Cluster string }
		}
		// The tool prints the broker ids as bare numbers.
		text = regexp.MustCompile(`(?m)^(\s*)(\d+):`).ReplaceAllString(text, `$1"$2":`)
		if err := json.Unmarshal([]byte(text), &route); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if len(route.QueueDatas) != 1 || route.QueueDatas[0].ReadQueueNums != 4 || route.QueueDatas[0].Perm != 6 || route.BrokerDatas[0].Cluster != clusterName {
			t.Errorf("route is %+v", route)
		}
	})
	t.Run("topicStatus", func(t *testing.T) {
		text := run(t, "topicStatus", "-t", topic)
		total := 0
		for _, line := range linesWith(text, brokerName) {
			var name string
			var queue, from, to int
			if _, err := fmt.Sscan(line, &name, &queue, &from, &to); err != nil {
				t.Fatalf("line %q: %v", line, err)
			}
			total += to - from
		}
		if total != len(messages) {
			t.Errorf("%d messages in %s", total, text)
		}
	})
	t.Run("topicClusterList", func(t *testing.T) {
		if text := run(t, "topicClusterList", "-t", topic); !contains(strings.Split(text, "\n"), clusterName) {
			t.Errorf("got %q", text)
		}
	})
	t.Run("queryMsgByKey", func(t *testing.T) {
		waitFor(t, 30*time.Second, "the key to be found", func() (bool, string) {
			text := d.admin(t, append([]string{"queryMsgByKey", "-t", topic, "-k", "adminkey3"}, n...)...)
			return strings.Contains(text, results[3].MsgID) && strings.Count(text, "\n") == 2, text
		})
		if text := d.admin(t, append([]string{"queryMsgByKey", "-t", topic, "-k", "nosuchkey"}, n...)...); !strings.Contains(text, "CODE: 208  DESC: query message by key finished, but no message") {
			t.Errorf("an unknown key: %s", text)
		}
	})
	for command, id := range map[string]string{"queryMsgById": results[5].OffsetMsgID, "queryMsgByUniqueKey": results[5].MsgID} {
		t.Run(command, func(t *testing.T) {
			text := run(t, command, "-t", topic, "-i", id)
			for label, want := range map[string]string{
				"Topic:": topic, "Keys:": "[adminkey5]", "Tags:": "[adm]",
				"Queue ID:": fmt.Sprint(results[5].QueueID), "Queue Offset:": fmt.Sprint(results[5].QueueOffset), "Store Host:": c.broker,
			} {
				if got := strings.TrimSpace(strings.TrimPrefix(lineWith(t, text, label), label)); got != want {
					t.Errorf("%s is %q, want %q", label, got, want)
				}
			}
			if !strings.Contains(text, "consumerGroup="+group) {
				t.Errorf("the group is not tracked in %s", text)
			}
		})
	}
	t.Run("consumerProgress", func(t *testing.T) {
		waitFor(t, 30*time.Second, "the group's progress to be committed", func() (bool, string) {
			text := run(t, "consumerProgress", "-g", group)
			return strings.Contains(text, "Consume Diff Total: 0") && len(linesWith(text, topic+" ")) == 4, text
		})
		line := lineWith(t, run(t, "consumerProgress"), group)
		if fields := strings.Fields(line); len(fields) < 5 || fields[1] != "1" || fields[3] != "PUSH" || fields[4] != "CLUSTERING" {
			t.Errorf("line is %q", line)
		}
	})
	t.Run("brokerStatus", func(t *testing.T) {
		text := run(t, "brokerStatus", "-b", c.broker)
		for _, key := range []string{"bootTimestamp", "brokerVersionDesc", "commitLogMaxOffset", "putTps", "runtime", "sendThreadPoolQueueSize", "msgPutTotalTodayNow"} {
			lineWith(t, text, key+" ")
		}
		if got := lineWith(t, text, "brokerVersionDesc"); !strings.HasSuffix(strings.TrimSpace(got), "V5_5_0") {
			t.Errorf("line is %q", got)
		}
		if byCluster := run(t, "brokerStatus", "-c", clusterName); !strings.Contains(byCluster, c.broker) {
			t.Errorf("brokerStatus -c: %s", byCluster)
		}
	})
	t.Run("deleteTopic", func(t *testing.T) {
		const gone = "E2E_ADMIN_GONE"
		run(t, "updateTopic", "-c", clusterName, "-t", gone)
		waitFor(t, 30*time.Second, "the topic to be listed", func() (bool, string) {
			text := run(t, "topicList")
			return contains(strings.Split(text, "\n"), gone), text
		})
		if text := run(t, "deleteTopic", "-c", clusterName, "-t", gone); !strings.Contains(text, "delete topic ["+gone+"] from cluster ["+clusterName+"] success") {
			t.Errorf("deleteTopic: %s", text)
		}
		waitFor(t, 60*time.Second, "the topic to go", func() (bool, string) {
			text := run(t, "topicList")
			return !contains(strings.Split(text, "\n"), gone), text
		})
	})
}

func contains(lines []string, want string) bool {
	for _, l := range lines {
		if strings.TrimSpace(l) == want {
			return true
		}
	}
	return false
}

func linesWith(text, part string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			out = append(out, strings.TrimRight(line, "\n"))
		}
	}
	return out
}

func lineWith(t *testing.T, text, part string) string {
	t.Helper()
	lines := linesWith(text, part)
	if len(lines) == 0 {
		t.Fatalf("no line with %q in:\n%s", part, text)
	}
	return lines[0]
}
