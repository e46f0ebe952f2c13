package broker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"mqx/internal/clock"
	"mqx/internal/fastjson"
	"mqx/remoting"
	"mqx/store"
	"mqx/store/ha"
)

// followerOf is a store that follows a broker, for as long as the returned function is not called.
func followerOf(t *testing.T, b *Broker) (*store.Store, func()) {
	t.Helper()
	sc := testConfig(t.TempDir()).Store
	sc.Follow, sc.Logger = true, quiet
	st, err := store.Open(sc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	f := ha.NewFollower(ha.FollowerConfig{Log: st, Logger: quiet, Master: func() string { return b.at().haAddr }, Retry: 10 * time.Millisecond})
	wg.Go(func() { _ = st.Run(ctx) })
	wg.Go(func() { f.Run(ctx) })
	return st, sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A SYNC_MASTER answers SEND_OK when a slave has the message, FLUSH_SLAVE_TIMEOUT when none has it in time, and asks for
// nothing where the message says so.
func TestSyncMaster(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.BrokerRole, cfg.InSyncReplicas, cfg.SlaveTimeout = "SYNC_MASTER", 2, 300*time.Millisecond
	b := start(t, cfg)
	st, stop := followerOf(t, b.Broker)
	defer stop()
	send := func(props string) int32 {
		t.Helper()
		req := remoting.NewRequest(remoting.ReqSendMessageV2, nil)
		for k, v := range map[string]string{"a": "P", "b": "TBW102", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1", "h": "0", "i": props, "j": "0", "k": "false"} {
			req.Fields.Set(k, v)
		}
		req.Body = []byte("hello")
		resp, err := b.c.Call(t.Context(), b.addr, req)
		if err != nil {
			t.Fatal(err)
		}
		return resp.Code
	}
	for end := time.Now().Add(30 * time.Second); send("") != remoting.RespSuccess; { // until the slave has come
		if time.Now().After(end) {
			t.Fatal("no send was acknowledged")
		}
	}
	if code := send(""); code != remoting.RespSuccess {
		t.Fatalf("with a slave: code %d", code)
	}
	var info remoting.HARuntimeInfo
	decode(t, b.ok(remoting.ReqGetBrokerHAStatus, nil, nil), &info)
	if len(info.ConnectionInfo) != 1 || !info.ConnectionInfo[0].InSync || info.InSyncSlaveNums != 1 || !info.Master {
		t.Errorf("HA status %+v", info)
	}
	if end := b.store.LogEnd(); st.LogEnd() < end {
		t.Errorf("acknowledged up to %d, the slave has %d", end, st.LogEnd())
	}
	stop()
	for end := time.Now().Add(30 * time.Second); len(b.ha.master.Replicas()) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the slave has gone, and the master does not see it")
		}
	}
	if code := send(""); code != remoting.RespFlushSlaveTimeout {
		t.Errorf("without a slave: code %d", code)
	}
	if code := send("WAIT\x01false\x02"); code != remoting.RespSuccess {
		t.Errorf("a message that does not wait: code %d", code)
	}
}

// N087 (r#9879): a slave has the messages, topics, groups and offsets of its master, from the first on, answers pulls, and takes
// nothing. Who comes with an offset behind its end is not sent to 0 (r#2181).
func TestSlave(t *testing.T) {
	m := start(t, testConfig(t.TempDir()))
	m.createTopic("T", 2)
	for i := range 20 {
		m.send("T", int32(i%2), "", "before")
	}
	m.heartbeat("G", "CLUSTERING")
	m.commit("G", "T", 1, 7)
	cfg := testConfig(t.TempDir())
	cfg.BrokerRole, cfg.BrokerID = "SLAVE", 1
	s := start(t, cfg)
	s.slave.learn(m.at().haAddr, m.addr)
	for i := range 20 {
		m.send("T", int32(i%2), "", "after")
	}
	until := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal(what)
			}
		}
	}
	until("the log does not come", func() bool {
		return s.store.LogEnd() == m.store.LogEnd() && s.store.Dispatched() == s.store.LogEnd()
	})
	until("the tables do not come", func() bool {
		off, ok := s.offsets.Committed("T", "G", 1)
		return s.topics.Get("T") != nil && ok && off == 7
	})
	if a, b := s.topics.Get("T"), m.topics.Get("T"); !sameTopic(a.TopicConfig, b.TopicConfig) {
		t.Errorf("the topic of the slave %+v, of the master %+v", a.TopicConfig, b.TopicConfig)
	}
	resp := s.ok(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 0), nil)
	if got := records(t, resp.Body); len(got) != 20 || string(got[0].Body) != "before" || string(got[19].Body) != "after" {
		t.Errorf("%d messages from the slave", len(got))
	}
	for off, want := range map[int64]int32{0: remoting.RespSuccess, 20: remoting.RespPullNotFound, 25: remoting.RespPullRetryImmediately} {
		resp := s.call(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, off), nil)
		if next := resp.Fields.String("nextBeginOffset"); resp.Code != want || off == 25 && next != "25" {
			t.Errorf("a pull at %d, the slave has 20: %s, go on at %s", off, remoting.ResponseName(resp.Code), next)
		}
	}
	checking := *s.cfg()
	checking.OffsetCheckInSlave = true
	s.putConfig(&checking)
	if resp := s.call(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 25), nil); resp.Code != remoting.RespPullOffsetMoved || resp.Fields.String("nextBeginOffset") != "20" {
		t.Errorf("a slave that corrects offsets: %s %v", remoting.ResponseName(resp.Code), resp.Fields)
	}
	for _, code := range []int32{remoting.ReqSendMessageV2, remoting.ReqConsumerSendMsgBack, remoting.ReqUpdateAndCreateTopic, remoting.ReqPopMessage} {
		if resp := s.call(code, nil, nil); resp.Code != remoting.RespServiceNotAvailable {
			t.Errorf("%s at a slave: code %d %s", remoting.RequestName(code), resp.Code, resp.Remark)
		}
	}
	// What is deleted at the master goes here as well, and an offset that goes back there was reset.
	m.commit("G", "T", 1, 3)
	m.createTopic("GONE", 1)
	until("a new topic does not come", func() bool { return s.topics.Get("GONE") != nil })
	m.ok(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicHeader{Topic: "GONE"}, nil)
	until("a deleted topic stays", func() bool { return s.topics.Get("GONE") == nil })
	until("a reset does not come", func() bool { off, _ := s.offsets.Committed("T", "G", 1); return off == 3 })
	s.stop()
	m.stop()
}

// N056: a slave that is started as a master goes on with the delayed messages where its master was: what was delivered does not
// come again, what was not is delivered, once; none waits for ever at a slave (r#8006).
func TestDelayProgressOfAPromotedSlave(t *testing.T) {
	man := clock.NewManual(time.Now())
	cfg := delayConfigOf(t, "1s 1h")
	cfg.Clock = man
	m := start(t, cfg)
	m.createTopic("T", 1)
	send := func(n int, what string) {
		for i := range n {
			m.send("T", 0, prop("DELAY", "1"), fmt.Sprint(what, i))
		}
	}
	m.send("T", 0, prop("DELAY", "2"), "in an hour")
	send(5, "delivered")
	man.Advance(1500 * time.Millisecond)
	m.waitRecords("T", 0, 5)
	progress := func(r *running) int32 {
		var table remoting.DelayOffsets
		decode(t, r.ok(remoting.ReqGetAllDelayOffset, nil, nil), &table)
		return int32(table.OffsetTable[1])
	}
	waitFor(t, "the progress of the master", func() bool { return progress(m) == 5 })
	send(4, "waiting")
	of := delayConfigOf(t, "1s 1h")
	of.Clock, of.BrokerRole, of.BrokerID = man, "SLAVE", 1
	s := start(t, of)
	s.slave.learn(m.at().haAddr, m.addr)
	file := filepath.Join(of.Store.RootDir, "config", "delayOffset.json")
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		b, err := os.ReadFile(file)
		var table remoting.DelayOffsets
		if err == nil && fastjson.Unmarshal(b, &table) == nil && table.OffsetTable[1] == 5 &&
			s.store.LogEnd() == m.store.LogEnd() && s.store.Dispatched() == s.store.LogEnd() {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the slave has not what its master has: %s %v", b, err)
		}
	}
	m.stop()
	man.Advance(time.Minute)
	if n := s.store.MaxOffset("T", 0); n != 5 {
		t.Errorf("a slave has delivered: %d messages", n)
	}
	s.stop()
	of.BrokerRole, of.BrokerID = "ASYNC_MASTER", 0
	s = start(t, of)
	waitFor(t, "the progress of the new master", func() bool { return progress(s) == 9 })
	var got []string
	for _, rec := range s.waitRecords("T", 0, 9) {
		got = append(got, string(rec.Body))
	}
	want := []string{"delivered0", "delivered1", "delivered2", "delivered3", "delivered4", "waiting0", "waiting1", "waiting2", "waiting3"}
	if !slices.Equal(got, want) {
		t.Errorf("delivered %v", got)
	}
	man.Advance(time.Hour)
	if recs := s.waitRecords("T", 0, 10); string(recs[9].Body) != "in an hour" {
		t.Errorf("the last one is %q", recs[9].Body)
	}
}

// N038: what a slave takes over of its master's offsets.
func TestMergeOffsets(t *testing.T) {
	own := map[int32]int64{1: 5, 2: 5, 3: 5, 4: 5}
	before := map[string]map[int32]int64{"T@G": {2: 3, 3: 9, 4: 3}}
	told := map[string]map[int32]int64{"T@G": {0: 1, 1: 8, 2: 3, 3: 4, 4: 6}}
	got := mergeOffsets(before, told, func(_ string, q int32) (int64, bool) { off, ok := own[q]; return off, ok })
	want := map[int32]int64{0: 1, 1: 8, 3: 4, 4: 6} // 2: repeated only, and consumers were further here
	if len(got["T@G"]) != len(want) {
		t.Fatalf("%v", got)
	}
	for q, off := range want {
		if got["T@G"][q] != off {
			t.Errorf("queue %d: %d, want %d", q, got["T@G"][q], off)
		}
	}
}
