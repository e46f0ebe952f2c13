package broker

import (
	"testing"

	"mqx/remoting"
)

// A name server tells a slave that it has the smallest id: it acts; and that the master is back: it asks that one for its
// replication port and follows. A broker without enableSlaveActingMaster does not act.
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
	if s.isActing() {
		t.Error("it acts before it knows its group")
	}
	tell(s, 2, s.addr)
	s.until("the slave with the smallest id does not act", s.isActing)
	tell(s, 0, m.addr)
	s.until("it does not follow the master that is back", func() bool { return !s.isActing() && s.store.LogEnd() == m.store.LogEnd() })
	tell(m, 2, s.addr)
	if m.isActing() {
		t.Error("a master acts as one")
	}
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
	if err := m.slaveBack(t.Context(), s.addr); err != nil {
		t.Fatal(err)
	}
	if off, _ := m.offsets.Committed("T", "G", 0); off != 5 || s.slave.masterAddr() != m.at().Addr() {
		t.Errorf("offset %d, the slave's master %q", off, s.slave.masterAddr())
	}
	m.commit("G", "T", 0, 5)
	s.commit("G", "T", 0, 2)
	if err := m.slaveBack(t.Context(), s.addr); err != nil {
		t.Fatal(err)
	}
	if off, _ := m.offsets.Committed("T", "G", 0); off != 5 {
		t.Errorf("an offset went back to %d", off)
	}
}
