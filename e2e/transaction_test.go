package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"

	rocketmq "github.com/apache/rocketmq-client-go/v2"

	"mqx/message"
)

// transactionLines make checks quick.
var transactionLines = []string{"transactionCheckInterval=2000", "transactionTimeOut=1000", "transactionOpBatchInterval=500"}

// txBodies are transactions whose body says how they end: at once, and when the
// broker asks; c commits, r rolls back, u does not know.
func txBodies(prefix string) []string {
	var out []string
	for _, kind := range []string{"c/c", "r/r", "u/c", "u/r", "u/u", "c/r"} {
		for i := range 3 {
			out = append(out, fmt.Sprintf("%s %s %d", kind, prefix, i))
		}
	}
	return out
}

// delivered are those that consumers must get.
func delivered(bodies []string) []string {
	out := slices.DeleteFunc(slices.Clone(bodies), func(b string) bool { return !strings.HasPrefix(b, "c/") && !strings.HasPrefix(b, "u/c") })
	slices.Sort(out)
	return out
}

type goTransactions struct {
	mu      sync.Mutex
	checked []string
}

func txState(body []byte, part int) primitive.LocalTransactionState {
	word, _, _ := strings.Cut(string(body), " ")
	switch strings.Split(word, "/")[part] {
	case "c":
		return primitive.CommitMessageState
	case "r":
		return primitive.RollbackMessageState
	}
	return primitive.UnkonwnState
}

func (g *goTransactions) ExecuteLocalTransaction(m *primitive.Message) primitive.LocalTransactionState {
	return txState(m.Body, 0)
}

func (g *goTransactions) CheckLocalTransaction(m *primitive.MessageExt) primitive.LocalTransactionState {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.checked = append(g.checked, string(m.Body))
	return txState(m.Body, 1)
}

func (g *goTransactions) asked() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.checked)
}

func goTransactional(t *testing.T, namesrv, group string) (rocketmq.TransactionProducer, *goTransactions) {
	t.Helper()
	g := &goTransactions{}
	p, err := rocketmq.NewTransactionProducer(g,
		producer.WithNsResolver(primitive.NewPassthroughResolver(splitAddrs(namesrv))), producer.WithGroupName(group),
		producer.WithInstanceName(group), producer.WithSendMsgTimeout(10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Shutdown() })
	return p, g
}

// javaTransactions sends in transactions of the Java client.
func javaTransactions(t *testing.T, namesrv, group, topic string, bodies []string) {
	t.Helper()
	var ms []map[string]string
	for _, b := range bodies {
		ms = append(ms, map[string]string{"body": base64.StdEncoding.EncodeToString([]byte(b))})
	}
	sharedDriver(t).call(t, "transactions", map[string]any{"namesrv": namesrv, "group": group, "topic": topic, "messages": ms}, nil)
}

func javaChecked(t *testing.T, part string) []string {
	t.Helper()
	var all []string
	sharedDriver(t).call(t, "transactionsChecked", nil, &all)
	return slices.DeleteFunc(all, func(b string) bool { return !strings.Contains(b, part) })
}

// waitDelivered waits until a topic holds what it must, and nothing else.
func waitDelivered(t *testing.T, namesrv, topic string, want []string) []incoming {
	t.Helper()
	var got []incoming
	waitFor(t, 60*time.Second, "the messages of "+topic, func() (bool, string) {
		got = sharedDriver(t).pull(t, namesrv, topic, "")
		return len(got) >= len(want), fmt.Sprintf("%d of %d", len(got), len(want))
	})
	texts := bodies(got)
	slices.Sort(texts)
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("%s (-want +got):\n%s", topic, diff)
	}
	return got
}

// Transactions of both clients: what commits is delivered once, what rolls back
// never; what does not know is asked about.
func TestTransactionsOfClients(t *testing.T) {
	t.Parallel()
	nsPort, brPort := freePort(t), freePort(t)
	namesrv := loopback(nsPort)
	mqxNameserver(t, nsPort).cleanup(t)
	mqxBroker(t, brokerSpec{port: brPort, namesrv: namesrv, store: filepath.Join(testDir(t, "tx"), "store"), extra: transactionLines}).cleanup(t)
	waitRegistered(t, namesrv)
	createTopic(t, namesrv, "TxGo", 2)
	createTopic(t, namesrv, "TxJava", 2)

	p, g := goTransactional(t, namesrv, "tx_go_"+fmt.Sprint(brPort))
	ofGo := txBodies("go")
	for _, b := range ofGo {
		if _, err := p.SendMessageInTransaction(context.Background(), primitive.NewMessage("TxGo", []byte(b))); err != nil {
			t.Fatal(err)
		}
	}
	ofJava := txBodies("java" + fmt.Sprint(brPort))
	group := "tx_java_" + fmt.Sprint(brPort)
	javaTransactions(t, namesrv, group, "TxJava", ofJava)
	for _, m := range append(waitDelivered(t, namesrv, "TxGo", delivered(ofGo)), waitDelivered(t, namesrv, "TxJava", delivered(ofJava))...) {
		for _, mark := range []string{"REAL_TOPIC", "REAL_QID", "TRAN_PREPARED_QUEUE_OFFSET"} {
			if v, ok := m.Properties[mark]; ok {
				t.Errorf("a consumer gets %s=%s", mark, v)
			}
		}
		if m.Properties["__transactionId__"] == "" {
			t.Errorf("a committed message without its transaction id: %v", m.Properties)
		}
	}
	waitFor(t, 30*time.Second, "checks", func() (bool, string) {
		n := len(g.asked())
		return n >= 9 && len(javaChecked(t, ofJava[0][4:12])) >= 9, fmt.Sprint(n)
	})
	for _, b := range append(g.asked(), javaChecked(t, fmt.Sprint(brPort))...) {
		if strings.HasPrefix(b, "c/") || strings.HasPrefix(b, "r/") {
			t.Errorf("asked about what has ended: %s", b)
		}
	}
	sharedDriver(t).call(t, "transactionsStop", map[string]any{"namesrv": namesrv, "group": group}, nil)
}

// A transaction whose producer never knows is asked about as often as the broker is told to, and then lies in
// TRANS_CHECK_MAX_TIME_TOPIC, once and not to be asked about again; consumers do not get it.
func TestTransactionsGivenUp(t *testing.T) {
	t.Parallel()
	c := startCluster(t, "transactionCheckInterval=1000", "transactionTimeOut=500", "transactionOpBatchInterval=200", "transactionCheckMax=2")
	const topic = "TxGivenUp"
	createTopic(t, c.namesrv, topic, 2)
	mark := fmt.Sprint(time.Now().UnixNano())
	group, goGroup := "tx_given_"+mark, "tx_given_go_"+mark
	ofJava, ofGo := []string{"c/c " + mark, "u/u " + mark + " 0", "u/u " + mark + " 1"}, []string{"c/c go " + mark, "u/u go " + mark}
	javaTransactions(t, c.namesrv, group, topic, ofJava)
	defer sharedDriver(t).call(t, "transactionsStop", map[string]any{"namesrv": c.namesrv, "group": group}, nil)
	p, g := goTransactional(t, c.namesrv, goGroup)
	for _, b := range ofGo {
		if _, err := p.SendMessageInTransaction(context.Background(), primitive.NewMessage(topic, []byte(b))); err != nil {
			t.Fatal(err)
		}
	}
	want := slices.DeleteFunc(slices.Concat(ofJava, ofGo), func(b string) bool { return !strings.HasPrefix(b, "u/") })
	slices.Sort(want)
	waitTopic(t, c.namesrv, message.TopicTransCheckMaxTime)
	waitDelivered(t, c.namesrv, message.TopicTransCheckMaxTime, want)
	checks := func() map[string]int {
		times := map[string]int{}
		for _, b := range append(g.asked(), javaChecked(t, mark)...) {
			times[strings.TrimSuffix(b, " "+topic)]++ // Java's names the topic too
		}
		return times
	}
	asked := checks()
	for _, b := range want {
		if asked[b] != 2 {
			t.Errorf("%q was asked about %d times, want 2", b, asked[b])
		}
	}
	time.Sleep(3 * time.Second) // three rounds of checks
	if again := checks(); !maps.Equal(again, asked) {
		t.Errorf("checks %v, and after they were given up %v", asked, again)
	}
	waitDelivered(t, c.namesrv, message.TopicTransCheckMaxTime, want)
	waitDelivered(t, c.namesrv, topic, []string{"c/c " + mark, "c/c go " + mark})
}

// One make leaves half messages in its store, some of them ended, and the other
// goes on with them: each is delivered once or not at all.
func TestTransactionsChangeHands(t *testing.T) {
	t.Parallel()
	for name, makes := range map[string][2]func(*testing.T, brokerSpec) *process{
		"Apache goes on": {mqxBroker, apacheBroker},
		"mqx goes on":    {apacheBroker, mqxBroker},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nsPort, brPort := freePort(t), freePort(t)
			namesrv := loopback(nsPort)
			mqxNameserver(t, nsPort).cleanup(t)
			spec := brokerSpec{port: brPort, namesrv: namesrv, store: filepath.Join(testDir(t, "txhands"), "store"), extra: []string{"transactionCheckInterval=600000", "transactionOpBatchInterval=500"}}
			first := makes[0](t, spec)
			first.cleanup(t)
			waitRegistered(t, namesrv)
			createTopic(t, namesrv, "Tx", 2)
			group := "tx_hands_" + fmt.Sprint(brPort)
			sent := txBodies("hands")
			javaTransactions(t, namesrv, group, "Tx", sent)
			early := slices.DeleteFunc(delivered(sent), func(b string) bool { return strings.HasPrefix(b, "u/") })
			waitDelivered(t, namesrv, "Tx", early)
			time.Sleep(time.Second) // the op messages are written behind the ends
			sharedDriver(t).call(t, "transactionsStop", map[string]any{"namesrv": namesrv, "group": group}, nil)
			if err := first.stop(t, stopLimit); err != nil && strings.HasPrefix(first.name, "mqx") {
				t.Fatal(err)
			}
			waitGone(t, namesrv)
			spec.extra = transactionLines
			makes[1](t, spec).cleanup(t)
			waitRegistered(t, namesrv)
			waitTopic(t, namesrv, "Tx")
			before := len(javaChecked(t, "hands"))
			again := "c/c hands again" // a producer shows itself to the brokers that it sends to
			javaTransactions(t, namesrv, group, "Tx", []string{again})
			sent = append(sent, again)
			waitDelivered(t, namesrv, "Tx", delivered(sent))
			waitFor(t, 60*time.Second, "checks of what does not know", func() (bool, string) {
				n := len(javaChecked(t, "hands")) - before
				return n >= 9, fmt.Sprint(n)
			})
			for _, b := range javaChecked(t, "hands")[before:] {
				if !strings.HasPrefix(b, "u/") {
					t.Errorf("asked about what has ended: %s", b)
				}
			}
			waitDelivered(t, namesrv, "Tx", delivered(sent))
			sharedDriver(t).call(t, "transactionsStop", map[string]any{"namesrv": namesrv, "group": group}, nil)
		})
	}
}
