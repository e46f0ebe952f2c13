package broker

import (
	"testing"
	"time"

	"mqx/internal/vfs"
	"mqx/remoting"
)

// A slave that was away takes over what was set back and removed at its master meanwhile, with a topic or a group too, and where
// something new has come in its place; what the master has lost without a note stays, and so does what a consumer committed here since.
func TestSetBacksWhileASlaveWasAway(t *testing.T) {
	m := start(t, testConfig(t.TempDir()))
	m.heartbeat("G", "CLUSTERING")
	m.heartbeat("H", "CLUSTERING")
	for _, topic := range []string{"T", "GONE", "ANEW", "LOST"} {
		m.createTopic(topic, 3)
		for i := range 30 {
			m.send(topic, int32(i%3), "", "x")
		}
		for q := range int32(3) {
			m.commit("G", topic, q, 9)
			m.commit("H", topic, q, 9)
		}
	}
	sc := testConfig(t.TempDir())
	sc.BrokerRole, sc.BrokerID = "SLAVE", 1
	s := start(t, sc)
	follow := func() {
		t.Helper()
		s.slave.learn(m.at().haAddr, m.addr)
		s.until("the tables do not come", func() bool {
			_, at := s.offsets.taken.get()
			return s.tablesSeen() && at > 0 && s.store.LogEnd() == m.store.LogEnd()
		})
	}
	follow()
	at := func(topic, group string, q int32) int64 {
		if off, ok := s.offsets.Committed(topic, group, q); ok {
			return off
		}
		return -1
	}
	s.stop()
	m.commit("G", "T", 0, 1)
	m.offsets.RemoveQueue("T", "G", 1)
	for _, topic := range []string{"GONE", "ANEW"} {
		m.ok(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicHeader{Topic: topic}, nil)
	}
	m.ok(remoting.ReqDeleteSubscriptionGroup, &remoting.DeleteSubscriptionGroupHeader{GroupName: "H", CleanOffset: true}, nil)
	m.createTopic("ANEW", 3)
	for i := range 6 {
		m.send("ANEW", int32(i%3), "", "x")
	}
	m.commit("G", "ANEW", 0, 1)
	lost := offsetKey{"LOST", "G"}
	shard := m.offsets.shardOf(lost)
	shard.Lock()
	delete(shard.table, lost)
	shard.Unlock()
	time.Sleep(2 * time.Millisecond) // times are of milliseconds
	s = start(t, sc)
	s.offsets.Commit([]byte("T"), []byte("G"), 1, 8)
	s.offsets.noteOwn("T", "G", 1, 0)
	s.slave.learn(m.at().haAddr, m.addr)
	s.until("what the master has set back is not here", func() bool { return s.tablesSeen() && at("T", "G", 0) == 1 })
	for _, c := range []struct {
		topic, group string
		want         [3]int64
	}{
		{"T", "G", [3]int64{1, 8, 9}},
		{"GONE", "G", [3]int64{-1, -1, -1}},
		{"ANEW", "G", [3]int64{1, -1, -1}},
		{"LOST", "G", [3]int64{9, 9, 9}},
		{"T", "H", [3]int64{-1, -1, -1}},
		{"LOST", "H", [3]int64{-1, -1, -1}},
	} {
		if got := [3]int64{at(c.topic, c.group, 0), at(c.topic, c.group, 1), at(c.topic, c.group, 2)}; got != c.want {
			t.Errorf("%s@%s is at %v, want %v", c.topic, c.group, got, c.want)
		}
	}
}

// Where a master has set back too many to know them one by one, a slave goes back to what the master has and removes nothing.
func TestTooManySetBacksToBeTold(t *testing.T) {
	minute := setBackOverlap.Milliseconds()
	at := int64(100)
	now := func() time.Time { return time.UnixMilli(at) }
	m := newOffsetTable(vfs.NewMem(), "/config/consumerOffset.json", now, 1, quiet)
	b := &Broker{log: quiet, offsets: newOffsetTable(vfs.NewMem(), "/config/consumerOffset.json", now, 1, quiet)}
	for q := range int32(4) {
		b.offsets.Commit([]byte("T"), []byte("G"), q, 9)
	}
	b.offsets.own.note(ownCommit{offsetKey{"T", "G"}, 2}, 99, ownCommitsMost)
	b.offsets.own.note(ownCommit{offsetKey{"T", "G"}, 3}, 101, ownCommitsMost)
	for q := range int32(4) {
		if q != 1 {
			m.Commit([]byte("T"), []byte("G"), q, 2)
		}
	}
	for q := range int32(setBackMost + 1) {
		m.noteSetBack(offsetKey{"X", "G"}, q, 0)
	}
	told := m.Told(0)
	if told.SetBackAll != 100 || len(told.SetBack) != 0 || told.At != 100 {
		t.Fatalf("told: %d, %d, at %d", told.SetBackAll, len(told.SetBack), told.At)
	}
	look := tables{b: b, master: "m"}
	look.takeTold(told, func(string, int32) int64 { return 20 })
	for q, want := range []int64{2, 9, 2, 9} {
		if got, _ := b.offsets.Committed("T", "G", int32(q)); got != want {
			t.Errorf("queue %d is at %d, want %d", q, got, want)
		}
	}
	at = 200
	m.noteSetBack(offsetKey{"T", "G"}, 0, 0)
	for since, all := range map[int64]bool{0: true, 100: true, 101: false, 200: false, 201: true} { // 201: the clock of the master went back
		if told := m.Told(since); len(told.SetBack) != 1 || (told.SetBackAll != 0) != all {
			t.Errorf("since %d: %v, all: %d", since, told.SetBack, told.SetBackAll)
		}
	}
	at = 300
	if told := m.Told(201); len(told.SetBack) != 0 || told.SetBackAll != 0 {
		t.Errorf("told again: %v, all: %d", told.SetBack, told.SetBackAll)
	}
	b.offsets.taken.set("m", minute+201)
	if m, other := b.offsets.taken.since("m"), b.offsets.taken.since("another"); m != 201 || other != 0 {
		t.Errorf("asked since %d and %d", m, other)
	}
}

// What is known is not done again: a slave that is ahead of a master which has lost the last seconds stays so, and what was told
// late does not undo what was set back.
func TestSetBacksThatAreKnown(t *testing.T) {
	at := int64(1_000_000)
	now := func() time.Time { return time.UnixMilli(at) }
	newTable := func() *offsetTable { return newOffsetTable(vfs.NewMem(), "/config/consumerOffset.json", now, 1, quiet) }
	m, b := newTable(), &Broker{log: quiet, offsets: newTable()}
	look := tables{b: b, master: "m"}
	see := func() int64 {
		at += 1000
		look.takeTold(m.Told(b.offsets.taken.since("m")), func(string, int32) int64 { return 20 })
		off, _ := b.offsets.Committed("T", "G", 0)
		return off
	}
	commit := func(off int64) { m.Commit([]byte("T"), []byte("G"), 0, off) }
	commit(9)
	if got := see(); got != 9 {
		t.Fatal(got)
	}
	commit(2)
	if got := see(); got != 2 {
		t.Errorf("set back to 2, and it is %d", got)
	}
	look.takeOffsets([]remoting.ChangedOffset{{Topic: "T", Group: "G", Offset: 9}}) // of before
	if got := see(); got != 2 {
		t.Errorf("told 9 late, and it is %d", got)
	}
	look.takeOffsets([]remoting.ChangedOffset{{Topic: "T", Group: "G", Offset: 7}})
	look.takeOffsets([]remoting.ChangedOffset{{Topic: "T", Group: "G", Offset: 5}}) // in the wrong order
	at += setBackOverlap.Milliseconds()
	if got := see(); got != 2 {
		t.Errorf("within the overlap it is %d", got)
	}
	look.takeOffsets([]remoting.ChangedOffset{{Topic: "T", Group: "G", Offset: 7}})
	for range 2 { // the 7 was lost with the master, which begins again at 2
		if got := see(); got != 7 {
			t.Errorf("the master is behind, and it is %d, want 7", got)
		}
	}
	look.takeOffsets([]remoting.ChangedOffset{{Topic: "T", Group: "G", Offset: 3, Reset: true}})
	if got, _ := b.offsets.Committed("T", "G", 0); got != 3 {
		t.Errorf("a reset to 3 that is told makes it %d", got)
	}
	other := tables{b: b, master: "apache"}
	for _, off := range []int64{6, 4} { // a master of Apache: what goes back was set back
		other.takeTold(&remoting.ToldOffsets{ConsumerOffsets: remoting.ConsumerOffsets{OffsetTable: map[string]map[int32]int64{"T@G": {0: off}}}}, func(string, int32) int64 { return 20 })
		if got, _ := b.offsets.Committed("T", "G", 0); got != off {
			t.Errorf("a master of Apache tells %d, and it is %d", off, got)
		}
	}
}

// Slaves of Apache get Apache's table and nothing else.
func TestOffsetsForApache(t *testing.T) {
	m := start(t, testConfig(t.TempDir()))
	m.offsets.Commit([]byte("T"), []byte("G"), 0, 4)
	m.offsets.Commit([]byte("T"), []byte("G"), 0, 2)
	var fields map[string]any
	decode(t, m.ok(remoting.ReqGetAllConsumerOffset, nil, nil), &fields)
	for _, name := range []string{"mqxAt", "mqxSetBack", "mqxSetBackAll"} {
		if _, ok := fields[name]; ok {
			t.Errorf("they are told %s", name)
		}
	}
	req := remoting.NewRequest(remoting.ReqGetAllConsumerOffset, nil)
	req.Fields.Set(remoting.FieldSetBackSince, "x")
	if resp, err := m.c.Call(t.Context(), m.addr, req); err != nil || resp.Code == remoting.RespSuccess {
		t.Errorf("what is no time was taken for one: %v", err)
	}
}

// What a slave is told of as set back was so when the master did it, not when the slave hears of it: once it is promoted, what
// consumers have committed to another slave in between still counts.
func TestSetBackKeepsTheTimeOfTheMaster(t *testing.T) {
	const when, between = 100, 200 // ms; the slave hears of it at 300
	k := ownCommit{offsetKey{"T", "G"}, 0}
	table := func(at int64) map[string]map[int32]int64 { return map[string]map[int32]int64{"T@G": {0: at}} }
	for name, hear := range map[string]func(*Broker, *tables){
		"a look": func(_ *Broker, s *tables) {
			s.takeTold(&remoting.ToldOffsets{ConsumerOffsets: remoting.ConsumerOffsets{OffsetTable: table(2)}, At: 300, SetBack: table(when)}, func(string, int32) int64 { return 9 })
		},
		"a look, removed": func(_ *Broker, s *tables) {
			s.takeTold(&remoting.ToldOffsets{At: 300, SetBack: table(when)}, func(string, int32) int64 { return 9 })
		},
		"told at once": func(_ *Broker, s *tables) {
			s.takeOffsets([]remoting.ChangedOffset{{Topic: "T", Group: "G", Offset: 2, Reset: true, At: when}})
		},
		"an answer": func(b *Broker, _ *tables) {
			b.takeStanding(&remoting.HAOffsets{OffsetTable: table(7)}, &remoting.HAOffsets{OffsetTable: table(2), CommittedAt: table(when)})
		},
		"an answer, removed": func(b *Broker, _ *tables) {
			b.takeStanding(&remoting.HAOffsets{OffsetTable: table(7)}, &remoting.HAOffsets{OffsetTable: table(removedAtMaster), CommittedAt: table(when)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := func() time.Time { return time.UnixMilli(300) }
			b := &Broker{log: quiet, offsets: newOffsetTable(vfs.NewMem(), "/config/consumerOffset.json", now, 1, quiet)}
			b.offsets.Commit([]byte("T"), []byte("G"), 0, 7)
			hear(b, &tables{b: b, offsets: map[string]map[int32]int64{}})
			if at := b.offsets.setBack.last(k); at != when {
				t.Errorf("set back at %d, want %d", at, when)
			}
			told := &remoting.HAOffsets{OffsetTable: table(4), CommittedAt: table(between)}
			b.mergeBackTo("other", told, func(string) bool { return true }, func(string, int32) int64 { return 9 })
			if at, _ := b.offsets.Committed("T", "G", 0); at != 4 {
				t.Errorf("the offset is %d, want what was committed to the other slave since: 4", at)
			}
		})
	}
}

// What a slave was told before a reset and looks at behind it does not count, also where a consumer has committed here in between:
// with that commit it would be brought to the master.
func TestToldBeforeAReset(t *testing.T) {
	b := &Broker{log: quiet, offsets: newOffsetTable(vfs.NewMem(), "/config/consumerOffset.json", fixedNow, 1, quiet)}
	s := &tables{b: b}
	b.offsets.Commit([]byte("T"), []byte("G"), 0, 5)
	s.takeTold(&remoting.ToldOffsets{
		ConsumerOffsets: remoting.ConsumerOffsets{OffsetTable: map[string]map[int32]int64{"T@G": {0: 1}}},
		At:              300, SetBack: map[string]map[int32]int64{"T@G": {0: 200}},
	}, func(string, int32) int64 { return 9 })
	b.offsets.commitOwn([]byte("T"), []byte("G"), 0, 3, 0)
	for _, c := range []struct {
		told remoting.ChangedOffset
		want int64
	}{
		{remoting.ChangedOffset{Offset: 6, At: 100}, 3},
		{remoting.ChangedOffset{Offset: 6, At: 200}, 3},
		{remoting.ChangedOffset{Offset: 2, At: 100, Reset: true}, 3}, // an older reset
		{remoting.ChangedOffset{Offset: 4, At: 201}, 4},
		{remoting.ChangedOffset{Offset: 5}, 5}, // of an older mqx, which does not say when
		{remoting.ChangedOffset{Offset: 1, At: 200, Reset: true}, 1},
		{remoting.ChangedOffset{Offset: 0, At: 400, Reset: true}, 0},
		{remoting.ChangedOffset{Offset: 6, At: 399}, 0},
	} {
		c.told.Topic, c.told.Group = "T", "G"
		s.takeOffsets([]remoting.ChangedOffset{c.told})
		if at, _ := b.offsets.Committed("T", "G", 0); at != c.want {
			t.Errorf("after %+v it is %d, want %d", c.told, at, c.want)
		}
	}
}

// Where a master had set back too many to know them one by one, a slave of it that is promoted knows that, too: what was committed
// to another slave before that does not undo a reset.
func TestTooManySetBacksOutliveTheirMaster(t *testing.T) {
	now := func() time.Time { return time.UnixMilli(300) }
	b := &Broker{log: quiet, offsets: newOffsetTable(vfs.NewMem(), "/config/consumerOffset.json", now, 1, quiet)}
	table := func(at int64) map[string]map[int32]int64 { return map[string]map[int32]int64{"T@G": {0: at}} }
	end := func(string, int32) int64 { return 9 }
	s := &tables{b: b, master: "m"}
	s.takeTold(&remoting.ToldOffsets{ConsumerOffsets: remoting.ConsumerOffsets{OffsetTable: table(2)}, At: 300, SetBackAll: 200}, end)
	for _, c := range []struct{ when, want int64 }{{199, 2}, {201, 7}} {
		b.mergeBackTo("other", &remoting.HAOffsets{OffsetTable: table(7), CommittedAt: table(c.when)}, func(string) bool { return true }, end)
		if at, _ := b.offsets.Committed("T", "G", 0); at != c.want {
			t.Errorf("committed at %d, the offset is %d, want %d", c.when, at, c.want)
		}
	}
	if _, all := b.offsets.setBack.from(0); all != 200 {
		t.Errorf("a slave of it is told %d, want 200", all)
	}
}
