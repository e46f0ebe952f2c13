package e2e

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// moveCase is a migration of a topic under load.
type moveCase struct {
	name   string
	push   map[string]any // of the Java consumer
	shards bool           // sends by key, and looks at the order of each
	pop    bool           // the group is switched to pop
	apache bool           // the source is Apache's broker
	goes   bool           // the clients are Go's, which ask for routes every 30 s
	short  bool           // also without MQX_E2E_ALL=1
	old    bool           // the clients are of 4.9, which ask for routes every 30 s
	stale  bool           // the producer never asks for a route again; the source is kept
	// kills are the phases at which something is killed, and what: source, target, tool.
	kills []moveKill
}

type moveKill struct {
	at  string
	who string // words of tool, source, target
}

// every kills the tool and both brokers at five steps; resume is one command.
var everyKill = []moveKill{
	{"CREATED", "tool source target"},
	{"VISIBLE", "tool source target"},
	{"SEALED", "tool source target"},
	{"DRAINING", "tool source target"},
	{"OPENED", "tool source target"},
}

func allMigrations() bool { return os.Getenv("MQX_E2E_ALL") == "1" }

// A topic moves from one broker to another while a producer sends and a consumer reads,
// both without knowing: nothing is lost or comes twice, and the order of keys is kept; also
// where the tool and the brokers are killed on the way.
func TestMigrate(t *testing.T) {
	t.Parallel()
	orderly := map[string]any{"orderly": true}
	last := map[string]any{"broadcast": true, "from": "CONSUME_FROM_LAST_OFFSET"}
	for _, tt := range []moveCase{
		{name: "source killed", short: true, kills: []moveKill{{"SEALED", "source"}}},
		{name: "concurrent", kills: []moveKill{{"SEALED", "tool"}}},
		{name: "orderly", push: orderly, shards: true},
		{name: "pop", push: map[string]any{"serverRebalance": true, "popInvisible": 10000}, pop: true},
		{name: "broadcast", push: last},
		{name: "apache", apache: true},
		{name: "apache orderly", push: orderly, shards: true, apache: true},
		{name: "apache pop", push: map[string]any{"serverRebalance": true, "popInvisible": 10000}, pop: true, apache: true},
		{name: "apache broadcast", push: last, apache: true},
		{name: "go", goes: true},
		{name: "apache go", goes: true, apache: true},
		{name: "old", old: true},
		{name: "apache old", old: true, apache: true},
		{name: "stale", stale: true},
		{name: "stale orderly", push: orderly, shards: true, stale: true},
		{name: "killed", kills: everyKill},
		{name: "killed orderly", push: orderly, shards: true, kills: everyKill},
		{name: "killed pop", push: map[string]any{"serverRebalance": true, "popInvisible": 10000}, pop: true, kills: everyKill},
		{name: "killed broadcast", push: last, kills: everyKill},
		{name: "killed apache", apache: true, kills: everyKill},
		{name: "killed apache orderly", push: orderly, shards: true, apache: true, kills: everyKill},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !tt.short && !allMigrations() {
				t.Skip("MQX_E2E_ALL=1 runs it too")
			}
			t.Parallel()
			migrate(t, tt)
		})
	}
}

func migrate(t *testing.T, tt moveCase) {
	const topic, group = "E2E_MOVE", "e2e_move"
	r := newMoveRig(t, tt.apache)
	create := []string{"admin", "topic", "create", topic, "-b", "broker-a", "--queues", "4", "--yes"}
	if tt.shards {
		create = append(create, "--order")
	}
	r.mqx(create...)
	if tt.pop {
		r.mqx("mqadmin", "setConsumeMode", "-b", loopback(r.specs["broker-a"].port), "-t", topic, "-g", group, "-m", "POP", "-q", "8")
	}
	load := r.clients(tt, topic, group)
	ask := []string{"admin", "queue", "migrate", "start", "-t", topic, "--source", "broker-a", "--target", "broker-d"}
	if !tt.goes && !tt.old {
		ask = append(ask, "--route-interval", "1s")
	}
	if tt.pop {
		r.dieHolding(topic, group)
	}
	broadcast := tt.push["broadcast"] == true
	if broadcast || tt.stale {
		ask = append(ask, "--yes") // what its clients have read is known to them alone: the source is kept
	} else {
		ask = append(ask, "--remove", "--confirm", topic)
	}
	if len(tt.kills) > 1 { // it stays at DRAINING until it is killed there
		r.late(topic, "e2e_move_late")
	}
	r.carryOut(ask, []string{"admin", "queue", "migrate", "resume", topic, "--yes"}, tt.kills)
	if tt.stale {
		r.forwarded(topic)
	}
	load.check()
	if n := load.twice(); n > 0 && len(tt.kills) == 0 && !tt.pop {
		t.Errorf("%d messages came twice", n)
	}
	config := r.mqx("admin", "topic", "get", topic, "--show", "config", "-o", "csv")
	if !strings.Contains(config, "broker-d") || strings.Contains(config, "broker-a") != (broadcast || tt.stale) {
		t.Errorf("the topic is now on:\n%s", config)
	}
}

// forwarded: the producer still sends to the source, where nothing is stored any more.
func (r *moveRig) forwarded(topic string) {
	r.t.Helper()
	ends := func(broker string) (n int64) {
		for line := range strings.Lines(r.mqx("admin", "topic", "get", topic, "--show", "queues", "--match", "broker="+broker, "-o", "template={{.maxOffset}}")) {
			at, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
			if err != nil {
				r.t.Fatalf("ends of the queues on %s: %v", broker, err)
			}
			n += at
		}
		return n
	}
	source, target := ends("broker-a"), ends("broker-d")
	waitFor(r.t, 60*time.Second, "new messages on the target", func() (bool, string) {
		n := ends("broker-d")
		return n > target+50, fmt.Sprint(n)
	})
	if n := ends("broker-a"); n != source || n == 0 {
		r.t.Errorf("the source ended at %d and ends at %d", source, n)
	}
}

// moveRig is a cluster of three brokers: a, from which things move, d, to which they do,
// and b, which keeps the journal.
type moveRig struct {
	t       *testing.T
	namesrv string
	apache  bool // a is Apache's
	specs   map[string]brokerSpec
	running map[string]*process
	state   []string // environment of the tool
}

func newMoveRig(t *testing.T, apache bool) *moveRig {
	ns := freePort(t)
	dir := testDir(t, "mover")
	r := &moveRig{
		t: t, namesrv: loopback(ns), apache: apache, specs: map[string]brokerSpec{}, running: map[string]*process{},
		state: []string{"HOME=" + dir, "XDG_STATE_HOME=" + dir, "XDG_CONFIG_HOME=" + dir},
	}
	mqxNameserverWith(t, ns, "orderMessageEnable=true").cleanup(t)
	for _, name := range []string{"broker-a", "broker-b", "broker-d"} {
		r.specs[name] = brokerSpec{
			name: name, port: freePort(t), namesrv: r.namesrv, store: filepath.Join(testDir(t, "store"), "store"),
			extra: []string{"autoCreateTopicEnable=false"},
		}
		r.startBroker(name)
	}
	for name := range r.specs {
		r.mqx("wait", "broker", name, "--within", "60s")
	}
	return r
}

func (r *moveRig) startBroker(name string) {
	r.t.Helper()
	begin := mqxBroker
	if r.apache && name == "broker-a" {
		begin = apacheBroker
	}
	r.running[name] = begin(r.t, r.specs[name])
	r.running[name].cleanup(r.t)
}

func (r *moveRig) mqx(args ...string) string {
	r.t.Helper()
	text, code := r.try(args...)
	if code != 0 {
		r.t.Fatalf("mqx %s: exit %d\n%s", strings.Join(args, " "), code, text)
	}
	return text
}

// try runs mqx and returns what it prints and its exit code.
func (r *moveRig) try(args ...string) (string, int) {
	r.t.Helper()
	p := r.tool(args...)
	<-p.done
	text, err := os.ReadFile(p.log)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text), p.cmd.ProcessState.ExitCode()
}

// tool starts mqx as a process that can be killed.
func (r *moveRig) tool(args ...string) *process {
	r.t.Helper()
	return start(r.t, "tool", testDir(r.t, "tool"), r.state, mqxBinary, append(args, "-n", r.namesrv)...)
}

// late makes a group that has an offset on the source and nobody online.
func (r *moveRig) late(topic, group string) {
	r.t.Helper()
	r.mqx("admin", "group", "create", group, "-b", "broker-a", "--yes")
	r.mqx("admin", "offset", "reset", "-g", group, "-t", topic, "--to", "start", "--yes")
}

// dieHolding: a member of a group pops messages from the source, and is never heard of again. They come
// back to the group when their time is over, which is after the plan could have ended.
func (r *moveRig) dieHolding(topic, group string) {
	r.t.Helper()
	p := newRawPeer(r.t, loopback(r.specs["broker-a"].port))
	p.popUntil("messages to hold", popOf(group, topic, -1, 40*time.Second))
}

// carryOut runs a plan to its end; on the way things are killed and started again, and it is
// resumed by one command.
func (r *moveRig) carryOut(ask, resume []string, kills []moveKill) {
	r.t.Helper()
	run := r.tool(append(ask, "-v")...)
	for _, k := range kills {
		run = r.reach(run, resume, k.at)
		r.refuseSecond(resume)
		if strings.Contains(k.who, "tool") {
			run.kill()
		}
		for who, name := range map[string]string{"source": "broker-a", "target": "broker-d"} {
			if strings.Contains(k.who, who) {
				r.running[name].kill()
				r.startBroker(name)
			}
		}
		if k.at == "DRAINING" {
			r.mqx("wait", "broker", "broker-a", "--within", "60s")
			r.mqx("admin", "offset", "reset", "-g", "e2e_move_late", "-t", "E2E_MOVE", "--to", "end", "--yes")
		}
		if strings.Contains(k.who, "tool") {
			run = r.resumed(resume)
		}
	}
	deadline := time.After(driverLimit + 300*time.Second)
	for {
		select {
		case <-run.done:
		case <-deadline:
			r.t.Fatalf("the plan does not end: %s", tail(run.log, 30))
		}
		code := run.cmd.ProcessState.ExitCode()
		if code == 0 {
			return
		}
		if log := tail(run.log, 30); resume == nil || code != 6 || !strings.Contains(log, "went back") {
			r.t.Fatalf("the tool ended with %d:\n%s", code, log)
		}
		run = r.resumed(resume) // a killed broker forgets the last offsets: somebody must have looked
	}
}

// reach waits until a run is at a phase.
func (r *moveRig) reach(run *process, resume []string, phase string) *process {
	r.t.Helper()
	waitFor(r.t, 200*time.Second, "phase "+phase, func() (bool, string) {
		log := "\n" + tail(run.log, 1000)
		if strings.Contains(log, "\n"+phase) {
			return true, ""
		}
		if run.ended() {
			if code := run.cmd.ProcessState.ExitCode(); code != 6 || !strings.Contains(log, "went back") {
				r.t.Fatalf("the tool ended with %d before %s:\n%s", code, phase, log)
			}
			run = r.resumed(resume)
		}
		return false, log
	})
	return run
}

// refuseSecond: another operator is refused while a plan is owned.
func (r *moveRig) refuseSecond(resume []string) {
	r.t.Helper()
	if text, code := r.try(resume...); code != 1 || !strings.Contains(text, "is run by") {
		r.t.Fatalf("a second operator ended with %d:\n%s", code, text)
	}
}

// resumed goes on with a plan: refused as long as the lease of a dead owner lasts.
func (r *moveRig) resumed(resume []string) (run *process) {
	r.t.Helper()
	waitFor(r.t, 150*time.Second, "the lease to end", func() (bool, string) {
		run = r.tool(append(resume, "-v")...)
		log := ""
		waitFor(r.t, 60*time.Second, "the tool to begin or to be refused", func() (bool, string) {
			log = tail(run.log, 100)
			return run.ended() || strings.Contains(log, "waiting for") && !strings.Contains(log, "no answer"), log
		})
		if !run.ended() || run.cmd.ProcessState.ExitCode() == 0 {
			return true, ""
		}
		time.Sleep(time.Second) // as an operator would
		return false, log
	})
	return run
}

// moveLoad sends until it is stopped, and a group reads.
type moveLoad struct {
	t        *testing.T
	shards   bool
	quit     chan struct{}
	done     sync.WaitGroup
	sent     []outgoing
	places   map[string]string // by body: where and when a message was stored, as the producer was told
	received func() []incoming
}

// clients starts a producer and a consumer, and waits until both work.
func (r *moveRig) clients(tt moveCase, topic, group string) *moveLoad {
	t := r.t
	l := &moveLoad{t: t, shards: tt.shards, quit: make(chan struct{}), places: map[string]string{}}
	var send func(key, body string) error
	if tt.goes {
		p := goProducer(t, r.namesrv)
		send = func(_, body string) error {
			result, err := p.SendSync(t.Context(), primitive.NewMessage(topic, []byte(body)))
			if err == nil {
				l.stored(body, sent{Broker: result.MessageQueue.BrokerName, QueueID: result.MessageQueue.QueueId, QueueOffset: result.QueueOffset})
			}
			return err
		}
		l.received = goPushConsumer(t, goSpec{Namesrv: r.namesrv, Group: group, Instance: t.Name(), Topic: topic}).received
	} else {
		var java *driver
		if tt.old {
			java = oldClient(t)
		} else {
			java = startDriver(t, "-Xmx768m", "-Ddriver.poll=1000", "-Drocketmq.client.rebalance.waitInterval=1000")
			java.cleanup(t)
		}
		l.received = pushOf(t, java, cluster{namesrv: r.namesrv}, topic, group, tt.push)
		sender := java
		if tt.stale {
			sender = startDriver(t, "-Xmx256m", "-Ddriver.poll=3600000")
			sender.cleanup(t)
		}
		send = func(key, body string) error {
			args := map[string]any{"namesrv": r.namesrv, "topic": topic, "mode": "sync"}
			if tt.shards {
				args["mode"], args["shard"] = "shard", key
			}
			args["messages"] = []outgoing{{Body: base64.StdEncoding.EncodeToString([]byte(body))}}
			var results []sent
			err := sender.try("send", args, &results)
			if err == nil {
				l.stored(body, results[0])
			}
			return err
		}
	}
	if tt.push["from"] == "CONSUME_FROM_LAST_OFFSET" {
		waitFor(t, 60*time.Second, "the consumer to be online", func() (bool, string) {
			text, code := r.try("admin", "client", "ls", "-g", group, "-o", "name")
			return strings.Contains(text, "@"), fmt.Sprint(code, text)
		})
		time.Sleep(5 * time.Second) // it has no offsets that could be looked at
	}
	pause := 2 * time.Millisecond
	if len(tt.kills) > 1 || tt.old { // it lasts for minutes, and every message is looked at
		pause = 20 * time.Millisecond
	}
	l.begin(send, pause, len(tt.kills) > 0)
	waitFor(t, 120*time.Second, "the consumer to read", func() (bool, string) {
		n := len(l.received())
		return n > 20, fmt.Sprint(n)
	})
	return l
}

// begin sends one message after the other. Where brokers are killed what was not acknowledged is sent again.
func (l *moveLoad) begin(send func(key, body string) error, pause time.Duration, again bool) {
	keys := []string{"a", "b", "c", "e", "f", "g", "h"}
	l.done.Go(func() {
		for n := 0; ; n++ {
			key := keys[n%len(keys)]
			body := fmt.Sprintf("%s %09d", key, n)
			for err := send(key, body); err != nil; err = send(key, body) {
				if !again || l.stopped() {
					l.t.Errorf("a send failed: %v", err)
					return
				}
			}
			l.sent = append(l.sent, outgoing{Body: body})
			if l.stopped() {
				return
			}
			time.Sleep(pause)
		}
	})
	l.t.Cleanup(func() { l.stop() })
}

func (l *moveLoad) stopped() bool {
	select {
	case <-l.quit:
		return true
	default:
		return false
	}
}

// stop ends the load and returns what was acknowledged.
func (l *moveLoad) stop() []outgoing {
	if !l.stopped() {
		close(l.quit)
	}
	l.done.Wait()
	return l.sent
}

// check ends the load: everything that was acknowledged arrives, each key in its order.
func (l *moveLoad) check() {
	l.t.Helper()
	want := l.stop()
	waitFor(l.t, arrival, "every message", func() (bool, string) {
		why := l.lost(want)
		return why == "", why
	})
	l.t.Logf("%d messages, %d came twice", len(want), l.twice())
	if !l.shards {
		return
	}
	first := map[string]bool{}
	last := map[string]string{}
	for _, m := range l.received() {
		body := string(m.Body)
		if first[body] {
			continue // once more, as at-least-once allows
		}
		first[body] = true
		key, number, _ := strings.Cut(body, " ")
		if number < last[key] {
			l.t.Errorf("key %s: %s came after %s", key, number, last[key])
		}
		last[key] = number
	}
}

// stored notes what the producer was told of a message.
func (l *moveLoad) stored(body string, r sent) {
	l.places[body] = fmt.Sprintf("%s queue %d offset %d at %s", r.Broker, r.QueueID, r.QueueOffset, time.Now().Format("15:04:05.000"))
}

// lost is what did not come, with where the first few of them are.
func (l *moveLoad) lost(want []outgoing) string {
	got := l.received()
	why := lost(want, got)
	if why == "" {
		return ""
	}
	have := map[string]bool{}
	for _, m := range got {
		have[string(m.Body)] = true
	}
	var where []string
	for _, m := range want {
		if !have[m.Body] {
			where = append(where, m.Body+" in "+l.places[m.Body])
		}
	}
	return fmt.Sprintf("%s: %q", why, head(where))
}

// twice counts messages that came more than once.
func (l *moveLoad) twice() (n int) {
	seen := map[string]bool{}
	for _, m := range l.received() {
		if seen[string(m.Body)] {
			n++
		}
		seen[string(m.Body)] = true
	}
	return n
}
