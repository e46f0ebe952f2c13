package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// arrival is how long messages may take to reach a push consumer: it has to
// start, learn the route and get its queues first.
const arrival = 90 * time.Second

// kinds are the ways to send, each with messages that tell it apart.
func kinds() map[string][]outgoing {
	big := strings.Repeat("compress me, please 压缩 ", 1000)
	compressed := numbered("compressed", 5)
	for i := range compressed {
		compressed[i].Body += big
	}
	keyed, tagged := numbered("keyed", 6), numbered("tagged", 8)
	for i := range keyed {
		keyed[i].Keys = fmt.Sprintf("order-%d", i)
		keyed[i].Properties = map[string]string{"区域": "华东", "attempt": fmt.Sprint(i)}
	}
	for i := range tagged {
		tagged[i].Tag = []string{"created", "paid"}[i%2]
	}
	return map[string][]outgoing{
		"sync": numbered("sync", 20), "async": numbered("async", 50), "oneway": numbered("oneway", 20),
		"batch": numbered("batch", 30), "compressed": compressed, "keyed": keyed, "tagged": tagged,
	}
}

func allOf(kinds map[string][]outgoing) []outgoing {
	var all []outgoing
	for _, ms := range kinds {
		all = append(all, ms...)
	}
	return all
}

// sendWithGo sends every kind with the official Go client.
func sendWithGo(t *testing.T, namesrv, topic string, kinds map[string][]outgoing) {
	t.Helper()
	p := goProducer(t, namesrv, producer.WithCompressMsgBodyOverHowmuch(4096))
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	check := func(r *primitive.SendResult, err error) {
		t.Helper()
		if err != nil || r.Status != primitive.SendOK {
			t.Fatalf("send: %v, %v", r, err)
		}
	}
	for kind, ms := range kinds {
		switch kind {
		case "async":
			var all sync.WaitGroup
			var mu sync.Mutex
			var failed []error
			all.Add(len(ms))
			for _, m := range ms {
				err := p.SendAsync(ctx, func(_ context.Context, r *primitive.SendResult, err error) {
					defer all.Done()
					if err != nil || r.Status != primitive.SendOK {
						mu.Lock()
						failed = append(failed, fmt.Errorf("%v, %w", r, err))
						mu.Unlock()
					}
				}, goMessage(topic, m))
				if err != nil {
					t.Fatal(err)
				}
			}
			all.Wait()
			if len(failed) > 0 {
				t.Fatalf("asynchronous sends failed: %v", failed)
			}
		case "oneway":
			for _, m := range ms {
				if err := p.SendOneWay(ctx, goMessage(topic, m)); err != nil {
					t.Fatal(err)
				}
			}
		case "batch":
			batch := make([]*primitive.Message, len(ms))
			for i, m := range ms {
				batch[i] = goMessage(topic, m)
			}
			check(p.SendSync(ctx, batch...))
		default:
			for _, m := range ms {
				check(p.SendSync(ctx, goMessage(topic, m)))
			}
		}
	}
}

// sendWithJava sends every kind with Apache's Java client.
func sendWithJava(t *testing.T, namesrv, topic string, kinds map[string][]outgoing) {
	t.Helper()
	d := sharedDriver(t)
	for kind, ms := range kinds {
		mode := kind
		switch kind {
		case "compressed", "keyed", "tagged":
			mode = "sync"
		}
		d.send(t, namesrv, topic, mode, ms, nil)
	}
}

// checkContents: properties, keys and tags came as they were sent.
func checkContents(t *testing.T, want []outgoing, got []incoming) {
	t.Helper()
	byBody := map[string]incoming{}
	for _, m := range got {
		byBody[string(m.Body)] = m
	}
	for _, w := range want {
		g := byBody[w.Body]
		if g.Tag != w.Tag || g.Keys != w.Keys {
			t.Errorf("message %q: tag %q keys %q, want %q %q", short(w.Body), g.Tag, g.Keys, w.Tag, w.Keys)
		}
		for k, v := range w.Properties {
			if g.Properties[k] != v {
				t.Errorf("message %q: property %q is %q, want %q", short(w.Body), k, g.Properties[k], v)
			}
		}
	}
}

// Both clients send in every way; both read it all back, by pulling and as push
// consumers, and so does mqx consume.
func TestSendAndReceive(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	for name, send := range map[string]func(*testing.T, string, string, map[string][]outgoing){"Go": sendWithGo, "Java": sendWithJava} {
		t.Run(name, func(t *testing.T) {
			topic := "E2E_SEND_" + strings.ToUpper(name)
			createTopic(t, c.namesrv, topic, 4)
			kinds := kinds()
			want := allOf(kinds)
			send(t, c.namesrv, topic, kinds)
			waitFor(t, 30*time.Second, "one-way messages to be stored", func() (bool, string) {
				why := missing(want, mqxConsume(t, c.namesrv, topic))
				return why == "", why
			})
			t.Run("pull", func(t *testing.T) {
				java := sharedDriver(t).pull(t, c.namesrv, topic, "")
				for reader, got := range map[string][]incoming{
					"Go": goPull(t, c.namesrv, topic, queueEnds(java)), "Java": java, "mqx": mqxConsume(t, c.namesrv, topic),
				} {
					if why := missing(want, got); why != "" {
						t.Errorf("%s reader: %s", reader, why)
					}
					checkContents(t, want, got)
					checkOffsets(t, got)
				}
			})
			t.Run("push", func(t *testing.T) {
				g := goPushConsumer(t, goSpec{Namesrv: c.namesrv, Group: "e2e_push_go_" + name, Instance: "i", Topic: topic})
				id := "push-" + name
				sharedDriver(t).call(t, "push", map[string]any{"id": id, "namesrv": c.namesrv, "group": "e2e_push_java_" + name, "topic": topic}, nil)
				defer sharedDriver(t).call(t, "stop", map[string]any{"id": id}, nil)
				waitFor(t, arrival, "all messages at the Go push consumer", func() (bool, string) {
					why := lost(want, g.received())
					return why == "", why
				})
				waitFor(t, arrival, "all messages at the Java push consumer", func() (bool, string) {
					why := lost(want, javaReceived(t, id))
					return why == "", why
				})
				checkContents(t, want, g.received())
				checkContents(t, want, javaReceived(t, id))
			})
			t.Run("tag filter", func(t *testing.T) {
				var paid []outgoing
				for _, m := range want {
					if m.Tag == "paid" {
						paid = append(paid, m)
					}
				}
				if why := missing(paid, sharedDriver(t).pull(t, c.namesrv, topic, "paid || nothing")); why != "" {
					t.Errorf("Java reader: %s", why)
				}
				g := goPushConsumer(t, goSpec{Namesrv: c.namesrv, Group: "e2e_tag_go_" + name, Instance: "t", Topic: topic, Expression: "paid"})
				waitFor(t, arrival, "the tagged messages at the Go push consumer", func() (bool, string) {
					why := missing(paid, g.received())
					return why == "", why
				})
			})
		})
	}
}

func javaReceived(t *testing.T, id string) []incoming {
	t.Helper()
	var got []incoming
	sharedDriver(t).call(t, "received", map[string]any{"id": id}, &got)
	return got
}

// mqxConsume reads a topic with mqx's own command.
func mqxConsume(t *testing.T, namesrv, topic string, flags ...string) []incoming {
	t.Helper()
	var got []incoming
	for line := range strings.Lines(mqx(t, append([]string{"consume", topic, "-n", namesrv, "-o", "ndjson", "--body", "base64"}, flags...)...)) {
		var m struct {
			incoming
			Keys []string `json:"keys"`
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("mqx consume printed %q: %v", line, err)
		}
		m.incoming.Keys = strings.Join(m.Keys, " ")
		got = append(got, m.incoming)
	}
	return got
}

// A broadcast group: every member gets everything.
func TestBroadcast(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	const topic = "E2E_BROADCAST"
	createTopic(t, c.namesrv, topic, 4)
	want := numbered("broadcast", 40)
	sharedDriver(t).send(t, c.namesrv, topic, "sync", want, nil)
	members := map[string]func() []incoming{}
	for i := range 2 {
		id := fmt.Sprintf("bc-java-%d", i)
		sharedDriver(t).call(t, "push", map[string]any{"id": id, "namesrv": c.namesrv, "group": "e2e_bc_java", "topic": topic, "broadcast": true}, nil)
		t.Cleanup(func() { sharedDriver(t).call(t, "stop", map[string]any{"id": id}, nil) })
		members[id] = func() []incoming { return javaReceived(t, id) }
	}
	for i := range 2 {
		id := fmt.Sprintf("bc-go-%d", i)
		g := goPushConsumer(t, goSpec{Namesrv: c.namesrv, Group: "e2e_bc_go", Instance: fmt.Sprintf("%s-%d", t.Name(), i), Topic: topic, Broadcast: true})
		members[id] = g.received
	}
	for id, received := range members {
		waitFor(t, arrival, "all messages at broadcast member "+id, func() (bool, string) {
			why := missing(want, received())
			return why == "", why
		})
	}
}

// One queue, one order: messages with one sharding key arrive as they were sent.
func TestOrderly(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	const topic = "E2E_ORDERLY"
	createTopic(t, c.namesrv, topic, 4)
	want := numbered("orderly", 60)
	results := sharedDriver(t).send(t, c.namesrv, topic, "shard", want, map[string]any{"shard": "customer-7"})
	for _, r := range results {
		if r.QueueID != results[0].QueueID {
			t.Fatalf("one sharding key went to queues %d and %d", results[0].QueueID, r.QueueID)
		}
	}
	g := goPushConsumer(t, goSpec{Namesrv: c.namesrv, Group: "e2e_orderly_go", Instance: "o", Topic: topic, Orderly: true})
	sharedDriver(t).call(t, "push", map[string]any{"id": "orderly", "namesrv": c.namesrv, "group": "e2e_orderly_java", "topic": topic, "orderly": true}, nil)
	defer sharedDriver(t).call(t, "stop", map[string]any{"id": "orderly"}, nil)
	for name, received := range map[string]func() []incoming{"Go": g.received, "Java": func() []incoming { return javaReceived(t, "orderly") }} {
		waitFor(t, arrival, "all messages at the orderly "+name+" consumer", func() (bool, string) {
			why := missing(want, received())
			return why == "", why
		})
		order := bodies(received())
		if !slices.IsSorted(order) {
			t.Errorf("the orderly %s consumer got them out of order: %v", name, head(order))
		}
	}
}
