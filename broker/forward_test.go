package broker

import (
	"strings"
	"testing"

	"mqx/message"
	"mqx/remoting"
)

func TestParseForward(t *testing.T) {
	for _, tt := range []struct {
		text  string
		queue int32
		want  forwardSlot
		ok    bool // it is sealed
	}{
		{"0|d:4", 3, forwardSlot{"d", 3}, true},
		{"0|d:2;e:1", 4, forwardSlot{"d", 1}, true},
		{"0|d:2;e:1", 2, forwardSlot{"e", 0}, true},
		{"2|b:2", 1, forwardSlot{}, false},
		{"2|b:2", 5, forwardSlot{"b", 1}, true},
	} {
		f, err := parseForward(tt.text)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		if got, ok := f.slot(tt.queue); got != tt.want || ok != tt.ok {
			t.Errorf("%s: queue %d goes to %v, %v", tt.text, tt.queue, got, ok)
		}
	}
	for _, text := range []string{"", "0", "|d:4", "-1|d:4", "0|", "0|d", "0|d:0", "0|d:x", "0|:4", "0|d:99999999", "x|d:4"} {
		if f, err := parseForward(text); err == nil {
			t.Errorf("%q is %v", text, f)
		}
	}
}

// sealing is a broker with a sealed topic and the one that has its queues now.
type sealing struct{ s, d *running }

func startSealing(t *testing.T) sealing {
	t.Helper()
	begin := func(name string) *running {
		cfg := testConfig(t.TempDir())
		cfg.BrokerName = name
		return start(t, cfg)
	}
	p := sealing{begin("s"), begin("d")}
	for _, r := range []*running{p.s, p.d} {
		r.createTopic("T", 4)
	}
	p.found(p.d.addr)
	return p
}

// found: the name servers have said where d is.
func (p *sealing) found(addr string) {
	f := p.s.forwards
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.addrs["d"] = addr
}

func (p *sealing) seal(attributes string, perm int32, order bool) *remoting.Command {
	req := remoting.NewRequest(remoting.ReqUpdateAndCreateTopic, &remoting.CreateTopicHeader{
		Topic: "T", DefaultTopic: "TBW102", ReadQueueNums: 4, WriteQueueNums: 4, Perm: perm, TopicFilterType: "SINGLE_TAG", Order: order,
	})
	req.Fields.Set("attributes", attributes)
	resp, err := p.s.c.Call(p.s.t.Context(), p.s.addr, req)
	if err != nil {
		p.s.t.Fatal(err)
	}
	return resp
}

func (r *running) ends(topic string, queues int32) (out []int64) {
	r.settle()
	for q := range queues {
		out = append(out, r.store.MaxOffset(topic, q))
	}
	return out
}

// What is sent to a sealed queue with an old route is stored where the queue is now, and answered from there.
func TestSealAndForward(t *testing.T) {
	p := startSealing(t)
	p.s.send("T", 2, "", "before")
	if resp := p.seal("+mqx.forward=0|d:4", 4, true); resp.Code != remoting.RespSuccess {
		t.Fatal(resp.Remark)
	}
	for n := range 3 {
		resp := p.s.send("T", 2, prop(message.PropUniqKey, "K"), "after")
		if off := resp.Fields.String("queueOffset"); off != string(rune('0'+n)) || resp.Fields.String("queueId") != "2" || resp.Fields.String("transactionId") != "K" {
			t.Errorf("answer %d is %v", n, resp.Fields)
		}
	}
	long := p.s.ok(remoting.ReqSendMessage, sendHeaderOf("T", 1, ""), []byte("long names"))
	if long.Fields.String("queueId") != "1" {
		t.Errorf("with long names: %v", long.Fields)
	}
	batch := message.AppendBatchItem(nil, 0, []byte("one"), nil)
	batch = message.AppendBatchItem(batch, 0, []byte("two"), nil)
	h := sendHeaderOf("T", 0, "")
	h.Batch = true
	p.s.ok(remoting.ReqSendBatchMessage, h, batch)
	p.s.send("T", 3, prop(message.PropDelay, "1"), "later") // it waits where it goes
	if got := p.s.ends("T", 4); got[0]+got[1]+got[3] != 0 || got[2] != 1 {
		t.Errorf("the sealed queues end at %v", got)
	}
	if got := p.d.ends("T", 4); got[0] != 2 || got[1] != 1 || got[2] != 3 {
		t.Errorf("the new queues end at %v", got)
	}
	waitFor(t, "the delayed message", func() bool { return p.d.store.MaxOffset("T", 3) == 1 })
	if _, ok := p.s.topics.Get("T").Attributes[attrForward]; !ok {
		t.Error("the attribute is gone")
	}
	// A broker that takes no messages at all hands them on too.
	p.s.ok(remoting.ReqUpdateBrokerConfig, nil, []byte("brokerPermission=4\n"))
	p.s.send("T", 2, "", "ordered")
	p.s.ok(remoting.ReqUpdateBrokerConfig, nil, []byte("brokerPermission=6\n"))
	if resp := p.seal("-mqx.forward", 6, true); resp.Code != remoting.RespSuccess {
		t.Fatal(resp.Remark)
	}
	p.s.send("T", 2, "", "again")
	if got := p.s.ends("T", 4); got[2] != 2 {
		t.Errorf("after the seal is taken off the queues end at %v", got)
	}
	// Who makes a sealed topic writable, and knows nothing of the attribute, gets what was asked for.
	p.seal("+mqx.forward=0|d:4", 4, true)
	p.s.createTopic("T", 4)
	p.s.send("T", 2, "", "once more")
	if got := p.s.ends("T", 4); got[2] != 3 {
		t.Errorf("after the topic was made writable the queues end at %v", got)
	}
}

// Queues above a number go to those below it, on the same broker.
func TestSealShrink(t *testing.T) {
	p := startSealing(t)
	p.seal("+mqx.forward=2|s:2", 6, false)
	for q := range int32(4) {
		p.s.send("T", q, "", "m")
	}
	if got := p.s.ends("T", 4); got[0] != 2 || got[1] != 2 || got[2]+got[3] != 0 {
		t.Errorf("the queues end at %v", got)
	}
}

// What the broker holds back for a sealed queue goes on from here: delayed and half messages.
func TestSealForwardsWhatWaits(t *testing.T) {
	p := startSealing(t)
	p.s.send("T", 2, prop(message.PropDelay, "1"), "delayed")
	half := p.s.half("half")
	p.seal("+mqx.forward=0|d:4", 4, false)
	waitFor(t, "the delayed message", func() bool { return p.d.store.MaxOffset("T", 2) == 1 })
	if resp := p.s.end(half, message.TransactionCommit); resp.Code != remoting.RespSuccess {
		t.Fatal(resp.Remark)
	}
	waitFor(t, "the committed message", func() bool { return p.d.store.MaxOffset("T", 1) == 1 })
	if got := p.s.ends("T", 4); got[0]+got[1]+got[2]+got[3] != 0 {
		t.Errorf("the sealed queues end at %v", got)
	}
	for _, m := range p.d.waitRecords("T", 2, 1) {
		if _, delayed := message.Property(m.Properties, message.PropDelay); delayed {
			t.Error("it would wait once more")
		}
	}
}

// A broker that nobody finds, that does not answer or that hands it back: the sender is told, and may try another queue.
func TestSealWithoutTarget(t *testing.T) {
	p := startSealing(t)
	p.found("")
	if resp := p.seal("+mqx.forward=0|", 4, false); resp.Code == remoting.RespSuccess || !strings.Contains(resp.Remark, "mqx.forward") {
		t.Errorf("a wrong value is answered with %d %s", resp.Code, resp.Remark)
	}
	p.seal("+mqx.forward=0|d:4", 4, false)
	send := func(want string) {
		t.Helper()
		resp := p.s.call(remoting.ReqSendMessageV2, sendHeaderOf("T", 0, ""), []byte("m"))
		if resp.Code != remoting.RespServiceNotAvailable || !strings.Contains(resp.Remark, want) {
			t.Errorf("answered with %d %s", resp.Code, resp.Remark)
		}
	}
	send("no name server says where broker d is")
	dead := p.d.addr
	p.d.stop()
	p.found(dead)
	send("on broker d")
	p.found(p.s.addr)
	send("sealed here and at the broker that handed the message on")
	if p.s.ends("T", 1)[0] != 0 {
		t.Error("something was stored")
	}
}

// Sends that wait for the first look-up are answered when the broker stops meanwhile.
func TestForwarderEnds(t *testing.T) {
	f := newForwarder(nil)
	tried := 0
	if addr, full := f.addr("d", func() { tried++ }); addr != "" || full {
		t.Errorf("addr %q, full %v", addr, full)
	}
	f.mu.ended = true
	f.release()
	if _, full := f.addr("d", func() { tried++ }); !full || tried != 1 {
		t.Errorf("full %v, tried %d", full, tried)
	}
}
