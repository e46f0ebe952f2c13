package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mqx/doctor"
	"mqx/message"
	"mqx/remoting"
)

// diagnosis is one row of mqx doctor.
type diagnosis struct {
	Rule     string `json:"rule"`
	Severity string `json:"severity"`
	Verdict  string `json:"verdict"`
	Subject  string `json:"subject"`
	Evidence string `json:"evidence"`
}

// fault is what doctor has to find: a rule, and a part of what it says about what.
type fault struct{ rule, subject, evidence string }

func (f fault) in(list []diagnosis) bool {
	return slices.ContainsFunc(list, func(d diagnosis) bool {
		return d.Rule == f.rule && strings.Contains(d.Subject, f.subject) && strings.Contains(d.Evidence, f.evidence)
	})
}

// provoked are the rules that have found what was made wrong.
type provoked struct {
	mu    sync.Mutex
	rules map[string]bool
}

// doctorRun runs mqx doctor and returns its findings. Once it has looked for the first time it
// calls during, where there is one.
func doctorRun(t *testing.T, command []string, during func()) []diagnosis {
	t.Helper()
	list, err := tryDoctor(t, command, during)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func tryDoctor(t *testing.T, command []string, during func()) ([]diagnosis, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], append(command[1:], "-v", "-o", "json", "--partial", "ok")...)
	said, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var last string
	for lines := bufio.NewScanner(said); lines.Scan(); {
		if last = lines.Text(); during != nil && strings.Contains(last, "looking for") {
			during()
			during = nil
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 6) {
		return nil, fmt.Errorf("mqx doctor: %w: %s", err, last)
	}
	var doc struct {
		Items []diagnosis `json:"items"`
	}
	if err := json.Unmarshal([]byte(out.String()), &doc); err != nil {
		return nil, fmt.Errorf("mqx doctor printed %q: %w", out.String(), err)
	}
	return slices.DeleteFunc(doc.Items, func(d diagnosis) bool { return d.Verdict != "finding" }), nil
}

// find looks until everything that is wrong is found.
func (p *provoked) find(t *testing.T, command []string, during func(), faults ...fault) {
	t.Helper()
	left := slices.Clone(faults)
	waitFor(t, 90*time.Second, "doctor to find it", func() (bool, string) {
		list := doctorRun(t, command, during)
		left = slices.DeleteFunc(left, func(f fault) bool {
			if !f.in(list) {
				return false
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			p.rules[f.rule] = true
			return true
		})
		return len(left) == 0, fmt.Sprintf("not found: %v in %v", left, list)
	})
}

// Each rule of mqx doctor finds what was made wrong for it, on servers that run, and a healthy cluster has nothing to be
// found. What the rules of a host find is made where the test may make it; the loads and settings of the whole machine
// (cpu-hot, device-saturated, dirty-high, network-errors, map-count, min-free, dirty-ratio, swappiness, container-memory)
// are those of a directory in the place of / (--root).
// N043, N045 (by its marks), N097: what users could not see.
func TestDoctorFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	if reference() {
		t.Skip("it is mqx that is looked at")
	}
	p := &provoked{rules: map[string]bool{}}
	parts := map[string]func(*testing.T, *provoked){"cluster": doctorCluster, "broken": doctorBroken, "host": doctorHost}
	var mu sync.Mutex
	done := 0
	t.Run("", func(t *testing.T) {
		for name, part := range parts {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				part(t, p)
				mu.Lock()
				defer mu.Unlock()
				done++
			})
		}
	})
	if done < len(parts) {
		return // failed, or not asked for
	}
	for _, r := range doctor.Rules() {
		if !p.rules[r.ID] {
			t.Errorf("rule %s was provoked by nothing", r.ID)
		}
	}
	if n := len(doctor.Rules()); n != len(p.rules) {
		t.Errorf("%d rules, %d provoked: %v", n, len(p.rules), p.rules)
	}
}

// The rules of a live cluster find the same on Apache's brokers.
func TestDoctorOnApache(t *testing.T) {
	if os.Getenv("MQX_E2E_ALL") == "" || reference() {
		t.Skip("MQX_E2E_ALL=1 runs it")
	}
	doctorClusterOf(t, &provoked{rules: map[string]bool{}}, apacheBroker, mqxNameserver)
}

func doctorCluster(t *testing.T, p *provoked) { doctorClusterOf(t, p, mqxBroker, mqxNameserver) }

// doctorSick is a cluster in which things go wrong: two brokers, three name servers.
type doctorSick struct {
	t       *testing.T
	p       *provoked
	all     string
	servers []*process
	addrs   []string
	brokers []*process
	a, b    *rawPeer
	stores  []string
}

func doctorClusterOf(t *testing.T, p *provoked, broker func(*testing.T, brokerSpec) *process, server func(*testing.T, int) *process) {
	s := &doctorSick{t: t, p: p}
	for range 3 {
		port := freePort(t)
		n := server(t, port)
		n.cleanup(t)
		s.servers, s.addrs = append(s.servers, n), append(s.addrs, loopback(port))
	}
	s.all = strings.Join(s.addrs, ";")
	for _, name := range []string{"doctor-a", "doctor-b"} {
		port, store := freePort(t), filepath.Join(testDir(t, name), "store")
		b := broker(t, brokerSpec{name: name, port: port, namesrv: s.all, store: store, extra: []string{
			"transactionCheckInterval=1000", "transactionTimeOut=3600000", "brokerFastFailureEnable=false",
		}})
		b.cleanup(t)
		peer := newRawPeer(t, loopback(port))
		s.brokers, s.stores = append(s.brokers, b), append(s.stores, store)
		if name == "doctor-a" {
			s.a = peer
		} else {
			s.b = peer
		}
	}
	waitFor(t, 60*time.Second, "both brokers at every name server", func() (bool, string) {
		list := doctorRun(t, s.command("--for", "0s", "--rule", "nameservers-disagree"), nil)
		text, err := output(mqxBinary, "admin", "broker", "ls", "-n", s.all, "-o", "name")
		return err == nil && len(list) == 0 && strings.Contains(text, "doctor-a") && strings.Contains(text, "doctor-b"), text
	})
	s.healthy()
	s.atOnce()
	s.between()
	s.gone()
	if strings.HasPrefix(s.brokers[0].name, "mqx") {
		s.left()
	}
}

func (s *doctorSick) command(flags ...string) []string {
	return append([]string{mqxBinary, "doctor", "-n", s.all}, flags...)
}

// healthy: nothing that has to be dealt with is found, but what the machine of the tests is guilty of: how full its
// disk is, and how long requests wait on it.
func (s *doctorSick) healthy() {
	t := s.t
	mqx(t, "admin", "topic", "create", "DOC", "--queues", "2", "-n", s.all, "--yes")
	mqx(t, "produce", "DOC", writeFile(t, testDir(t, "doc"), "line", "one\n"), "-n", s.all, "-o", "name")
	goPushConsumer(t, goSpec{Namesrv: s.all, Group: "doc", Instance: "doc1", Topic: "DOC"})
	command := s.command("--for", "1s", "--severity", "warning")
	for _, r := range []string{"disk-watermark", "rejected-queued", "rejected-locked", "rejected-appended", "rejected-flushed"} {
		command = append(command, "--skip", r)
	}
	waitFor(t, 90*time.Second, "nothing to be found", func() (bool, string) {
		list := doctorRun(t, command, nil)
		return len(list) == 0, fmt.Sprint(list)
	})
}

// half sends the half of a transaction that nobody ends.
func (p *rawPeer) half(topic, group string) {
	p.t.Helper()
	props := message.AppendProperty(message.AppendProperty(nil, "TRAN_MSG", "true"), "PGROUP", group)
	props = message.AppendProperty(props, "UNIQ_KEY", fmt.Sprintf("7F00000100000000%016X", time.Now().UnixNano()))
	p.ok(remoting.ReqSendMessageV2, &remoting.SendMessageHeader{
		ProducerGroup: group, Topic: topic, DefaultTopic: "TBW102", DefaultTopicQueueNums: 4, BornTimestamp: time.Now().UnixMilli(),
		SysFlag: message.TransactionPrepared, Properties: string(props),
	}, []byte("half"))
}

func (p *rawPeer) configure(lines string) { p.ok(remoting.ReqUpdateBrokerConfig, nil, []byte(lines)) }

// put sends a message without waiting that it can be read.
func (p *rawPeer) put(topic string, body []byte) int64 {
	return p.int(p.ok(remoting.ReqSendMessageV2, &remoting.SendMessageHeader{
		ProducerGroup: "PG_raw", Topic: topic, DefaultTopic: "TBW102", DefaultTopicQueueNums: 4, BornTimestamp: time.Now().UnixMilli(),
	}, body), "queueOffset")
}

// atOnce are the rules that need one look.
func (s *doctorSick) atOnce() {
	t := s.t
	extra := freePort(t)
	mqxNameserver(t, extra).cleanup(t) // which no broker knows
	goPushConsumer(t, goSpec{Namesrv: s.all, Group: "doc_differ", Instance: "differ1", Topic: "DOC", Expression: "tag1"})
	goPushConsumer(t, goSpec{Namesrv: s.all, Group: "doc_differ", Instance: "differ2", Topic: "DOC", Expression: "tag2"})
	s.a.createTopic("DOC_ONE", 1)
	s.routed("DOC_ONE")
	goPushConsumer(t, goSpec{Namesrv: s.all, Group: "doc_many", Instance: "many1", Topic: "DOC_ONE"})
	goPushConsumer(t, goSpec{Namesrv: s.all, Group: "doc_many", Instance: "many2", Topic: "DOC_ONE"})
	s.b.configure("fileReservedTime=48\n")
	s.a.put("DOC_BY_SEND", []byte("misspelled")) // creates the topic
	s.b.createTopic("DOC_BEYOND", 1)
	s.b.createGroup("doc_beyond")
	s.b.send("DOC_BEYOND", 0, "one")
	s.b.commit("doc_beyond", "DOC_BEYOND", 0, 1000)
	s.a.createGroup("doc_twice")
	s.a.member("doc_twice", "DOC_ONE")
	newRawPeer(t, s.a.addr).member("doc_twice", "DOC_ONE") // the same id; neither answers what it reads
	for range 101 {
		s.a.half("DOC_ONE", "PG_gone")
	}
	for _, p := range []*rawPeer{s.a, s.b} {
		p.configure("autoCreateTopicEnable=false\n")
	}
	newRawPeer(t, s.addrs[0]).ok(remoting.ReqRegisterTopicInNamesrv, &remoting.RegisterTopicHeader{Topic: "DOC_GONE"},
		[]byte(`{"brokerDatas":[],"filterServerTable":{},"queueDatas":[{"brokerName":"doctor-a","perm":6,"readQueueNums":1,"topicSysFlag":0,"writeQueueNums":1}]}`))
	s.p.find(t, append(s.command("--for", "0s"), "-n", s.all+";"+loopback(extra)), nil,
		fault{"nameservers-disagree", loopback(extra), "it does not know broker doctor-a"}, fault{"subscriptions-differ", "doc_differ", "tag1"}, fault{"topic-one-broker", "DOC_ONE", "only on doctor-a"},
		fault{"client-no-queue", "doc_many", "1 of 2 members"}, fault{"config-differs", "fileReservedTime", `doctor-b has "48"`}, fault{"route-expired", "DOC_GONE", "none of 2 brokers"},
		fault{"offset-beyond", "doc_beyond", "committed 1000, the queue ends at 1"}, fault{"client-id-twice", "doc_twice", "doc_twice@raw is connected from"},
		fault{"client-silent", "doc_twice", "doc_twice@raw"}, fault{"transactions-open", "doctor-a", "101 half messages wait"}, fault{"template-left", "doctor-a", "TBW102"},
	)
	// New queues have no owner until the consumers hear of them. They may do so before the look: there are new ones for
	// each look.
	queues := 2
	s.p.find(t, s.command("--for", "1s", "--rule", "queue-no-owner"), func() {
		queues += 2
		mqx(t, "admin", "topic", "set", "DOC", "--queues", strconv.Itoa(queues), "-n", s.all, "--yes")
	}, fault{"queue-no-owner", "doc", "DOC queue "})
	for _, p := range []*rawPeer{s.a, s.b} {
		p.configure("autoCreateTopicEnable=true\n")
	}
	s.p.find(t, s.command("--for", "0s", "--rule", "topic-auto-created"), nil, fault{"topic-auto-created", "DOC_BY_SEND", "autoCreateTopicEnable=true"})
}

// between are the rules that compare two looks.
func (s *doctorSick) between() {
	t := s.t
	old := s.expire()
	s.a.createTopic("DOC_SLOW", 1)
	for _, g := range []string{"doc_slow", "doc_nobody", "doc_back", "doc_dead"} {
		s.a.createGroup(g)
	}
	body := []byte(strings.Repeat("x", 100))
	for range 130 {
		s.a.put("DOC_SLOW", body)
	}
	s.b.configure("fileReservedTime=1\n")
	s.b.createTopic("DOC_LATE", 1)
	s.b.createGroup("doc_late")
	s.many("DOC_LATE", 4000)
	s.b.commit("doc_late", "DOC_LATE", 0, 0)
	s.b.createGroup("doc_fresh")
	s.b.commit("doc_fresh", "DOC_LATE", 0, 0)
	s.a.commit("doc_nobody", "DOC_SLOW", 0, 10)
	s.a.commit("doc_slow", "DOC_SLOW", 0, 1)
	s.a.member("doc_slow", "DOC_SLOW")
	s.b.createTopic("DOC_HALF", 1)
	s.b.beat(remoting.HeartbeatData{ClientID: "raw-half", ProducerDataSet: []remoting.ProducerData{{GroupName: "PG_mute"}}, ConsumerDataSet: []remoting.ConsumerData{}})
	s.b.configure("transactionTimeOut=300\ntransactionCheckMax=1\ntransactionCheckInterval=300\n")
	back, late := int64(100), int64(0)
	s.p.find(t, s.command("--for", "3s"), func() {
		for range 20 {
			s.a.put("DOC_SLOW", body)
		}
		s.a.commit("doc_slow", "DOC_SLOW", 0, 2)
		back, late = back-1, late+1
		s.a.commit("doc_back", "DOC_SLOW", 0, back)
		s.b.commit("doc_late", "DOC_LATE", 0, late)
		s.b.half("DOC_HALF", "PG_mute") // whose producer answers no check
		s.a.sendBackDead("doc_dead", "DOC_SLOW")
		s.a.commit("doc_back", "DOC_SLOW", 0, back-1)
	},
		fault{"lag-no-consumer", "doc_nobody", "no consumer is connected"}, fault{"consume-behind", "doc_slow", "messages/s came"}, fault{"offset-back", "doc_back", "committed"},
		fault{"expires-unread", "doc_late", "which take"}, fault{"transactions-given-up", "doctor-b", " in "}, fault{"dlq-growing", "doc_dead", "dead letter"},
		fault{"deleted-unread", old, "messages: DOC_OLD"},
	)
}

// routed waits until every name server knows a topic.
func (s *doctorSick) routed(topic string) {
	s.t.Helper()
	for _, addr := range s.addrs {
		waitFor(s.t, 60*time.Second, topic+" at "+addr, func() (bool, string) {
			text, err := output(mqxBinary, "admin", "topic", "ls", "-n", addr, "-o", "name")
			return err == nil && strings.Contains(text, topic+"\n"), text
		})
	}
}

// many sends n messages to queue 0 at broker b.
func (s *doctorSick) many(topic string, n int) {
	text := strings.Repeat("x\n", n)
	cmd := exec.Command(mqxBinary, "produce", topic, "-n", s.all, "-o", "name")
	s.routed(topic)
	cmd.Stdin = io.LimitReader(strings.NewReader(text), int64(len(text)))
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, tailOf(string(out)))
	}
}

func tailOf(text string) string { return text[max(0, len(text)-300):] }

// sendBackDead gives a message up.
func (p *rawPeer) sendBackDead(group, topic string) {
	p.t.Helper()
	resp := p.ok(remoting.ReqPullMessage, pullOf(group, topic, 0, 0), nil)
	p.ok(remoting.ReqConsumerSendMsgBack, &remoting.ConsumerSendMsgBackHeader{Offset: p.records(resp)[0].PhysicalOffset, Group: group, DelayLevel: -1, OriginTopic: topic}, nil)
}

// expire makes broker b delete files that a group has not read, and returns the group.
func (s *doctorSick) expire() string {
	t := s.t
	s.b.createTopic("DOC_OLD", 1)
	s.b.createGroup("doc_old")
	big := []byte(strings.Repeat("x", 300<<10))
	for range 8 { // in files of 1 MiB
		s.b.put("DOC_OLD", big)
	}
	s.b.commit("doc_old", "DOC_OLD", 0, 0)
	ago := time.Now().Add(-100 * time.Hour)
	files, err := filepath.Glob(filepath.Join(s.stores[1], "commitlog", "*"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%v, %v", files, err)
	}
	slices.Sort(files)
	if err := os.Chtimes(files[0], ago, ago); err != nil {
		t.Fatal(err)
	}
	waitFor(t, 60*time.Second, "the first file to go", func() (bool, string) {
		s.b.ok(remoting.ReqDeleteExpiredCommitLog, nil, nil)
		n := s.b.int(s.b.ok(remoting.ReqGetMinOffset, &remoting.GetMinOffsetHeader{Topic: "DOC_OLD", QueueID: 0}, nil), "offset")
		return n > 0, fmt.Sprint(n)
	})
	return "doc_old"
}

// gone are servers that do not answer. A name server takes a broker out at once when its connection closes: one that
// hangs stays.
func (s *doctorSick) gone() {
	t := s.t
	if err := s.servers[2].stop(t, 60*time.Second); err != nil && strings.HasPrefix(s.servers[2].name, "mqx") {
		t.Errorf("name server: %v", err)
	}
	s.p.find(t, s.command("--for", "0s", "--rule", "nameserver-silent"), nil, fault{"nameserver-silent", s.addrs[2], "does not answer"})
	if err := s.brokers[0].signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.p.find(t, s.command("--for", "0s", "--rule", "route-dead"), nil, fault{"route-dead", "doctor-a", "does not answer"})
}

// left are the rules of a directory: that of broker b, which is killed.
func (s *doctorSick) left() {
	t := s.t
	s.brokers[1].kill()
	dir := s.stores[1]
	files, err := filepath.Glob(filepath.Join(dir, "commitlog", "*"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%v, %v", files, err)
	}
	slices.Sort(files)
	log, err := os.OpenFile(files[0], os.O_RDWR, 0)
	if err == nil {
		_, err = log.WriteAt([]byte("not what was stored"), 200<<10)
		err = errors.Join(err, log.Close())
	}
	ago := time.Now().Add(-80 * time.Hour) // the oldest file has expired
	err = errors.Join(err, os.Chtimes(files[0], ago, ago), os.RemoveAll(filepath.Join(dir, "consumequeue", message.TopicTransCheckMaxTime)))
	if err != nil {
		t.Fatal(err)
	}
	s.p.find(t, []string{mqxBinary, "doctor", "store", dir}, nil,
		fault{"store-not-closed", dir, "abort"}, fault{"store-damaged", dir, ""}, fault{"store-derived", dir, message.TopicTransCheckMaxTime},
		fault{"store-offset-beyond", dir, "group doc_beyond"}, fault{"store-deleted-unread", dir, "group doc_old"}, fault{"store-expires-unread", dir, "group doc_fresh has read nothing of"},
	)
	kind := filepath.Join(dir, "consumequeue_rocksdb") // as of a broker with storeType=defaultRocksDB
	if err := os.Mkdir(kind, 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, kind, "CURRENT", "MANIFEST-000004\n")
	s.p.find(t, []string{mqxBinary, "doctor", "store", dir, "--quick"}, nil, fault{"store-kind", dir, "RocksDB"})
}
