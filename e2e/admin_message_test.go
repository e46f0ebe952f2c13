package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// mqxRows runs a command that prints records and returns them.
func mqxRows(t *testing.T, namesrv string, args ...string) []map[string]any {
	t.Helper()
	rows, err := tryRows(namesrv, args...)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func tryRows(namesrv string, args ...string) (rows []map[string]any, err error) {
	cmd := exec.Command(mqxBinary, append(args, "-n", namesrv, "-o", "ndjson", "--timeout", "20s")...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("mqx %s: %w\n%s", strings.Join(args, " "), err, errOut.String())
	}
	for line := range strings.Lines(out.String()) {
		row := map[string]any{}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			return nil, fmt.Errorf("mqx %s: %w in %s", strings.Join(args, " "), err, line)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// A poison message goes to the dead letters of one group; a replay gives it to that group alone. On the way it is found,
// tracked and traced, with mqadmin's answers beside those of mqx.
func TestAdminMessages(t *testing.T) {
	t.Parallel()
	c := startCluster(t, retryLevels, "traceTopicEnable=true")
	d := sharedDriver(t)
	const topic, poisoned, other = "E2E_MESSAGES", "GID_msg_poisoned", "GID_msg_other"
	createTopic(t, c.namesrv, topic, 2)
	// A member that was there before: the retry topic is, and the next one need not poll for its route.
	d.call(t, "push", map[string]any{"id": "msg-first", "namesrv": c.namesrv, "group": poisoned, "topic": topic}, nil)
	waitTopic(t, c.namesrv, "%RETRY%"+poisoned)
	d.call(t, "stop", map[string]any{"id": "msg-first"}, nil)
	goOther := goPushConsumer(t, goSpec{Namesrv: c.namesrv, Group: other, Instance: "msg", Topic: topic})
	out := numbered("poison", 3)
	for i := range out {
		out[i].Tag, out[i].Keys, out[i].Properties = "paid", fmt.Sprintf("order-%d", i), map[string]string{"own": fmt.Sprint(i)}
	}
	results := d.send(t, c.namesrv, topic, "sync", out, map[string]any{"trace": true})
	d.call(t, "push", map[string]any{"id": "msg-bad", "namesrv": c.namesrv, "group": poisoned, "topic": topic, "failTimes": 100, "max": 1, "trace": true}, nil)
	stopBad := func() { _ = d.try("stop", map[string]any{"id": "msg-bad"}, nil) }
	t.Cleanup(stopBad)

	var dead []map[string]any
	waitFor(t, arrival+60*time.Second, "the dead letters", func() (bool, string) {
		rows, err := tryRows(c.namesrv, "admin", "dlq", "ls")
		dead = rows
		return err == nil && len(rows) == 1 && rows[0]["count"] == 3.0, fmt.Sprint(rows, err)
	})
	if dead[0]["group"] != poisoned || dead[0]["oldest"] == nil || dead[0]["newest"] == nil {
		t.Errorf("dlq ls: %v", dead)
	}
	waitFor(t, arrival, "the other group to consume", func() (bool, string) {
		why := lost(out, goOther.received())
		return why == "", why
	})
	t.Run("find", func(t *testing.T) { findsAsMqadmin(t, c, topic, results) })
	t.Run("track", func(t *testing.T) { tracksAsMqadmin(t, c, topic, results[1], poisoned, other) })
	t.Run("trace", func(t *testing.T) { tracesAsMqadmin(t, c, results[2], poisoned) })

	got := mqxRows(t, c.namesrv, "admin", "dlq", "get", poisoned)
	var texts []string
	for _, m := range got {
		texts = append(texts, m["body"].(string))
		if p := m["properties"].(map[string]any); p["RETRY_TOPIC"] != topic {
			t.Errorf("dead letter: %v", m)
		}
	}
	if slices.Sort(texts); !slices.Equal(texts, []string{out[0].Body, out[1].Body, out[2].Body}) {
		t.Errorf("dlq get: %v", texts)
	}

	// The group mends its code; the replay reaches it and nobody else.
	stopBad()
	mended := pushOf(t, d, c, topic, poisoned, nil)
	replayed := mqxRows(t, c.namesrv, "admin", "dlq", "replay", poisoned, "--yes")
	if after := replayed[0]["after"].(map[string]any); after["sent"] != 3.0 || after["read"] != 3.0 {
		t.Errorf("replay: %v", replayed)
	}
	waitFor(t, arrival, "the group to get its dead letters", func() (bool, string) {
		why := missing(out, mended())
		return why == "", why
	})
	for _, m := range mended() {
		if m.Topic != topic || m.Times != 0 || m.Properties["own"] == "" || m.Tag != "paid" {
			t.Errorf("replayed: %+v", m)
		}
	}
	waitFor(t, arrival, "the state to be consumed", func() (bool, string) {
		rows, err := tryRows(c.namesrv, "admin", "message", "track", results[0].MsgID, "-t", topic, "-g", poisoned)
		return err == nil && len(rows) == 1 && rows[0]["state"] == "CONSUMED", fmt.Sprint(rows, err)
	})
	if again := mqxRows(t, c.namesrv, "admin", "dlq", "replay", poisoned, "--yes"); again[0]["after"].(map[string]any)["already"] != 3.0 {
		t.Errorf("a second replay: %v", again)
	}
	if n := len(goOther.received()); n != len(out) {
		t.Errorf("the other group got %d messages, it was sent %d", n, len(out))
	}
	if n := len(mended()); n != len(out) {
		t.Errorf("the group got %d messages of %d", n, len(out))
	}

	t.Run("direct", func(t *testing.T) {
		members := mqxRows(t, c.namesrv, "admin", "group", "get", poisoned, "--show", "members")
		rows := mqxRows(t, c.namesrv, "admin", "message", "replay", topic, "-g", poisoned, "--id", results[0].MsgID, "--client", members[0]["clientId"].(string), "--yes")
		if rows[0]["result"] != "CR_SUCCESS" {
			t.Errorf("consumed directly: %v", rows)
		}
	})
	t.Run("purge", func(t *testing.T) {
		mqxRows(t, c.namesrv, "admin", "dlq", "purge", poisoned, "--confirm", poisoned)
		if rows := mqxRows(t, c.namesrv, "admin", "dlq", "ls"); len(rows) != 0 {
			t.Errorf("after the purge: %v", rows)
		}
	})
	t.Run("export", func(t *testing.T) { exportsAndImports(t, c, topic) })
}

// findsAsMqadmin: by every kind of id and by key, what mqadmin says of the same message.
func findsAsMqadmin(t *testing.T, c cluster, topic string, results []sent) {
	r := results[1]
	waitFor(t, 30*time.Second, "the key to be found", func() (bool, string) {
		rows, err := tryRows(c.namesrv, "admin", "message", "find", topic, "--key", "order-1")
		return err == nil && len(rows) == 1 && rows[0]["msgId"] == r.MsgID, fmt.Sprint(rows, err)
	})
	for _, args := range [][]string{
		{"get", r.MsgID}, {"get", r.OffsetMsgID}, {"get", r.MsgID, "-t", topic}, {"get", fmt.Sprintf("%s:%d:%d", brokerName, r.QueueID, r.QueueOffset), "-t", topic}, {"find", topic, "--where", "own = '1'"},
	} {
		rows := mqxRows(t, c.namesrv, append([]string{"admin", "message"}, args...)...)
		i := slices.IndexFunc(rows, func(m map[string]any) bool { return m["topic"] == topic })
		if i < 0 || rows[i]["msgId"] != r.MsgID || rows[i]["offsetMsgId"] != r.OffsetMsgID || rows[i]["queueOffset"] != float64(r.QueueOffset) {
			t.Errorf("%v: %v", args, rows)
		}
	}
	for command, args := range map[string][]string{
		"queryMsgById": {"-t", topic, "-i", r.OffsetMsgID}, "queryMsgByUniqueKey": {"-t", topic, "-i", r.MsgID},
		"queryMsgByOffset": {"-t", topic, "-b", brokerName, "-i", fmt.Sprint(r.QueueID), "-o", fmt.Sprint(r.QueueOffset)},
	} {
		args = append(append([]string{command}, args...), "-n", c.namesrv)
		theirs, ours := labelled(sharedDriver(t).admin(t, args...)), labelled(mqx(t, append([]string{"mqadmin"}, args...)...))
		for label, want := range theirs {
			if label == "Properties" { // the map of another run of Java
				want, ours[label] = sortedFields(want), sortedFields(ours[label])
			}
			if ours[label] != want {
				t.Errorf("%s: %s is %q, mqadmin says %q", command, label, ours[label], want)
			}
		}
		if len(theirs) < 12 {
			t.Errorf("%s: %v", command, theirs)
		}
	}
}

// labelled are the lines "Label:   value" of a message.
func labelled(text string) map[string]string {
	out := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^([A-Z][A-Za-z ]+):\s+(.*)$`).FindAllStringSubmatch(text, -1) {
		if m[1] != "WARN" {
			out[m[1]] = m[2]
		}
	}
	return out
}

func sortedFields(text string) string {
	parts := strings.Split(strings.Trim(text, "{}"), ", ")
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// tracksAsMqadmin: the same groups and, where Apache's states say as much, the same states.
func tracksAsMqadmin(t *testing.T, c cluster, topic string, r sent, poisoned, other string) {
	waitFor(t, arrival, "the states", func() (bool, string) {
		rows, err := tryRows(c.namesrv, "admin", "message", "track", r.MsgID, "-t", topic)
		states := map[any]any{}
		for _, row := range rows {
			states[row["group"]] = row["state"]
		}
		return err == nil && states[poisoned] == "DEAD_LETTER" && states[other] == "CONSUMED", fmt.Sprint(states, err)
	})
	tracks := func(text string) []string {
		out := regexp.MustCompile(`MessageTrack \[consumerGroup=[^,]*, trackType=[A-Z_]*`).FindAllString(text, -1)
		slices.Sort(out)
		return out
	}
	args := []string{"queryMsgById", "-t", topic, "-i", r.OffsetMsgID, "-n", c.namesrv}
	waitFor(t, arrival, "mqadmin and mqx to agree", func() (bool, string) {
		theirs, ours := tracks(sharedDriver(t).admin(t, args...)), tracks(mqx(t, append([]string{"mqadmin"}, args...)...))
		return len(ours) == 2 && slices.Equal(ours, theirs), fmt.Sprintf("%v, mqadmin: %v", ours, theirs)
	})
}

// tracesAsMqadmin: the sends and the consumings that the clients noted.
func tracesAsMqadmin(t *testing.T, c cluster, r sent, group string) {
	waitFor(t, arrival, "the trace", func() (bool, string) {
		rows, err := tryRows(c.namesrv, "admin", "trace", "get", r.MsgID)
		kinds := map[any]int{}
		for _, row := range rows {
			kinds[row["type"]]++
			if row["type"] == "SubAfter" && (row["group"] != group || row["success"] != false) {
				t.Errorf("trace: %v", row)
			}
		}
		return err == nil && kinds["Pub"] == 1 && kinds["SubAfter"] == 2, fmt.Sprint(kinds, err)
	})
	rows := func(text string) []string {
		out := regexp.MustCompile(`(?m)^(Pub|Sub) .*$`).FindAllString(text, -1)
		slices.Sort(out)
		return out
	}
	args := []string{"queryMsgTraceById", "-i", r.MsgID, "-n", c.namesrv}
	theirs, ours := rows(sharedDriver(t).admin(t, args...)), rows(mqx(t, append([]string{"mqadmin"}, args...)...))
	if len(theirs) < 3 || !slices.Equal(ours, theirs) {
		t.Errorf("mqx:\n%s\nmqadmin:\n%s", strings.Join(ours, "\n"), strings.Join(theirs, "\n"))
	}
}

// exportsAndImports: exported, imported and exported again, the lines are the same but for what is the cluster's.
func exportsAndImports(t *testing.T, c cluster, topic string) {
	const back = "E2E_MESSAGES_BACK"
	createTopic(t, c.namesrv, back, 2)
	big := numbered("big", 2)
	for i := range big {
		big[i].Body += strings.Repeat("compress me, please 压缩 ", 1000)
	}
	sharedDriver(t).send(t, c.namesrv, topic, "sync", big, nil)
	dir := testDir(t, "export")
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	mqx(t, "admin", "message", "export", topic, "-O", first, "-n", c.namesrv)
	rows := mqxRows(t, c.namesrv, "admin", "message", "import", back, first, "--yes")
	if after := rows[0]["after"].(map[string]any); after["sent"] != 5.0 {
		t.Errorf("import: %v", rows)
	}
	waitFor(t, 30*time.Second, "the imported messages", func() (bool, string) {
		mqx(t, "admin", "message", "export", back, "-O", second, "-n", c.namesrv)
		a, b := plainLines(t, first), plainLines(t, second)
		return slices.Equal(a, b), fmt.Sprintf("%s\n---\n%s", strings.Join(b, "\n"), strings.Join(a, "\n"))
	})
}

// plainLines are lines without topic, store time and hosts, sorted.
func plainLines(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`"(topic|storeTime|bornHost|storeHost)":"[^"]*",`).ReplaceAllString(string(data), "")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	slices.Sort(lines)
	return lines
}
