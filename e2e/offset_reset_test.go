package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mqx/remoting"
)

// adoption is how long a member may take from a reset to the first message behind it:
// push clients wait ten seconds and for their next rebalance.
const adoption = 90 * time.Second

// resetTopic is a topic of two queues with messages from before and after a time.
type resetTopic struct {
	namesrv, topic string
	at             time.Time
	sent           []sent // those after it
	ends           map[int]int64
}

func newResetTopic(t *testing.T, c cluster, topic string) *resetTopic {
	t.Helper()
	createTopic(t, c.namesrv, topic, 2)
	r := &resetTopic{namesrv: c.namesrv, topic: topic, ends: map[int]int64{}}
	d := sharedDriver(t)
	first := d.send(t, c.namesrv, topic, "sync", numbered("before", 12), nil)
	time.Sleep(20 * time.Millisecond) // store times are of milliseconds
	r.at = time.Now()
	time.Sleep(20 * time.Millisecond)
	r.sent = d.send(t, c.namesrv, topic, "sync", numbered("after", 8), nil)
	for _, s := range slices.Concat(first, r.sent) {
		r.ends[s.QueueID] = max(r.ends[s.QueueID], s.QueueOffset+1)
	}
	return r
}

// reset sets the offsets of a group and returns what is promised for each queue that moves.
func (r *resetTopic) reset(t *testing.T, group string, target ...string) map[int]int64 {
	t.Helper()
	var list struct {
		Items []struct {
			Part   string
			Action string
			After  struct{ Offset int64 }
		}
	}
	text := mqx(t, append([]string{"admin", "offset", "reset", "-n", r.namesrv, "-g", group, "-t", r.topic, "--yes", "-o", "json"}, target...)...)
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	promised := map[int]int64{}
	for _, it := range list.Items {
		queue, err := strconv.Atoi(it.Part[strings.LastIndexByte(it.Part, ' ')+1:])
		if err != nil {
			t.Fatalf("part %q", it.Part)
		}
		if it.Action != "none" {
			promised[queue] = it.After.Offset
		}
	}
	if len(promised) == 0 {
		t.Fatalf("nothing moved: %s", text)
	}
	return promised
}

// check waits for what a member gets behind a reset: of each queue that moved, the
// message that was promised first and then all to the end, and nothing else.
func (r *resetTopic) check(t *testing.T, got func() []incoming, seen int, promised map[int]int64) {
	t.Helper()
	want := map[string]bool{}
	for q, from := range promised {
		for off := from; off < r.ends[q]; off++ {
			want[fmt.Sprintf("%d:%d", q, off)] = true
		}
	}
	waitFor(t, adoption, fmt.Sprintf("the messages from %v on", promised), func() (bool, string) {
		have := map[string]bool{}
		for _, m := range got()[seen:] {
			have[fmt.Sprintf("%d:%d", m.QueueID, m.QueueOffset)] = true
		}
		for w := range want {
			if !have[w] {
				return false, fmt.Sprintf("%d of %d, without %s", len(have), len(want), w)
			}
		}
		return true, ""
	})
	for _, m := range got()[seen:] {
		if !want[fmt.Sprintf("%d:%d", m.QueueID, m.QueueOffset)] {
			t.Errorf("message %d of queue %d came, promised was %v", m.QueueOffset, m.QueueID, promised)
		}
	}
}

func (r *resetTopic) all() int {
	n := 0
	for _, end := range r.ends {
		n += int(end)
	}
	return n
}

// push starts a member of either client.
func (r *resetTopic) push(t *testing.T, client, group, from string) func() []incoming {
	t.Helper()
	if client == "go" {
		s := goSpec{Namesrv: r.namesrv, Group: group, Instance: group, Topic: r.topic}
		if from == "last" {
			s.From = "last"
		}
		return goPushConsumer(t, s).received
	}
	args := map[string]any{"id": group, "namesrv": r.namesrv, "group": group, "topic": r.topic}
	if from == "last" {
		args["from"] = "CONSUME_FROM_LAST_OFFSET"
	}
	if client == "pop" {
		args["serverRebalance"] = true
	}
	return javaPush(t, args)
}

// Offsets are set in every way for groups whose members are online and for those that
// start later: the next message of each queue is the one that the plan promised (N029,
// N030, N032).
func TestOffsetReset(t *testing.T) {
	t.Parallel()
	offsetResets(t, sharedCluster(t), "e2e_reset", os.Getenv("MQX_E2E_ALL") != "")
}

// TestOffsetResetOfApache resets groups on a broker of Apache's in all the ways that are tried on one of mqx: with clients online and
// offline, under lag, and lite pull consumers.
func TestOffsetResetOfApache(t *testing.T) {
	if reference() || os.Getenv("MQX_E2E_ALL") == "" {
		t.Skip("a cluster of Apache beside one of mqx: MQX_E2E_ALL=1")
	}
	t.Parallel()
	c := apacheCluster(t)
	t.Run("all", func(t *testing.T) { t.Parallel(); offsetResets(t, c, "e2e_reset_apache", true) })
	t.Run("to end", func(t *testing.T) { t.Parallel(); resetsToEnd(t, c, "e2e_reset_apache_end") })
	t.Run("under lag", func(t *testing.T) { t.Parallel(); resetsUnderLag(t, c, "e2e_reset_apache_lag") })
	t.Run("lite pull", func(t *testing.T) { t.Parallel(); resetsLitePull(t, c, "e2e_reset_apache_lite") })
	t.Run("lite pull under lag", func(t *testing.T) { t.Parallel(); resetsLitePullUnderLag(t, c, "e2e_reset_apache_held") })
}

// offsetResets sets the offsets of groups, whose names begin with name, in some ways or in all.
func offsetResets(t *testing.T, c cluster, name string, all bool) {
	t.Helper()
	r := newResetTopic(t, c, strings.ToUpper(name))
	sharedDriver(t).admin(t, "setConsumeMode", "-b", c.broker, "-t", r.topic, "-g", name+"_on_pop_back", "-m", "POP", "-q", "8", "-n", c.namesrv)
	mqx(t, "consume", r.topic, "-n", r.namesrv, "-g", name+"_model", "--commit", "--count", "5", "-o", "name")
	last := r.sent[len(r.sent)-3]
	targets := map[string][]string{
		"start":   {"--to", "start"},
		"offset":  {"--to", "2"},
		"time":    {"--to", "@" + strconv.FormatInt(r.at.UnixMilli(), 10)},
		"back":    {"--shift", "-3"},
		"queue":   {"-q", "1", "--to", "0"},
		"group":   {"--from-group", name + "_model"},
		"message": {"--to-message", last.OffsetMsgID},
	}
	onlines := []string{"java start", "java time", "java message", "go offset", "go back", "go queue", "go group", "pop back"}
	offlines := []string{"java start", "java time", "java group", "go offset", "go back", "go message", "java queue"}
	if all { // each way with each client
		onlines, offlines = []string{"pop back"}, nil
		for target := range targets {
			onlines = append(onlines, "java "+target, "go "+target)
			offlines = append(offlines, "java "+target, "go "+target)
		}
	}
	for _, online := range onlines {
		client, target, _ := strings.Cut(online, " ")
		t.Run("online "+online, func(t *testing.T) {
			t.Parallel()
			group := name + "_on_" + client + "_" + target
			got := r.push(t, client, group, "")
			waitFor(t, arrival, "all messages at first", func() (bool, string) { n := len(got()); return n >= r.all(), strconv.Itoa(n) })
			mqx(t, "wait", "lag", "-n", r.namesrv, "-g", group, "-t", r.topic, "--within", "60s")
			seen := len(got())
			r.check(t, got, seen, r.reset(t, group, targets[target]...))
			mqx(t, "wait", "lag", "-n", r.namesrv, "-g", group, "-t", r.topic, "--within", "60s")
		})
	}
	for _, offline := range offlines {
		client, target, _ := strings.Cut(offline, " ")
		t.Run("offline "+offline, func(t *testing.T) {
			t.Parallel()
			group := name + "_off_" + client + "_" + target
			mqx(t, "consume", r.topic, "-n", r.namesrv, "-g", group, "--commit", "--count", strconv.Itoa(r.all()), "-o", "name")
			promised := r.reset(t, group, targets[target]...)
			r.check(t, r.push(t, client, group, "last"), 0, promised)
		})
	}
	t.Run("broadcast", func(t *testing.T) { // N039
		t.Parallel()
		g := goPushConsumer(t, goSpec{Namesrv: r.namesrv, Group: name + "_bc", Instance: name + "_bc", Topic: r.topic, Broadcast: true})
		waitFor(t, arrival, "the broadcast", func() (bool, string) { n := len(g.received()); return n >= r.all(), strconv.Itoa(n) })
		_, err := output(mqxBinary, "admin", "offset", "reset", "-n", r.namesrv, "-g", name+"_bc", "-t", r.topic, "--to", "start", "--yes")
		if err == nil || !strings.Contains(err.Error(), "read in broadcast") {
			t.Errorf("a broadcast was reset: %v", err)
		}
	})
}

// A reset to the end passes over what is there and nothing that comes after it; what is
// passed over is kept as dead letters (N029, N030).
func TestOffsetResetToEnd(t *testing.T) {
	t.Parallel()
	resetsToEnd(t, sharedCluster(t), "e2e_reset_end")
}

func resetsToEnd(t *testing.T, c cluster, name string) {
	t.Helper()
	r := newResetTopic(t, c, strings.ToUpper(name))
	for _, client := range []string{"java", "go"} {
		t.Run(client, func(t *testing.T) {
			group := name + "_" + client
			mqx(t, "consume", r.topic, "-n", r.namesrv, "-g", group, "--commit", "--count", "4", "-o", "name")
			promised := r.reset(t, group, "--to", "end", "--to-dlq")
			dead := mqxConsume(t, r.namesrv, "%DLQ%"+group)
			skipped := r.all() - 4
			if len(dead) != skipped {
				t.Errorf("%d dead letters, %d messages were skipped", len(dead), skipped)
			}
			fresh := sharedDriver(t).send(t, r.namesrv, r.topic, "sync", numbered("fresh "+client, 4), nil)
			for _, s := range fresh {
				if s.QueueOffset < promised[s.QueueID] {
					t.Fatalf("message %d came into queue %d behind the end %d", s.QueueOffset, s.QueueID, promised[s.QueueID])
				}
				r.ends[s.QueueID] = max(r.ends[s.QueueID], s.QueueOffset+1)
			}
			r.check(t, r.push(t, client, group, ""), 0, promised)
		})
	}
}

// A group that is far behind and online is put to the end: what it holds is dropped or consumed, nothing of the rest
// comes, and all that is sent afterwards does.
func TestOffsetResetUnderLag(t *testing.T) {
	t.Parallel()
	if !reference() && os.Getenv("MQX_E2E_ALL") == "" {
		t.Skip("members that take their time: MQX_E2E_ALL=1")
	}
	resetsUnderLag(t, sharedCluster(t), "e2e_reset_lag")
}

func resetsUnderLag(t *testing.T, c cluster, name string) {
	t.Helper()
	const backlog = 3000
	topic := strings.ToUpper(name)
	createTopic(t, c.namesrv, topic, 2)
	sharedDriver(t).send(t, c.namesrv, topic, "async", numbered("old", backlog), nil)
	r := &resetTopic{namesrv: c.namesrv, topic: topic}
	for _, client := range []string{"java", "go"} {
		t.Run(client, func(t *testing.T) {
			group := name + "_" + client
			var got func() []incoming
			switch client {
			case "java":
				got = javaPush(t, map[string]any{"id": group, "namesrv": r.namesrv, "group": group, "topic": topic, "slow": 500})
			case "go":
				got = goPushConsumer(t, goSpec{Namesrv: r.namesrv, Group: group, Instance: group, Topic: topic, SlowMs: 500}).received
			}
			waitFor(t, arrival, "its first messages", func() (bool, string) { n := len(got()); return n >= 20, fmt.Sprint(n) })
			waitFor(t, arrival, "its first commit", func() (bool, string) {
				got()
				rows, err := tryRows(r.namesrv, "admin", "lag", "get", "-g", group, "-t", topic, "--by", "topic")
				return err == nil && len(rows) == 1 && rows[0]["lag"] != nil && rows[0]["lag"].(float64) > 0, fmt.Sprint(rows, err)
			})
			r.reset(t, group, "--to", "end")
			fresh := numbered("fresh "+client, 10)
			sharedDriver(t).send(t, r.namesrv, topic, "sync", fresh, nil)
			waitFor(t, adoption, "what came after the reset", func() (bool, string) { why := lost(fresh, got()); return why == "", why })
			all := got()
			if len(all) > backlog/2 {
				t.Errorf("%d of %d messages came in spite of the reset", len(all), backlog)
			}
			waitNoLag(t, r.namesrv, group, topic, got)
		})
	}
}

// waitNoLag waits until a group has committed all, calling poll, without which some members commit nothing.
func waitNoLag(t *testing.T, namesrv, group, topic string, poll func() []incoming) {
	t.Helper()
	waitFor(t, adoption, "no lag", func() (bool, string) {
		poll()
		rows, err := tryRows(namesrv, "admin", "lag", "get", "-g", group, "-t", topic, "--by", "topic")
		return err == nil && len(rows) == 1 && rows[0]["lag"] == 0.0, fmt.Sprint(rows, err)
	})
}

// Lite pull consumers take over what is set, one way after the other, and go on from there.
func TestOffsetResetOfLitePull(t *testing.T) {
	t.Parallel()
	if !reference() && os.Getenv("MQX_E2E_ALL") == "" {
		t.Skip("each way takes seconds: MQX_E2E_ALL=1")
	}
	resetsLitePull(t, sharedCluster(t), "e2e_reset_lite")
}

func resetsLitePull(t *testing.T, c cluster, group string) {
	t.Helper()
	r := newResetTopic(t, c, strings.ToUpper(group))
	got := litePull(t, r.namesrv, group, r.topic)
	waitFor(t, arrival, "all messages at first", func() (bool, string) { n := len(got()); return n >= r.all(), strconv.Itoa(n) })
	for _, target := range [][]string{
		{"--to", "start"}, {"--to", "@" + strconv.FormatInt(r.at.UnixMilli(), 10)}, {"--shift", "-3"}, {"--to-message", r.sent[len(r.sent)-3].OffsetMsgID}, {"-q", "1", "--to", "0"},
	} {
		waitNoLag(t, r.namesrv, group, r.topic, got)
		seen := len(got())
		r.check(t, got, seen, r.reset(t, group, target...))
	}
}

// A lite pull consumer that is far behind when its group is put to the end first delivers what it holds, which no broker can take from it,
// and nothing of the rest. What it commits meanwhile is where it stands in that, over what was set, until a message comes behind it.
func TestOffsetResetOfLitePullUnderLag(t *testing.T) {
	t.Parallel()
	if !reference() && os.Getenv("MQX_E2E_ALL") == "" {
		t.Skip("a client that holds two thousand messages: MQX_E2E_ALL=1")
	}
	resetsLitePullUnderLag(t, sharedCluster(t), "e2e_reset_held")
}

func resetsLitePullUnderLag(t *testing.T, c cluster, group string) {
	t.Helper()
	const backlog, most = 6000, 2000 // most: a client holds this and a pull more, of two queues
	topic := strings.ToUpper(group)
	createTopic(t, c.namesrv, topic, 2)
	sharedDriver(t).send(t, c.namesrv, topic, "async", numbered("old", backlog), nil)
	r := &resetTopic{namesrv: c.namesrv, topic: topic}
	d := startDriver(t) // of its own: it is asked two thousand times
	d.cleanup(t)
	next, polled := litePullOf(t, d, r.namesrv, group, topic), 0
	poll := func() []incoming {
		all := next()
		polled = len(all)
		return all
	}
	held := func() (n int) {
		d.call(t, "litePullHeld", map[string]any{"id": group}, &n)
		return n
	}
	waitFor(t, arrival, "its first messages", func() (bool, string) { n := len(poll()); return n >= 20, fmt.Sprint(n) })
	waitFor(t, arrival, "its first commit", func() (bool, string) {
		lag, why := topicLag(r.namesrv, group, topic, poll)
		return lag > 0 && lag < backlog, why
	})
	holds := 0
	waitFor(t, arrival, "it to hold as much as it may", func() (bool, string) {
		was := held()
		time.Sleep(time.Second)
		holds = held()
		return holds > most && holds == was, fmt.Sprint(holds)
	})
	before := polled
	r.reset(t, group, "--to", "end")
	waitFor(t, adoption, "what it holds", func() (bool, string) {
		for range 20 {
			poll()
		}
		n := held()
		return n == 0, fmt.Sprint(n)
	})
	time.Sleep(2 * time.Second) // its time to commit
	late := len(poll()) - before
	lag, why := topicLag(r.namesrv, group, topic, poll)
	t.Logf("%d were polled before the reset, it held %d, %d came after it, then it has a lag of %v", before, holds, late, lag)
	if late != holds {
		t.Errorf("%d messages came after the reset, the client held %d", late, holds)
	}
	if lag <= 0 {
		t.Errorf("the client has not committed over what was set: %s", why)
	}
	fresh := numbered("fresh", 10)
	sharedDriver(t).send(t, r.namesrv, topic, "sync", fresh, nil)
	waitFor(t, adoption, "what came after the reset", func() (bool, string) { why := lost(fresh, poll()); return why == "", why })
	if n := len(poll()); n != before+holds+len(fresh) {
		t.Errorf("%d messages came: %d before the reset, %d that were held, %d fresh ones", n, before, holds, len(fresh))
	}
	waitNoLag(t, r.namesrv, group, topic, poll)
}

// topicLag is how far a group is behind in a topic after a poll, -1 where that is not known.
func topicLag(namesrv, group, topic string, poll func() []incoming) (lag float64, why string) {
	poll()
	rows, err := tryRows(namesrv, "admin", "lag", "get", "-g", group, "-t", topic, "--by", "topic")
	if err != nil || len(rows) != 1 || rows[0]["lag"] == nil {
		return -1, fmt.Sprint(rows, err)
	}
	return rows[0]["lag"].(float64), fmt.Sprint(rows)
}

// litePull starts a lite pull consumer; every call of what it returns polls once.
func litePull(t *testing.T, namesrv, group, topic string) func() []incoming {
	t.Helper()
	return litePullOf(t, sharedDriver(t), namesrv, group, topic)
}

func litePullOf(t *testing.T, d *driver, namesrv, group, topic string) func() []incoming {
	t.Helper()
	d.call(t, "litePull", map[string]any{"id": group, "namesrv": namesrv, "group": group, "topic": topic}, nil)
	t.Cleanup(func() { _ = d.try("litePullStop", map[string]any{"id": group}, nil) })
	var got []incoming
	return func() []incoming {
		var more []incoming
		d.call(t, "litePullPoll", map[string]any{"id": group}, &more)
		got = append(got, more...)
		return got
	}
}

// The Java clients take over what INVOKE_BROKER_TO_RESET_OFFSET (222) sets while they consume: told by their next pull
// (useServerSideResetOffset), or by a request of the broker to them.
func TestResetByRequest(t *testing.T) {
	t.Parallel()
	modes := map[string]cluster{"by the broker": sharedCluster(t)}
	clients := map[string]*driver{"Java 5.5": sharedDriver(t)}
	if reference() || os.Getenv("MQX_E2E_ALL") != "" { // in its short form it waits for one client
		modes["by members"], clients["Java 4.9"] = startCluster(t, "useServerSideResetOffset=false"), oldClient(t)
	}
	for mode, c := range modes {
		r := newResetTopic(t, c, "E2E_RESET_222")
		for client, d := range clients {
			t.Run(mode+" "+client, func(t *testing.T) {
				t.Parallel()
				group := "e2e_reset_222_" + strings.NewReplacer(" ", "_", ".", "_").Replace(client)
				got := pushOf(t, d, c, r.topic, group, nil)
				waitFor(t, arrival, "all messages at first", func() (bool, string) { n := len(got()); return n >= r.all(), strconv.Itoa(n) })
				mqx(t, "wait", "lag", "-n", r.namesrv, "-g", group, "-t", r.topic, "--within", "60s")
				seen := len(got())
				p := newRawPeer(t, c.broker)
				var body remoting.ResetOffsetBody
				p.body(p.ok(remoting.ReqInvokeBrokerToResetOffset, &remoting.ResetOffsetHeader{
					Topic: r.topic, Group: group, QueueID: -1, Timestamp: r.at.UnixMilli(), IsForce: true,
				}, nil), &body)
				promised := map[int]int64{}
				for q, off := range body.OffsetTable {
					promised[int(q.QueueID)] = off
				}
				if len(promised) != 2 {
					t.Fatalf("reset %v", body.OffsetTable)
				}
				r.check(t, got, seen, promised)
				mqx(t, "wait", "lag", "-n", r.namesrv, "-g", group, "-t", r.topic, "--within", "60s")
			})
		}
	}
}
