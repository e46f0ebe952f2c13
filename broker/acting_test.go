package broker

import (
	"context"
	"errors"
	"maps"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mqx/internal/fastjson"
	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store/ha"
)

// A name server tells a slave that it has the smallest id, and that the master is back: it asks that one for its replication
// port and follows.
func TestActingMaster(t *testing.T) {
	m := start(t, testConfig(t.TempDir()))
	m.createTopic("T", 1)
	m.send("T", 0, "", "x")
	cfg := testConfig(t.TempDir())
	cfg.BrokerRole, cfg.BrokerID, cfg.EnableSlaveActingMaster = "SLAVE", 2, true
	s := start(t, cfg)
	tell := func(r *running, id int64, addr string) {
		t.Helper()
		resp, err := r.c.Call(t.Context(), r.addr, remoting.NewRequest(remoting.ReqNotifyMinBrokerIDChange, &remoting.NotifyMinBrokerIDChangeHeader{
			MinBrokerID: remoting.Some(id), MinBrokerAddr: addr,
		}))
		if err != nil || resp.Code != remoting.RespSuccess {
			t.Fatal(resp, err)
		}
	}
	tell(s, 2, s.addr)
	tell(s, 0, m.addr)
	s.until("it does not follow the master that is back", func() bool { return s.store.LogEnd() == m.store.LogEnd() })
	tell(m, 2, s.addr)
}

// A master tells where its replication port is, a slave that of nobody; a slave takes the one that a master tells it.
func TestExchangeHAInfo(t *testing.T) {
	m := start(t, testConfig(t.TempDir()))
	cfg := testConfig(t.TempDir())
	cfg.BrokerRole, cfg.BrokerID = "SLAVE", 1
	s := start(t, cfg)
	h, err := s.exchangeHA(t.Context(), m.addr, &remoting.ExchangeBrokerHAInfoHeader{})
	if err != nil || h.MasterHAAddress != m.at().haAddr || h.MasterAddress != m.at().Addr() || !h.MasterFlushOffset.OK {
		t.Errorf("the master tells %+v, %v", h, err)
	}
	if h, err = m.exchangeHA(t.Context(), s.addr, &remoting.ExchangeBrokerHAInfoHeader{}); err != nil || h.MasterHAAddress != "" {
		t.Errorf("a slave tells %+v, %v", h, err)
	}
	if _, err := m.exchangeHA(t.Context(), s.addr, &remoting.ExchangeBrokerHAInfoHeader{MasterHAAddress: m.at().haAddr, MasterAddress: m.addr}); err != nil {
		t.Fatal(err)
	}
	if s.slave.haAddr() != m.at().haAddr || s.slave.masterAddr() != m.addr {
		t.Errorf("the slave knows %q and %q", s.slave.haAddr(), s.slave.masterAddr())
	}
}

// A master that comes back tells its slave where it is, waits until that follows and takes over what was committed there; a slave
// of no name server does not keep it.
func TestMasterComesBack(t *testing.T) {
	m := start(t, testConfig(t.TempDir()))
	m.createTopic("T", 1)
	m.heartbeat("G", "CLUSTERING")
	for range 5 {
		m.send("T", 0, "", "x")
	}
	m.commit("G", "T", 0, 4)
	s := startSlave(t, m, 1, nil)
	s.until("the slave has not got all", func() bool {
		off, _ := s.offsets.Committed("T", "G", 0)
		return off == 4 && s.store.Dispatched() == m.store.LogEnd()
	})
	s.slave.mu.Lock() // as one that has never known its master
	s.slave.mu.broker, s.slave.mu.ha = "", ""
	s.slave.mu.Unlock()
	s.commit("G", "T", 0, 5)
	if err := m.slaveBack(t.Context(), 1, s.addr); err != nil {
		t.Fatal(err)
	}
	if off, _ := m.offsets.Committed("T", "G", 0); off != 5 || s.slave.masterAddr() != m.at().Addr() {
		t.Errorf("offset %d, the slave's master %q", off, s.slave.masterAddr())
	}
	m.commit("G", "T", 0, 5)
	s.commit("G", "T", 0, 2)
	if err := m.slaveBack(t.Context(), 1, s.addr); err != nil {
		t.Fatal(err)
	}
	if off, _ := m.offsets.Committed("T", "G", 0); off != 5 {
		t.Errorf("an offset went back to %d", off)
	}
}

// fakeServer answers requests as told, others as one that does not know them, until the test ends.
func fakeServer(t *testing.T, answers map[int32]func(*server.Request)) string {
	t.Helper()
	mux := server.NewMux()
	for code, h := range answers {
		mux.HandleInline(code, h)
	}
	s, err := server.New(server.Config{Addr: "127.0.0.1:0", Logger: quiet}, mux)
	if err == nil {
		err = s.Start(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s.Addr().String()
}

// answer is an answer with v as its body.
func answer(t *testing.T, v any) func(*server.Request) {
	t.Helper()
	body, err := fastjson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return func(r *server.Request) {
		p := newReply(remoting.RespSuccess, "")
		p.cmd.Body = body
		p.to(r)
	}
}

// groupOf is what a name server tells of the group.
func groupOf(t *testing.T, members map[int64]string) func(*server.Request) {
	t.Helper()
	return answer(t, &remoting.GetBrokerMemberGroupBody{BrokerMemberGroup: &remoting.BrokerMemberGroup{Cluster: "C", BrokerName: "b", BrokerAddrs: members}})
}

func succeed(r *server.Request) { r.Reply(remoting.RespSuccess, "") }

// followRaw opens a connection to a master's replication port and reports once, as one that tells no id.
func followRaw(t *testing.T, m *running) {
	t.Helper()
	c, err := net.Dial("tcp", m.at().haAddr)
	if err == nil {
		_, err = c.Write(make([]byte, 8))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
}

// A slave that follows and does not tell what was committed to it is asked again: the master does not count it as done with.
func TestSlaveDoesNotTellItsOffsets(t *testing.T) {
	m := start(t, testConfig(t.TempDir()))
	var tells atomic.Bool
	slave := fakeServer(t, map[int32]func(*server.Request){
		remoting.ReqExchangeBrokerHAInfo: succeed,
		remoting.ReqMqxHA: func(r *server.Request) {
			if tells.Load() {
				answer(t, &remoting.ConsumerOffsets{})(r)
				return
			}
			r.Reply(remoting.RespSystemError, "not now")
		},
	})
	ns := fakeServer(t, map[int32]func(*server.Request){remoting.ReqGetBrokerMemberGroup: groupOf(t, map[int64]string{0: m.at().Addr(), 7: slave})})
	followRaw(t, m)
	ready := map[string]bool{}
	if err := m.prepareOnline(t.Context(), []string{ns}, ready); err == nil || len(ready) > 0 {
		t.Errorf("the master is online without the offsets of its slave: %v, %v", err, ready)
	}
	tells.Store(true)
	if err := m.prepareOnline(t.Context(), []string{ns}, ready); err != nil || !ready[slave] {
		t.Errorf("%v, %v", err, ready)
	}
}

// The table of a slave of Apache is taken where it is not older than the one that the master saved last: what somebody has set
// back there is not undone by a slave that has not heard of it. Setting back, and deleting, makes a new version at once.
func TestTableOfApachesSlave(t *testing.T) {
	dir := t.TempDir()
	m := start(t, testConfig(dir))
	m.createTopic("T", 1)
	m.createTopic("U", 1)
	m.heartbeat("G", "CLUSTERING")
	for range 5 {
		m.send("T", 0, "", "x")
		m.send("U", 0, "", "x")
	}
	m.commit("G", "T", 0, 4)
	at := func() int64 { return m.offsets.Snapshot().DataVersion.Counter }
	told := func(commit int64, version remoting.DataVersion) string {
		return fakeServer(t, map[int32]func(*server.Request){remoting.ReqGetAllConsumerOffset: answer(t, &remoting.ConsumerOffsets{
			OffsetTable: map[string]map[int32]int64{"T@G": {0: commit}}, DataVersion: version,
		})})
	}
	before := m.offsets.Snapshot().DataVersion
	m.commit("G", "T", 0, 4)
	if at() != before.Counter {
		t.Error("a commit alone makes a new version")
	}
	for what, do := range map[string]func(){
		"reset":           func() { m.offsets.Reset("U", "G", 0, 2) },
		"a commit back":   func() { m.commit("G", "T", 0, 1) },
		"clone":           func() { m.offsets.Clone("G", "G2", "T") },
		"a deleted group": func() { m.offsets.RemoveGroup("G2") },
		"a deleted topic": func() { m.offsets.RemoveTopic("U") },
		"a deleted queue": func() { m.offsets.set(offsetKey{"T", "G3"}, 0, 1); m.offsets.RemoveQueue("T", "G3", 0) },
	} {
		m.offsets.TakeReset([]byte("U"), []byte("G"), 0)
		if what == "a deleted group" {
			m.offsets.Clone("G", "G2", "T")
		}
		if what == "a deleted topic" {
			m.offsets.set(offsetKey{"U", "G"}, 0, 1)
		}
		was := at()
		if do(); at() == was {
			t.Errorf("%s: the version stays", what)
		}
	}
	m.commit("G", "T", 0, 1)
	m.stop()
	m = start(t, testConfig(dir))
	saved := m.offsets.Snapshot().DataVersion
	for _, tt := range []struct {
		name    string
		version remoting.DataVersion
		want    int64
	}{{"older", before, 1}, {"the same", saved, 3}, {"newer", saved.NextVersion(time.Now()), 4}} {
		if err := m.takeBackTable(t.Context(), told(max(3, tt.want), tt.version)); err != nil {
			t.Fatal(err)
		}
		if off, _ := m.offsets.Committed("T", "G", 0); off != tt.want {
			t.Errorf("%s: offset %d, want %d", tt.name, off, tt.want)
		}
	}
}

// A slave is known by its id where it tells one; others on its host do not stand for it, nor does it need the host that it is
// registered with.
func TestFollows(t *testing.T) {
	list := []ha.Replica{{ID: "1", Known: true, Host: "10.0.0.1"}, {ID: "10.0.0.2", Host: "10.0.0.2"}}
	for _, tt := range []struct {
		id   int64
		host string
		want bool
	}{{1, "10.0.0.1", true}, {1, "172.17.0.1", true}, {2, "10.0.0.1", false}, {2, "10.0.0.2", true}, {3, "10.0.0.3", false}} {
		if got := follows(list, tt.id, tt.host); got != tt.want {
			t.Errorf("slave %d at %s: %v", tt.id, tt.host, got)
		}
	}
}

// What one name server has not, or lost sight of, another has; without an answer nothing is known.
func TestMembersOfAllNameServers(t *testing.T) {
	b := start(t, testConfig(t.TempDir()))
	blank := fakeServer(t, map[int32]func(*server.Request){remoting.ReqGetBrokerMemberGroup: groupOf(t, nil)})
	part := fakeServer(t, map[int32]func(*server.Request){remoting.ReqGetBrokerMemberGroup: groupOf(t, map[int64]string{1: "s:1"})})
	whole := fakeServer(t, map[int32]func(*server.Request){remoting.ReqGetBrokerMemberGroup: groupOf(t, map[int64]string{0: "m:1", 1: "s:1"})})
	none := fakeServer(t, nil)
	got, err := b.members(t.Context(), []string{none, blank, part, whole})
	if want := map[int64]string{0: "m:1", 1: "s:1"}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := b.members(t.Context(), []string{none}); err == nil {
		t.Errorf("nobody answered: %v", got)
	}
}

// A name server that does not answer holds up no sign of life to another.
func TestSignsOfLifePassOneThatHangs(t *testing.T) {
	var looks, beats atomic.Int64
	hangs := fakeServer(t, map[int32]func(*server.Request){
		remoting.ReqGetBrokerMemberGroup: func(*server.Request) { looks.Add(1) }, // no answer
	})
	well := fakeServer(t, map[int32]func(*server.Request){
		remoting.ReqGetBrokerMemberGroup: func(*server.Request) {},
		remoting.ReqBrokerHeartbeat:      func(r *server.Request) { beats.Add(1); succeed(r) },
	})
	cfg := testConfig(t.TempDir())
	cfg.BrokerRole, cfg.BrokerID, cfg.EnableSlaveActingMaster, cfg.NamesrvAddr = "SLAVE", 1, true, hangs+";"+well
	cfg.BrokerHeartbeat, cfg.SyncMemberGroup = 100*time.Millisecond, 100*time.Millisecond
	s := start(t, cfg)
	s.until("the broker does not beat", func() bool { return looks.Load() > 0 && beats.Load() >= 20 })
	if l, n := looks.Load(), beats.Load(); l > n/2 {
		t.Errorf("%d looks that hang, %d signs of life", l, n)
	}
}

// A slave that knows a newer epoch does not follow a master of an older one, whoever tells of it.
func TestOldMasterIsNotFollowed(t *testing.T) {
	old := start(t, testConfig(t.TempDir()))
	m := start(t, testConfig(t.TempDir()))
	s := startSlave(t, m, 1, nil)
	s.until("the slave does not follow", func() bool { return s.slave.follower.State().Phase == ha.PhaseFollowing })
	if err := s.role.Change(func(st *roleState) error { st.Epoch = 1000; return nil }); err != nil {
		t.Fatal(err)
	}
	_, err := old.exchangeHA(t.Context(), s.addr, &remoting.ExchangeBrokerHAInfoHeader{MasterHAAddress: old.at().haAddr, MasterAddress: old.addr})
	if err == nil || !strings.Contains(err.Error(), "another master has taken its place") {
		t.Errorf("the old master is answered %v", err)
	}
	s.minChanged(t.Context(), minTold{addr: old.addr})
	if got := s.slave.masterAddr(); got != m.addr {
		t.Errorf("the slave follows %s, its master is %s", got, m.addr)
	}
	s.stop()
}

// A pull that waits at a slave is answered when the master is back: it is told to go there.
func TestPullsLeaveAnActingSlave(t *testing.T) {
	m := start(t, testConfig(t.TempDir()))
	m.createTopic("T", 1)
	m.send("T", 0, "", "x")
	s := startSlave(t, m, 1, nil)
	s.until("the slave has not got all", func() bool {
		return s.topics.Get("T") != nil && s.store.LogEnd() == m.store.LogEnd() && s.store.MaxOffset("T", 0) == 1
	})
	s.minChanged(t.Context(), minTold{id: 1, addr: s.addr})
	ch := s.waiting(s.c, remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, 1), 25*time.Second)
	s.minChanged(t.Context(), minTold{addr: m.addr})
	if n := s.hold.Len(); n != 0 {
		t.Errorf("%d pulls wait on", n)
	}
	s.until("no answer", func() bool { return len(ch) > 0 })
	if resp := <-ch; resp == nil || resp.Code != remoting.RespPullNotFound || resp.Fields.String("suggestWhichBrokerId") != "0" {
		t.Errorf("%+v", resp)
	}
}

// A broker that waits for its group before it goes into the routes is started anew, or stopped, without waiting longer.
func TestStopBeforeOnline(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	var looks atomic.Int64
	members := groupOf(t, map[int64]string{1: gone.Addr().String()}) // accepts and never answers
	ns := fakeServer(t, map[int32]func(*server.Request){
		remoting.ReqGetBrokerMemberGroup: func(r *server.Request) { looks.Add(1); members(r) },
	})
	for name, end := range map[string]func(b *Broker, cancel func()){
		"anew":    func(b *Broker, _ func()) { b.reopen("test") },
		"stopped": func(_ *Broker, cancel func()) { cancel() },
	} {
		cfg := testConfig(t.TempDir())
		cfg.NamesrvAddr, cfg.EnableSlaveActingMaster, cfg.TotalReplicas = ns, true, 2
		b, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		looks.Store(0)
		go func() { ended <- b.Run(ctx) }()
		waitFor(t, "the look for slaves", func() bool { return looks.Load() > 2 }) // those for a rival and for offsets come first
		end(b, cancel)
		select {
		case err = <-ended:
		case <-b.Ready():
			err = errors.New("it has gone online first")
		}
		var anew *ReopenError
		if errors.As(err, &anew) != (name == "anew") || anew == nil && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}

// Name servers must not forget a broker between two signs of life.
func TestBeatsWithinTheTimeOut(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.BrokerHeartbeat, cfg.HeartbeatTimeout, cfg.NotActive = 2*time.Second, time.Second, 2999*time.Millisecond
	if err := cfg.Validate(); err != nil {
		t.Errorf("without acting masters: %v", err)
	}
	cfg.EnableSlaveActingMaster = true
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "brokerNotActiveTimeoutMillis") {
		t.Errorf("%v", err)
	}
	if cfg.NotActive = 3 * time.Second; cfg.Validate() != nil {
		t.Error(cfg.Validate())
	}
}
