package e2e

import (
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// diagnosis is one row of mqx doctor.
type diagnosis struct {
	Rule     string `json:"rule"`
	Severity string `json:"severity"`
	Verdict  string `json:"verdict"`
	Subject  string `json:"subject"`
	Evidence string `json:"evidence"`
}

// ofTheMachine are rules that speak of the machine that the tests run on: how full its
// disk is, and how long requests wait on it.
var ofTheMachine = []string{"disk-watermark", "rejected-queued", "rejected-locked", "rejected-appended", "rejected-flushed"}

// examine runs mqx doctor and returns its findings that are no notes.
func examine(t *testing.T, namesrv string, flags ...string) []diagnosis {
	t.Helper()
	args := append([]string{"doctor", "-n", namesrv, "-o", "json", "--severity", "warning", "--partial", "ok"}, flags...)
	for _, r := range ofTheMachine {
		args = append(args, "--skip", r)
	}
	text, err := exec.CommandContext(t.Context(), mqxBinary, args...).Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 6) {
		t.Fatalf("mqx doctor: %v", err)
	}
	var doc struct {
		Items []diagnosis `json:"items"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatalf("mqx doctor printed %q: %v", text, err)
	}
	return slices.DeleteFunc(doc.Items, func(d diagnosis) bool { return d.Verdict != "finding" })
}

// Faults of a live cluster, each made for real, are found, and nothing is found before.
// N043, N045 (by its marks), N097: what users could not see.
func TestDoctorFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	if reference() {
		t.Skip("it is mqx that is looked at")
	}
	var addrs []string
	var servers []*process
	for range 3 {
		port := freePort(t)
		p := mqxNameserver(t, port)
		p.cleanup(t)
		servers, addrs = append(servers, p), append(addrs, loopback(port))
	}
	all := strings.Join(addrs, ";")
	var brokers []*process
	for _, name := range []string{"doctor-a", "doctor-b"} {
		b := mqxBroker(t, brokerSpec{
			name: name, port: freePort(t), namesrv: all, store: filepath.Join(testDir(t, name), "store"),
			extra: []string{"autoCreateTopicEnable=false", "diskMaxUsedSpaceRatio=95"},
		})
		b.cleanup(t)
		brokers = append(brokers, b)
	}
	found := func(rule, subject, evidence string, flags ...string) {
		t.Helper()
		waitFor(t, 90*time.Second, "doctor to find "+rule, func() (bool, string) {
			list := examine(t, all, append([]string{"--rule", rule}, flags...)...)
			for _, d := range list {
				if d.Subject == subject && strings.Contains(d.Evidence, evidence) {
					return true, ""
				}
			}
			text, _ := json.Marshal(list)
			return false, string(text)
		})
	}
	waitFor(t, 60*time.Second, "both brokers at every name server", func() (bool, string) {
		list := examine(t, all, "--rule", "nameservers-disagree", "--for", "0s")
		text, err := output(mqxBinary, "admin", "broker", "ls", "-n", all, "-o", "name")
		return err == nil && len(list) == 0 && strings.Contains(text, "doctor-a") && strings.Contains(text, "doctor-b"), text
	})
	mqx(t, "admin", "topic", "create", "DOC", "--queues", "2", "-n", all, "--yes")
	mqx(t, "produce", "DOC", writeFile(t, testDir(t, "doc"), "line", "one\n"), "-n", all, "-o", "name")
	goPushConsumer(t, goSpec{Namesrv: all, Group: "doc", Instance: "doc1", Topic: "DOC"})

	// A healthy cluster: nothing, once the consumer has its queues.
	waitFor(t, 90*time.Second, "nothing to be found", func() (bool, string) {
		text, _ := json.Marshal(examine(t, all, "--for", "1s"))
		return string(text) == "[]" || string(text) == "null", string(text)
	})

	goPushConsumer(t, goSpec{Namesrv: all, Group: "doc_differ", Instance: "differ1", Topic: "DOC", Expression: "tag1"})
	goPushConsumer(t, goSpec{Namesrv: all, Group: "doc_differ", Instance: "differ2", Topic: "DOC", Expression: "tag2"})
	found("subscriptions-differ", "doc_differ", "tag1", "--for", "0s")

	mqx(t, "admin", "topic", "create", "DOC_ONE", "--queues", "1", "-b", "doctor-a", "-n", all, "--yes")
	found("topic-one-broker", "DOC_ONE", "only on doctor-a", "--for", "0s")
	goPushConsumer(t, goSpec{Namesrv: all, Group: "doc_many", Instance: "many1", Topic: "DOC_ONE"})
	goPushConsumer(t, goSpec{Namesrv: all, Group: "doc_many", Instance: "many2", Topic: "DOC_ONE"})
	found("client-no-queue", "doc_many", "1 of 2 members", "--for", "0s")

	mqx(t, "admin", "config", "set", "-b", "doctor-b", "fileReservedTime=48", "-n", all, "--yes")
	found("config-differs", "fileReservedTime", `doctor-b has "48"`, "--for", "0s")

	if err := servers[2].stop(t, 60*time.Second); err != nil {
		t.Errorf("name server: %v", err)
	}
	found("nameserver-silent", addrs[2], "does not answer", "--for", "0s")
	// A name server takes a broker out at once when its connection closes: one that hangs stays.
	if err := brokers[1].signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	found("route-dead", "doctor-b", "does not answer", "--for", "0s")
}
