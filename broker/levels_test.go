package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store/ha"
)

// startSlave starts a slave of m.
func startSlave(t *testing.T, m *running, id int64, change func(*Config)) *running {
	t.Helper()
	cfg := testConfig(t.TempDir())
	cfg.BrokerRole, cfg.BrokerID = "SLAVE", id
	if change != nil {
		change(&cfg)
	}
	s := start(t, cfg)
	s.slave.learn(m.at().haAddr, m.addr)
	return s
}

// sendFor sends a message to a topic and returns the code of the answer.
func (r *running) sendFor(topic, props string) int32 {
	r.t.Helper()
	req := remoting.NewRequest(remoting.ReqSendMessageV2, nil)
	for k, v := range map[string]string{"a": "P", "b": topic, "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1", "h": "0", "i": props, "j": "0", "k": "false"} {
		req.Fields.Set(k, v)
	}
	req.Body = []byte("hello")
	resp, err := r.c.Call(r.t.Context(), r.addr, req)
	if err != nil {
		r.t.Fatal(err)
	}
	if resp.Code == remoting.RespSystemError && resp.Remark != "in-sync replicas not enough" {
		r.t.Errorf("remark %q", resp.Remark)
	}
	return resp.Code
}

// Semi-sync: acknowledged with a slave and shown then; without one FLUSH_SLAVE_TIMEOUT, then degraded, which is in the file
// before anything is acknowledged by it; armed again when the slave is back; what was acknowledged meanwhile lies in the
// interval.
func TestSemiSync(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.BrokerRole, cfg.ReplicationLevel, cfg.SlaveTimeout = "SYNC_MASTER", "semi-sync", 200*time.Millisecond
	cfg.SemiSyncDegradeAlone, cfg.SemiSyncRearmAfter = time.Hour, 100*time.Millisecond
	m := start(t, cfg)
	m.createTopic("T", 1)
	s := startSlave(t, m, 1, nil)
	waitFor(t, "the slave in sync", func() bool { return m.ha.master.Status().InSync == 1 })
	if code := m.sendFor("T", ""); code != remoting.RespSuccess {
		t.Fatalf("with a slave: code %d", code)
	}
	st := m.ha.master.Status()
	if st.Degraded || len(st.Intervals) != 0 {
		t.Fatalf("with a slave: %+v", st)
	}
	waitFor(t, "what is acknowledged is not shown", func() bool { return m.store.Dispatched() == m.store.LogEnd() })
	before := m.store.LogEnd()
	s.stop()
	waitFor(t, "the slave to be gone", func() bool { return len(m.ha.master.Replicas()) == 0 })
	for i := range 3 {
		if code := m.sendFor("T", ""); code != remoting.RespFlushSlaveTimeout {
			t.Fatalf("send %d without a slave: code %d", i, code)
		}
	}
	if at := m.store.Dispatched(); at != before && !m.ha.master.Status().Degraded {
		t.Errorf("shown up to %d, acknowledged up to %d", at, before)
	}
	waitFor(t, "degraded", func() bool { return m.ha.master.Status().Degraded })
	if code := m.sendFor("T", ""); code != remoting.RespSuccess {
		t.Fatalf("degraded: code %d", code)
	}
	end := m.store.LogEnd()
	waitFor(t, "a degraded broker shows what is appended", func() bool { return m.store.Dispatched() == end })
	read := func() (st replicationState) {
		b, err := os.ReadFile(filepath.Join(cfg.Store.RootDir, "mqx", replicationFile))
		if err == nil {
			err = json.Unmarshal(b, &st)
		}
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	if st := read(); st.Level != ha.LevelSemiSync || len(st.Degraded) != 1 || st.Degraded[0].From != before || !st.Degraded[0].Open() {
		t.Fatalf("the file says %+v, the slave had %d", st, before)
	}
	s = startSlave(t, m, 1, nil)
	waitFor(t, "armed again", func() bool { return !m.ha.master.Status().Degraded })
	waitFor(t, "the end of the interval in the file", func() bool { return read().Degraded[0].To >= end })
	if code := m.sendFor("T", ""); code != remoting.RespSuccess {
		t.Errorf("armed again: code %d", code)
	}
	s.stop()
	m.stop()
}

// A degraded interval that is open begins where the log ends after a power cut that took its beginning: what is put there
// is acknowledged with fewer copies as well. It is durable before anything is taken.
func TestIntervalBehindTheEnd(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.BrokerRole, cfg.ReplicationLevel = "SYNC_MASTER", "semi-sync"
	dir := filepath.Join(cfg.Store.RootDir, "mqx")
	file := filepath.Join(dir, replicationFile)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	text := `{"level":"semi-sync","copies":1,"degraded":[{"fromOffset":10,"toOffset":20,"fromTime":1,"toTime":2,"why":"x"},{"fromOffset":5791,"toOffset":-1,"fromTime":3,"why":"y"}]}`
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	m := start(t, cfg)
	defer m.stop()
	var st replicationState
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &st)
	}
	if err != nil || len(st.Degraded) != 2 || st.Degraded[0].From != 10 || st.Degraded[1].From != 0 || !st.Degraded[1].Open() {
		t.Fatalf("the file says %+v, %v", st, err)
	}
	if now := m.ha.master.Status(); !now.Degraded || now.Intervals[1].From != 0 {
		t.Errorf("degraded %v, %+v", now.Degraded, now.Intervals)
	}
}

// Sync with minInSyncReplicas=2: refused before the append without a slave in sync, also the broker's own messages; a message
// that does not wait is taken. The rows of Apache's keys: IN_SYNC_REPLICAS_NOT_ENOUGH is SYSTEM_ERROR.
func TestSyncLevel(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.BrokerRole, cfg.ReplicationLevel, cfg.MinInSyncReplicas, cfg.SlaveTimeout = "SYNC_MASTER", "sync", 2, 10*time.Second
	m := start(t, cfg)
	m.createTopic("T", 1)
	end := m.store.LogEnd()
	if code := m.sendFor("T", ""); code != remoting.RespSystemError || m.store.LogEnd() != end {
		t.Fatalf("without a slave: code %d, %d bytes appended", code, m.store.LogEnd()-end)
	}
	if code := m.sendFor("T", "WAIT\x01false\x02"); code != remoting.RespSuccess {
		t.Fatalf("a message that does not wait: code %d", code)
	}
	// Two slaves of one host are two copies: they tell who they are.
	one, two := startSlave(t, m, 1, nil), startSlave(t, m, 2, nil)
	waitFor(t, "two slaves in sync", func() bool { return m.ha.master.Status().InSync == 2 })
	for range 20 {
		if code := m.sendFor("T", ""); code != remoting.RespSuccess {
			t.Fatalf("with two slaves: code %d", code)
		}
		if end := m.store.LogEnd(); one.store.LogEnd() < end || two.store.LogEnd() < end {
			t.Fatalf("acknowledged up to %d, the slaves have %d and %d", end, one.store.LogEnd(), two.store.LogEnd())
		}
	}
	one.stop()
	waitFor(t, "one slave", func() bool { return m.ha.master.Status().InSync == 1 })
	if code := m.sendFor("T", ""); code != remoting.RespSuccess {
		t.Fatalf("with one slave: code %d", code)
	}
	two.stop()
	waitFor(t, "no slave", func() bool { return m.ha.master.Status().InSync == 0 })
	if code := m.sendFor("T", ""); code != remoting.RespSystemError {
		t.Fatalf("without slaves: code %d", code)
	}
	m.stop()
}

// haAckMode=flushed: what is acknowledged is on the slave's disk, and a slave that cannot tell that is no copy. A slave that
// nobody waits for is none either.
func TestAckFlushed(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.BrokerRole, cfg.ReplicationLevel, cfg.TotalReplicas, cfg.HAAckMode = "SYNC_MASTER", "quorum", 2, "flushed"
	cfg.AsyncReplicas, cfg.SlaveTimeout = "2", 300*time.Millisecond
	m := start(t, cfg)
	m.createTopic("T", 1)
	_, stop := followerOf(t, m.Broker) // as Apache's: it does not tell who it is
	waitFor(t, "a slave that does not tell", func() bool { return len(m.ha.master.Replicas()) == 1 })
	if code := m.sendFor("T", ""); code != remoting.RespFlushSlaveTimeout {
		t.Errorf("with a slave that does not tell what is durable: code %d", code)
	}
	stop()
	other := startSlave(t, m, 2, nil)
	waitFor(t, "the slave that nobody waits for", func() bool { return other.store.LogEnd() == m.store.LogEnd() })
	if code := m.sendFor("T", ""); code != remoting.RespFlushSlaveTimeout {
		t.Errorf("with a slave that nobody waits for: code %d", code)
	}
	s := startSlave(t, m, 1, nil)
	waitFor(t, "an acknowledgement", func() bool { return m.sendFor("T", "") == remoting.RespSuccess })
	for range 10 {
		if code := m.sendFor("T", ""); code != remoting.RespSuccess {
			t.Fatalf("code %d", code)
		}
		if end := m.store.LogEnd(); s.store.LogFlushed() < end {
			t.Fatalf("acknowledged up to %d, on the slave's disk are %d", end, s.store.LogFlushed())
		}
	}
	s.stop()
	other.stop()
	m.stop()
}

// A slave whose hello has no clear answer reports what is durable: the master may have noted that it does. Only one that does
// not know the question is told what is written. One that is no master is not followed.
func TestHelloUnclear(t *testing.T) {
	m := start(t, testConfig(t.TempDir()))
	s := startSlave(t, m, 1, nil)
	serve := func(mux *server.Mux) string {
		t.Helper()
		old, err := server.New(server.Config{Addr: "127.0.0.1:0", Logger: quiet}, mux)
		if err == nil {
			err = old.Start(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := old.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return old.Addr().String()
	}
	answers := func(code int32) string { // as a hook of Apache's that comes before the code is looked at
		mux := server.NewMux()
		mux.HandleInline(remoting.ReqReplicaHello, func(r *server.Request) { r.Reply(code, "no credentials") })
		return serve(mux)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	})
	for _, tt := range []struct {
		name, master  string
		want, refused bool
	}{
		{"written", m.addr, false, false},
		{"cut off", ln.Addr().String(), true, false},
		{"as Apache's", serve(server.NewMux()), false, false},
		{"a slave", s.addr, false, true},
		{"Apache's with ACL", answers(remoting.RespSystemError), false, false},
		{"Apache's with ACL and a user", answers(remoting.RespNoPermission), false, false},
	} {
		s.slave.learn(m.at().haAddr, tt.master)
		if got, err := s.slave.hello(t.Context(), "127.0.0.1:1"); got != tt.want || (err != nil) != tt.refused {
			t.Errorf("%s: wants what is durable: %v, %v", tt.name, got, err)
		}
	}
	_ = ln.Close()
	wg.Wait()
	s.stop()
	m.stop()
}

// N079 (r#7689): what was not confirmed before a stop counts in the queue offsets of what is written after it: no two messages
// have one.
func TestUnconfirmedTailKeepsItsOffsets(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.BrokerRole, cfg.ReplicationLevel, cfg.TotalReplicas, cfg.SlaveTimeout = "SYNC_MASTER", "quorum", 2, 20*time.Millisecond
	m := start(t, cfg)
	m.createTopic("T", 1)
	for range 5 {
		if code := m.sendFor("T", ""); code != remoting.RespFlushSlaveTimeout {
			t.Fatalf("code %d", code)
		}
	}
	if n := m.store.MaxOffset("T", 0); n != 0 {
		t.Errorf("%d messages are shown without a copy", n)
	}
	m.stop()
	cfg.BrokerRole, cfg.ReplicationLevel = "ASYNC_MASTER", ""
	m = start(t, cfg)
	for range 5 {
		if code := m.sendFor("T", ""); code != remoting.RespSuccess {
			t.Fatalf("code %d", code)
		}
	}
	for i, rec := range m.waitRecords("T", 0, 10) {
		if rec.QueueOffset != int64(i) {
			t.Errorf("message %d has the queue offset %d", i, rec.QueueOffset)
		}
	}
	m.stop()
}

// N081 (r#9804): the creation of a topic is answered when the slave has it, and what is deleted goes there. Offsets, resets and
// groups come within tenths of a second, with nobody asking for the tables.
func TestTablesAreTold(t *testing.T) {
	m := start(t, testConfig(t.TempDir()))
	s := startSlave(t, m, 1, nil)
	waitFor(t, "the slave to be told", func() bool { return m.peers.active.Load() && len(m.ha.master.Replicas()) == 1 })
	waitFor(t, "its first look", func() bool { return s.tablesSeen() })
	for i := range 5 {
		name := fmt.Sprint("T", i)
		m.createTopic(name, 2)
		if s.topics.Get(name) == nil {
			t.Fatalf("topic %s is created, and the slave has it not", name)
		}
	}
	began := time.Now()
	m.heartbeat("G", "CLUSTERING")
	m.commit("G", "T1", 1, 9)
	at := func(want int64) func() bool {
		return func() bool { off, _ := s.offsets.Committed("T1", "G", 1); return off == want }
	}
	waitFor(t, "an offset", at(9))
	waitFor(t, "a group", func() bool { return s.groups.Get("G") != nil })
	s.commit("G", "T1", 1, 20) // who consumes from the slave
	m.commit("G", "T1", 1, 10)
	m.commit("G", "T1", 0, 1)
	waitFor(t, "another offset", func() bool { off, ok := s.offsets.Committed("T1", "G", 0); return ok && off == 1 })
	if off, _ := s.offsets.Committed("T1", "G", 1); off != 20 {
		t.Errorf("the offset of the slave has moved back to %d", off)
	}
	m.offsets.Reset("T1", "G", 1, 15) // ahead of what was told, behind the slave
	waitFor(t, "a reset", at(15))
	if took := time.Since(began); took > syncEvery {
		t.Logf("all of it took %v: the slave may have looked by itself", took)
	}
	s.stop()
	m.stop()
}

// A table whose version goes back was lost, not deleted: nothing goes at the slave (r#9984).
func TestLostTablesDeleteNothing(t *testing.T) {
	dir := t.TempDir()
	cfg := testConfig(dir)
	m := start(t, cfg)
	m.createTopic("T", 1)
	m.createTopic("U", 1)
	s := startSlave(t, m, 1, nil)
	waitFor(t, "the topics", func() bool { return s.topics.Get("T") != nil && s.topics.Get("U") != nil && s.tablesSeen() })
	m.stop()
	if err := os.RemoveAll(filepath.Join(dir, "config")); err != nil {
		t.Fatal(err)
	}
	m = start(t, cfg)
	s.slave.learn(m.at().haAddr, m.addr)
	m.createTopic("V", 1)
	waitFor(t, "the new topic", func() bool { return s.topics.Get("V") != nil })
	if s.topics.Get("T") == nil || s.topics.Get("U") == nil {
		t.Error("the topics that the master has lost are gone at the slave")
	}
	s.stop()
	m.stop()
}

// Who waits for slaves when nobody tells them any more is let go.
func TestToldAfterTheEnd(t *testing.T) {
	m := start(t, testConfig(t.TempDir()))
	p := newPeers(m.Broker)
	p.active.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	done := 0
	p.replicated(partOffsets, func() { done++ })
	p.run(ctx)
	p.active.Store(true) // as with a slave that is still known
	p.replicated(partOffsets, func() { done++ })
	if done != 2 {
		t.Errorf("%d of 2 were let go", done)
	}
	m.stop()
}

func TestReplicationRules(t *testing.T) {
	for _, tt := range []struct {
		change func(*Config)
		want   ha.Rules // Level, Copies, Least, Auto, Hold
		bad    bool
	}{
		{func(c *Config) { c.InSyncReplicas, c.MinInSyncReplicas = 3, 2 }, ha.Rules{Level: ha.LevelAsync}, false},
		{func(c *Config) { c.BrokerRole = "SYNC_MASTER" }, ha.Rules{Level: ha.LevelQuorum}, false},
		{func(c *Config) { c.BrokerRole, c.InSyncReplicas = "SYNC_MASTER", 3 }, ha.Rules{Level: ha.LevelQuorum, Copies: 2}, false},
		{func(c *Config) {
			c.BrokerRole, c.InSyncReplicas, c.MinInSyncReplicas, c.AutoInSyncReplicas = "SYNC_MASTER", 3, 2, true
		}, ha.Rules{Level: ha.LevelQuorum, Copies: 2, Least: 1, Auto: true}, false},
		{func(c *Config) { c.BrokerRole, c.MinInSyncReplicas, c.AllAckInSync = "SYNC_MASTER", 2, true }, ha.Rules{Level: ha.LevelSync, Least: 1, Hold: true}, false},
		{func(c *Config) { c.BrokerRole, c.ReplicationLevel = "SYNC_MASTER", "semi-sync" }, ha.Rules{Level: ha.LevelSemiSync, Copies: 1, Hold: true}, false},
		{func(c *Config) { c.BrokerRole, c.ReplicationLevel, c.ReadUncommitted = "SYNC_MASTER", "sync", true }, ha.Rules{Level: ha.LevelSync}, false},
		{func(c *Config) { c.BrokerRole, c.ReplicationLevel, c.TotalReplicas = "SYNC_MASTER", "quorum", 3 }, ha.Rules{Level: ha.LevelQuorum, Copies: 1, Hold: true}, false},
		{func(c *Config) { c.BrokerRole, c.ReplicationLevel, c.TotalReplicas = "SYNC_MASTER", "quorum", 5 }, ha.Rules{Level: ha.LevelQuorum, Copies: 2, Hold: true}, false},
		{func(c *Config) { c.ReplicationLevel = "semi-sync" }, ha.Rules{Level: ha.LevelSemiSync, Copies: 1, Hold: true}, false},
		{func(c *Config) { c.BrokerRole, c.ReplicationLevel = "SYNC_MASTER", "quorum" }, ha.Rules{}, true},
		{func(c *Config) { c.BrokerRole, c.ReplicationLevel = "SYNC_MASTER", "all" }, ha.Rules{}, true},
		{func(c *Config) { c.BrokerRole, c.InSyncReplicas, c.ReplicationLevel = "SYNC_MASTER", 2, "async" }, ha.Rules{Level: ha.LevelAsync}, false},
		{func(c *Config) { c.BrokerRole, c.ReplicationLevel, c.MinInSyncReplicas = "SYNC_MASTER", "semi-sync", 2 }, ha.Rules{}, true},
		{func(c *Config) { c.HAAckMode = "maybe" }, ha.Rules{}, true},
	} {
		cfg := testConfig(t.TempDir())
		tt.change(&cfg)
		if err := cfg.Validate(); (err != nil) != tt.bad {
			t.Errorf("%+v: %v", cfg.Replication, err)
		}
		if tt.bad {
			continue
		}
		r := cfg.rules()
		waits := tt.want.Level == ha.LevelSync || tt.want.Copies > 0
		if got := cfg.gapless(0) > 0; got != waits {
			t.Errorf("%+v: %v has copies: %v", cfg.Replication, cfg.BrokerRole, got)
		}
		if cfg.BrokerRole = "SLAVE"; cfg.gapless(1) > 0 {
			t.Errorf("%+v: a slave is gapless as a master", cfg.Replication)
		}
		if got := (ha.Rules{Level: r.Level, Copies: r.Copies, Least: r.Least, Auto: r.Auto, Hold: r.Hold}); got != tt.want {
			t.Errorf("%+v: %+v, want %+v", cfg.Replication, got, tt.want)
		}
	}
}

// tablesSeen reports whether a slave has looked at the tables of its master.
func (r *running) tablesSeen() bool {
	done := make(chan error, 1)
	select {
	case r.slave.told <- told{done: func(err error) { done <- err }}:
		return <-done == nil
	default:
		return false
	}
}

// A slave whose haMasterAddress is configured may connect before a name server has told who the master is: it tells that one who
// it is once it knows.
func TestHelloOnceTheMasterIsKnown(t *testing.T) {
	m := start(t, testConfig(t.TempDir()))
	cfg := testConfig(t.TempDir())
	cfg.BrokerRole, cfg.BrokerID, cfg.HAMasterAddress = "SLAVE", 3, m.at().haAddr
	s := start(t, cfg)
	s.slave.follower.Reconnect() // nothing is open
	m.createTopic("T", 1)
	m.send("T", 0, "", "x")
	known := func(want bool) func() bool {
		return func() bool {
			all := m.ha.master.Replicas()
			return len(all) == 1 && all[0].Known == want
		}
	}
	// A slave without a log asks its master where it begins: it has to be told.
	s.slave.learn(m.at().haAddr, m.addr)
	m.until("the slave does not follow", known(true))
	m.until("the log does not come", func() bool { return s.store.LogEnd() > 0 && s.store.LogEnd() == m.store.LogEnd() })
	s.slave.mu.Lock()
	s.slave.mu.broker = ""
	s.slave.mu.Unlock()
	s.slave.follower.Reconnect()
	m.until("the slave does not come back", known(false))
	s.slave.learn(m.at().haAddr, m.addr)
	m.until("the slave does not tell who it is", known(true))
	s.stop()
	m.stop()
}
