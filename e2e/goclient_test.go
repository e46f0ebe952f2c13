package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
)

func quietGoClient() { rlog.SetLogLevel("fatal") }

var producers atomic.Int64

func goProducer(t *testing.T, namesrv string, options ...producer.Option) rocketmq.Producer {
	t.Helper()
	options = append([]producer.Option{
		producer.WithNsResolver(primitive.NewPassthroughResolver(splitAddrs(namesrv))),
		producer.WithGroupName(fmt.Sprintf("e2e_go_producer_%d", producers.Add(1))), // one of a name in a process
		producer.WithInstanceName(t.Name()),
		producer.WithRetry(2),
		producer.WithSendMsgTimeout(10 * time.Second),
	}, options...)
	p, err := rocketmq.NewProducer(options...)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Shutdown(); err != nil {
			t.Errorf("producer: %v", err)
		}
	})
	return p
}

func goMessage(topic string, m outgoing) *primitive.Message {
	msg := primitive.NewMessage(topic, []byte(m.Body))
	if m.Tag != "" {
		msg.WithTag(m.Tag)
	}
	if m.Keys != "" {
		msg.WithKeys([]string{m.Keys})
	}
	for k, v := range m.Properties {
		msg.WithProperty(k, v)
	}
	return msg
}

// goSpec is a push consumer of the Go client, in this process or in one of its own.
type goSpec struct {
	Namesrv    string `json:"namesrv"`
	Group      string `json:"group"`
	Instance   string `json:"instance"`
	Topic      string `json:"topic"`
	Expression string `json:"expression"`
	Broadcast  bool   `json:"broadcast"`
	Orderly    bool   `json:"orderly"`
	SQL        bool   `json:"sql"`  // Expression is SQL92
	From       string `json:"from"` // "last" and "timestamp" instead of the first message
	Timestamp  string `json:"timestamp"`
	SlowMs     int    `json:"slowMs"` // a message takes so long
}

// goPush is a running push consumer and what it got.
type goPush struct {
	c  rocketmq.PushConsumer
	mu sync.Mutex
	in []incoming
}

func (g *goPush) received() []incoming {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]incoming(nil), g.in...)
}

func startGoPush(s goSpec, got func(incoming)) (rocketmq.PushConsumer, error) {
	model := consumer.Clustering
	if s.Broadcast {
		model = consumer.BroadCasting
	}
	from := consumer.ConsumeFromFirstOffset
	switch s.From {
	case "last":
		from = consumer.ConsumeFromLastOffset
	case "timestamp":
		from = consumer.ConsumeFromTimestamp
	}
	options := []consumer.Option{
		consumer.WithNsResolver(primitive.NewPassthroughResolver(splitAddrs(s.Namesrv))),
		consumer.WithGroupName(s.Group),
		consumer.WithInstance(s.Instance),
		consumer.WithConsumerModel(model),
		consumer.WithConsumerOrder(s.Orderly),
		consumer.WithConsumeFromWhere(from),
	}
	if s.Timestamp != "" {
		options = append(options, consumer.WithConsumeTimestamp(s.Timestamp))
	}
	c, err := rocketmq.NewPushConsumer(options...)
	if err != nil {
		return nil, err
	}
	selector := consumer.MessageSelector{}
	if s.Expression != "" {
		selector = consumer.MessageSelector{Type: consumer.TAG, Expression: s.Expression}
	}
	if s.SQL {
		selector.Type = consumer.SQL92
	}
	err = c.Subscribe(s.Topic, selector, func(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, m := range ms {
			got(fromGo(m))
			time.Sleep(time.Duration(s.SlowMs) * time.Millisecond)
		}
		return consumer.ConsumeSuccess, nil
	})
	if err != nil {
		return nil, err
	}
	return c, c.Start()
}

func fromGo(m *primitive.MessageExt) incoming {
	return incoming{
		Topic: m.Topic, QueueID: m.Queue.QueueId, QueueOffset: m.QueueOffset, PhysicalOffset: m.CommitLogOffset,
		MsgID: m.MsgId, Body: m.Body, Tag: m.GetTags(), Keys: m.GetKeys(),
		BornTimestamp: m.BornTimestamp, StoreTimestamp: m.StoreTimestamp, Properties: m.GetProperties(),
		At: time.Now().UnixMilli(),
	}
}

func goPushConsumer(t *testing.T, s goSpec) *goPush {
	t.Helper()
	g := &goPush{}
	c, err := startGoPush(s, func(m incoming) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.in = append(g.in, m)
	})
	if err != nil {
		t.Fatal(err)
	}
	g.c = c
	t.Cleanup(func() {
		if err := c.Shutdown(); err != nil {
			t.Errorf("consumer: %v", err)
		}
	})
	return g
}

// goConsumerEnv makes this test binary a consumer that can be killed. Each
// message it gets is one line of JSON on its stdout.
const goConsumerEnv = "MQX_E2E_GO_CONSUMER"

func goConsumerMain(spec string) int {
	quietGoClient()
	var s goSpec
	if err := json.Unmarshal([]byte(spec), &s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	if _, err := startGoPush(s, func(m incoming) {
		mu.Lock()
		defer mu.Unlock()
		_ = out.Encode(m)
	}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	select {} // until killed
}
