package e2e

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mqx/remoting"
)

// An ordered topic leaves Apache's broker, which takes what is sent to a read-only queue: a message that comes behind the seal takes
// the plan back and is read before the target is; once the target is read, the broker refuses a producer with an old route.
func TestOrderedLeavesApache(t *testing.T) {
	if !allMigrations() {
		t.Skip("MQX_E2E_ALL=1 runs it: it needs a broker of Apache's")
	}
	t.Parallel()
	const topic, group, key = "E2E_SHUT", "e2e_shut", "key"
	r := newMoveRig(t, true)
	r.mqx("admin", "topic", "create", topic, "-b", "broker-a", "--queues", "4", "--order", "--yes")
	java := startDriver(t, "-Xmx256m", "-Ddriver.poll=1000", "-Drocketmq.client.rebalance.waitInterval=1000")
	java.cleanup(t)
	received := pushOf(t, java, cluster{namesrv: r.namesrv}, topic, group, map[string]any{"orderly": true})
	stale := startDriver(t, "-Xmx256m", "-Ddriver.poll=3600000")
	stale.cleanup(t)
	n := 0
	send := func(who *driver) error {
		body := fmt.Sprintf("%06d", n)
		err := who.try("send", map[string]any{
			"namesrv": r.namesrv, "topic": topic, "mode": "shard", "shard": key, "messages": []outgoing{{Body: base64.StdEncoding.EncodeToString([]byte(body))}},
		}, nil)
		if err == nil {
			n++
		}
		return err
	}
	arrived := func() {
		t.Helper()
		waitFor(t, arrival, "every message in its order", func() (bool, string) {
			got := received()
			for i := range got {
				if want := fmt.Sprintf("%06d", i); string(got[i].Body) != want {
					t.Fatalf("message %d is %s", i, got[i].Body)
				}
			}
			return len(got) == n, fmt.Sprint(len(got), " of ", n)
		})
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		must(send(stale))
	}
	arrived()
	r.mqx("admin", "queue", "migrate", "start", "-t", topic, "--source", "broker-a", "--target", "broker-d", "--route-interval", "1s", "--yes", "--stop-at", "DRAINED")
	must(send(stale)) // Apache's broker takes it
	out := r.mqx("admin", "queue", "migrate", "resume", topic, "--yes", "-v")
	if !strings.Contains(out, "was written after the seal") || !strings.Contains(out, "\nSEALED") {
		t.Errorf("a message behind the seal: %s", out)
	}
	r.hasConfig(topic, ",broker-a,*,0,0,r,")
	if err := send(stale); err == nil || !strings.Contains(err.Error(), "illegal") {
		t.Fatalf("a send with an old route: %v", err)
	}
	for range 20 {
		must(send(java))
	}
	arrived()
	r.mqx("admin", "queue", "migrate", "finish", topic, "--confirm", topic)
	if config := r.mqx("admin", "topic", "get", topic, "--show", "config", "-o", "csv"); strings.Contains(config, "broker-a") || !strings.Contains(config, "broker-d") {
		t.Errorf("the topic is now on:\n%s", config)
	}
}

// What a sealed broker of mqx hands on to one of Apache's that asks for signatures is signed by the broker itself, where it has an
// account (innerClientAuthenticationCredentials); where it has none the plan says so before, and the sender is told.
func TestForwardToACL(t *testing.T) {
	if !allMigrations() {
		t.Skip("MQX_E2E_ALL=1 runs it: it needs a broker of Apache's")
	}
	t.Parallel()
	const name, password = "rocketmq", "12345678"
	account := fmt.Sprintf(`innerClientAuthenticationCredentials={"accessKey":"%s","secretKey":"%s"}`, name, password)
	ns := freePort(t)
	dir := testDir(t, "mover")
	r := &moveRig{
		t: t, namesrv: loopback(ns), specs: map[string]brokerSpec{}, running: map[string]*process{},
		state: []string{"HOME=" + dir, "XDG_STATE_HOME=" + dir, "XDG_CONFIG_HOME=" + dir},
	}
	mqxNameserver(t, ns).cleanup(t)
	const providers = "org.apache.rocketmq.auth."
	for broker, extra := range map[string][]string{
		"broker-a": {account}, "broker-b": nil, "broker-d": {
			"authenticationEnabled=true", "authorizationEnabled=true", account,
			"authenticationProvider=" + providers + "authentication.provider.DefaultAuthenticationProvider",
			"authenticationMetadataProvider=" + providers + "authentication.provider.LocalAuthenticationMetadataProvider",
			"authorizationProvider=" + providers + "authorization.provider.DefaultAuthorizationProvider",
			"authorizationMetadataProvider=" + providers + "authorization.provider.LocalAuthorizationMetadataProvider",
			fmt.Sprintf(`initAuthenticationUser={"username":"%s","password":"%s"}`, name, password),
		},
	} {
		r.specs[broker] = brokerSpec{
			name: broker, port: freePort(t), namesrv: r.namesrv, store: filepath.Join(testDir(t, "store"), "store"),
			extra: append(extra, "autoCreateTopicEnable=false"),
		}
		begin := mqxBroker
		if broker == "broker-d" {
			begin = apacheBroker
		}
		r.running[broker] = begin(t, r.specs[broker])
		r.running[broker].cleanup(t)
	}
	keys := []string{"--access-key", "text:" + name, "--secret-key", "text:" + password}
	for broker := range r.specs {
		r.mqx(append([]string{"wait", "broker", broker, "--within", "60s"}, keys...)...)
	}
	for broker, topic := range map[string]string{"broker-a": "E2E_SIGNED", "broker-b": "E2E_BARE"} {
		r.mqx(append([]string{"admin", "topic", "create", topic, "-b", broker, "--queues", "1", "--yes"}, keys...)...)
		out := ""
		waitFor(t, 120*time.Second, "the move to be planned", func() (bool, string) { // a JVM that has just started takes its time to answer
			var code int
			out, code = r.try(append([]string{"admin", "queue", "migrate", "start", "-t", topic, "--source", broker, "--target", "broker-d", "--route-interval", "1s", "--yes"}, keys...)...)
			if code != 0 && !strings.Contains(out, "cannot plan the move") { // it was begun: another start could not tell why it failed
				t.Fatalf("the move from %s ended with %d:\n%s", broker, code, out)
			}
			return code == 0, out
		})
		if told := strings.Contains(out, "innerClientAuthenticationCredentials"); told != (broker == "broker-b") {
			t.Errorf("the plan from %s says:\n%s", broker, out)
		}
		resp := rawCall(t, loopback(r.specs[broker].port), remoting.ReqSendMessageV2, &remoting.SendMessageHeader{
			ProducerGroup: "e2e_signed", Topic: topic, DefaultTopic: "TBW102", DefaultTopicQueueNums: 4, BornTimestamp: time.Now().UnixMilli(),
		}, []byte("handed on"))
		if ok := resp.Code == remoting.RespSuccess; ok != (broker == "broker-a") {
			t.Errorf("a send to %s with an old route: %d %s", broker, resp.Code, resp.Remark)
		}
	}
	out := r.mqx(append([]string{"admin", "topic", "get", "E2E_SIGNED", "--show", "queues", "--match", "broker=broker-d", "-o", "template={{.maxOffset}}"}, keys...)...)
	if strings.TrimSpace(out) != "1" {
		t.Errorf("the target has %q", out)
	}
}
