package broker

import (
	"slices"
	"testing"
	"time"

	"mqx/message"
	"mqx/remoting"
)

// Past bug r#7709: a commit that comes while too few slaves are in sync is refused, and its half message stays until it is
// committed again, by its producer or by the answer to a check.
func TestCommitBelowTheMinimum(t *testing.T) {
	t.Parallel()
	cfg := transactionConfig(t.TempDir())
	cfg.BrokerRole, cfg.ReplicationLevel, cfg.MinInSyncReplicas, cfg.SlaveTimeout = "SYNC_MASTER", "sync", 2, 30*time.Second
	m := start(t, cfg)
	m.createTopic("T", 2)
	s := startSlave(t, m, 1, nil)
	inSync := func(n int) func() bool { return func() bool { return m.ha.master.Status().InSync == n } }
	m.until("the slave does not get in sync", inSync(1))
	again, checked := m.half("again"), m.half("checked")
	again.CommitOrRollback, checked.CommitOrRollback = message.TransactionCommit, message.TransactionCommit
	s.stop()
	m.until("the slave is still in sync", inSync(0))
	for range 20 { // more often than a producer is asked
		for _, h := range []remoting.EndTransactionHeader{again, checked} {
			if resp := m.askUnsettled(remoting.ReqEndTransaction, &h); resp.Code == remoting.RespSuccess {
				t.Error("a commit without a slave is answered with success")
			}
		}
	}
	if n := m.store.EndOffset("T", 1); n != 0 {
		t.Errorf("%d messages are delivered", n)
	}
	s = startSlave(t, m, 1, nil)
	m.until("the new slave does not get in sync", inSync(1))
	if resp := m.askUnsettled(remoting.ReqEndTransaction, &again); resp.Code != remoting.RespSuccess {
		t.Errorf("the commit once more: %d %s", resp.Code, resp.Remark)
	}
	m.producer("a", func(askedHalf) int32 { return message.TransactionCommit })
	m.until("the other half message is not asked about and delivered", func() bool { return m.store.MaxOffset("T", 1) == 2 })
	if got := bodyText(m.all("T", 1)); got != "again checked" {
		t.Errorf("delivered: %q", got)
	}
	s.stop()
	m.stop()
}

// askUnsettled asks a broker that holds back what has no copies.
func (r *running) askUnsettled(code int32, header any) *remoting.Command {
	r.t.Helper()
	resp, err := r.c.Call(r.t.Context(), r.addr, remoting.NewRequest(code, header))
	if err != nil {
		r.t.Fatal(err)
	}
	return resp
}

// Past bug r#4806: a checkpoint of a pop without its copies is none. Nothing is handed out by it, and where the group goes on,
// which slaves are told, does not pass what it stands for: a slave that becomes the master has the messages or their checkpoint.
// An ack without its copies is answered as such.
func TestPopWithoutCopies(t *testing.T) {
	for name, merge := range map[string]bool{"checkpoints": false, "in memory": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startPop(t, func(c *Config) {
				c.BrokerRole, c.ReplicationLevel, c.TotalReplicas, c.SlaveTimeout = "SYNC_MASTER", "quorum", 2, 100*time.Millisecond
				c.PopMerge, c.PopStay = merge, 50*time.Millisecond
			})
			p.createTopic("T", 1)
			p.createTopic("U", 1)
			s := startSlave(t, p.running, 1, nil)
			p.until("no message is acknowledged", func() bool { return p.sendFor("T", "") == remoting.RespSuccess })
			first := p.collect("G", "T", 1, 60_000)
			at := func() int64 { off, _ := p.offsets.Committed("T", "G", 0); return off }
			p.until("the pop is not committed", func() bool { return at() == p.store.MaxOffset("T", 0) })
			before := at()
			for range 3 {
				if code := p.sendFor("T", ""); code != remoting.RespSuccess {
					t.Fatalf("code %d", code)
				}
			}
			s.stop()
			p.until("the slave is still there", func() bool { return len(p.ha.master.Replicas()) == 0 })

			popped := p.popAny()
			if !merge && (popped.Code == remoting.RespSuccess || at() != before) {
				t.Errorf("a pop without a slave: %s, the group goes on at %d, it was at %d", remoting.ResponseName(popped.Code), at(), before)
			}
			if merge {
				end := p.store.LogEnd()
				p.until("the checkpoint in memory is not tried", func() bool { return p.store.LogEnd() > end })
				for range 3 { // whose time begins later than the checkpoint's and is over as well
					if code := p.sendFor("U", ""); code != remoting.RespFlushSlaveTimeout {
						t.Errorf("a send without a slave: code %d", code)
					}
				}
				if at() != before {
					t.Errorf("the checkpoint has no copies, and the group goes on at %d, it was at %d", at(), before)
				}
			} else {
				x := first[0]
				h := &remoting.AckMessageHeader{ConsumerGroup: "G", Topic: x.real, QueueID: x.queue, ExtraInfo: x.receipt, Offset: x.offset}
				if resp := p.askUnsettled(remoting.ReqAckMessage, h); resp.Code == remoting.RespSuccess {
					t.Error("an ack without copies is answered with success")
				}
			}
			s = startSlave(t, p.running, 1, nil)
			if !merge {
				p.until("the messages are not popped", func() bool { return p.popAny().Code == remoting.RespSuccess })
			}
			p.until("the group does not go on", func() bool { return at() == before+3 })
			s.stop()
		})
	}
}

// popAny pops T as the group G and returns whatever is answered.
func (p popping) popAny() *remoting.Command {
	p.t.Helper()
	return p.askUnsettled(remoting.ReqPopMessage, popHeader("G", "T", 0))
}

// Past bugs r#9777, r#9984, r#9879, r#9864 and r#10030: a slave that looks again at tables that have not changed changes nothing,
// neither entries nor versions, and what goes at the master goes alone. It has them all when it becomes the master.
func TestTablesOfASlaveSettle(t *testing.T) {
	t.Parallel()
	m := start(t, testConfig(t.TempDir()))
	for _, name := range []string{"T1", "T2", "T3"} {
		m.createTopic(name, 2)
		m.heartbeat("G"+name, "CLUSTERING")
	}
	sc := testConfig(t.TempDir())
	sc.BrokerRole, sc.BrokerID = "SLAVE", 1
	s := start(t, sc)
	s.slave.learn(m.at().haAddr, m.addr)
	s.until("the tables do not come", func() bool {
		return s.tablesSeen() && s.topics.Get("T3") != nil && s.groups.Get("GT3") != nil
	})
	look := tables{b: s.Broker, files: map[string][]byte{}}
	sync := func() {
		t.Helper()
		if err := look.sync(t.Context(), m.addr); err != nil {
			t.Fatal(err)
		}
	}
	sync()
	topics, groups := s.topics.Version(), s.groups.All()
	for range 3 {
		sync()
		if got := s.topics.Version(); got != topics {
			t.Errorf("nothing has changed, and the topics have the version %+v, it was %+v", got, topics)
		}
		if got := s.groups.All(); got.DataVersion != groups.DataVersion || len(got.SubscriptionGroupTable) != len(groups.SubscriptionGroupTable) {
			t.Errorf("nothing has changed, and there are %d groups of the version %+v", len(got.SubscriptionGroupTable), got.DataVersion)
		}
	}
	m.ok(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicHeader{Topic: "T2"}, nil)
	sync()
	has := func(r *running) (names []string) {
		for _, name := range []string{"T1", "T2", "T3"} {
			if r.topics.Get(name) != nil {
				names = append(names, name)
			}
			if r.groups.Get("G"+name) == nil {
				t.Errorf("the group of %s is gone", name)
			}
		}
		return names
	}
	if got := has(s); !slices.Equal(got, []string{"T1", "T3"}) {
		t.Errorf("after the deletion of T2 the slave has %v", got)
	}
	m.stop()
	s.stop()
	sc.BrokerRole, sc.BrokerID = "ASYNC_MASTER", 0
	s = start(t, sc)
	if got := has(s); !slices.Equal(got, []string{"T1", "T3"}) {
		t.Errorf("as the master it has %v", got)
	}
	s.send("T1", 0, "", "x")
	s.stop()
}

// Past bugs r#8509 and r#9711: offsets of light queues, and of groups of them, go to the slave as others do, and what was committed
// there while the master was away comes back to it.
func TestLightOffsetsComeAndGo(t *testing.T) {
	t.Parallel()
	light := func(c *Config) { c.Store.EnableLMQ, c.Store.EnableMultiDispatch = true, true }
	mc := testConfig(t.TempDir())
	light(&mc)
	m := start(t, mc)
	m.createTopic("T", 1)
	for range 5 {
		m.send("T", 0, prop("INNER_MULTI_DISPATCH", "%LMQ%a"), "x")
	}
	m.heartbeat("G", "CLUSTERING")
	groups := []string{"G", "%LMQ%g"}
	for _, g := range groups {
		m.commit(g, "%LMQ%a", 0, 2)
	}
	s := startSlave(t, m, 1, light)
	at := func(r *running, want int64) func() bool {
		return func() bool {
			for _, g := range groups {
				if off, ok := r.offsets.Committed("%LMQ%a", g, 0); !ok || off != want {
					return false
				}
			}
			return true
		}
	}
	s.until("the offsets do not come", func() bool { return at(s, 2)() && s.tablesSeen() && s.store.Dispatched() == m.store.LogEnd() })
	m.stop()
	for _, g := range groups {
		s.commit(g, "%LMQ%a", 0, 4)
	}
	m = start(t, mc)
	if _, err := m.takeBackFrom(t.Context(), s.addr); err != nil {
		t.Fatal(err)
	}
	if !at(m, 4)() {
		t.Errorf("the master that came back has the offsets %+v", m.offsets.Snapshot().OffsetTable)
	}
	s.stop()
	m.stop()
}

// Past bug r#1440: the roles change and change back by the configuration; the first master does not go on with the offsets of its
// first time.
func TestOffsetsThereAndBack(t *testing.T) {
	t.Parallel()
	cfgs := []Config{testConfig(t.TempDir()), testConfig(t.TempDir())}
	pair := func(master int) (m, s *running) {
		t.Helper()
		mc, sc := cfgs[master], cfgs[1-master]
		mc.BrokerRole, mc.BrokerID = "ASYNC_MASTER", 0
		sc.BrokerRole, sc.BrokerID = "SLAVE", 1
		m, s = start(t, mc), start(t, sc)
		s.slave.learn(m.at().haAddr, m.addr)
		return m, s
	}
	for turn, want := range []int64{3, 20, 23} {
		m, s := pair(turn % 2)
		if turn == 0 {
			m.createTopic("T", 1)
			for range 30 {
				m.send("T", 0, "", "x")
			}
			m.heartbeat("G", "CLUSTERING")
		} else if off, _ := m.offsets.Committed("T", "G", 0); off != []int64{0, 3, 20}[turn] {
			t.Errorf("turn %d begins at %d", turn, off)
		}
		m.commit("G", "T", 0, want)
		s.until("the slave does not get all", func() bool {
			off, _ := s.offsets.Committed("T", "G", 0)
			return off == want && s.tablesSeen() && s.store.LogEnd() == m.store.LogEnd()
		})
		m.stop()
		s.stop()
	}
}
