package broker

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/client"
	"mqx/remoting/server"
	"mqx/store"
)

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
	*f.target("d") = forwardTarget{addr: addr}
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
	if _, ok := p.s.topics.Get("T").Attributes[remoting.AttrForward]; !ok {
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
	send("brokers have handed the message on")
	if p.s.ends("T", 1)[0] != 0 {
		t.Error("something was stored")
	}
}

// Queues that have moved twice: what comes with a route of before the first move goes all the way. A topic that was taken off the
// broker in the middle is not made there again.
func TestSealTwice(t *testing.T) {
	p := startSealing(t)
	cfg := testConfig(t.TempDir())
	cfg.BrokerName = "e"
	e := start(t, cfg)
	e.createTopic("T", 4)
	p.seal("+mqx.forward=0|d:4", 4, false)
	req := remoting.NewRequest(remoting.ReqUpdateAndCreateTopic, &remoting.CreateTopicHeader{
		Topic: "T", DefaultTopic: "TBW102", ReadQueueNums: 4, WriteQueueNums: 4, Perm: 4, TopicFilterType: "SINGLE_TAG",
	})
	req.Fields.Set("attributes", "+mqx.forward=0|e:4")
	if resp, err := p.d.c.Call(t.Context(), p.d.addr, req); err != nil || resp.Code != remoting.RespSuccess {
		t.Fatal(resp, err)
	}
	d := p.d.forwards
	d.mu.Lock()
	d.target("e").addr = e.addr
	d.mu.Unlock()
	p.s.send("T", 2, prop(message.PropUniqKey, "K"), "with an old route")
	if got := append(p.s.ends("T", 4), p.d.ends("T", 4)...); slices.Max(got) != 0 {
		t.Errorf("the sealed queues end at %v", got)
	}
	if got := e.ends("T", 4); got[2] != 1 {
		t.Errorf("the queues end at %v", got)
	}
	p.d.ok(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicHeader{Topic: "T"}, nil)
	if resp := p.s.sendCode("T", 2); resp.Code != remoting.RespTopicNotExist || p.d.topics.Get("T") != nil {
		t.Errorf("%s %s", remoting.ResponseName(resp.Code), resp.Remark)
	}
}

// answering is a broker that answers sends with a code.
type answering struct {
	addr string
	code atomic.Int32
	got  atomic.Int32
}

func startAnswering(t *testing.T, code int32) *answering {
	t.Helper()
	a := &answering{}
	a.code.Store(code)
	mux := server.NewMux()
	mux.HandleInline(remoting.ReqSendMessageV2, func(r *server.Request) {
		a.got.Add(1)
		r.Reply(a.code.Load(), "as the test says")
	})
	srv, err := server.New(server.Config{Addr: "127.0.0.1:0", Logger: quiet}, mux)
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Stop(context.Background()) })
	a.addr = srv.Addr().String()
	return a
}

// An answer that is no full success is none for what the broker delivers itself: a target without its copies may lose it.
func TestForwardStatus(t *testing.T) {
	for code, want := range map[int32]store.Status{
		remoting.RespSuccess: store.PutOK, remoting.RespFlushDiskTimeout: store.FlushDiskTimeout, remoting.RespFlushSlaveTimeout: store.FlushSlaveTimeout,
		remoting.RespSlaveNotAvailable: store.SlaveNotAvailable, remoting.RespMessageIllegal: store.ServiceNotAvailable, remoting.RespNoPermission: store.ServiceNotAvailable,
	} {
		if got := forwardStatus(code); got != want {
			t.Errorf("%s is %v, not %v", remoting.ResponseName(code), got, want)
		}
	}
}

// A delayed message that the broker with its queue does not take, or not for sure, waits once more: the others of its level come
// in their time, and it comes when that broker takes it.
func TestSealedDelayedHoldsUpNothing(t *testing.T) {
	for _, code := range []int32{remoting.RespFlushSlaveTimeout, remoting.RespMessageIllegal, -1} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			d := startAnswering(t, code)
			cfg := delayConfigOf(t, "1s 2s")
			cfg.BrokerName = "s"
			p := sealing{s: start(t, cfg)}
			for _, topic := range []string{"T", "U"} {
				p.s.createTopic(topic, 4)
			}
			p.found(d.addr)
			if code < 0 {
				p.found("127.0.0.1:1")
			}
			p.s.send("T", 2, prop(message.PropDelay, "1"), "stuck")
			p.s.send("U", 2, prop(message.PropDelay, "1"), "behind it")
			p.seal("+mqx.forward=0|d:4", 4, false)
			waitFor(t, "the message of another topic", func() bool { return p.s.store.MaxOffset("U", 2) == 1 })
			waitFor(t, "the message that is put off", func() bool { return p.s.store.MaxOffset(message.TopicSchedule, 1) >= 1 })
			waitFor(t, "the progress", func() bool { return p.s.delays.levels[0].progress.Load() == 2 })
			d.got.Store(0)
			d.code.Store(remoting.RespSuccess)
			p.found(d.addr)
			waitFor(t, "the message", func() bool { return d.got.Load() >= 1 })
			waitFor(t, "the progress", func() bool {
				return p.s.delays.levels[1].progress.Load() == p.s.store.MaxOffset(message.TopicSchedule, 1)
			})
			if got := p.s.topics.Get("T").puts.Total(); got != 0 {
				t.Errorf("%d messages are counted for the sealed topic", got)
			}
		})
	}
}

// The same of timer messages: what is in the slot with one of a sealed topic comes in its time.
func TestSealedTimerHoldsUpNothing(t *testing.T) {
	d := startAnswering(t, remoting.RespFlushSlaveTimeout)
	cfg, ck := timerBroker(t)
	cfg.BrokerName = "s"
	p := sealing{s: start(t, cfg)}
	for _, topic := range []string{"T", "U"} {
		p.s.createTopic(topic, 4)
	}
	p.found(d.addr)
	due := prop(message.PropTimerDelaySec, "5")
	p.s.send("T", 2, due, "stuck")
	p.s.send("U", 2, due, "behind it")
	p.s.takenUp()
	p.seal("+mqx.forward=0|d:4", 4, false)
	p.s.reach(ck, time.Second, "U", 2, 1)
	waitFor(t, "the first try", func() bool { return d.got.Load() == 1 })
	waitFor(t, "the slot", func() bool {
		p.s.poke()
		return p.s.timers.t.ReadTime() >= p.s.timers.t.Rules().Floor(ck.Now().UnixMilli())
	})
	if got := d.got.Load(); got != 1 {
		t.Errorf("it was tried %d times meanwhile", got)
	}
	d.code.Store(remoting.RespSuccess)
	waitFor(t, "the message", func() bool {
		ck.Advance(time.Second)
		p.s.poke()
		return d.got.Load() == 2
	})
	waitFor(t, "the wheel", func() bool { return p.s.timers.t.Num() == 0 })
}

// A queue that is not sealed, or is this broker's own, takes nothing either where the broker takes nothing of ordered topics.
func TestSealedOrderedPermission(t *testing.T) {
	p := startSealing(t)
	p.seal("+mqx.forward=2|s:1;d:4", 6, true)
	p.s.ok(remoting.ReqUpdateBrokerConfig, nil, []byte("brokerPermission=4\n"))
	for q, want := range map[int32]int32{0: remoting.RespNoPermission, 2: remoting.RespNoPermission, 3: remoting.RespSuccess} {
		if resp := p.s.sendCode("T", q); resp.Code != want {
			t.Errorf("queue %d: %s %s", q, remoting.ResponseName(resp.Code), resp.Remark)
		}
	}
}

// lookedUp is a forwarder over name servers that say what answers holds; without an entry one hangs.
type lookedUp struct {
	*forwarder
	asked atomic.Int32
}

func newLookedUp(answers map[string]string) *lookedUp {
	l := &lookedUp{}
	l.forwarder = newForwarder(func() map[string]bool { return map[string]bool{"ns1:1": true, "ns2:2": true} }, func(ctx context.Context, addr string, _ *remoting.Command) ([]byte, error) {
		l.asked.Add(1)
		text, ok := answers[addr]
		if !ok {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return []byte(text), nil
	}, quiet)
	return l
}

const (
	knowsNothing = `{"brokerAddrTable":{},"clusterAddrTable":{}}`
	knowsD       = `{"brokerAddrTable":{"d":{"brokerName":"d","brokerAddrs":{0:"d:1"}}},"clusterAddrTable":{}}`
)

// One name server that hangs, or that has just started and knows nothing, is no reason to refuse sends.
func TestForwarderAsksAll(t *testing.T) {
	for _, other := range []string{"", knowsNothing} {
		synctest.Test(t, func(t *testing.T) {
			answers := map[string]string{"ns2:2": knowsD}
			if other != "" {
				answers["ns1:1"] = other
			}
			f := newLookedUp(answers)
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { f.run(ctx) })
			tried := make(chan struct{})
			begin := time.Now()
			if addr, unknown := f.addr("d", func() { close(tried) }); addr != "" || unknown {
				t.Errorf("%q %v", addr, unknown)
			}
			<-tried
			if addr, unknown := f.addr("d", nil); addr != "d:1" || unknown || time.Since(begin) != 0 {
				t.Errorf("%q %v after %v", addr, unknown, time.Since(begin))
			}
			cancel()
			running.Wait()
		})
	}
}

// While nobody knows the broker, the name servers are asked about once a second, however much is sent, and after ten minutes
// without a send not at all.
func TestForwarderAsksSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newLookedUp(map[string]string{"ns1:1": knowsNothing, "ns2:2": knowsNothing})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { f.run(ctx) })
		again := 0
		for range 10_000 {
			f.addr("d", func() { again++ })
			f.addr("d", nil)
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		if n := f.asked.Load(); n < 10 || n > 2*2*11 {
			t.Errorf("asked %d times in ten seconds", n)
		}
		time.Sleep(forwardWanted + 2*forwardLook)
		f.asked.Store(0)
		time.Sleep(time.Hour)
		if n := f.asked.Load(); n != 0 || again == 0 {
			t.Errorf("asked %d times for what nobody wants; %d tried again", n, again)
		}
		cancel()
		running.Wait()
	})
}

// Sends that wait for the first look-up are answered when the broker stops meanwhile.
func TestForwarderEnds(t *testing.T) {
	f := newLookedUp(nil)
	tried := 0
	if addr, unknown := f.addr("d", func() { tried++ }); addr != "" || unknown {
		t.Errorf("addr %q, unknown %v", addr, unknown)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f.run(ctx)
	if _, unknown := f.addr("d", func() { tried++ }); !unknown || tried != 1 {
		t.Errorf("unknown %v, tried %d", unknown, tried)
	}
}

// What is on its way to one broker is bounded, by number and by size.
func TestForwarderBounds(t *testing.T) {
	f := newLookedUp(nil)
	for range maxForwards {
		if !f.enter("d", 1) {
			t.Fatal("refused")
		}
	}
	if f.enter("d", 1) || !f.enter("e", maxForwardBytes+1) || f.enter("e", 1) {
		t.Error("not bounded")
	}
	f.leave("d", 1)
	f.leave("e", maxForwardBytes+1)
	if !f.enter("d", 1) || !f.enter("e", 1) {
		t.Error("what has left is counted")
	}
}

// A broker that did not answer gets nothing for a while of what is delivered to it in turn; an answer ends that.
func TestForwarderAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newLookedUp(nil)
		f.target("d").addr = "d:1"
		f.failed("d", "d:1", context.DeadlineExceeded)
		if addr, _ := f.addr("d", nil); !f.isAway("d") || addr != "d:1" {
			t.Errorf("away %v, addr %q", f.isAway("d"), addr)
		}
		f.answered("d")
		if f.isAway("d") {
			t.Error("away after an answer")
		}
		f.failed("d", "d:1", &client.ConnectError{Addr: "d:1", Err: context.DeadlineExceeded})
		if addr, _ := f.addr("d", nil); addr != "" {
			t.Errorf("addr %q", addr)
		}
		time.Sleep(forwardAway)
		if f.isAway("d") {
			t.Error("away for ever")
		}
	})
}

// A value that no broker of mqx wrote is told; it seals nothing.
func TestUnreadableSeal(t *testing.T) {
	var said bytes.Buffer
	tt := memTopics()
	tt.log = slog.New(slog.NewTextHandler(&said, nil))
	c := remoting.NewTopicConfig("T")
	c.Attributes = map[string]string{remoting.AttrForward: "nonsense"}
	if tp := tt.newTopic(c); tp.forward != nil || !strings.Contains(said.String(), "takes messages") {
		t.Errorf("%v %s", tp.forward, said.String())
	}
}
