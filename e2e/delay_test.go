package e2e

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
)

// delayedBroker is a broker whose levels are short.
func delayedBroker(t *testing.T, levels string) (namesrv string) {
	t.Helper()
	ns, br := freePort(t), freePort(t)
	mqxNameserver(t, ns).cleanup(t)
	p := mqxBroker(t, brokerSpec{port: br, namesrv: loopback(ns), store: filepath.Join(testDir(t, "delayed"), "store"), extra: []string{"messageDelayLevel=" + levels}})
	p.cleanup(t)
	waitRegistered(t, loopback(ns))
	return loopback(ns)
}

// arrived is a message as a consumer that fails got it.
type arrived struct {
	body  string
	times int32
	at    time.Time
	props map[string]string
}

// failingConsumer is a Go push consumer that wants every message once more.
func failingConsumer(t *testing.T, namesrv, group, topic string, orderly bool, most int32) func() []arrived {
	t.Helper()
	c, err := rocketmq.NewPushConsumer(
		consumer.WithNsResolver(primitive.NewPassthroughResolver(splitAddrs(namesrv))),
		consumer.WithGroupName(group), consumer.WithInstance(t.Name()+group), consumer.WithConsumerOrder(orderly),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset), consumer.WithMaxReconsumeTimes(most),
		consumer.WithSuspendCurrentQueueTimeMillis(200*time.Millisecond),
	)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var got []arrived
	err = c.Subscribe(topic, consumer.MessageSelector{}, func(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		mu.Lock()
		defer mu.Unlock()
		for _, m := range ms {
			got = append(got, arrived{string(m.Body), m.ReconsumeTimes, time.Now(), m.GetProperties()})
		}
		if orderly {
			return consumer.SuspendCurrentQueueAMoment, nil
		}
		return consumer.ConsumeRetryLater, nil
	})
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Shutdown() })
	return func() []arrived {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(got)
	}
}

// A message with a delay level is not there before its time.
func TestDelayedSend(t *testing.T) {
	t.Parallel()
	namesrv := delayedBroker(t, "1s 3s 4s")
	const topic = "E2E_DELAY"
	createTopic(t, namesrv, topic, 4)
	in := goPushConsumer(t, goSpec{Namesrv: namesrv, Group: "GID_e2e_delay", Instance: t.Name(), Topic: topic})
	p := goProducer(t, namesrv)
	due := map[string]time.Time{}
	for level, delay := range map[int]time.Duration{1: time.Second, 2: 3 * time.Second, 99: 4 * time.Second} {
		for i := range 5 {
			m := goMessage(topic, outgoing{Body: fmt.Sprintf("level %d, %d", level, i)})
			m.WithDelayTimeLevel(level)
			due[string(m.Body)] = time.Now().Add(delay)
			if _, err := p.SendSync(context.Background(), m); err != nil {
				t.Fatal(err)
			}
		}
	}
	waitFor(t, arrival, "the delayed messages", func() (bool, string) {
		n := len(in.received())
		return n >= len(due), fmt.Sprintf("%d of %d", n, len(due))
	})
	got := map[string]bool{}
	for _, m := range in.received() {
		body := string(m.Body)
		if early := due[body].Sub(time.UnixMilli(m.StoreTimestamp)); early > time.Millisecond {
			t.Errorf("%q came %v early", body, early)
		}
		if got[body] {
			t.Errorf("%q came twice", body)
		}
		got[body] = true
	}
}

// A consumer that fails a message gets it again after the delays of its
// attempts, then it lies in the dead letters with all it had.
func TestRetriesUntilDeadLetter(t *testing.T) {
	t.Parallel()
	namesrv := delayedBroker(t, "1s 1s 1s 2s 1s")
	for name, orderly := range map[string]bool{"concurrent": false, "orderly": true} {
		t.Run(name, func(t *testing.T) {
			topic, group := "E2E_RETRY_"+name, "GID_e2e_retry_"+name
			createTopic(t, namesrv, topic, 1)
			got := failingConsumer(t, namesrv, group, topic, orderly, 2)
			out := numbered("fail", 3)
			sendWithGo(t, namesrv, topic, map[string][]outgoing{"sync": out})
			waitTopic(t, namesrv, "%DLQ%"+group)
			var dead []incoming
			waitFor(t, arrival+30*time.Second, "the dead letters", func() (bool, string) {
				dead = sharedDriver(t).pull(t, namesrv, "%DLQ%"+group, "")
				return len(dead) >= len(out), fmt.Sprintf("%d of %d", len(dead), len(out))
			})
			if why := missing(out, dead); why != "" {
				t.Errorf("dead letters: %s", why)
			}
			for _, m := range dead {
				if m.Properties["RETRY_TOPIC"] != topic && !orderly || m.Properties["ORIGIN_MESSAGE_ID"] == "" {
					t.Errorf("a dead letter of %v", m.Properties)
				}
			}
			if orderly {
				return
			}
			attempts := map[string][]int32{}
			for _, a := range got() {
				attempts[a.body] = append(attempts[a.body], a.times)
			}
			for body, times := range attempts {
				if !slices.Equal(times, []int32{0, 1, 2}) {
					t.Errorf("%q came with counts %v", body, times)
				}
			}
		})
	}
}

// One make leaves delayed messages and retries in flight, the other delivers
// them: each once, none of them early.
func TestDelayedMessagesChangeHands(t *testing.T) {
	t.Parallel()
	for name, makes := range map[string][2]func(*testing.T, brokerSpec) *process{
		"mqx leaves them": {mqxBroker, apacheBroker}, "Apache leaves them": {apacheBroker, mqxBroker},
	} {
		t.Run(name, func(t *testing.T) {
			nsPort := freePort(t)
			namesrv := loopback(nsPort)
			mqxNameserver(t, nsPort).cleanup(t)
			spec := brokerSpec{port: freePort(t), namesrv: namesrv, store: filepath.Join(testDir(t, "handover"), "store"), extra: []string{"messageDelayLevel=1s 20s"}}
			const topic = "E2E_HANDOVER"
			first := makes[0](t, spec)
			first.cleanup(t)
			waitRegistered(t, namesrv)
			createTopic(t, namesrv, topic, 1)
			retries := leaveRetries(t, namesrv, loopback(spec.port))
			p := goProducer(t, namesrv)
			want := map[string]int{}
			var sentAt time.Time
			for _, level := range []int{1, 2} {
				for i := range 20 {
					m := goMessage(topic, outgoing{Body: fmt.Sprintf("level %d, %d", level, i)})
					m.WithDelayTimeLevel(level)
					sentAt = time.Now()
					if _, err := p.SendSync(context.Background(), m); err != nil {
						t.Fatal(err)
					}
					want[string(m.Body)] = 1
				}
			}
			waitFor(t, arrival, "the short delays", func() (bool, string) {
				n := len(sharedDriver(t).pull(t, namesrv, topic, ""))
				return n >= 20, fmt.Sprint(n)
			})
			takeOver(t, first, makes[1], spec, namesrv, topic)
			var all []incoming
			waitFor(t, arrival+30*time.Second, "all messages", func() (bool, string) {
				all = sharedDriver(t).pull(t, namesrv, topic, "")
				return len(all) >= len(want), fmt.Sprintf("%d of %d", len(all), len(want))
			})
			got := map[string]int{}
			for _, m := range all {
				got[string(m.Body)]++
				if strings.HasPrefix(string(m.Body), "level 2") && time.UnixMilli(m.StoreTimestamp).Before(sentAt.Add(19*time.Second)) {
					t.Errorf("%q was delivered early", m.Body)
				}
			}
			if !maps.Equal(want, got) {
				t.Errorf("delivered %v", got)
			}
			retries.takeOver(t)
		})
	}
}
