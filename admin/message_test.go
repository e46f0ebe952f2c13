package admin

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"mqx/client"
	"mqx/message"
	"mqx/remoting"
)

// sendOne sends one message and tells where it went.
func sendOne(t *testing.T, ns string, m *message.Message, o client.SendOptions) client.SendResult {
	t.Helper()
	p, err := client.NewProducer(client.ProducerConfig{Config: client.Config{NameServers: []string{ns}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	r, err := p.Send(t.Context(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFindMessages(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a")
	startBroker(t, ns, "b")
	c := newClient(t, ns)
	ctx := t.Context()
	create(t, c, Target{}, TopicSpec{Name: "ORDERS"})
	create(t, c, Target{Broker: "a"}, TopicSpec{Name: "OTHER"})
	var sent []client.SendResult
	for _, broker := range []string{"a", "b"} {
		m := &message.Message{Topic: "ORDERS", Body: []byte("on " + broker)}
		m.SetKeys("k1", "only-"+broker, "ключ") // N128
		sent = append(sent, sendOne(t, ns, m, client.SendOptions{Broker: broker, HasQueue: true, QueueID: 3}))
	}
	other := &message.Message{Topic: "OTHER", Body: []byte("other")}
	other.SetKeys("k1")
	sendOne(t, ns, other, client.SendOptions{})

	// By key, over brokers, and no other topic's; who was asked is told.
	var f *Found
	eventually(t, "both to be found by key", func() bool {
		var err error
		f, err = c.FindByKey(ctx, KeyQuery{Topic: "ORDERS", Key: "k1"})
		return err == nil && len(f.Messages) == 2
	})
	if len(f.Asked) != 2 || f.Asked[0].Name != "a" || len(f.Errors) > 0 || f.More || string(f.Messages[0].Body) != "on a" {
		t.Errorf("by key: %+v", f)
	}
	if f, err := c.FindByKey(ctx, KeyQuery{Topic: "ORDERS", Key: "k1", Target: Target{Broker: "b"}}); err != nil || len(f.Messages) != 1 || len(f.Asked) != 1 {
		t.Errorf("on b: %+v %v", f, err)
	}
	if f, err := c.FindByKey(ctx, KeyQuery{Topic: "ORDERS", Key: "ключ"}); err != nil || len(f.Messages) != 2 || f.Messages[0].StoreTimestamp > f.Messages[1].StoreTimestamp {
		t.Errorf("a key that is not ASCII: %+v %v", f, err)
	}
	// There is no window but the one that is asked for, which is exact and of store times (N102, N125, N126).
	if f, err := c.FindByKey(ctx, KeyQuery{Topic: "ORDERS", Key: "k1", End: time.Now().Add(-time.Hour)}); err != nil || len(f.Messages) > 0 {
		t.Errorf("an hour ago: %+v %v", f, err)
	}

	// By both kinds of id, with and without a topic (N112), and by the place.
	for _, text := range []string{sent[1].MessageID, sent[1].OffsetID, strings.ToLower(sent[1].OffsetID), "b:3:0"} {
		for _, topic := range []string{"ORDERS", ""} {
			r, err := ParseMessageRef(text, topic)
			if text == "b:3:0" && topic == "" {
				if err == nil {
					t.Error("a place without a topic is taken")
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			f, err := c.GetMessage(ctx, r)
			if err != nil || len(f.Messages) != 1 || len(f.Errors) > 0 || string(f.Messages[0].Body) != "on b" || f.Messages[0].Queue != (remoting.MessageQueue{Topic: "ORDERS", BrokerName: "b", QueueID: 3}) {
				t.Errorf("%s of %q: %+v %v", text, topic, f, err)
			}
		}
	}
	// What is not there says who was asked; an error is no empty answer (N110).
	for _, text := range []string{message.FormatOffsetID(netip.MustParseAddrPort(sent[0].Broker), 1<<20), "a:3:7", "C0000202270B4E0E2F2A9530AA7E0022"} {
		r, err := ParseMessageRef(text, "ORDERS")
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.GetMessage(ctx, r)
		var none *MessageNotFoundError
		if !errors.As(err, &none) || len(none.Asked) == 0 || !strings.Contains(none.Where(), "a (127.0.0.1:") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if r, err := ParseMessageRef("01a2b3c4d5e6f708090a0b0c0d0e0f1011", ""); err != nil || r.ID != "01A2B3C4D5E6F708090A0B0C0D0E0F1011" {
		t.Errorf("an id of a gRPC client: %+v %v", r, err)
	}
	for _, text := range []string{"", "xyz", "a:b", "a:1:-2", "a:x:1", strings.Repeat("G", 32)} {
		var id *message.IDError
		if _, err := ParseMessageRef(text, "T"); !errors.As(err, &id) {
			t.Errorf("%q: %v", text, err)
		}
	}
	// A broker that is gone is an error, not an empty answer.
	register(t, c, ns, "c", "gone", closedPort(t), 0, "ORDERS")
	f, err := c.FindByKey(ctx, KeyQuery{Topic: "ORDERS", Key: "nosuchkey"})
	if err != nil || len(f.Errors) != 1 || f.Errors[0].Broker != "gone" || len(f.Asked) != 3 {
		t.Errorf("with one gone: %+v %v", f, err)
	}
}

// An offset id whose address the broker no longer has finds the record all the same (N091).
func TestFindByOldAddress(t *testing.T) {
	ns := startNameServer(t)
	addr := startBroker(t, ns, "a")
	c := newClient(t, ns)
	create(t, c, Target{}, TopicSpec{Name: "ORDERS"})
	r := sendOne(t, ns, &message.Message{Topic: "ORDERS", Body: []byte("x")}, client.SendOptions{})
	// Another broker has taken the address over, in the tables of the name server.
	register(t, c, ns, "c", "b", closedPort(t), 0)
	ref, err := ParseMessageRef(r.OffsetID, "")
	if err != nil {
		t.Fatal(err)
	}
	f, err := c.GetMessage(t.Context(), ref)
	if err != nil || len(f.Messages) != 1 || len(f.Errors) > 0 || f.Messages[0].Queue.BrokerName != "a" {
		t.Errorf("%s: %+v %v", addr, f, err)
	}
}

func TestDecodeID(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	d, err := DecodeID("7F000002000079870000000000003F1F", now)
	if err != nil || !d.Offset || d.Host.String() != "127.0.0.2:31111" || d.PhysicalOffset != 16159 {
		t.Errorf("offset id: %+v %v", d, err)
	}
	d, err = DecodeID("C0000202270B4E0E2F2A9530AA7E0022", now)
	if err != nil || d.Offset || d.Unique.IP.String() != "192.0.2.2" || d.Unique.Counter != 0x22 {
		t.Errorf("unique id: %+v %v", d, err)
	}
	if _, err := DecodeID("nonsense", now); err == nil {
		t.Error("nonsense is an id")
	}
}

func TestTrackState(t *testing.T) {
	yes, no := true, false
	at := func(n int64) *int64 { return &n }
	push, pull := remoting.ConsumePassively, remoting.ConsumeActively
	retry, dead := message.RetryTopic("g"), message.DLQTopic("g")
	for _, c := range []struct {
		name string
		f    trackFacts
		want TrackState
	}{
		{"passed", trackFacts{kind: push, wants: &yes, committed: at(8), offset: 7}, TrackConsumed},
		{"not passed", trackFacts{kind: push, wants: &yes, committed: at(7), offset: 7}, TrackWaiting},
		{"passed, offline", trackFacts{committed: at(8), offset: 7}, TrackConsumed},
		{"not wanted", trackFacts{kind: push, wants: &no, committed: at(8), offset: 7}, TrackFiltered},
		{"not wanted, not passed", trackFacts{kind: push, wants: &no, committed: at(1), offset: 7}, TrackFiltered},
		{"broadcast", trackFacts{kind: push, model: remoting.Broadcasting, wants: &yes, offset: 7}, TrackBroadcast},
		{"pull without offset", trackFacts{kind: pull, wants: &yes, offset: 7}, TrackPull},
		{"pull with offset", trackFacts{kind: pull, wants: &yes, committed: at(8), offset: 7}, TrackConsumed},
		{"pop", trackFacts{kind: remoting.ConsumePop, wants: &yes, committed: at(8), offset: 7}, TrackPop},
		{"pop, not handed out", trackFacts{kind: remoting.ConsumePop, wants: &yes, committed: at(7), offset: 7}, TrackWaiting},
		{"no offset", trackFacts{kind: push, wants: &yes, offset: 7}, TrackWaiting},
		{"offset 0 of 0", trackFacts{kind: push, wants: &yes, committed: at(0), offset: 0}, TrackWaiting},
		{"silent broker", trackFacts{kind: push, wants: &yes, failed: true}, TrackUnknown},
		{"in the retry topic", trackFacts{kind: push, wants: &yes, committed: at(8), offset: 7, attempts: []attempt{{topic: retry, times: 1, stored: 5, passed: &no}}}, TrackRetrying},
		{"consumed from the retry topic", trackFacts{kind: push, wants: &yes, committed: at(8), offset: 7, attempts: []attempt{{topic: retry, times: 1, stored: 5, passed: &yes}}}, TrackConsumed},
		{"given back again", trackFacts{kind: push, committed: at(8), offset: 7, attempts: []attempt{{topic: retry, times: 1, stored: 5, passed: &yes}, {topic: message.TopicSchedule, times: 2, stored: 6}}}, TrackRetrying},
		{"dead", trackFacts{kind: push, committed: at(8), offset: 7, attempts: []attempt{{topic: dead, times: 3, stored: 9, place: "p"}, {topic: retry, times: 2, stored: 5, passed: &yes}}}, TrackDeadLetter},
		{"dead and replayed", trackFacts{kind: push, committed: at(8), offset: 7, attempts: []attempt{{topic: dead, times: 3, stored: 9, place: "p"}, {topic: retry, stored: 15, passed: &yes}}}, TrackConsumed},
		{"retried, how far is not known", trackFacts{kind: push, committed: at(8), offset: 7, attempts: []attempt{{topic: retry, times: 1, stored: 5}}}, TrackUnknown},
	} {
		if got, why := trackState(&c.f); got != c.want || why == "" {
			t.Errorf("%s: %s (%s), want %s", c.name, got, why, c.want)
		}
	}
}

func TestTrack(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a")
	c := newClient(t, ns)
	create(t, c, Target{}, TopicSpec{Name: "ORDERS", ReadQueues: 1, WriteQueues: 1})
	sendOne(t, ns, &message.Message{Topic: "ORDERS", Body: []byte("first")}, client.SendOptions{})
	second := sendOne(t, ns, &message.Message{Topic: "ORDERS", Body: []byte("second")}, client.SendOptions{})
	consumeOne(t, ns, "ORDERS", "billing")
	get := func(text string) *client.Received {
		ref, err := ParseMessageRef(text, "ORDERS")
		if err != nil {
			t.Fatal(err)
		}
		f, err := c.GetMessage(t.Context(), ref)
		if err != nil || len(f.Messages) != 1 {
			t.Fatalf("%s: %+v %v", text, f, err)
		}
		return f.Messages[0]
	}
	for text, want := range map[string]TrackState{"a:0:0": TrackConsumed, second.OffsetID: TrackWaiting} {
		ts, errs, err := c.Track(t.Context(), get(text))
		if err != nil || len(errs) > 0 || len(ts) != 1 || ts[0].Group != "billing" || ts[0].State != want || ts[0].Online || *ts[0].Committed != 1 || *ts[0].Retries != 0 {
			t.Errorf("%s: %+v %v %v", text, ts, errs, err)
		}
	}
}
