package broker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mqx/internal/clock"
	"mqx/internal/fastjson"
	"mqx/remoting"
)

// Whatever changes in the tables of a master comes to its slave because the master tells it: this slave looks at them once an hour.
func TestSlaveIsToldOfEverything(t *testing.T) {
	t.Parallel()
	man := clock.NewManual(time.UnixMilli(1_800_000_000_400))
	cfg := delayConfigOf(t, "1s")
	cfg.Clock, cfg.TimerLogFileBytes, cfg.TimerFlushEvery = man, 1<<20, 20*time.Millisecond
	m := start(t, cfg)
	sc := delayConfigOf(t, "1s")
	sc.Clock, sc.BrokerRole, sc.BrokerID = man, "SLAVE", 1
	b, err := New(sc)
	if err != nil {
		t.Fatal(err)
	}
	b.lookEvery = time.Hour
	s := run(t, b)
	s.slave.learn(m.at().haAddr, m.addr)
	m.until("the slave does not tell who it is", func() bool { return m.peers.active.Load() && len(m.ha.master.Replicas()) == 1 })
	m.until("its first look", s.tablesSeen)
	file := func(name string) string {
		text, err := os.ReadFile(filepath.Join(sc.Store.RootDir, "config", name))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return string(text)
	}
	committed := func(want int64) func() bool {
		return func() bool { off, ok := s.offsets.Committed("T", "G", 1); return ok && off == want }
	}
	timer := file("timercheck")
	for _, step := range []struct {
		what   string
		change func()
		come   func() bool
	}{
		{"a topic", func() { m.createTopic("T", 2) }, func() bool { return s.topics.Get("T") != nil }},
		{"a changed topic", func() { m.createTopic("T", 3) }, func() bool { return s.topics.Get("T").WriteQueueNums == 3 }},
		{"a group", func() { m.heartbeat("G", "CLUSTERING") }, func() bool { return s.groups.Get("G") != nil }},
		{"an offset", func() { m.commit("G", "T", 1, 9) }, committed(9)},
		{"a later offset", func() { m.commit("G", "T", 1, 12) }, committed(12)},
		{"a reset", func() { m.offsets.Reset("T", "G", 1, 3) }, committed(3)},
		{"a request mode", func() {
			m.ok(remoting.ReqSetMessageRequestMode, nil, []byte(`{"topic":"T","consumerGroup":"G","mode":"POP","popShareQueueNum":1}`))
		}, func() bool { return strings.Contains(file("messageRequestMode.json"), "POP") }},
		{"the progress of a level", func() {
			m.send("T", 0, prop("DELAY", "1"), "delayed")
			m.settle()
			man.Advance(2 * time.Second)
			m.until("it does not come", func() bool { return m.store.MaxOffset("T", 0) == 1 })
		}, func() bool {
			var table remoting.DelayOffsets
			return fastjson.Unmarshal([]byte(file("delayOffset.json")), &table) == nil && table.OffsetTable[1] == 1
		}},
		{"the progress of the timer", func() {
			m.send("T", 2, prop("TIMER_DELAY_SEC", "2"), "timer")
			m.reach(man, time.Second, "T", 2, 1)
		}, func() bool { return file("timercheck") != timer }},
		{"a mapping", func() {
			taken(t, m.mapStatic(1, 1, map[int32][]remoting.LogicQueueMappingItem{0: {stretch(0, 0, "b", 0)}}))
		}, func() bool { return s.statics.Get("S") != nil }},
		{"a deleted group", func() {
			m.ok(remoting.ReqDeleteSubscriptionGroup, &remoting.DeleteSubscriptionGroupHeader{GroupName: "G"}, nil)
		}, func() bool { return s.groups.Get("G") == nil }},
		{"a deleted topic", func() {
			m.ok(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicHeader{Topic: "T"}, nil)
		}, func() bool { return s.topics.Get("T") == nil }},
	} {
		step.change()
		began := time.Now()
		m.until(step.what+" does not come", step.come)
		t.Logf("%s: %v", step.what, time.Since(began).Round(time.Millisecond))
	}
	s.stop()
	m.stop()
}
